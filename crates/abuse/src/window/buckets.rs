//! Amounts in buckets of a sixtieth of the timespan: sums that slide.

use tollgate_core::engine::wire::{Input, Malformed, Wire};

use super::{BUCKETS, BUCKETS_MAX, Finding};

/// Sums by bucket, in order of time; empty buckets are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Buckets(pub(super) Vec<(i64, u64)>);

/// Returns the length of a bucket, in milliseconds.
pub(crate) fn width_ms(timespan_ms: i64) -> i64 {
    // Rounded up, so that the buckets are never shorter than the timespan.
    (timespan_ms.saturating_add(BUCKETS - 1) / BUCKETS).max(1)
}

impl Buckets {
    /// Adds an amount to the bucket of a time, and returns the number of that.
    pub(super) fn add(&mut self, time_ms: i64, amount: u64, timespan_ms: i64) -> i64 {
        let bucket = time_ms.div_euclid(width_ms(timespan_ms));
        match self.0.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => {
                if let Some((_, sum)) = self.0.get_mut(at) {
                    *sum = sum.saturating_add(amount);
                }
            }
            Err(at) => self.0.insert(at, (bucket, amount)),
        }
        if self.0.len() > BUCKETS_MAX {
            self.0.remove(0);
        }
        bucket
    }

    /// Drops the buckets that end at `horizon_ms` or before.
    pub(super) fn prune(&mut self, horizon_ms: i64, timespan_ms: i64) {
        let first = horizon_ms.div_euclid(width_ms(timespan_ms));
        let gone = self.0.partition_point(|(bucket, _)| *bucket < first);
        self.0.drain(..gone);
    }

    /// Returns the first bucket.
    pub(super) fn first(&self) -> Option<i64> {
        self.0.first().map(|(bucket, _)| *bucket)
    }

    /// Returns the sum of all buckets.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().fold(0, |total, (_, sum)| total.saturating_add(*sum))
    }

    /// Returns the sum of the timespan that ends where a bucket begins.
    pub(super) fn before(&self, bucket: i64) -> u64 {
        let is_in = |other: i64| other < bucket && other >= bucket.saturating_sub(BUCKETS);
        self.0.iter().filter(|(other, _)| is_in(*other)).fold(0, |total, (_, sum)| total.saturating_add(*sum))
    }

    /// Returns a finding if a window with this bucket in it has a sum of `gte`. A window is a bucket and the sixty before it, so that two
    /// amounts which lie a timespan apart are in one: it is up to a sixtieth longer than the timespan.
    pub(super) fn find(&self, bucket: i64, gte: u64, timespan_ms: i64) -> Option<Finding> {
        if self.total() < gte {
            return None;
        }
        let last = bucket.saturating_add(BUCKETS);
        let (mut first, mut sum) = (0, 0_u64);
        for (end, amount) in self.0.iter().take_while(|(end, _)| *end <= last) {
            sum = sum.saturating_add(*amount);
            while let Some((_, gone)) = self.0.get(first).filter(|(begin, _)| *begin < end.saturating_sub(BUCKETS)) {
                sum = sum.saturating_sub(*gone);
                first += 1;
            }
            if *end >= bucket && sum >= gte {
                let width_ms = width_ms(timespan_ms);
                let begin = self.0.get(first).map_or(*end, |(begin, _)| *begin);
                let (from_ms, to_ms) = (begin.saturating_mul(width_ms), end.saturating_add(1).saturating_mul(width_ms));
                return Some(Finding::counted(from_ms, to_ms, sum, gte));
            }
        }
        None
    }

    /// Returns the end of the last bucket, in milliseconds since the epoch.
    pub(super) fn end_ms(&self, timespan_ms: i64) -> Option<i64> {
        self.0.last().map(|(bucket, _)| bucket.saturating_add(1).saturating_mul(width_ms(timespan_ms)))
    }
}

impl Wire for Buckets {
    fn write(&self, out: &mut Vec<u8>) {
        (self.0.len() as u64).write(out);
        let mut before = 0_i64;
        for (bucket, sum) in &self.0 {
            bucket.wrapping_sub(before).write(out);
            sum.write(out);
            before = *bucket;
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let pairs: Vec<(i64, u64)> = Wire::read(input)?;
        let mut before = 0_i64;
        let buckets: Vec<_> = pairs
            .into_iter()
            .map(|(step, sum)| {
                before = before.wrapping_add(step);
                (before, sum)
            })
            .collect();
        if buckets.is_sorted_by(|(one, _), (other, _)| one < other) { Ok(Self(buckets)) } else { Err(Malformed::Invalid("a bucket")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMESPAN_MS: i64 = 60_000;

    #[test]
    fn a_sum_is_found_in_the_window_that_has_it() {
        let mut buckets = Buckets::default();
        let bucket = buckets.add(0, 5, TIMESPAN_MS);
        assert_eq!(buckets.find(bucket, 10, TIMESPAN_MS), None);
        let bucket = buckets.add(59_999, 5, TIMESPAN_MS);
        let finding = buckets.find(bucket, 10, TIMESPAN_MS).unwrap();
        assert_eq!((finding.from_ms, finding.to_ms, finding.count, finding.threshold), (0, 60_000, 10.0, 10.0));
        let mut late = Buckets::default();
        late.add(59_999, 5, TIMESPAN_MS);
        let bucket = late.add(0, 5, TIMESPAN_MS);
        assert!(late.find(bucket, 10, TIMESPAN_MS).is_some(), "in whichever order");
    }

    #[test]
    fn a_window_is_up_to_a_sixtieth_longer_and_no_more() {
        let found = |time_ms| {
            let mut buckets = Buckets::default();
            buckets.add(0, 5, TIMESPAN_MS);
            let bucket = buckets.add(time_ms, 5, TIMESPAN_MS);
            buckets.find(bucket, 10, TIMESPAN_MS).is_some()
        };
        assert!(found(60_999));
        assert!(!found(61_000));
    }

    #[test]
    fn the_timespan_before_a_bucket_is_as_long_as_it_says() {
        let buckets = Buckets(vec![(0, 1), (1, 2), (60, 4), (61, 8)]);
        assert_eq!((buckets.before(60), buckets.before(61), buckets.before(62)), (3, 6, 12));
    }

    #[test]
    fn a_bucket_that_goes_back_is_refused() {
        let mut out = Vec::new();
        Buckets(vec![(5, 1), (9, 2)]).write(&mut out);
        assert_eq!(Input::new(1, &out).whole(), Ok(Buckets(vec![(5, 1), (9, 2)])));
        assert_eq!(Input::new(1, &[2, 2, 1, 1, 1]).whole::<Buckets>(), Err(Malformed::Invalid("a bucket")));
    }
}
