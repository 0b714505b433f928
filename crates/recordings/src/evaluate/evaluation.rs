//! One run over a stream of lines: each line's record is decided on, and its verdict written.

use std::io::Write;
use std::sync::Arc;

use anyhow::ensure;
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::event::decode::too_large;
use tollgate_core::event::record::Record;

use crate::{Captured, Decider, Input, Line, LocalAbuse, Order, Reader, read_line, unreadable_from_here};

use super::sinks::InForce;
use super::{CutTurns, Report, Sinks};

/// One run over a stream of lines.
#[derive(Debug)]
pub struct Evaluation<'s> {
    /// The topic of records that name none.
    topic: &'s str,
    decider: Decider,
    order: Order,
    out: VerdictBuffer,
    cut_turns: CutTurns,
    redacted: u64,
    counting: Option<Counting>,
    /// The topic of the first record, where signals are counted: they are of one topic.
    source: Option<String>,
}

/// Counting what is seen of subjects, and what follows from it.
#[derive(Debug)]
pub struct Counting {
    local_abuse: LocalAbuse,
    in_force: InForce,
}

impl Counting {
    /// Returns what counts with a stage of abuse, and puts what follows into these sinks and these controls.
    #[must_use]
    pub fn new(local_abuse: LocalAbuse, sinks: Sinks, controls: Arc<Controls>) -> Self {
        Self { local_abuse, in_force: InForce { sinks, controls } }
    }
}

/// The result of an evaluation.
#[derive(Debug)]
pub struct Evaluated {
    /// How many records have stand-ins in place of their contents.
    pub redacted: u64,
    /// A sentence for everything that was not counted.
    pub uncounted: Vec<String>,
    /// The threads that begin within a turn.
    pub cut_turns: CutTurns,
}

impl<'s> Evaluation<'s> {
    /// Returns an evaluation that has seen nothing. `topic` is the topic of records that name none.
    #[must_use]
    pub fn new(topic: &'s str, decider: Decider, counting: Option<Counting>) -> Self {
        let (order, out, cut_turns) = (Order::default(), VerdictBuffer::default(), CutTurns::default());
        Self { topic, decider, order, out, cut_turns, redacted: 0, counting, source: None }
    }

    /// Evaluates every line.
    ///
    /// # Errors
    /// A result cannot be written, signals are of several topics, or policy servers cannot be asked.
    pub fn run(mut self, mut lines: Input, mut reader: Reader, mut verdicts: impl Write, report: Report<'_>) -> anyhow::Result<Evaluated> {
        let bytes_max = reader.line_bytes_max(self.decider.policy().limits().event_bytes_max);
        let mut line = Vec::new();
        for number in 1_u64.. {
            // Before this blocks for more input, the reader of our output gets what there is.
            if lines.buffer().is_empty() {
                verdicts.flush()?;
            }
            match read_line(&mut lines, &mut line, bytes_max) {
                Ok(Line::End) => break,
                Ok(Line::Whole) if line.trim_ascii().is_empty() => {}
                Ok(Line::Whole) => match reader.read(&line) {
                    Ok(captured) => self.evaluate(number, &captured, &mut verdicts, report)?,
                    Err(fault) => report(number, &fault)?,
                },
                Ok(Line::TooLong) => report(number, &too_large(format!("more than {bytes_max} bytes")).into())?,
                Err(error) => {
                    report(number, &unreadable_from_here(&error))?;
                    break;
                }
            }
        }
        verdicts.flush()?;
        let mut uncounted = Vec::new();
        if let Some(Counting { mut local_abuse, mut in_force }) = self.counting.take() {
            local_abuse.tick(&mut in_force)?;
            uncounted = in_force.sinks.finish()?;
        }
        Ok(Evaluated { redacted: self.redacted, uncounted, cut_turns: self.cut_turns })
    }

    fn evaluate(&mut self, number: u64, captured: &Captured<'_>, verdicts: &mut impl Write, report: Report<'_>) -> anyhow::Result<()> {
        if let Err(fault) = self.order.note(captured, self.topic) {
            return report(number, &fault);
        }
        self.redacted += u64::from(captured.is_redacted);
        let offset = i64::try_from(number - 1)?;
        let outcome = captured.with_record(self.topic, offset, |record, is_readable| {
            let outcome = self.decider.decide(record, is_readable, &mut self.out)?;
            self.count(record)?;
            anyhow::Ok(outcome)
        })?;
        match &outcome {
            Outcome::DeadLetter(rejection) => report(number, &rejection.clone().into())?,
            Outcome::Verdict { event_type, .. } | Outcome::Boundary(event_type) => self.cut_turns.note(&self.out.thread_id, *event_type),
        }
        if !outcome.is_published() {
            return Ok(());
        }
        self.out.json.push(b'\n');
        Ok(verdicts.write_all(&self.out.json)?)
    }

    /// Counts the signals of an event that was decided on. What follows is in force for the next one.
    fn count(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        let Some(Counting { local_abuse, in_force }) = &mut self.counting else { return Ok(()) };
        let source = self.source.get_or_insert_with(|| record.topic.to_owned());
        ensure!(source == record.topic, "found records of the topics {source} and {}; signals are of one topic", record.topic);
        local_abuse.event((record.partition, record.offset), record.timestamp_ms, &self.out.signals, in_force)
    }
}
