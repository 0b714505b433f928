//! `tollgate eval --digest`: one digest over all verdicts, made on all cores.

use std::sync::Arc;

use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::decide::evaluate::DistinctVerdicts;

use tollgate_recordings::{Captured, Decider, LineFault, ParallelReader, Visitor, unreadable_from_here, visitors_max};

use super::{report, tell_topics};

/// What the digest of a file was made of.
#[derive(Debug)]
pub(super) struct Digested {
    pub(super) verdicts: Arc<DistinctVerdicts>,
    /// How many lines were rejected.
    pub(super) rejected: u64,
    /// How many threads made room for others or were refused.
    pub(super) displaced: u64,
}

/// Decides on every line on all cores, and returns the digest of the verdicts.
pub(super) fn digest(parallel_reader: ParallelReader<'_>, new_decider: impl Fn() -> Decider) -> anyhow::Result<Digested> {
    let (verdicts, topic) = (Arc::new(DistinctVerdicts::default()), parallel_reader.topic);
    let new =
        || Share { topic, decider: new_decider(), out: VerdictBuffer::default(), verdicts: Arc::clone(&verdicts), faults: Vec::new() };
    let swept = parallel_reader.run(std::iter::repeat_with(new).take(visitors_max()).collect())?;
    tell_topics(&swept.topics);
    let displaced = swept.visitors.iter().map(|share| share.decider.displaced()).sum();
    let mut faults: Vec<_> = swept.visitors.into_iter().flat_map(|share| share.faults).collect();
    // What stands before it is good, as it is to `eval` without a digest.
    faults.extend(swept.broken.map(|(number, error)| (number, unreadable_from_here(&error))));
    faults.sort_unstable_by_key(|(number, _)| *number);
    faults.iter().try_for_each(|(number, fault)| report(*number, fault))?;
    Ok(Digested { verdicts, rejected: faults.len() as u64, displaced })
}

/// The records of some partitions.
struct Share<'t> {
    topic: &'t str,
    decider: Decider,
    out: VerdictBuffer,
    verdicts: Arc<DistinctVerdicts>,
    faults: Vec<(u64, LineFault)>,
}

impl Visitor for Share<'_> {
    fn record(&mut self, number: u64, captured: &Captured<'_>) -> anyhow::Result<()> {
        let Self { topic, decider, out, .. } = self;
        let offset = i64::try_from(number - 1)?;
        let outcome = captured.with_record(topic, offset, |record, is_readable| decider.decide(record, is_readable, out))?;
        if outcome.is_published() {
            self.verdicts.add(&self.out.json);
        }
        if let Outcome::DeadLetter(rejection) = outcome {
            self.fault(number, rejection.into());
        }
        Ok(())
    }

    fn fault(&mut self, number: u64, fault: LineFault) {
        self.faults.push((number, fault));
    }
}
