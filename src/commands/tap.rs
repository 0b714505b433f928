//! `tollgate tap`: verdicts as they come, or those between two times.

use std::io::{StdoutLock, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_config::topics::TopicRole;

use crate::commands::shared::verdict_lines::Line;
use crate::commands::shared::{OutputArgs, OutputFormat, Screen, VerdictFilter, now_ms, read_since, stamp, start_quiet_logging, wrong};
use tollgate_operations::{Start, TimeRange, Topics, Verdict, VerdictReader};

/// How long to wait for a verdict at a time.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(super) struct TapArgs {
    #[command(flatten)]
    filter: VerdictFilter,
    /// Begin with the oldest verdict that the topic holds [default: only what is published from now on]
    #[arg(long, conflicts_with = "since")]
    from_beginning: bool,
    /// Begin at a time: 90s, 10m, 2h or 1d ago, a time of day in UTC such as 03:12, or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    since: Option<i64>,
    /// End before a time that has come, in the same form; the verdicts are in the order of their times then
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    until: Option<i64>,
    /// End with the last verdict that is there now; the verdicts are in the order of their times then
    #[arg(long)]
    end: bool,
    /// End after so many verdicts
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn execute(args: &TapArgs, settings: Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    args.check(now_ms())?;
    start_quiet_logging(settings.log.clone(), "error")?;
    let line = match args.output.format() {
        OutputFormat::Json => None,
        OutputFormat::Wide => Some(Line::wide(screen)),
        OutputFormat::Table => Some(Line::new(screen, false)),
    };
    if args.end || args.until.is_some() { args.range(&settings.kafka, line) } else { args.follow(&settings.kafka, line) }
}

impl TapArgs {
    /// Checks that the options agree.
    fn check(&self, now_ms: i64) -> anyhow::Result<()> {
        let begins = self.from_beginning || self.since.is_some();
        let fault = match (self.until, self.since) {
            (Some(_), _) if self.end => "--end: found with --until, which ends by itself; leave one of them out",
            (Some(_), _) if !begins => {
                "--until: found without --since or --from-beginning, so that there is nothing to show; add one of them"
            }
            (None, _) if self.end && !begins => {
                "--end: found without --since or --from-beginning, so that there is nothing to show; add one of them"
            }
            (Some(until), _) if until > now_ms => {
                "--until: found a time that has not come; write --end to end with what is there now, or leave it out to go on"
            }
            (Some(until), Some(since)) if until <= since => {
                return Err(wrong(&format!(
                    "--until: found {}, which does not come behind --since, {}; write a later time (a time of day is the last one that has \
                     come), or --end to end with what is there now",
                    stamp(until),
                    stamp(since)
                )));
            }
            _ => return Ok(()),
        };
        Err(wrong(fault))
    }

    /// Shows the verdicts between two times.
    fn range(&self, kafka: &KafkaSettings, line: Option<Line>) -> anyhow::Result<ExitCode> {
        let topics = Topics::new(kafka)?;
        let topic = topics.find(TopicRole::Decisions)?;
        let mut printer = Printer::begin(line, self.count)?;
        let (range, mut printed) = (TimeRange { from_ms: self.since, until_ms: self.until }, Ok(()));
        let mut show = |verdict: Verdict| -> std::io::Result<bool> {
            if self.filter.means(&verdict.thread, &verdict.value) {
                printer.print(&verdict)?;
            }
            Ok(!printer.is_done())
        };
        if self.count != Some(0) {
            range.read(&topics, topic, None, |record| match show(Verdict::of(record)) {
                Ok(goes_on) => goes_on,
                Err(error) => {
                    printed = Err(error);
                    false
                }
            })?;
        }
        printed?;
        if self.count != Some(0) && printer.left == wanted(self.count) {
            say!("tollgate: no verdict fits; times of day are UTC, and an agent or tenant fits only events that name it");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Shows verdicts as they come.
    fn follow(&self, kafka: &KafkaSettings, line: Option<Line>) -> anyhow::Result<ExitCode> {
        let start = match (self.from_beginning, self.since) {
            (true, _) => Start::Beginning,
            (false, Some(time_ms)) => Start::Since(time_ms),
            (false, None) => Start::End,
        };
        let reader = VerdictReader::new(kafka, start)?;
        let mut printer = Printer::begin(line, self.count)?;
        while !printer.is_done() {
            if let Some(verdict) = reader.next(POLL)?.filter(|verdict| self.filter.means(&verdict.thread, &verdict.value)) {
                printer.print(&verdict)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints verdicts, as lines for people or as JSON.
struct Printer {
    out: StdoutLock<'static>,
    line: Option<Line>,
    /// How many verdicts are left to print.
    left: u64,
}

/// Returns how many verdicts are to be printed at most.
fn wanted(count: Option<u64>) -> u64 {
    count.unwrap_or(u64::MAX)
}

impl Printer {
    fn begin(line: Option<Line>, count: Option<u64>) -> std::io::Result<Self> {
        let mut out = std::io::stdout().lock();
        if let Some(line) = &line {
            writeln!(out, "{}", line.head())?;
            out.flush()?;
        }
        Ok(Self { out, line, left: wanted(count) })
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn print(&mut self, verdict: &Verdict) -> std::io::Result<()> {
        match &self.line {
            Some(line) => writeln!(self.out, "{}", line.of(verdict, None))?,
            None => self.out.write_all(&with_time(verdict))?,
        }
        self.left -= 1;
        self.out.flush()
    }
}

/// Returns a line with a verdict's JSON, to which `published` is added: when the verdict's record was written.
fn with_time(verdict: &Verdict) -> Vec<u8> {
    match (verdict.value.strip_suffix(b"}"), verdict.time_ms) {
        (Some(open), Some(time_ms)) => [open, format!(",\"published\":\"{}\"}}\n", stamp(time_ms)).as_bytes()].concat(),
        _ => [&verdict.value, b"\n".as_slice()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        tap: TapArgs,
    }

    #[test]
    fn options_that_do_not_agree_are_refused_with_the_fix() {
        let now_ms = tollgate_json::time::parse_timestamp("2026-11-22T10:00:00Z").unwrap();
        let says = |words: &str| {
            let args = Words::try_parse_from(std::iter::once("x").chain(words.split_whitespace())).unwrap().tap;
            args.check(now_ms).err().map(|error| error.to_string()).unwrap_or_default()
        };
        for (words, fix) in [
            ("--end", "--since or --from-beginning"),
            ("--until 2026-11-22T09:00:00Z", "--since or --from-beginning"),
            ("--from-beginning --until 2026-11-22T09:00:00Z --end", "leave one of them out"),
            ("--from-beginning --until 2026-11-22T10:00:01Z", "write --end"),
            ("--since 2026-11-22T09:00:00Z --until 2026-11-22T09:00:00Z", "2026-11-22T09:00:00.000Z; write a later time"),
        ] {
            assert!(says(words).contains(fix), "{words}: {}", says(words));
        }
        for words in ["", "--from-beginning", "--from-beginning --end", "--since 2026-11-22T08:00:00Z --until 2026-11-22T09:00:00Z"] {
            assert_eq!(says(words), "", "{words}");
        }
    }

    #[test]
    fn the_time_stands_behind_the_verdict() {
        let verdict = |value: &str, time_ms| Verdict { value: value.into(), thread: Vec::new(), time_ms };
        let line = |value: &str, time_ms| String::from_utf8(with_time(&verdict(value, time_ms))).unwrap();
        assert_eq!(line(r#"{"code":"allow"}"#, Some(0)), "{\"code\":\"allow\",\"published\":\"1970-01-01T00:00:00.000Z\"}\n");
        assert_eq!(line(r#"{"code":"allow"}"#, None), "{\"code\":\"allow\"}\n");
    }
}
