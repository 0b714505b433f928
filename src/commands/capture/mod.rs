//! `tollgate capture`: a topic, or a part of it, as a file from which it can be made again byte for byte.

mod bounds;
mod redaction;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::Args;

use tollgate_config::settings::Settings;
use tollgate_recordings::{CaptureWriter, Contents, contents};

use crate::commands::shared::Interrupt;
use bounds::{read_bound, read_partitions};
use redaction::redactor;
use tollgate_operations::Topics;
use tollgate_operations::capture::{Bound, Capture, CaptureRange, Captured, Partitions};

/// The exit code if records had to be left out.
const LEFT_OUT: u8 = 3;

#[derive(Debug, Args)]
pub(super) struct CaptureArgs {
    /// The file, compressed if its name ends in .zst; `-` or nothing is stdout
    file: Option<PathBuf>,
    /// The topic [default: the events topic of the configuration]
    #[arg(long, value_name = "NAME")]
    topic: Option<String>,
    /// Where to begin: beginning, end, a duration before now such as 24h, a time; or PARTITION@OFFSET, once for each partition that begins
    /// elsewhere than the others
    #[arg(long, value_name = "WHERE", value_parser = read_bound)]
    from: Vec<Bound>,
    /// Where to end, with the same words; what stands there is left out [default: where the topic ends now]
    #[arg(long, value_name = "WHERE", value_parser = read_bound)]
    to: Vec<Bound>,
    /// Only these partitions, such as 0,3-5
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = read_partitions)]
    partitions: Vec<Partitions>,
    /// Go on with what comes, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Go on behind what FILE holds already
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Write stand-ins in place of arguments, results, texts and user ids. Passports and policy servers decide otherwise on them
    #[arg(long)]
    redact: bool,
    /// With --redact: a file with the key of the stand-ins; the same key gives the same ones [default: a random key that is thrown away]
    #[arg(long, value_name = "FILE", requires = "redact")]
    redact_key_file: Option<PathBuf>,
    /// Replace FILE
    #[arg(long)]
    force: bool,
}

pub(super) fn execute(args: &CaptureArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let kafka = &settings.kafka;
    let topics = Topics::new(kafka)?;
    let name = args.topic.as_deref().unwrap_or(&kafka.topics.events);
    let key = if args.topic.is_some() { "--topic" } else { "kafka.topics.events" };
    let topic = topics.named(name, key)?;
    let path = args.file.as_deref().filter(|path| path.as_os_str() != "-");
    ensure!(path.is_some() || !args.resume, "--resume: found no file; name the one to go on with");
    let found = found(args, path, name, settings)?;
    let redactor = redactor(args, settings, found.records > 0)?;
    let interrupt = Interrupt::watch()?;
    let topics = topics.stopped_by(&interrupt.stop);
    let asked = CaptureRange { from: &args.from, to: &args.to, partitions: &args.partitions, follows: args.follow, behind: &found };
    let (is_file, shown) = (path.is_some(), path.map_or_else(|| "stdout".to_owned(), |path| path.display().to_string()));
    let fix = if is_file { "; free some space, and go on with --resume" } else { "" };
    let capture = Capture { kafka, topics: &topics, topic, asked, redactor, stop: &interrupt.stop };
    let Captured { summary, bytes, faults, is_whole } =
        capture.run(|| writer(args, path, &found), |error| cannot_write(&shown, fix, error))?;
    say!("tollgate: captured {summary}{}", if is_file { format!("; {shown} has {bytes} bytes") } else { String::new() });
    faults.report();
    Ok(match (is_whole, faults.is_empty()) {
        (false, _) => {
            say!("tollgate: interrupted before the end{}", if is_file { "; the same command with --resume goes on" } else { "" });
            interrupt.exit_code().unwrap_or(ExitCode::FAILURE)
        }
        (true, false) => ExitCode::from(LEFT_OUT),
        (true, true) => ExitCode::SUCCESS,
    })
}

/// Returns why a file cannot be written. A reader of stdout that has gone is a failure here: it has not got what was asked for.
fn cannot_write(shown: &str, fix: &str, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => anyhow!("{shown}: its reader has gone before everything was written"),
        _ => anyhow::Error::new(error).context(format!("{shown}: cannot be written{fix}")),
    }
}

/// Looks at what the file holds that is to be gone on with.
fn found(args: &CaptureArgs, path: Option<&Path>, topic: &str, settings: &Settings) -> anyhow::Result<Contents> {
    let Some(path) = path.filter(|path| args.resume && path.exists()) else { return Ok(Contents::default()) };
    let found = contents(path, settings.policy.limits.event_bytes_max.saturating_mul(3).saturating_add(1 << 20))?;
    if let Some(other) = found.topic.as_deref().filter(|other| *other != topic) {
        bail!("{}: found records of topic {other}; --resume goes on with the same topic: --topic {other}", path.display());
    }
    if let Some(is_redacted) = found.is_redacted.filter(|is_redacted| *is_redacted != args.redact) {
        let (holds, fix) = if is_redacted { ("stand-ins", "give --redact too") } else { ("contents", "leave --redact out") };
        bail!("{}: found records with {holds}; --resume goes on as the file began: {fix}", path.display());
    }
    let cut = found.bytes - found.good_bytes;
    if cut > 0 {
        say!("tollgate: {}: the last {cut} bytes were cut off in the middle and are taken again", path.display());
    }
    say!("tollgate: {}: going on behind {} records", path.display(), found.records);
    Ok(found)
}

fn writer(args: &CaptureArgs, path: Option<&Path>, found: &Contents) -> anyhow::Result<CaptureWriter> {
    let Some(path) = path else { return Ok(CaptureWriter::stdout()) };
    let name = path.display();
    ensure!(!path.is_dir(), "{name}: found a folder; name a file in it");
    if args.resume && path.exists() {
        return CaptureWriter::resume(path, found).with_context(|| format!("{name}: cannot be written"));
    }
    if path.exists() && !args.force {
        bail!("{name}: is there already; --resume goes on behind what it holds, --force replaces it");
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    folder.map_or(Ok(()), |folder| Err(anyhow!("{name}: there is no folder {}; make it first", folder.display())))?;
    CaptureWriter::create(path, args.force).with_context(|| format!("{name}: cannot be written"))
}
