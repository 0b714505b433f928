//! The counter of a baseline: the amount now, and what is usual for the subject.

use tollgate_core::engine::wire::{Input, Malformed, Wire, layout};

use super::super::rules::Baseline;
use super::{Buckets, Finding, HISTORY_MAX, Timer};

/// The amount of one closed timespan; timespans are counted from the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    number: i64,
    sum: u64,
    /// Whether the rule fired in it. Then it is not usual.
    has_fired: bool,
}

/// The amounts of a baseline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BaselineCounts {
    pub(super) now: Buckets,
    /// Timespans with an amount, in order of time. Those without one are nothing that the subject does: an office that rests at night is
    /// compared with its days.
    spans: Vec<Span>,
    /// The first time that anything was known of the subject, in milliseconds since the epoch.
    began_ms: i64,
    pub(super) timer: Timer,
}

impl BaselineCounts {
    /// Adds an amount.
    pub(super) fn add(&mut self, time_ms: i64, amount: u64, timespan_ms: i64) {
        if self.spans.is_empty() && self.now.0.is_empty() {
            self.began_ms = time_ms;
        }
        self.began_ms = self.began_ms.min(time_ms);
        self.now.add(time_ms, amount, timespan_ms);
        let number = time_ms.div_euclid(timespan_ms.max(1));
        match self.spans.binary_search_by_key(&number, |span| span.number) {
            Ok(at) => {
                if let Some(span) = self.spans.get_mut(at) {
                    span.sum = span.sum.saturating_add(amount);
                }
            }
            Err(at) => self.spans.insert(at, Span { number, sum: amount, has_fired: false }),
        }
        if self.spans.len() > HISTORY_MAX {
            self.spans.remove(0);
        }
    }

    /// Drops the timespans that end before `horizon_ms`.
    pub(super) fn forget(&mut self, horizon_ms: i64, timespan_ms: i64) {
        let first = horizon_ms.div_euclid(timespan_ms.max(1));
        self.spans.retain(|span| span.number >= first);
    }

    pub(super) fn is_worth_a_look(&self, baseline: &Baseline) -> bool {
        self.now.total() >= baseline.floor
    }

    /// Returns a finding if the timespan that ends at `end_ms`, where a bucket begins, has so much more than is usual.
    pub(super) fn find(&self, bucket: i64, end_ms: i64, baseline: &Baseline, timespan_ms: i64) -> Option<Finding> {
        let amount = self.now.before(bucket);
        let is_known = end_ms.saturating_sub(self.began_ms) >= baseline.warmup_ms;
        let threshold = (baseline.factor * self.median(end_ms, baseline.history_ms, timespan_ms)).max(baseline.floor as f64);
        let is_reached = is_known && amount as f64 >= threshold;
        is_reached.then_some(Finding { from_ms: 0, to_ms: 0, count: amount as f64, threshold })
    }

    /// Returns the median of the timespans that were over before the one that ends at `end_ms` began, and in which the rule did not fire; 0
    /// if there are none.
    fn median(&self, end_ms: i64, history_ms: i64, timespan_ms: i64) -> f64 {
        let timespan_ms = timespan_ms.max(1);
        let begin_ms = end_ms.saturating_sub(timespan_ms);
        let (first, end) = (end_ms.saturating_sub(history_ms).div_euclid(timespan_ms), begin_ms.div_euclid(timespan_ms));
        let spans = self.spans.iter().filter(|span| span.number >= first && span.number < end && !span.has_fired);
        let mut sums: Vec<u64> = spans.map(|span| span.sum).collect();
        sums.sort_unstable();
        let middle = sums.len() / 2;
        let upper = sums.get(middle).copied().unwrap_or_default() as f64;
        let lower = sums.get(sums.len().saturating_sub(1) / 2).copied().unwrap_or_default() as f64;
        f64::midpoint(lower, upper)
    }

    /// Notes that the rule fired for the timespan that ends at `end_ms`. The last of the spans that it reaches into may have amounts only
    /// later, and is not usual all the same.
    pub(super) fn fired(&mut self, end_ms: i64, timespan_ms: i64) {
        let timespan_ms = timespan_ms.max(1);
        let (first, last) = (end_ms.saturating_sub(timespan_ms).div_euclid(timespan_ms), end_ms.saturating_sub(1).div_euclid(timespan_ms));
        if let Err(at) = self.spans.binary_search_by_key(&last, |span| span.number) {
            self.spans.insert(at, Span { number: last, sum: 0, has_fired: true });
        }
        self.spans.iter_mut().filter(|span| (first..=last).contains(&span.number)).for_each(|span| span.has_fired = true);
    }

    /// Returns the end of the last timespan, in milliseconds since the epoch.
    pub(super) fn end_ms(&self, timespan_ms: i64) -> Option<i64> {
        self.spans.last().map(|span| span.number.saturating_add(1).saturating_mul(timespan_ms))
    }
}

layout! {
    Span { number, sum, has_fired }
}

impl Wire for BaselineCounts {
    fn write(&self, out: &mut Vec<u8>) {
        self.now.write(out);
        self.spans.write(out);
        self.began_ms.write(out);
        self.timer.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let counts = Self { now: Wire::read(input)?, spans: Wire::read(input)?, began_ms: Wire::read(input)?, timer: Wire::read(input)? };
        let is_in_order = counts.spans.is_sorted_by(|one, other| one.number < other.number);
        if is_in_order { Ok(counts) } else { Err(Malformed::Invalid("a closed timespan")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;
    const BUCKET_MS: i64 = HOUR_MS / 60;

    fn baseline() -> Baseline {
        Baseline { factor: 8.0, floor: 100, history_ms: 168 * HOUR_MS, warmup_ms: 24 * HOUR_MS, for_ms: 0 }
    }

    /// Returns a subject with these amounts in its first hours.
    fn known(amounts: &[u64]) -> BaselineCounts {
        let mut counts = BaselineCounts::default();
        amounts.iter().zip(0..).for_each(|(amount, hour)| counts.add(hour * HOUR_MS, *amount, HOUR_MS));
        counts
    }

    fn found(counts: &mut BaselineCounts, hour: i64, amount: u64) -> bool {
        counts.add(hour * HOUR_MS + 1, amount, HOUR_MS);
        let end_ms = (hour + 1) * HOUR_MS;
        counts.find(end_ms / BUCKET_MS, end_ms, &baseline(), HOUR_MS).is_some()
    }

    #[test]
    fn the_median_of_what_was_usual_decides() {
        assert!(!found(&mut known(&[20, 30, 40]), 30, 239));
        assert!(found(&mut known(&[20, 30, 40]), 30, 240));
        assert!(found(&mut known(&[20, 40]), 30, 240), "between the two in the middle");
    }

    #[test]
    fn the_floor_spares_the_small_and_warm_up_the_new() {
        assert!(!found(&mut known(&[1]), 30, 99));
        assert!(found(&mut known(&[1]), 30, 100));
        assert!(!found(&mut known(&[1]), 22, 100), "known for 23 hours");
        assert!(found(&mut known(&[1]), 23, 100));
    }

    /// Or else whoever goes on for long enough would be usual.
    #[test]
    fn hours_that_fired_are_not_usual() {
        let mut counts = known(&[20, 30, 40, 900, 900, 900, 900]);
        assert!(!found(&mut counts.clone(), 30, 240));
        (3..7).for_each(|hour| counts.fired((hour + 1) * HOUR_MS, HOUR_MS));
        assert!(found(&mut counts, 30, 240));
    }
}
