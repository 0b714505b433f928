//! Carries out the command: open-loop load, and latency from the moment each event was meant to be sent.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tollgate_worker::logging::{finish_logging, start_logging};

use super::{
    Checkout, Cli, Findings, Invocation, Machine, Plan, Progress, Search, Session, Subject, Suite, Times, Versus, binary, markdown, page,
    rows,
};

/// The events of a topic that is drained. A report drains more, since some baselines fetch a lot ahead.
const DRAINED_EVENTS: u32 = 200_000;
const REPORT_DRAINED_EVENTS: u32 = 300_000;
/// The time of every measurement that does not count, and the time after which a verdict no longer counts.
const WARM_UP: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(5);
const PICTURE: &str = "![Latency against offered load](plot.svg)";

/// Carries a parsed command line out: the findings go to stdout, progress and errors to stderr.
pub fn execute(args: Cli) -> ExitCode {
    let outcome = measure(args);
    finish_logging();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is no other place for the error.
            let _unread = writeln!(std::io::stderr(), "tollgate-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: Cli) -> anyhow::Result<()> {
    let mut settings = args.connection.settings()?;
    if settings.log.filter == "info" {
        settings.log.filter = "error,librdkafka=off,rdkafka=off".to_owned();
    }
    start_logging(&settings.log)?;
    let names_cluster = args.connection.config.is_some() || std::env::var_os("TOLLGATE__KAFKA__BROKERS").is_some();
    let starts_broker = args.own_broker || (args.connection.brokers.is_none() && !names_cluster);
    let brokers = settings.kafka.brokers.clone();
    let invocation = || {
        let binary = binary::resolve(args.tollgate.as_deref(), &Progress::default())?;
        let (config, properties) = (args.connection.config.clone(), args.connection.properties.clone());
        anyhow::Ok(Invocation { binary, config, properties, brokers })
    };
    let open = |progress, invocation| Session::open(args.plan(), settings.kafka, invocation, starts_broker, progress);
    if let Some(measurement) = &args.measurement {
        return measurement.run(args.tollgate.as_deref(), || open(Progress::default(), invocation()?));
    }
    let invocation = invocation()?;
    let open = |progress| open(progress, invocation);
    let findings = match &args.report {
        Some(directory) => args.write_report(directory, open)?,
        None => args.measure(&open(Progress::default())?)?,
    };
    let text = if args.json { format!("{}\n", serde_json::to_string_pretty(&json(&findings))?) } else { markdown(&findings) };
    std::io::stdout().write_all(text.as_bytes())?;
    match findings.failures() {
        None => Ok(()),
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

/// Returns the findings with the table of targets.
fn json(findings: &Findings) -> serde_json::Value {
    let mut value = serde_json::json!(findings);
    if let Some(object) = value.as_object_mut() {
        object.insert("targets".to_owned(), serde_json::json!(rows(findings)));
    }
    value
}

impl Cli {
    fn plan(&self) -> Plan {
        let times = |seconds: u32| Times { warm_up: WARM_UP, measured: Duration::from_secs(seconds.into()), deadline: DEADLINE };
        let attempts = if self.report.is_some() { 2 } else { 1 };
        Plan {
            seed: self.seed,
            threads: self.threads as usize,
            partitions: self.partitions,
            times: times(self.duration),
            probe_times: times(self.duration.min(3)),
            search: Search { start: 4_000.0, precision: 1.1, attempts, probes_max: 12 },
        }
    }

    /// Measures everything, part by part. What is known is written after every part, so that a report that is interrupted leaves what it
    /// has.
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
        let save = |findings: &Findings| {
            // A failure here does not matter: the last report, which counts, is written below.
            let _written = write_files(directory, findings);
        };
        let findings = suite.run(findings, Progress::default(), open, &save);
        write_files(directory, &findings)?;
        Ok(findings)
    }

    /// Measures what was asked for, or else the peak and the latency at half of it.
    fn measure(&self, session: &Session) -> anyhow::Result<Findings> {
        let mut findings = Findings::new(Machine::here(session.broker_place()), session.plan.clone());
        if self.abuse {
            let drained = self.drain.unwrap_or(DRAINED_EVENTS) as usize;
            let (abuse, absences) = session.abuse(&Checkout::new(&self.baselines_folder), drained, self.rounds as usize, self.rate);
            return Ok(Findings { abuse: Some(abuse), absences, ..findings });
        }
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

    /// Measures the gate alone, on one worker.
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
