//! What several commands share.
//!
//! | module | what it does |
//! |---|---|
//! | `output` | tables, colour, widths and times |
//! | `console`, `sample`, `verdict_lines` | verdicts as they come, and the bundled sample |
//! | `flips`, `recorded` | verdicts that differ, and faults of recordings |
//! | `passport` | how a call is decided under a passport |
//! | `scrape` | the metrics of a worker |
//! | `suites` | the runner of test files |
//! | `controls_file`, `controls_topic` | controls from a file, and from their topic |
//! | `process`, `ready`, `hints` | a worker's process, whether it is ready, what to do next |
//! | `server` | the server of Tollgate that a command asks |
//! | `subject` | who is meant: a user, tenant, agent or thread |
//! | `verdict_filter` | which verdicts are meant |
//! | `interrupt`, `interrupt_input` | Ctrl-C, and lines that end with it |

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use tollgate_config::settings::LogSettings;
use tollgate_core::decide::shadow::Sample;
use tollgate_worker::logging::start_logging;

pub(super) mod console;
pub(super) mod controls_file;
pub(super) mod controls_topic;
pub(super) mod flips;
pub(super) mod hints;
pub(super) mod interrupt;
mod interrupt_input;
pub(super) mod output;
pub(super) mod passport;
pub(super) mod process;
pub(super) mod ready;
pub(super) mod recorded;
pub(super) mod sample;
pub(super) mod scrape;
pub(super) mod server;
mod subject;
pub(super) mod suites;
mod verdict_filter;
pub(super) mod verdict_lines;

pub(super) use controls_file::apply_controls;
pub(super) use hints::Hints;
pub(super) use interrupt::Interrupt;
pub(super) use output::{
    Column, DIM, Finding, LiveLine, OutputArgs, OutputFormat, Screen, TITLE, Table, ago, bytes, check_output, clock, count, create_output,
    fit, hash_text, is_reader_gone, now_ms, number, read_duration, read_since, read_until, seconds, shown, stamp, stdout_error, style_of,
    text,
};
pub(super) use ready::Readiness;
pub(super) use subject::{Resolved, SubjectArgs, SubjectParser, fault_of_id, read_id, resolve};
pub(super) use verdict_filter::VerdictFilter;

pub(super) use tollgate_operations::UsageError;
pub(super) use tollgate_worker::kafka::quoted;

/// The exit code if lines of a recording held no record or no event.
pub(super) const REJECTED: u8 = 3;

/// Returns the error of an argument that no configuration could make right.
pub(super) fn wrong(text: &str) -> anyhow::Error {
    UsageError(text.to_owned()).into()
}

/// Returns what is in a file; `-` is stdin.
pub(super) fn read_input(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).context("stdin: cannot be read")?;
    } else {
        bytes = std::fs::read(file).with_context(|| format!("{}: cannot be read", file.display()))?;
    }
    Ok(bytes)
}

/// Reads a share of the threads, such as `5%`.
pub(super) fn read_sample(text: &str) -> Result<Sample, String> {
    let percent = text.strip_suffix('%').and_then(|digits| digits.trim().parse().ok()).and_then(Sample::of_percent);
    percent.ok_or_else(|| "it is no share; write more than 0% and at most 100%, such as 5%".to_owned())
}

/// Starts the log of a command with a filter of its own, where none is configured: lines of the log would mix with what the command prints.
pub(super) fn start_quiet_logging(mut settings: LogSettings, filter: &str) -> anyhow::Result<()> {
    if settings.filter == "info" {
        filter.clone_into(&mut settings.filter);
    }
    start_logging(&settings)
}
