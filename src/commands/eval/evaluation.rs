//! One run over a stream of lines: each partition has a state of its own, as in a worker.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::channel;

use rustc_hash::FxHashMap;
use tollgate_core::controls::Controls;
use tollgate_core::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::decode::{Rejection, RejectionCode, too_large};
use tollgate_core::guardrail::Question;
use tollgate_core::policy::Policy;
use tollgate_core::record::{Offset, Record};
use tollgate_core::stage::{Progress, Resumed, Stage};

use crate::metrics::Metrics;
use crate::policy_servers::PolicyServers;
use crate::settings::Settings;

use super::formats::{Captured, LineFault, Reader};
use super::lines::{Line, read_line};
use super::process;

/// How many partitions a stream may name. Each has a state of its own.
const PARTITIONS_MAX: usize = 10_000;

/// One run over a stream of lines.
pub(super) struct Evaluation<'s> {
    settings: &'s Settings,
    policy: Arc<Policy>,
    partitions: Partitions,
    servers: PolicyServers,
    out: VerdictBuffer,
    rejected: u64,
}

/// The partitions that the stream has named so far, by topic and number.
#[derive(Default)]
struct Partitions {
    topics: FxHashMap<Box<str>, BTreeMap<i32, PartitionState>>,
    count: usize,
}

struct PartitionState {
    deciding: Deciding,
    /// The offset of the last line that told one.
    last: Option<i64>,
}

impl Partitions {
    /// Returns the state of a partition, which is empty at first.
    fn get(&mut self, record: &Record<'_>, policy: &Arc<Policy>) -> anyhow::Result<&mut PartitionState> {
        if !self.topics.contains_key(record.topic) {
            self.topics.insert(record.topic.into(), BTreeMap::new());
        }
        let partitions = self.topics.entry(record.topic.into()).or_default();
        if !partitions.contains_key(&record.partition.0) {
            anyhow::ensure!(self.count < PARTITIONS_MAX, "the input names more than {PARTITIONS_MAX} partitions");
            self.count += 1;
        }
        let new = || PartitionState { deciding: Deciding::new(Arc::clone(policy)), last: None };
        Ok(partitions.entry(record.partition.0).or_insert_with(new))
    }
}

impl<'s> Evaluation<'s> {
    pub(super) fn new(settings: &'s Settings, controls: Arc<Controls>) -> anyhow::Result<Self> {
        let policy = Arc::new(Policy::under(&settings.policy, controls));
        let servers = process::policy_servers(&settings.policy, &Metrics::new()?)?;
        Ok(Self { settings, policy, partitions: Partitions::default(), servers, out: VerdictBuffer::default(), rejected: 0 })
    }

    /// Evaluates every line, and returns how many were rejected.
    pub(super) fn run<R: Read>(&mut self, mut lines: BufReader<R>, mut reader: Reader, mut verdicts: impl Write) -> anyhow::Result<u64> {
        let bytes_max = reader.line_bytes_max(self.policy.limits().event_bytes_max);
        let mut line = Vec::new();
        for number in 1_u64.. {
            // Before this blocks for more input, the reader of our output gets what there is.
            if lines.buffer().is_empty() {
                verdicts.flush()?;
            }
            match read_line(&mut lines, &mut line, bytes_max)? {
                Line::End => break,
                Line::Whole if line.trim_ascii().is_empty() => {}
                Line::Whole => match reader.read(&line) {
                    Ok(captured) => self.evaluate(number, &captured, &mut verdicts)?,
                    Err(fault) => self.report(number, &fault)?,
                },
                Line::TooLong => self.report(number, &too_large(format!("more than {bytes_max} bytes")).into())?,
            }
        }
        verdicts.flush()?;
        Ok(self.rejected)
    }

    fn evaluate(&mut self, number: u64, captured: &Captured<'_>, verdicts: &mut impl Write) -> anyhow::Result<()> {
        let (settings, offset) = (self.settings, i64::try_from(number - 1)?);
        captured.with_record(&settings.kafka.topics.events, offset, |record, is_readable| {
            let state = self.partitions.get(record, &self.policy)?;
            // A worker skips what its state knows already.
            if let (Some(offset), Some(last)) =
                (captured.offset, state.last.filter(|last| captured.offset.is_some_and(|offset| offset <= *last)))
            {
                return self.report(number, &repeated(offset, last));
            }
            state.last = captured.offset.or(state.last);
            let outcome = if is_readable { self.decide(record)? } else { self.refuse(record)? };
            self.publish(number, &outcome, verdicts)
        })
    }

    fn decide(&mut self, record: &Record<'_>) -> anyhow::Result<Outcome> {
        let state = self.partitions.get(record, &self.policy)?;
        match state.deciding.apply(record, &mut self.out) {
            Progress::Done(outcome) => Ok(outcome),
            Progress::Asks(question) => ask(&self.servers, &mut state.deciding, record.offset, question, &mut self.out),
            Progress::Waits => anyhow::bail!("an event waits for another one that is not there"),
        }
    }

    /// Rejects a record with a header whose name cannot be read, as a worker does.
    fn refuse(&mut self, record: &Record<'_>) -> anyhow::Result<Outcome> {
        let (found, fix) = ("a header whose name is not UTF-8", "name headers in UTF-8");
        let rejection = Rejection::new(RejectionCode::HeaderInvalid, "headers", found, fix);
        Ok(self.partitions.get(record, &self.policy)?.deciding.reject(record, rejection, &mut self.out))
    }

    fn publish(&mut self, number: u64, outcome: &Outcome, verdicts: &mut impl Write) -> anyhow::Result<()> {
        match outcome {
            Outcome::Boundary(_) => return Ok(()),
            Outcome::Verdict { .. } => {}
            Outcome::DeadLetter(rejection) => {
                self.report(number, &rejection.clone().into())?;
                // As on the decisions topic, a rejected line gets a verdict if its thread is known.
                if rejection.event.thread_id.is_none() || !rejection.is_answered() {
                    return Ok(());
                }
            }
        }
        self.out.json.push(b'\n');
        Ok(verdicts.write_all(&self.out.json)?)
    }

    fn report(&mut self, number: u64, fault: &LineFault) -> anyhow::Result<()> {
        self.rejected += 1;
        let LineFault { code, field, found, fix } = fault;
        let report = serde_json::json!({"line": number, "code": code, "field": field, "found": found, "fix": fix});
        Ok(writeln!(io::stderr(), "{report}")?)
    }
}

impl From<Rejection> for LineFault {
    fn from(rejection: Rejection) -> Self {
        Self { code: rejection.code.as_str(), field: rejection.field, found: rejection.found, fix: rejection.fix }
    }
}

/// Returns the fault of a line whose offset does not follow that of the line before it.
fn repeated(offset: i64, last: i64) -> LineFault {
    let what = if offset == last { "the offset of the line before it" } else { "an offset before that of an earlier line" };
    LineFault {
        code: "offset_repeated",
        field: "offset",
        found: format!("{what} on the same partition"),
        fix: "sort the lines of each partition by offset, and leave copies out",
    }
}

/// Asks the policy servers until the event is decided. It waits for every answer, since verdicts come in the order of their events.
fn ask(
    servers: &PolicyServers,
    deciding: &mut Deciding,
    offset: Offset,
    mut question: Question,
    out: &mut VerdictBuffer,
) -> anyhow::Result<Outcome> {
    let (sender, answers) = channel();
    loop {
        servers.ask(question.provider, question.body, (), &sender);
        let ((), answer) = answers.recv()?;
        deciding.answer(offset, answer);
        question = match deciding.resume(out) {
            Some(Resumed::Done { outcome, .. }) => return Ok(outcome),
            Some(Resumed::Asks(_, question)) => question,
            None => anyhow::bail!("an event that was answered does not go on"),
        };
    }
}
