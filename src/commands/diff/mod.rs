//! `tollgate diff`: what a new policy would have decided otherwise on recorded traffic.

mod compared;
mod page;
mod table;

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, ValueEnum};
use tollgate_core::decide::shadow::Sample;

use tollgate_config::settings::Settings;
use tollgate_recordings::compare::{Flips, Limit, Options, Summary};
use tollgate_recordings::{Format, Input, ParallelReader, Reader, open};

use crate::commands::shared::recorded::{redacted, report, tell_topics};
use crate::commands::shared::{
    Finding, Interrupt, LiveLine, OutputArgs, OutputFormat, REJECTED, Screen, check_output, create_output, process, read_sample,
};
use compared::{DiffRequest, diff_request};
use tollgate_operations::capture::{Missing, stream, topic_of};

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The traffic: a capture (.jsonl, .jsonl.zst), what `eval` reads, `-` for stdin, or topic:NAME as it stands
    source: PathBuf,
    /// A configuration to decide by: given twice, the first is compared with the second; given once, the configuration in force (-c) is
    /// compared with it
    #[arg(long, value_name = "FILE", required = true, num_args = 1)]
    policy: Vec<PathBuf>,
    /// Compare the verdicts that were published with those of the policy
    #[arg(long, value_enum)]
    against: Option<Against>,
    /// With --against recorded: the published verdicts, as a capture of the decisions topic, as JSONL, or topic:NAME [default: the
    /// decisions topic of the configuration]
    #[arg(long, value_name = "FILE", requires = "against")]
    decisions: Option<PathBuf>,
    /// Compare the rules of `abuse` too, and whom they suspend; this is so by itself where the rules differ
    #[arg(long)]
    abuse: bool,
    /// Fail if more differs, such as 'allow->block>0.1%' or 'suspended>0.1%'; may be given more than once
    #[arg(long, value_name = "LIMIT", value_parser = |text: &str| text.parse::<Limit>())]
    fail_on: Vec<Limit>,
    /// Write every difference to a file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    flips: Option<PathBuf>,
    /// Write a page with tables and plots that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Controls to decide under, for both policies, as `eval` takes them
    #[arg(long, value_name = "FILE")]
    controls: Option<PathBuf>,
    /// Count only a share of the threads, chosen by their ids as `run --shadow` chooses them, such as 5%
    #[arg(long, value_name = "PERCENT", value_parser = read_sample)]
    sample: Option<Sample>,
    /// The format of the lines; each line tells it by itself
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    #[command(flatten)]
    output: OutputArgs,
}

/// What a policy may be compared with besides another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Against {
    /// The verdicts that were published
    Recorded,
}

pub(super) fn execute(args: &DiffArgs, settings: &Settings, has_config: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let runtime = process::runtime()?;
    let _entered = runtime.enter();
    let DiffRequest { compared, names, refused } = diff_request(args, settings, has_config)?;
    let reads = args.reads();
    let (input, missing) = opened(&args.source, settings, "SOURCE")?;
    let interrupt = Interrupt::watch()?;
    let input = interrupt.input(input)?;
    let flips = args.flips.as_deref().map(|path| create_output("--flips", path, &reads)).transpose()?;
    let others: Vec<_> = reads.into_iter().chain(args.flips.as_deref()).collect();
    args.html.as_deref().map_or(Ok(()), |path| check_output("--html", path, &others))?;
    let flips = flips.map(|file| Arc::new(Mutex::new(BufWriter::new(file))));
    let (reader, event_bytes_max) = (Reader::new(args.format), compared.event_bytes_max());
    let traffic = ParallelReader { input, reader, topic: &settings.kafka.topics.events, event_bytes_max, show: LiveLine::lines() };
    let options = Options {
        names,
        sample: args.sample,
        flips: flips.as_ref().map(|file| Arc::clone(file) as Flips),
        signals_topic: &settings.kafka.topics.signals,
    };
    let found = compared.run(traffic, options)?;
    tell_topics(&found.topics);
    if let Some(file) = flips {
        file.lock().unwrap_or_else(PoisonError::into_inner).flush()?;
    }
    found.faults.iter().try_for_each(|(number, fault)| report(*number, fault))?;
    if found.summary.redacted > 0 {
        say!("tollgate: {}", redacted(found.summary.redacted));
    }
    write_summary(args, &found.summary, screen)?;
    if let Some(code) = interrupt.ended_early() {
        return Ok(code);
    }
    let exceeded = found.exceeded(&args.fail_on);
    exceeded.iter().for_each(|sentence| say!("tollgate: {sentence}"));
    let is_whole = is_compared(&found.summary) && found.faults.is_empty() && refused == 0 && missing.count() == 0 && compared.is_whole();
    Ok(match (exceeded.is_empty(), is_whole) {
        (false, _) => ExitCode::FAILURE,
        (true, false) => ExitCode::from(REJECTED),
        (true, true) => ExitCode::SUCCESS,
    })
}

impl DiffArgs {
    /// Returns the files that are read. None of them may be written.
    fn reads(&self) -> Vec<&Path> {
        let others = [&self.decisions, &self.controls].into_iter().flatten();
        std::iter::once(&self.source).chain(&self.policy).chain(others).map(PathBuf::as_path).collect()
    }
}

/// Returns whether enough was compared for the result to mean something, and says so if not: a limit holds over any file without events.
fn is_compared(found: &Summary) -> bool {
    let unreadable: u64 = found.unreadable.values().sum();
    let fix = "name a capture of the events topic, or what `tollgate eval` reads";
    match found.records {
        0 => say!("tollgate: SOURCE holds no record; nothing was compared: {fix}"),
        records if unreadable == records => say!("tollgate: none of the {records} records is an event; nothing was compared: {fix}"),
        records if unreadable > records / 2 => {
            say!("tollgate: {unreadable} of {records} records are no events; hardly anything was compared: {fix}");
        }
        _ if found.unmatched > found.verdicts => say!(
            "tollgate: {} verdicts are on one side only, and {} on both; hardly anything was compared: name the decisions on the same traffic",
            found.unmatched,
            found.verdicts
        ),
        _ => return true,
    }
    false
}

/// Opens a file, or a topic. Of a file nothing is missing without a fault of its own.
fn opened(source: &Path, settings: &Settings, named_by: &str) -> anyhow::Result<(Input, Missing)> {
    match source.to_str().and_then(topic_of) {
        Some(topic) => stream(&settings.kafka, topic, named_by),
        None => Ok((open(source)?, Missing::default())),
    }
}

fn write_summary(args: &DiffArgs, summary: &Summary, screen: Screen) -> anyhow::Result<()> {
    if let Some(path) = &args.html {
        create_output("--html", path, &[])?.write_all(page::page(summary).as_bytes())?;
    }
    match args.output.format() {
        OutputFormat::Json => writeln!(Finding, "{}", serde_json::to_string(summary)?)?,
        format => table::write(&mut Finding, summary, screen, format)?,
    }
    Ok(())
}
