//! `tollgate eval`: reads events as JSONL and writes their verdicts as JSONL, in order and in constant memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;

use anyhow::Context;
use clap::Args;

use crate::metrics::Metrics;
use crate::policy_servers::PolicyServers;
use crate::settings::Settings;
use tollgate_core::controls::{CONTROL_BYTES_MAX, Controls};
use tollgate_core::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::decode::{Rejection, too_large};
use tollgate_core::guardrail::Question;
use tollgate_core::policy::Policy;
use tollgate_core::record::{Offset, Partition, Record};
use tollgate_core::stage::{Progress, Resumed, Stage};

use super::process;

/// The exit code if a line was rejected.
const REJECTED: u8 = 3;
const BUFFER_BYTES: usize = 256 * 1024;

#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// Events as JSONL; `-` or nothing is stdin
    file: Option<PathBuf>,
    /// Controls to decide under, as JSONL: {"key": "…", "value": {…} or null}, applied in order before the first event
    #[arg(long, value_name = "FILE")]
    controls: Option<PathBuf>,
}

pub(super) fn execute(args: &EvalArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let input: Box<dyn Read> = match args.file.as_ref().filter(|path| path.as_os_str() != "-") {
        Some(path) => Box::new(File::open(path).with_context(|| format!("{}: cannot be read", path.display()))?),
        None => Box::new(io::stdin().lock()),
    };
    settings.policy.unusable().for_each(|fault| say!("tollgate: {fault}"));
    let runtime = process::runtime()?;
    let _entered = runtime.enter();
    let controls = Controls::new(settings.subject_key.as_deref());
    let refused = args.controls.as_deref().map_or(Ok(0), |path| apply_controls(path, &controls))?;
    let mut evaluation = Evaluation::new(settings, Arc::new(controls))?;
    let rejected = refused
        + evaluation.run(BufReader::with_capacity(BUFFER_BYTES, input), BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()))?;
    Ok(if rejected > 0 { ExitCode::from(REJECTED) } else { ExitCode::SUCCESS })
}

/// Applies the controls of a file, and returns how many lines were refused. Each refusal is reported and changes nothing.
fn apply_controls(path: &Path, controls: &Controls) -> anyhow::Result<u64> {
    let name = path.display();
    let mut lines = BufReader::new(File::open(path).with_context(|| format!("{name}: cannot be read"))?);
    let (mut line, mut refused) = (Vec::new(), 0);
    for number in 1_u64.. {
        let applied = match read_line(&mut lines, &mut line, CONTROL_BYTES_MAX).with_context(|| format!("{name}: cannot be read"))? {
            Line::End => break,
            Line::Whole if line.trim_ascii().is_empty() => continue,
            // The part kept of a line that is too long is still longer than a record may be, and is refused for that.
            Line::Whole | Line::TooLong => controls.apply_line(&line),
        };
        if let Err(rejection) = applied {
            refused += 1;
            let (code, field, found, fix) = (rejection.code.as_str(), rejection.field, rejection.found, rejection.fix);
            let report = serde_json::json!({"file": path, "line": number, "code": code, "field": field, "found": found, "fix": fix});
            writeln!(io::stderr(), "{report}")?;
        }
    }
    Ok(refused)
}

/// One run over a stream of lines. All of them form one partition, since every thread is decided by itself.
struct Evaluation<'s> {
    settings: &'s Settings,
    deciding: Deciding,
    servers: PolicyServers,
    out: VerdictBuffer,
    rejected: u64,
}

impl<'s> Evaluation<'s> {
    fn new(settings: &'s Settings, controls: Arc<Controls>) -> anyhow::Result<Self> {
        let deciding = Deciding::new(Arc::new(Policy::under(&settings.policy, controls)));
        let servers = process::policy_servers(&settings.policy, &Metrics::new()?)?;
        Ok(Self { settings, deciding, servers, out: VerdictBuffer::default(), rejected: 0 })
    }

    /// Evaluates every line, and returns how many were rejected.
    fn run<R: Read>(&mut self, mut lines: BufReader<R>, mut verdicts: impl Write) -> anyhow::Result<u64> {
        let bytes_max = self.deciding.policy().limits().event_bytes_max;
        let mut line = Vec::new();
        for number in 1_u64.. {
            // Before this blocks for more input, the reader of our output gets what there is.
            if lines.buffer().is_empty() {
                verdicts.flush()?;
            }
            match read_line(&mut lines, &mut line, bytes_max)? {
                Line::End => break,
                Line::Whole if line.trim_ascii().is_empty() => {}
                Line::Whole => self.evaluate(number, &line, &mut verdicts)?,
                Line::TooLong => self.report(number, &too_large(format!("more than {bytes_max} bytes")))?,
            }
        }
        verdicts.flush()?;
        Ok(self.rejected)
    }

    fn evaluate(&mut self, number: u64, line: &[u8], verdicts: &mut impl Write) -> anyhow::Result<()> {
        let record = Record {
            topic: &self.settings.kafka.topics.events,
            partition: Partition(0),
            offset: Offset(i64::try_from(number - 1)?),
            timestamp_ms: None,
            key: None,
            value: Some(line),
            headers: &[],
        };
        let outcome = match self.deciding.apply(&record, &mut self.out) {
            Progress::Done(outcome) => outcome,
            Progress::Asks(question) => self.ask(record.offset, question)?,
            Progress::Waits => anyhow::bail!("an event waits for another one that is not there"),
        };
        match outcome {
            Outcome::Boundary(_) => return Ok(()),
            Outcome::Verdict { .. } => {}
            Outcome::DeadLetter(rejection) => {
                self.report(number, &rejection)?;
                // As on the decisions topic, a rejected line gets a verdict if its thread is known.
                if rejection.event.thread_id.is_none() {
                    return Ok(());
                }
            }
        }
        self.out.json.push(b'\n');
        Ok(verdicts.write_all(&self.out.json)?)
    }

    /// Asks the policy servers until the event is decided. It waits for every answer, since verdicts come in the order of their events.
    fn ask(&mut self, offset: Offset, mut question: Question) -> anyhow::Result<Outcome> {
        let (sender, answers) = channel();
        loop {
            self.servers.ask(question.provider, question.body, (), &sender);
            let ((), answer) = answers.recv()?;
            self.deciding.answer(offset, answer);
            question = match self.deciding.resume(&mut self.out) {
                Some(Resumed::Done { outcome, .. }) => return Ok(outcome),
                Some(Resumed::Asks(_, question)) => question,
                None => anyhow::bail!("an event that was answered does not go on"),
            };
        }
    }

    fn report(&mut self, number: u64, rejection: &Rejection) -> anyhow::Result<()> {
        self.rejected += 1;
        let report = serde_json::json!({
            "line": number,
            "code": rejection.code.as_str(),
            "field": rejection.field,
            "found": rejection.found,
            "fix": rejection.fix,
        });
        Ok(writeln!(io::stderr(), "{report}")?)
    }
}

#[derive(Debug, PartialEq)]
enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads the next line into `line`, without its line end. A line longer than `bytes_max` is skipped.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>, bytes_max: usize) -> io::Result<Line> {
    line.clear();
    let limit = bytes_max as u64 + 2;
    if input.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(Line::End);
    }
    let is_whole = line.ends_with(b"\n") || (line.len() as u64) < limit;
    if !is_whole {
        skip_line(input)?;
    }
    if line.ends_with(b"\n") {
        line.pop();
    }
    if line.ends_with(b"\r") {
        line.pop();
    }
    Ok(if is_whole && line.len() <= bytes_max { Line::Whole } else { Line::TooLong })
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let (consumed, is_end) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(consumed);
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_the_rest_goes_on() {
        let mut input = io::Cursor::new(b"ab\r\nabcdef\nabcdefghijkl\n\nabcd".to_vec());
        let mut line = Vec::new();
        let mut read = || {
            let kind = read_line(&mut input, &mut line, 4).unwrap();
            (kind, String::from_utf8(line.clone()).unwrap())
        };
        assert_eq!(read(), (Line::Whole, "ab".to_owned()));
        assert_eq!(read().0, Line::TooLong);
        assert_eq!(read().0, Line::TooLong);
        assert_eq!(read(), (Line::Whole, String::new()));
        assert_eq!(read(), (Line::Whole, "abcd".to_owned()));
        assert_eq!(read().0, Line::End);
    }
}
