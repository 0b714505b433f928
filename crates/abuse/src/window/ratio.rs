//! The counter of a ratio: the signals and what they are compared with, which are looked at when a bucket is over.

use tollgate_core::engine::wire::{Input, Malformed, Wire};

use super::super::rules::Ratio;
use super::{Buckets, Finding, Part, Timer};

/// The amounts of a ratio.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RatioCounts {
    /// The rule's signals.
    pub(super) part: Buckets,
    /// What they are compared with.
    pub(super) whole: Buckets,
    /// Since when it holds, and when it is looked at next.
    pub(super) timer: Timer,
}

impl RatioCounts {
    /// Adds an amount.
    pub(super) fn add(&mut self, time_ms: i64, amount: u64, part: Part, timespan_ms: i64) {
        let buckets = if part == Part::Whole { &mut self.whole } else { &mut self.part };
        buckets.add(time_ms, amount, timespan_ms);
    }

    /// Drops what ended at `horizon_ms` or before.
    pub(super) fn prune(&mut self, horizon_ms: i64, timespan_ms: i64) {
        self.part.prune(horizon_ms, timespan_ms);
        self.whole.prune(horizon_ms, timespan_ms);
    }

    /// Returns the first bucket with something in it.
    pub(super) fn first(&self) -> Option<i64> {
        self.part.first().into_iter().chain(self.whole.first()).min()
    }

    /// Returns whether there may be enough of it to mean anything.
    pub(super) fn is_worth_a_look(&self, ratio: &Ratio) -> bool {
        self.whole.total() >= ratio.min && self.part.total() > 0
    }

    /// Returns a finding if the share is reached in the timespan that ends where a bucket begins.
    pub(super) fn find(&self, bucket: i64, ratio: &Ratio) -> Option<Finding> {
        let (part, whole) = (self.part.before(bucket), self.whole.before(bucket));
        // A division gives the nearest number, as reading the threshold does: 7 of 100 are 0.07. A product would not.
        let found = part as f64 / whole as f64;
        let is_reached = whole > 0 && whole >= ratio.min && found >= ratio.gte;
        is_reached.then_some(Finding { from_ms: 0, to_ms: 0, count: found, threshold: ratio.gte })
    }
}

impl Wire for RatioCounts {
    fn write(&self, out: &mut Vec<u8>) {
        self.part.write(out);
        self.whole.write(out);
        self.timer.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(Self { part: Wire::read(input)?, whole: Wire::read(input)?, timer: Wire::read(input)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_needs_enough_to_mean_anything_and_is_exact() {
        let ratio =
            Ratio { over: tollgate_core::decide::signal::SignalKind::from_name("response").unwrap(), gte: 0.07, min: 100, for_ms: 0 };
        let counts = |part, whole| {
            let mut counts = RatioCounts::default();
            counts.add(1, part, Part::Part, 60_000);
            counts.add(1, whole, Part::Whole, 60_000);
            counts.find(1, &ratio).is_some()
        };
        assert!(counts(7, 100), "exactly the share");
        assert!(!counts(6, 100) && !counts(99, 99));
    }
}
