//! Amounts in buckets of a sixtieth of the timespan: sums that slide.

use tollgate_core::engine::wire::{Input, Malformed, Wire};

use super::{BUCKETS, BUCKETS_MAX};

/// Sums by bucket, in order of time; empty buckets are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Buckets(pub(super) Vec<(i64, u64)>);

/// Returns the length of a bucket, in milliseconds.
pub(crate) fn width_ms(timespan_ms: i64) -> i64 {
    // Rounded up, so that the buckets are never shorter than the timespan.
    (timespan_ms.saturating_add(BUCKETS - 1) / BUCKETS).max(1)
}

impl Buckets {
    /// Adds an amount to the bucket of a time.
    pub(super) fn add(&mut self, time_ms: i64, amount: u64, timespan_ms: i64) {
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
