//! The times of a counter that counts each signal: those that a window can still need.

use tollgate_core::engine::wire::{Input, Malformed, Wire};

use super::{Finding, TIMES_MAX, read_times, write_times};

/// Times in milliseconds since the epoch, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventTimes(pub(super) Vec<i64>);

impl EventTimes {
    /// Drops the times up to `horizon_ms`: no signal that is yet to come is in one window with them.
    pub(super) fn prune(&mut self, horizon_ms: i64) {
        let gone = self.0.partition_point(|time_ms| *time_ms <= horizon_ms);
        self.0.drain(..gone);
    }

    /// Adds a time, and returns a finding if `gte` times, the new one among them, lie less than `timespan_ms` apart.
    ///
    /// It looks on both sides of the new time, so that it does not matter in which order signals come.
    pub(super) fn add(&mut self, time_ms: i64, gte: usize, timespan_ms: i64) -> Option<Finding> {
        let at = self.0.partition_point(|other| *other <= time_ms);
        self.0.insert(at, time_ms);
        if self.0.len() > TIMES_MAX {
            self.0.remove(0);
        }
        let first = at.saturating_sub(gte.saturating_sub(1));
        let mut windows = self.0.get(first..)?.windows(gte.max(1)).take(at - first + 1);
        let found = windows.find_map(|window| {
            let (from_ms, to_ms) = (*window.first()?, *window.last()?);
            (to_ms.saturating_sub(from_ms) < timespan_ms).then_some((from_ms, to_ms))
        });
        found.map(|(from_ms, to_ms)| Finding::counted(from_ms, to_ms, gte as u64, gte as u64))
    }

    pub(super) fn write(&self, base_ms: i64, out: &mut Vec<u8>) {
        (self.0.len() as u64).write(out);
        write_times(self.0.iter().copied(), base_ms, out);
    }

    pub(super) fn read(input: &mut Input<'_>, base_ms: i64) -> Result<Self, Malformed> {
        let count = usize::try_from(u64::read(input)?).map_err(|_| Malformed::Truncated)?;
        read_times(input, base_ms, count).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_firing(times: &[i64], gte: usize) -> Option<usize> {
        let mut counter = EventTimes::default();
        times.iter().position(|time_ms| counter.add(*time_ms, gte, 100).is_some())
    }

    #[test]
    fn a_window_is_shorter_than_the_timespan() {
        assert_eq!(first_firing(&[0, 50, 100], 3), None, "as far apart as the timespan");
        assert_eq!(first_firing(&[0, 50, 99], 3), Some(2));
        assert_eq!(first_firing(&[7, 7, 7], 3), Some(2), "at once");
        assert_eq!(first_firing(&[0], 1), Some(0));
    }

    /// A fixed window would let twice as many pass at its boundary.
    #[test]
    fn a_window_has_no_fixed_boundary() {
        assert_eq!(first_firing(&[60, 90, 110, 140], 4), Some(3));
    }

    #[test]
    fn the_order_of_arrival_does_not_matter() {
        assert_eq!(first_firing(&[99, 0, 50], 3), Some(2));
        assert_eq!(first_firing(&[200, 100, 0, 149], 3), None);
        assert_eq!(first_firing(&[200, 100, 0, 149, 120], 3), Some(4));
    }

    #[test]
    fn what_no_window_can_need_is_dropped() {
        let mut times = EventTimes(vec![1, 2, 3]);
        times.prune(2);
        assert_eq!(times.0, [3]);
    }
}
