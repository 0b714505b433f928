//! The values of a counter that counts distinct ones: each with the times that a window can still need.

use rustc_hash::FxHashMap;

use tollgate_core::engine::wire::{Input, Malformed, Wire};
use tollgate_json::digest::{Digest, Fingerprint};

use super::{Finding, TIMES_MAX, read_times, write_times};

/// The longest text that stands for itself. A longer one stands as the first half of its digest.
const TEXT_BYTES_MAX: usize = 15;
const BYTES: usize = TEXT_BYTES_MAX + 1;

/// A value, so short that it can be kept and compared by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Value {
    length: u8,
    bytes: [u8; BYTES],
}

impl Value {
    /// Returns a subject or an argument's digest as a value.
    pub(crate) fn of_digest(digest: &Digest) -> Self {
        Self::of_bytes(digest.fingerprint().as_bytes())
    }

    /// Returns a text as a value.
    pub(crate) fn of_text(text: &str) -> Self {
        if text.len() <= TEXT_BYTES_MAX { Self::of_bytes(text.as_bytes()) } else { Self::of_bytes(Fingerprint::of(text).as_bytes()) }
    }

    fn of_bytes(of: &[u8]) -> Self {
        let mut bytes = [0; BYTES];
        bytes.iter_mut().zip(of).for_each(|(place, byte)| *place = *byte);
        Self { length: of.len().min(BYTES) as u8, bytes }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Values with times in milliseconds since the epoch, in order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Values(pub(super) Vec<(i64, Value)>);

impl Values {
    /// Drops the values up to `horizon_ms`: no signal that is yet to come is in one window with them.
    pub(super) fn prune(&mut self, horizon_ms: i64) {
        let gone = self.0.partition_point(|(time_ms, _)| *time_ms <= horizon_ms);
        self.0.drain(..gone);
    }

    /// Adds a value, and returns a finding if `gte` distinct values, the new one among them, lie less than `timespan_ms` apart.
    pub(super) fn add(&mut self, time_ms: i64, value: Value, gte: usize, timespan_ms: i64) -> Option<Finding> {
        let at = self.0.partition_point(|(other_ms, _)| *other_ms <= time_ms);
        self.0.insert(at, (time_ms, value));
        self.thin(&value, timespan_ms);
        if self.0.len() > TIMES_MAX {
            self.0.remove(0);
        }
        self.find(time_ms, gte, timespan_ms).map(|(from_ms, to_ms)| Finding::counted(from_ms, to_ms, gte as u64, gte as u64))
    }

    /// Drops the times of a value that no window needs: whichever window of this length has a time in it that lies between two others less
    /// than a timespan apart, has one of the two in it too. So a value that is repeated takes no more room than one that is not.
    fn thin(&mut self, value: &Value, timespan_ms: i64) {
        let times: Vec<i64> = self.0.iter().filter(|(_, other)| other == value).map(|(time_ms, _)| *time_ms).collect();
        if times.len() < 3 {
            return;
        }
        let mut kept = Vec::with_capacity(times.len());
        for (at, time_ms) in times.iter().enumerate() {
            let (before, behind) = (kept.last().copied(), times.get(at + 1).copied());
            let is_needed = before.zip(behind).is_none_or(|(before, behind): (i64, i64)| behind.saturating_sub(before) >= timespan_ms);
            if is_needed {
                kept.push(*time_ms);
            }
        }
        if kept.len() < times.len() {
            let mut kept = kept.into_iter().peekable();
            self.0.retain(|(time_ms, other)| other != value || kept.next_if_eq(time_ms).is_some());
        }
    }

    /// Returns the bounds of a window with a time in it that holds so many distinct values.
    fn find(&self, time_ms: i64, gte: usize, timespan_ms: i64) -> Option<(i64, i64)> {
        let is_near = |other_ms: i64| other_ms.abs_diff(time_ms) < timespan_ms.unsigned_abs();
        let near = self.0.iter().filter(|(other_ms, _)| is_near(*other_ms));
        if near.clone().count() < gte {
            return None;
        }
        let near: Vec<_> = near.collect();
        let mut counts = FxHashMap::<&Value, usize>::default();
        let mut first = 0;
        for (to_ms, value) in near.iter().copied() {
            *counts.entry(value).or_default() += 1;
            while let Some((from_ms, value)) = near.get(first).filter(|(from_ms, _)| to_ms.saturating_sub(*from_ms) >= timespan_ms) {
                debug_assert!(from_ms <= to_ms);
                if let Some(count) = counts.get_mut(value) {
                    *count -= 1;
                    if *count == 0 {
                        counts.remove(value);
                    }
                }
                first += 1;
            }
            let from_ms = near.get(first).map_or(*to_ms, |(from_ms, _)| *from_ms);
            if counts.len() >= gte && from_ms <= time_ms && time_ms <= *to_ms {
                return Some((from_ms, *to_ms));
            }
        }
        None
    }

    pub(super) fn write(&self, base_ms: i64, out: &mut Vec<u8>) {
        (self.0.len() as u64).write(out);
        write_times(self.0.iter().map(|(time_ms, _)| *time_ms), base_ms, out);
        for (_, value) in &self.0 {
            out.push(value.length);
            out.extend_from_slice(value.as_bytes());
        }
    }

    pub(super) fn read(input: &mut Input<'_>, base_ms: i64) -> Result<Self, Malformed> {
        let count = usize::try_from(u64::read(input)?).map_err(|_| Malformed::Truncated)?;
        let times = read_times(input, base_ms, count)?;
        let values = times.into_iter().map(|time_ms| match input.sized()? {
            bytes if bytes.len() <= BYTES => Ok((time_ms, Value::of_bytes(bytes))),
            _ => Err(Malformed::Invalid("a counted value")),
        });
        values.collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_firing(signals: &[(i64, &str)], gte: usize) -> Option<usize> {
        let mut counter = Values::default();
        signals.iter().position(|(time_ms, value)| counter.add(*time_ms, Value::of_text(value), gte, 100).is_some())
    }

    #[test]
    fn distinct_values_count_once() {
        assert_eq!(first_firing(&[(0, "a"), (1, "a"), (2, "b"), (3, "a"), (4, "c")], 3), Some(4));
        assert_eq!(first_firing(&[(0, "a"), (50, "b"), (100, "c")], 3), None, "as far apart as the timespan");
    }

    /// The latest time of a value alone would not do.
    #[test]
    fn a_value_that_came_again_later_counts_for_earlier_windows_too() {
        assert_eq!(first_firing(&[(0, "a"), (150, "a"), (60, "b"), (70, "c")], 3), Some(3));
        assert_eq!(first_firing(&[(150, "a"), (0, "a"), (70, "c"), (60, "b")], 3), Some(3));
    }

    #[test]
    fn what_is_repeated_takes_no_room() {
        let mut values = Values::default();
        for time_ms in 0..1_000 {
            values.add(time_ms, Value::of_text("a"), 2, 100);
        }
        assert!(values.0.len() <= 22, "{}", values.0.len());
    }

    #[test]
    fn long_texts_are_told_apart() {
        let long = "x".repeat(40);
        assert_ne!(Value::of_text(&long), Value::of_text(&format!("{long}y")));
        assert_ne!(Value::of_text("xxxxxxxxxxxxxxx"), Value::of_text("xxxxxxxxxxxxxxxx"));
    }
}
