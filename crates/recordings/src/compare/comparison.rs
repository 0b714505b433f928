//! One run over the traffic: both sides are asked about every record, and what differs is counted and written.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate_core::decide::shadow::Sample;

use crate::{Captured, LineFault, Visitor};

use super::cut_off::StoppedTurns;
use super::first::DifferingTurns;
use super::flip::{Facts, Flip};
use super::sides::{BothSides, Sides};
use super::suspended::Fleets;
use super::tally::Tally;

/// Where the lines of differences go. Every core writes whole lines.
pub type Flips = Arc<Mutex<dyn Write + Send>>;

/// The records of some partitions.
pub(super) struct Comparison<'t> {
    topic: &'t str,
    sides: Sides,
    /// The share of threads that is counted; `None` is all of them.
    sample: Option<Sample>,
    flips: Option<Flips>,
    facts: Facts,
    turns: StoppedTurns,
    differing: DifferingTurns,
    line: Vec<u8>,
    /// Counting abuse, where the rules of both sides are compared.
    pub(super) fleets: Option<Fleets>,
    pub(super) tally: Tally,
    pub(super) faults: Vec<(u64, LineFault)>,
}

impl<'t> Comparison<'t> {
    /// Returns a comparison that has seen nothing. `topic` is that of records that name none.
    pub(super) fn new(topic: &'t str, sides: Sides, sample: Option<Sample>, flips: Option<Flips>, fleets: Option<Fleets>) -> Self {
        Self {
            topic,
            sides,
            sample,
            flips,
            facts: Facts::default(),
            turns: StoppedTurns::default(),
            differing: DifferingTurns::default(),
            line: Vec::new(),
            fleets,
            tally: Tally::default(),
            faults: Vec::new(),
        }
    }

    fn count(&mut self, said: BothSides) -> anyhow::Result<()> {
        let Self { facts, tally, turns, differing, .. } = self;
        let [from, to] = match said.sides {
            [Some(from), Some(to)] => [from, to],
            [None, None] => {
                turns.boundary(facts);
                differing.boundary(facts);
                return Ok(());
            }
            _ => {
                tally.unmatched += 1;
                return Ok(());
            }
        };
        if let (Some(fleets), Some(outs)) = (&mut self.fleets, self.sides.outs()) {
            fleets.said(facts.event_type, [&from, &to], outs);
        }
        if from.differs(&to) {
            [facts.from_message, facts.to_message] = self.sides.messages();
        }
        let loss = turns.note(facts, &from, &to);
        tally.lost.calls += loss.calls;
        tally.lost.turns += loss.turns;
        tally.lost.refused += loss.refused;
        if !tally.note(facts, &from, &to) {
            return Ok(());
        }
        let is_first = differing.is_first(facts);
        tally.first_flips += u64::from(is_first);
        let Some(flips) = &self.flips else { return Ok(()) };
        self.line.clear();
        serde_json::to_writer(&mut self.line, &Flip { facts, from: &from, to: &to, is_first })?;
        self.line.push(b'\n');
        Ok(flips.lock().unwrap_or_else(PoisonError::into_inner).write_all(&self.line)?)
    }
}

impl Visitor for Comparison<'_> {
    fn record(&mut self, number: u64, captured: &Captured<'_>) -> anyhow::Result<()> {
        let Self { topic, sides, facts, turns, fleets, .. } = self;
        let offset = i64::try_from(number - 1)?;
        let said = captured.with_record(topic, offset, |record, is_readable| {
            facts.place(record);
            let said = sides.ask(record, is_readable, |event| facts.event(event, |thread| turns.asks(thread)))?;
            if let Some(rejection) = said.rejection.as_ref().filter(|_| facts.thread_id.is_empty()) {
                facts.unreadable(&rejection.event, record.coordinates());
            }
            if let (Some(fleets), Some(outs)) = (fleets, sides.outs()) {
                fleets.event(record, outs)?;
            }
            anyhow::Ok(said)
        })?;
        // Threads know nothing of each other, so that those outside the sample may be decided on and left out here.
        if self.sample.is_some_and(|sample| !sample.has(&self.facts.thread_id)) {
            return Ok(());
        }
        self.tally.records += 1;
        self.tally.redacted += u64::from(captured.is_redacted && self.sides.read_arguments());
        if let Some(rejection) = &said.rejection {
            *self.tally.unreadable.entry(rejection.code.as_str()).or_default() += 1;
        }
        self.count(said)
    }

    fn fault(&mut self, number: u64, fault: LineFault) {
        self.faults.push((number, fault));
    }
}
