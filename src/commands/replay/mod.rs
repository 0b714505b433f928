//! `tollgate replay`: sends recorded traffic to a topic again, at its own pace or another.

mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_operations::replay::{Ended, Replay, Target, TargetSettings, TopicSource, report_fault};
use tollgate_recordings::Format;
use tollgate_recordings::replay::{
    FileOptions, FileSource, Overview, Pace, Progress, ProgressFile, Rewriter, Source, check_file, read_rate, read_speed,
};

use crate::commands::shared::{Finding, Interrupt, read_duration, start_quiet_logging, wrong};
use report::{write_overview, write_report};
use tollgate_operations::Topics;
use tollgate_operations::capture::topic_of;

/// The exit code if some of the source could not be sent.
const PARTLY: u8 = 3;

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The traffic: a capture (.jsonl, .jsonl.zst), what `eval` reads, `-` for stdin, or topic:NAME
    source: String,
    /// The topic to send to
    #[arg(long, value_name = "TOPIC")]
    to: String,
    /// Keep the recorded spacing, so many times as fast [default: 1x]
    #[arg(long, value_name = "10x", value_parser = read_speed, allow_hyphen_values = true, conflicts_with = "rate")]
    speed: Option<f64>,
    /// Send so many records a second, or as many as possible, whatever the recorded spacing
    #[arg(long, value_name = "N/s|max", value_parser = read_rate, allow_hyphen_values = true)]
    rate: Option<Pace>,
    /// The partition of a record: where its key belongs, or the recorded one
    #[arg(long, value_enum, default_value_t = PartitionBy::Key)]
    partition_by: PartitionBy,
    /// Send everything again and again, each time on new threads; =N is so many times
    #[arg(long = "loop", value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "18446744073709551615")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "progress")]
    rounds: Option<u64>,
    /// Send N copies of each record; those behind the first have threads, events and users of their own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    multiply: u64,
    /// What stands between an id and the number of its copy
    #[arg(long, default_value = "~", value_parser = read_mark)]
    mark: String,
    /// Move all times, so that the first record is of now; order and spacing stay
    #[arg(long)]
    shift_time: bool,
    /// Say what would be sent, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Write behind the records that the target holds
    #[arg(long)]
    yes: bool,
    /// Send only the records that were captured from this topic
    #[arg(long, value_name = "NAME")]
    topic: Option<String>,
    /// The format of the lines; each line tells it by itself
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// Keep in a file what was acknowledged, and go on behind it if the file is there
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,
    /// Read the verdicts too, and print their latency, kinds and digest
    #[arg(long = "await")]
    is_awaiting: bool,
    /// How long to wait for the last verdicts
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = read_duration)]
    await_timeout: Duration,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// What a record's partition goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartitionBy {
    /// The hash of the key, as Java's client has it
    Key,
    /// The partition on which it was recorded
    Recorded,
}

fn read_mark(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_punctuation() && !b"\"\\".contains(&byte);
    let is_mark = (1..=8).contains(&text.len()) && text.bytes().all(is_plain);
    if is_mark { Ok(text.to_owned()) } else { Err("it is no mark; write 1 to 8 of the characters ~ . _ - : # and the like".to_owned()) }
}

pub(super) fn execute(args: &ReplayArgs, settings: Settings) -> anyhow::Result<ExitCode> {
    start_quiet_logging(settings.log.clone(), "error")?;
    check_name(&settings.kafka, topic_of(&args.source), &args.to)?;
    let is_stdin = args.source == "-";
    if is_stdin && (args.rounds.is_some() || args.progress.is_some()) {
        return Err(wrong("SOURCE: stdin can be read only once; write it to a file for --loop and --progress"));
    }
    let wanted = args.wanted();
    // A dry run only looks at the file.
    let file = args.progress.as_deref().filter(|_| !args.dry_run).map(ProgressFile::take).transpose()?;
    let found = args.progress.as_deref().map(|path| Progress::read(path, &wanted)).transpose()?.flatten();
    let behind = found.as_ref().map(|found| found.acknowledged.clone()).unwrap_or_default();
    if args.dry_run {
        let overview = Overview::of(&mut *args.open(&settings, &behind)?, &args.rewriter(&settings), Some(&mut report_fault))?;
        args.check(&overview)?;
        write_overview(&overview, &mut Finding, args.pace(), args.multiply, &args.to)?;
        return Ok(if overview.faults > 0 { ExitCode::from(PARTLY) } else { ExitCode::SUCCESS });
    }
    let partitions = args.check_source(&settings, is_stdin)?;
    // Where nothing is acknowledged yet, the replay begins anew, and so do its times.
    let is_resumed = !behind.is_empty();
    let target = Target::find(&settings.kafka, &args.to, args.partition_by == PartitionBy::Recorded, args.yes || is_resumed)?;
    target.check_partitions(partitions, &args.to)?;
    let target_settings = TargetSettings::ask(&settings.kafka, &args.to);
    if is_resumed {
        say!("tollgate: going on behind what was acknowledged before; records may come twice, with the same ids");
    }
    let progress = found.unwrap_or(wanted);
    let interrupt = Interrupt::watch()?;
    let replay = Replay {
        kafka: &settings.kafka,
        target,
        target_settings,
        rewriter: args.rewriter(&settings),
        pace: args.pace(),
        is_shifted: args.shift_time,
        is_awaiting: args.is_awaiting,
        await_timeout: args.await_timeout,
        rounds: args.rounds.unwrap_or(1),
        progress,
        is_resumed,
        progress_file: file,
        stop: interrupt.stop.clone(),
    };
    let nothing = BTreeMap::new();
    args.finish(replay.run(|is_first| args.open(&settings, if is_first { &behind } else { &nothing }))?, &interrupt)
}

/// Checks that a topic may be written to, whatever stands in it.
///
/// # Errors
/// It is the source, or a topic that workers write.
fn check_name(kafka: &KafkaSettings, source: Option<&str>, to: &str) -> anyhow::Result<()> {
    if source == Some(to) {
        return Err(wrong("--to: found the source itself; name another topic, since a replay of a topic into itself has no end"));
    }
    if let Some(topic) = kafka.topics.each().find(|topic| topic.name == to && topic.spec.key != "events") {
        let message = format!("--to: found {}, which workers read as their own; name a topic of events", topic.spec.path());
        return Err(wrong(&message));
    }
    Ok(())
}

impl ReplayArgs {
    /// Prints the report, and returns the exit code.
    ///
    /// # Errors
    /// What ended the replay before its time.
    fn finish(&self, ended: Ended, interrupt: &Interrupt) -> anyhow::Result<ExitCode> {
        let (Ended { mut report, saved, outcome }, interrupted) = (ended, interrupt.exit_code());
        report.is_interrupted = interrupted.is_some();
        if report.records == 0 && outcome.is_ok() && interrupted.is_none() && self.progress.as_ref().is_some_and(|path| path.exists()) {
            say!("tollgate: --progress: everything was acknowledged before; remove the file to begin anew");
        }
        write_report(&report, &mut Finding, self.json)?;
        saved?;
        if interrupted.is_some() || outcome.is_err() {
            match &self.progress {
                Some(path) => say!("tollgate: to go on, run the same command again; {} says what was acknowledged", path.display()),
                None => say!("tollgate: without --progress FILE nothing says what was acknowledged, so the same command would begin anew"),
            }
        }
        outcome?;
        let unanswered = report.verdicts.as_ref().map_or(0, |verdicts| verdicts.unanswered);
        Ok(match interrupted {
            Some(code) => code,
            None if unanswered > 0 => {
                say!("tollgate: {unanswered} events have no verdict after {} s; is a worker running?", self.await_timeout.as_secs());
                ExitCode::FAILURE
            }
            None if report.faults + report.refused > 0 => ExitCode::from(PARTLY),
            None => ExitCode::SUCCESS,
        })
    }

    fn pace(&self) -> Pace {
        self.rate.unwrap_or(Pace::Recorded(self.speed.unwrap_or(1.0)))
    }

    /// Returns the progress of this replay before it begins.
    fn wanted(&self) -> Progress {
        Progress {
            source: self.source.clone(),
            target: self.to.clone(),
            topic: self.topic.clone(),
            multiply: self.multiply,
            mark: self.mark.clone(),
            shift_ms: self.shift_time.then_some(0),
            acknowledged: BTreeMap::new(),
        }
    }

    fn rewriter(&self, settings: &Settings) -> Rewriter {
        let has_copies = self.multiply > 1 || self.rounds.is_some_and(|rounds| rounds > 1);
        Rewriter { event_bytes_max: settings.policy.limits.event_bytes_max, mark: self.mark.clone(), has_copies }
    }

    /// Opens the source behind these places.
    fn open(&self, settings: &Settings, behind: &BTreeMap<i32, i64>) -> anyhow::Result<Box<dyn Source>> {
        if let Some(topic) = topic_of(&self.source) {
            return Ok(Box::new(TopicSource::open(&settings.kafka, topic, behind)?));
        }
        let options = FileOptions {
            path: PathBuf::from(&self.source),
            format: self.format,
            topic: self.topic.clone(),
            default_topic: settings.kafka.topics.events.clone(),
            event_bytes_max: settings.policy.limits.event_bytes_max,
        };
        Ok(Box::new(FileSource::open(options, behind.get(&0).copied().unwrap_or_default())?))
    }

    /// Checks that what the source holds can be replayed.
    fn check(&self, overview: &Overview) -> anyhow::Result<()> {
        let warning = overview.check(self.pace(), self.topic.as_deref())?;
        warning.into_iter().for_each(|warning| say!("tollgate: {warning}"));
        Ok(())
    }

    /// Looks at the source before anything is sent, and returns how many partitions a target with the recorded ones needs. Stdin can be
    /// read only once, so its faults are found on the way.
    fn check_source(&self, settings: &Settings, is_stdin: bool) -> anyhow::Result<u32> {
        if let Some(name) = topic_of(&self.source) {
            let topics = Topics::new(&settings.kafka)?;
            return Ok(topics.named(name, "SOURCE")?.partitions);
        }
        if is_stdin {
            return Ok(0);
        }
        check_file(&PathBuf::from(&self.source))?;
        let overview = Overview::of(&mut *self.open(settings, &BTreeMap::new())?, &self.rewriter(settings), None)?;
        self.check(&overview)?;
        if overview.records == 0 {
            say!("tollgate: SOURCE holds no record");
        }
        Ok(overview.partitions_needed)
    }
}
