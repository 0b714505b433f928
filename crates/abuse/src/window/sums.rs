//! The amounts of a counter that adds them up, one for each sixtieth of the timespan.
//!
//! An amount stands at the end of its bucket. So a rule fires at the end of a bucket, and uses up the whole bucket: whichever amount of the
//! bucket comes last, the sums are the same.

use tollgate_core::engine::wire::{Input, Malformed, Wire};

use super::Finding;
use super::buckets::width_ms;
use super::timed_signals::{Added, Kind, Threshold, TimedSignals};

/// The amount of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amount(u64);

/// Amounts count.
impl Kind for Amount {
    type Tally = u64;

    const ADDS_UP: bool = true;

    fn enter(self, tally: &mut u64) {
        *tally = tally.saturating_add(self.0);
    }

    fn leave(self, tally: &mut u64) {
        *tally = tally.saturating_sub(self.0);
    }

    fn count(tally: &u64) -> u64 {
        *tally
    }

    fn add_up(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Wire::read(input).map(Self)
    }
}

impl TimedSignals<Amount> {
    /// Adds an amount to the bucket of a time. The window of a finding begins with its first bucket.
    pub(super) fn add_amount(&mut self, time_ms: i64, amount: u64, timespan_ms: i64, threshold: Threshold) -> Added {
        let width_ms = width_ms(timespan_ms);
        let end_ms = time_ms.div_euclid(width_ms).saturating_add(1).saturating_mul(width_ms);
        let Added { finding, is_late } = self.add(end_ms, Amount(amount), threshold);
        let finding = finding.map(|finding| Finding { from_ms: finding.from_ms.saturating_sub(width_ms), ..finding });
        Added { finding, is_late }
    }

    /// Returns the sum of what counts for the next firing.
    pub(super) fn total(&self) -> u64 {
        self.counting().iter().fold(0, |total, (_, amount)| total.saturating_add(amount.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMESPAN_MS: i64 = 60_000;
    const TEN: Threshold = Threshold { gte: 10, timespan_ms: 61_000 };

    /// Returns the finding of the last of some amounts.
    fn last(amounts: &[(i64, u64)]) -> (TimedSignals<Amount>, Added) {
        let mut kept = TimedSignals::default();
        let added = amounts.iter().map(|(time_ms, amount)| kept.add_amount(*time_ms, *amount, TIMESPAN_MS, TEN)).last();
        (kept, added.unwrap_or_default())
    }

    #[test]
    fn a_sum_is_found_in_the_window_that_has_it() {
        for amounts in [[(0, 5), (59_999, 6)], [(59_999, 6), (0, 5)]] {
            let finding = last(&amounts).1.finding.unwrap();
            assert_eq!((finding.from_ms, finding.to_ms, finding.count, finding.threshold), (0, 60_000, 11.0, 10.0), "in whichever order");
        }
    }

    #[test]
    fn a_window_is_up_to_a_sixtieth_longer_and_no_more() {
        assert!(last(&[(0, 5), (60_999, 5)]).1.finding.is_some());
        assert!(last(&[(0, 5), (61_000, 5)]).1.finding.is_none());
    }

    #[test]
    fn a_firing_uses_up_its_bucket_and_leaves_what_is_behind() {
        let (mut kept, added) = last(&[(70_000, 4), (1_500, 9), (1_000, 2)]);
        assert_eq!((added.finding.map(|finding| finding.to_ms), kept.total()), (Some(2_000), 4));
        let added = kept.add_amount(1_999, 50, TIMESPAN_MS, TEN);
        assert_eq!((added, kept.total()), (Added { finding: None, is_late: true }, 4), "of the bucket that fired");
        let mut out = Vec::new();
        kept.write(7, &mut out);
        assert_eq!(TimedSignals::read(&mut Input::new(1, &out), 7), Ok(kept));
    }
}
