//! `tollgate why`: why a call was stopped, as the topics tell.

mod text;

use std::io::{BufWriter, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use tollgate_config::settings::Settings;

use crate::commands::shared::{
    OutputArgs, OutputFormat, Screen, VerdictFilter, now_ms, read_duration, read_since, start_quiet_logging, wrong,
};
use tollgate_operations::why::{Search, Target, explain};
use tollgate_operations::{TimeRange, Topics};

#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// The id of an event, of a tool call or of a verdict; left out: the stop that is nearest to --at
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Around this time: a time of day in UTC such as 03:12, 10m or 2h ago, or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = read_since, conflicts_with = "since")]
    at: Option<i64>,
    /// How far before and behind --at to look
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = read_duration, requires = "at")]
    within: Duration,
    /// How far back to look for the verdict, and for the events of its turn [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    since: Option<i64>,
    #[command(flatten)]
    filter: VerdictFilter,
    #[command(flatten)]
    output: OutputArgs,
}

/// How far back a verdict and the events of its turn are looked for, in milliseconds, if nothing is said.
const LOOKBACK_MS: i64 = 86_400_000;

pub(super) fn execute(args: &WhyArgs, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    let now_ms = now_ms();
    let (target, range) = args.search(now_ms)?;
    start_quiet_logging(settings.log.clone(), "error")?;
    let topics = Topics::new(&settings.kafka)?;
    let means = |thread: &[u8], verdict: &[u8]| args.filter.means(thread, verdict);
    let found = Search { target, range, means: &means }.find(&topics)?;
    let lookback_ms = args.since.map_or(LOOKBACK_MS, |since| now_ms.saturating_sub(since));
    let answer = explain(settings, &topics, found, lookback_ms)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    match args.output.format() {
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string(&answer)?)?,
        format => text::write(&mut out, &answer, screen, format)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

impl WhyArgs {
    /// Returns what to look for and when it may have been published.
    fn search(&self, now_ms: i64) -> anyhow::Result<(Target<'_>, TimeRange)> {
        let target = match (&self.id, self.at) {
            (Some(id), _) => Target::Id(id),
            (None, Some(_)) if self.filter.is_empty() => {
                return Err(wrong(
                    "--at: found without an ID and without --agent, --tenant, --thread, --tool or --code; say whose call it was",
                ));
            }
            (None, Some(at)) => Target::Nearest(at),
            (None, None) => {
                return Err(wrong(
                    "ID: found nothing; write the id of an event or a tool call, or a time and whose call it was: --agent AGENT_ID --at 03:12",
                ));
            }
        };
        if let Some(at) = self.at.filter(|at| *at > now_ms) {
            return Err(wrong(&format!(
                "--at: found {}, a time that has not come; write one that has",
                crate::commands::shared::stamp(at)
            )));
        }
        let within = i64::try_from(self.within.as_millis()).unwrap_or(i64::MAX);
        let range = match self.at {
            Some(at) => TimeRange { from_ms: Some(at.saturating_sub(within)), until_ms: Some(at.saturating_add(within).saturating_add(1)) },
            None => TimeRange { from_ms: Some(self.since.unwrap_or(now_ms.saturating_sub(LOOKBACK_MS))), until_ms: None },
        };
        Ok((target, range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        why: WhyArgs,
    }

    const NOW: i64 = 1_795_343_809_768;

    fn search(words: &str) -> Result<(bool, TimeRange), String> {
        let args = Words::try_parse_from(std::iter::once("x").chain(words.split_whitespace())).map_err(|error| error.to_string())?.why;
        let (target, range) = args.search(NOW).map_err(|error| error.to_string())?;
        Ok((matches!(target, Target::Id(_)), range))
    }

    #[test]
    fn it_looks_around_a_time_or_back_from_now() {
        let range = |from_ms, until_ms| TimeRange { from_ms: Some(from_ms), until_ms };
        let at = tollgate_json::time::parse_timestamp("2026-11-22T03:12:00Z").unwrap();
        let around = |minutes: i64| range(at - minutes * 60_000, Some(at + minutes * 60_000 + 1));
        assert_eq!(search("e1"), Ok((true, range(NOW - LOOKBACK_MS, None))));
        assert_eq!(search("e1 --since 2026-11-22T03:12:00Z"), Ok((true, range(at, None))));
        assert_eq!(search("--agent a --at 2026-11-22T03:12:00Z"), Ok((false, around(10))));
        assert_eq!(search("e1 --at 2026-11-22T03:12:00Z --within 1h"), Ok((true, around(60))));
    }

    #[test]
    fn words_that_say_too_little_or_too_much_are_refused_with_the_fix() {
        for (words, fix) in [
            ("", "--agent AGENT_ID --at 03:12"),
            ("--agent a", "--agent AGENT_ID --at 03:12"),
            ("--at 2026-11-22T03:12:00Z", "say whose call it was"),
            ("--agent a --at 2999-01-01T00:00:00Z", "a time that has not come"),
            ("e1 --within 1h", "--at"),
            ("e1 --at 10m --since 1h", "cannot be used with"),
        ] {
            assert!(search(words).is_err_and(|error| error.contains(fix)), "{words}: {:?}", search(words));
        }
    }
}
