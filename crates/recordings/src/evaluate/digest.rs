//! One digest over all verdicts, made on all cores.

use std::collections::BTreeSet;
use std::sync::Arc;

use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::decide::evaluate::DistinctVerdicts;

use super::CutTurns;
use crate::{Captured, Decider, LineFault, ParallelReader, Visitor, unreadable_from_here, visitors_max};

/// What the digest of a file was made of.
#[derive(Debug)]
pub struct Digested {
    /// The verdicts.
    pub verdicts: Arc<DistinctVerdicts>,
    /// The topics of the records.
    pub topics: BTreeSet<String>,
    /// The lines that were rejected, in their order.
    pub faults: Vec<(u64, LineFault)>,
    /// How many threads made room for others or were refused. Where there are any, the digest depends on how threads are split over
    /// partitions.
    pub displaced: u64,
    /// How many threads begin within a turn.
    pub cut_threads: u64,
    /// How many records have stand-ins in place of their contents.
    pub redacted: u64,
}

/// Decides on every line on all cores, and returns the digest of the verdicts.
///
/// # Errors
/// There are too many partitions, or policy servers cannot be asked.
pub fn digest(parallel_reader: ParallelReader<'_>, new_decider: impl Fn() -> Decider) -> anyhow::Result<Digested> {
    let (verdicts, topic) = (Arc::new(DistinctVerdicts::default()), parallel_reader.topic);
    let new = || Share {
        topic,
        decider: new_decider(),
        out: VerdictBuffer::default(),
        cut_turns: CutTurns::default(),
        verdicts: Arc::clone(&verdicts),
        faults: Vec::new(),
        redacted: 0,
    };
    let swept = parallel_reader.run(std::iter::repeat_with(new).take(visitors_max()).collect())?;
    let displaced = swept.visitors.iter().map(|share| share.decider.displaced()).sum();
    let redacted = swept.visitors.iter().map(|share| share.redacted).sum();
    let cut_threads = CutTurns::count_of(swept.visitors.iter().map(|share| &share.cut_turns));
    let mut faults: Vec<_> = swept.visitors.into_iter().flat_map(|share| share.faults).collect();
    // What stands before it is good, as it is to `eval` without a digest.
    faults.extend(swept.broken.map(|(number, error)| (number, unreadable_from_here(&error))));
    faults.sort_unstable_by_key(|(number, _)| *number);
    Ok(Digested { verdicts, topics: swept.topics, faults, displaced, cut_threads, redacted })
}

/// The records of some partitions.
struct Share<'t> {
    topic: &'t str,
    decider: Decider,
    out: VerdictBuffer,
    cut_turns: CutTurns,
    verdicts: Arc<DistinctVerdicts>,
    faults: Vec<(u64, LineFault)>,
    redacted: u64,
}

impl Visitor for Share<'_> {
    fn record(&mut self, number: u64, captured: &Captured<'_>) -> anyhow::Result<()> {
        self.redacted += u64::from(captured.is_redacted);
        let Self { topic, decider, out, .. } = self;
        let offset = i64::try_from(number - 1)?;
        let outcome = captured.with_record(topic, offset, |record, is_readable| decider.decide(record, is_readable, out))?;
        if outcome.is_published() {
            self.verdicts.add(&self.out.json);
        }
        match outcome {
            Outcome::DeadLetter(rejection) => self.fault(number, rejection.into()),
            Outcome::Verdict { event_type, .. } | Outcome::Boundary(event_type) => self.cut_turns.note(&self.out.thread_id, event_type),
        }
        Ok(())
    }

    fn fault(&mut self, number: u64, fault: LineFault) {
        self.faults.push((number, fault));
    }
}
