//! `tollgate loops`: what loop controllers make of recorded runs.

mod explain;
mod report;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Subcommand;
use tollgate_config::settings::Settings;
use tollgate_core::event::decode::{Event, decode};
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_json::Parser;
use tollgate_recordings::loops::{Conversation, conversation};
use tollgate_recordings::{Captured, Format, Line, Reader, open, read_line};

use crate::commands::shared::{Screen, shown};

/// How the files of conversations end.
const CONVERSATION: &str = "txt";

#[derive(Debug, Subcommand)]
pub(super) enum LoopsCommand {
    /// The presets of the loop controllers side by side: which threads each would have warned, refused and halted, and what that cuts off
    Report(report::ReportArgs),
    /// The steps of one thread: what the loop controllers in force say of each call and result, and what they count
    Explain(explain::ExplainArgs),
}

pub(super) fn execute(command: &LoopsCommand, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    match command {
        LoopsCommand::Report(args) => report::execute(args, settings, screen),
        LoopsCommand::Explain(args) => explain::execute(args, settings, screen),
    }
}

/// How many threads are named where more are meant.
const NAMED_MAX: usize = 5;

/// Names the first of some threads, for people.
fn named<'t>(threads: impl IntoIterator<Item = &'t str>) -> String {
    threads.into_iter().take(NAMED_MAX).map(shown).collect::<Vec<_>>().join(", ")
}

/// Reads the events of a capture, or of what `eval` reads. A line that holds no event is told on stderr and left out. Returns whether there was
/// no such line.
///
/// # Errors
/// The file cannot be read, or no line holds an event.
fn read_events(path: &Path, settings: &Settings, mut note: impl FnMut(&Event<'_>)) -> anyhow::Result<bool> {
    let (mut events, mut faults) = (0_u64, 0_u64);
    let (topic, bytes_max) = (&settings.kafka.topics.events, settings.policy.limits.event_bytes_max);
    let (mut input, mut reader, mut line) = (open(path)?, Reader::new(Format::Auto), Vec::new());
    let bytes_max_of_line = reader.line_bytes_max(bytes_max);
    for number in 1_i64.. {
        match read_line(&mut input, &mut line, bytes_max_of_line).with_context(|| format!("{}: line {number}", path.display()))? {
            Line::End => break,
            Line::Whole if line.trim_ascii().is_empty() => continue,
            Line::Whole => {}
            Line::TooLong => {
                say!("{}: line {number}: found more bytes than an event may have", path.display());
                faults += 1;
                continue;
            }
        }
        let mut each = |captured: Captured<'_>| {
            captured.with_record(topic, number - 1, |record, _| {
                let mut parser = Parser::new();
                decode(record, &mut parser, bytes_max)
                    .map(|event| {
                        events += 1;
                        note(&event)
                    })
                    .map_err(|rejection| rejection.to_string())
            })
        };
        let fault = match reader.read(&line) {
            Ok(captured) => each(captured).err(),
            Err(fault) => Some(format!("{}: found {}; {}", fault.field, fault.found, fault.fix)),
        };
        if let Some(fault) = fault {
            say!("{}: line {number}: {fault}", path.display());
            faults += 1;
        }
    }
    ensure!(events > 0, "{}: no line holds an event; name a capture of the events topic, or what `tollgate eval` reads", path.display());
    Ok(faults == 0)
}

/// Decodes an event of a conversation.
fn with_event(event: &str, settings: &Settings, note: impl FnOnce(&Event<'_>)) -> anyhow::Result<()> {
    let (topic, partition, offset) = (settings.kafka.topics.events.as_str(), Partition(0), Offset(0));
    let record = Record { topic, partition, offset, timestamp_ms: None, key: None, value: Some(event.as_bytes()), headers: &[] };
    let mut parser = Parser::new();
    note(&decode(&record, &mut parser, settings.policy.limits.event_bytes_max)?);
    Ok(())
}

/// Reads the conversations of a folder, by their names. A thread has the name of its file.
fn read_conversations(folder: &Path) -> anyhow::Result<Vec<(String, Conversation)>> {
    let unreadable = || format!("{}: cannot be read", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        files.push(entry.with_context(unreadable)?.path());
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == CONVERSATION));
    files.sort();
    anyhow::ensure!(!files.is_empty(), "{}: found no conversation; name a folder with files in .{CONVERSATION}", folder.display());
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let read = conversation(&text, &name).map_err(|fault| anyhow::anyhow!("{}: {fault}", path.display()))?;
        Ok((name, read))
    };
    files.iter().map(read).collect()
}
