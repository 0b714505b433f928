//! One run over a stream of lines: each line's record is decided on, and its verdict written.

use std::io::Write;

use anyhow::ensure;
use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::event::decode::too_large;
use tollgate_core::event::record::Record;

use tollgate_recordings::{Captured, Decider, Input, Line, LineFault, LocalAbuse, Order, Reader, read_line, unreadable_from_here};

use super::counting::InForce;
use super::report;

/// One run over a stream of lines.
pub(super) struct Evaluation<'s> {
    /// The topic of records that name none.
    topic: &'s str,
    decider: Decider,
    order: Order,
    out: VerdictBuffer,
    rejected: u64,
    counting: Option<Counting>,
    /// The topic of the first record, where signals are counted: they are of one topic.
    source: Option<String>,
}

/// Counting what is seen of subjects, and what follows from it.
pub(super) struct Counting {
    pub(super) local_abuse: LocalAbuse,
    pub(super) in_force: InForce,
}

impl<'s> Evaluation<'s> {
    pub(super) fn new(topic: &'s str, decider: Decider, counting: Option<Counting>) -> Self {
        Self { topic, decider, order: Order::default(), out: VerdictBuffer::default(), rejected: 0, counting, source: None }
    }

    /// Evaluates every line, and returns how many were rejected.
    pub(super) fn run(&mut self, mut lines: Input, mut reader: Reader, mut verdicts: impl Write) -> anyhow::Result<u64> {
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
                    Ok(captured) => self.evaluate(number, &captured, &mut verdicts)?,
                    Err(fault) => self.report(number, &fault)?,
                },
                Ok(Line::TooLong) => self.report(number, &too_large(format!("more than {bytes_max} bytes")).into())?,
                Err(error) => {
                    self.report(number, &unreadable_from_here(&error))?;
                    break;
                }
            }
        }
        verdicts.flush()?;
        if let Some(Counting { mut local_abuse, mut in_force }) = self.counting.take() {
            local_abuse.tick(&mut in_force)?;
            in_force.sinks.finish()?;
        }
        Ok(self.rejected)
    }

    fn evaluate(&mut self, number: u64, captured: &Captured<'_>, verdicts: &mut impl Write) -> anyhow::Result<()> {
        if let Err(fault) = self.order.note(captured, self.topic) {
            return self.report(number, &fault);
        }
        let offset = i64::try_from(number - 1)?;
        let outcome = captured.with_record(self.topic, offset, |record, is_readable| {
            let outcome = self.decider.decide(record, is_readable, &mut self.out)?;
            self.count(record)?;
            anyhow::Ok(outcome)
        })?;
        if let Outcome::DeadLetter(rejection) = &outcome {
            self.report(number, &rejection.clone().into())?;
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

    fn report(&mut self, number: u64, fault: &LineFault) -> anyhow::Result<()> {
        self.rejected += 1;
        report(number, fault)
    }
}
