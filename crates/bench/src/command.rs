//! `tollgate bench`: open-loop load, and latency from the moment each event was meant to be sent.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use crate::bench::{
    Checkout, Findings, Invocation, Machine, Plan, Progress, Search, Session, Subject, Suite, Times, Versus, markdown, page, rows,
};
use crate::settings::Settings;

use super::process;

/// Events of a topic that is drained; a report drains more, as it compares with who fetches a lot ahead.
const DRAINED_EVENTS: u32 = 200_000;
const REPORT_DRAINED_EVENTS: u32 = 300_000;
const PICTURE: &str = "![Latency against offered load](plot.svg)";

/// What the gate may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Opponent {
    /// The same worker with deciding left out.
    PassThrough,
}

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Brokers to use; without them and without a configuration file a broker is started (Java and Maven are needed)
    #[arg(long, value_name = "HOST:PORT,…", conflicts_with = "own_broker")]
    brokers: Option<String>,
    /// Start a broker, whatever the configuration says
    #[arg(long)]
    own_broker: bool,
    /// Events per second to measure latency at; left out: half of the peak, which is searched first
    #[arg(long, value_name = "EVENTS", value_parser = positive)]
    rate: Option<f64>,
    /// Search the highest rate that is sustained: 99 % of it achieved, lag that does not grow, no verdict missing
    #[arg(long)]
    find_peak: bool,
    /// Offer this many times the peak, and see what is kept and how the worker comes back
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    overload: Option<f64>,
    /// Compare with the same worker without deciding, in turns: CPU per event, peak, latency
    #[arg(long)]
    versus: Option<Opponent>,
    /// How often things are measured that are compared
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Measure events per CPU second over a topic preloaded with so many (200000 where it is needed and not given)
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(1_000..))]
    drain: Option<u32>,
    /// Have a command drain the same topic and compare its verdicts: it gets TOLLGATE_BROKERS, TOLLGATE_EVENTS_TOPIC,
    /// TOLLGATE_DECISIONS_TOPIC and TOLLGATE_GROUP. May be given several times
    #[arg(long = "baseline", value_name = "NAME=COMMAND", value_parser = baseline)]
    baselines: Vec<Subject>,
    /// Measure all of it, the baselines and the core's benchmarks of a checkout among it, and write report.json, report.md and plot.svg into
    /// this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// The folder of a checkout that holds the baselines of a report; the core's benchmarks are two folders above it
    #[arg(long = "baselines", value_name = "DIR", default_value = "benches/baselines")]
    baselines_folder: PathBuf,
    /// Minutes that a report may take once everything is built; where time is short there are fewer rounds
    #[arg(long, value_name = "MINUTES", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    time_limit: u32,
    /// Seconds that a latency measurement takes, behind its warm-up
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    duration: u32,
    /// Seconds of every measurement that do not count
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    warm_up: u32,
    /// Milliseconds after which a verdict no longer counts
    #[arg(long, value_name = "MS", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    deadline_ms: u32,
    /// Where the traffic begins: the same seed gives the same events
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads of the traffic
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    threads: u32,
    /// Partitions of the topics
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    partitions: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(args: &BenchArgs, mut settings: Settings, invocation: Invocation) -> anyhow::Result<ExitCode> {
    if settings.log.filter == "info" {
        settings.log.filter = "error,librdkafka=off".to_owned();
    }
    process::start_logging(&settings.log)?;
    let names_cluster = invocation.config.is_some() || std::env::var_os("TOLLGATE__KAFKA__BROKERS").is_some();
    if let Some(brokers) = &args.brokers {
        settings.kafka.brokers.clone_from(brokers);
    }
    let starts_broker = args.own_broker || (args.brokers.is_none() && !names_cluster);
    let invocation = Invocation { brokers: settings.kafka.brokers.clone(), ..invocation };
    let open = |progress| Session::open(args.plan(), settings.kafka, invocation, starts_broker, progress);
    let findings = match &args.report {
        Some(directory) => args.write_report(directory, open)?,
        None => args.measure(&open(Progress::default())?)?,
    };
    let text = if args.json { format!("{}\n", serde_json::to_string_pretty(&json(&findings))?) } else { markdown(&findings) };
    std::io::stdout().write_all(text.as_bytes())?;
    match findings.failures() {
        None => Ok(ExitCode::SUCCESS),
        Some(failures) => bail!("{failures}"),
    }
}

/// Writes what has been found by now.
fn write_files(directory: &Path, findings: &Findings) -> anyhow::Result<()> {
    let report = serde_json::to_string_pretty(&json(findings))?;
    for (name, text) in [("report.json", report), ("report.md", page(findings, PICTURE)), ("plot.svg", findings.plot())] {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    Ok(())
}

/// The findings with the table of targets.
fn json(findings: &Findings) -> serde_json::Value {
    let mut value = serde_json::json!(findings);
    if let Some(object) = value.as_object_mut() {
        object.insert("targets".to_owned(), serde_json::json!(rows(findings)));
    }
    value
}

impl BenchArgs {
    fn plan(&self) -> Plan {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let deadline = Duration::from_millis(self.deadline_ms.into());
        let attempts = if self.report.is_some() { 2 } else { 1 };
        Plan {
            seed: self.seed,
            threads: self.threads as usize,
            partitions: self.partitions,
            times: Times { warm_up: seconds(self.warm_up), measured: seconds(self.duration), deadline },
            probe_times: Times { warm_up: seconds(self.warm_up), measured: seconds(self.duration.min(3)), deadline },
            search: Search { start: 4_000.0, precision: 1.1, attempts, probes_max: 12 },
        }
    }

    /// Everything, part by part. What is known is written after every part, so that a report that is interrupted leaves what it has.
    fn write_report(&self, directory: &Path, open: impl FnOnce(Progress) -> anyhow::Result<Session>) -> anyhow::Result<Findings> {
        fs::create_dir_all(directory).with_context(|| format!("{}: cannot be made", directory.display()))?;
        let findings = Findings::new(Machine::here("none".to_owned()), self.plan());
        write_files(directory, &findings)?;
        let suite = Suite {
            checkout: &Checkout::new(&self.baselines_folder),
            baselines: &self.baselines,
            rounds: self.rounds as usize,
            events: self.drain.unwrap_or(REPORT_DRAINED_EVENTS) as usize,
            time: Duration::from_secs(u64::from(self.time_limit) * 60),
        };
        let keep = |findings: &Findings| {
            // The last one counts, which is written below.
            let _written = write_files(directory, findings);
        };
        let findings = suite.run(findings, Progress::default(), open, &keep);
        write_files(directory, &findings)?;
        Ok(findings)
    }

    /// What was asked for, or else the peak and the latency at half of it.
    fn measure(&self, session: &Session) -> anyhow::Result<Findings> {
        let mut findings = Findings::new(Machine::here(session.broker_place()), session.plan.clone());
        let wants_other = self.versus.is_some() || self.drain.is_some() || !self.baselines.is_empty();
        if wants_other {
            let subjects: Vec<_> = [Subject::Gate, Subject::PassThrough].into_iter().chain(self.baselines.iter().cloned()).collect();
            findings.drained = session.drain(&subjects, self.drain.unwrap_or(DRAINED_EVENTS) as usize, self.rounds as usize)?;
            if let Some(failure) = findings.drained.iter().find_map(|drained| drained.failure.as_ref()) {
                bail!("{failure}");
            }
        }
        if self.rate.is_some() || self.find_peak || self.overload.is_some() || !wants_other {
            self.load_gate(session, &mut findings)?;
        }
        if self.versus.is_some() {
            findings.versus = Some(Versus::new(session.rounds(self.rounds as usize, None)?, &findings.drained));
        }
        Ok(findings)
    }

    /// What is measured of the gate alone, on one worker.
    fn load_gate(&self, session: &Session, findings: &mut Findings) -> anyhow::Result<()> {
        session.with_worker(&Subject::Gate, |bed| {
            let needs_peak = self.find_peak || self.overload.is_some() || self.rate.is_none();
            findings.peak = needs_peak.then(|| session.find_peak(bed)).transpose()?;
            let peak = findings.peak.as_ref().map(|peak| peak.per_second);
            let only_peak = self.find_peak && self.rate.is_none();
            if let Some(rate) = self.rate.or(peak.map(|peak| peak / 2.0)).filter(|_| !only_peak) {
                findings.latency = Some(bed.run(rate, session.plan.times)?.phase);
            }
            if let (Some(factor), Some(peak)) = (self.overload, peak) {
                findings.overload = Some(session.overload(bed, peak, factor)?);
            }
            Ok(())
        })
    }
}

/// `NAME=COMMAND`.
fn baseline(text: &str) -> Result<Subject, String> {
    match text.split_once('=') {
        Some((name, command)) if !name.is_empty() && !command.is_empty() => {
            Ok(Subject::Baseline { name: name.to_owned(), command: command.to_owned() })
        }
        _ => Err("write NAME=COMMAND, such as python=./worker.py".to_owned()),
    }
}

/// A positive number of events, or a factor.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("write a positive number".to_owned()),
    }
}
