//! `tollgate tap`: verdicts as they come.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use tollgate_config::settings::Settings;

use super::verdicts::Line;
use crate::commands::shared::{OutputArgs, OutputFormat, Screen, read_since, start_quiet_logging};
use tollgate_operations::{Start, Verdict, VerdictReader};

/// How long to wait for a verdict at a time.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(super) struct TapArgs {
    /// Verdicts of this thread only; may be given several times
    #[arg(long = "thread", value_name = "THREAD_ID")]
    threads: Vec<String>,
    /// Verdicts with these actions only, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ACTIONS")]
    only: Vec<Action>,
    /// Begin with the oldest verdict that the topic holds [default: only what is published from now on]
    #[arg(long, conflicts_with = "since")]
    from_beginning: bool,
    /// Begin at a time: 90s, 10m, 2h or 1d ago, or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    since: Option<i64>,
    /// End after so many verdicts
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

/// What a verdict says is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Allow,
    Warn,
    Block,
    Halt,
    Suppress,
}

pub(super) fn execute(args: &TapArgs, settings: Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    start_quiet_logging(settings.log.clone(), "error")?;
    let start = match (args.from_beginning, args.since) {
        (true, _) => Start::Beginning,
        (false, Some(time_ms)) => Start::Since(time_ms),
        (false, None) => Start::End,
    };
    let reader = VerdictReader::new(&settings.kafka, start)?;
    let (is_lines, line) = (args.output.format() != OutputFormat::Json, Line::new(screen, false));
    let mut out = std::io::stdout().lock();
    if is_lines {
        writeln!(out, "{}", line.head())?;
        out.flush()?;
    }
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 {
        let Some(verdict) = reader.next(POLL)?.filter(|verdict| args.wants(verdict)) else { continue };
        left -= 1;
        if is_lines {
            writeln!(out, "{}", line.of(&verdict, None))?;
        } else {
            out.write_all(&verdict.value)?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The part of a verdict that is filtered by.
#[derive(Debug, Deserialize)]
struct Acted {
    action: Action,
}

impl TapArgs {
    fn wants(&self, verdict: &Verdict) -> bool {
        let is_thread = self.threads.is_empty() || self.threads.iter().any(|thread| thread.as_bytes() == verdict.thread);
        let is_action = || serde_json::from_slice::<Acted>(&verdict.value).is_ok_and(|acted| self.only.contains(&acted.action));
        is_thread && (self.only.is_empty() || is_action())
    }
}
