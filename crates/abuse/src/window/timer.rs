//! What waits for the clock: when a window is looked at next, and since when its rule's condition holds.

use tollgate_core::engine::wire::layout;

use super::buckets::width_ms;

/// When a window is looked at, and since when the condition holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Timer {
    /// The bucket at whose beginning it is looked at next; `None` if there is too little to look at.
    next: Option<i64>,
    /// The first look at which the condition held and since which it has, in milliseconds since the epoch.
    since_ms: Option<i64>,
}

impl Timer {
    /// Has the window looked at when the bucket of `now_ms` is over, if it is worth that. Before the first bucket with something in it there
    /// is nothing to see, so that a source that is far behind does not make it look at every bucket on the way.
    pub(super) fn expect(&mut self, is_worth_a_look: bool, now_ms: i64, first: Option<i64>, timespan_ms: i64) {
        if is_worth_a_look {
            let now = now_ms.div_euclid(width_ms(timespan_ms));
            let next = first.map_or(now, |first| first.max(now)).saturating_add(1);
            self.next = Some(self.next.map_or(next, |known| known.min(next)));
        }
    }

    /// Returns when the window is looked at next, in milliseconds since the epoch.
    pub(super) fn due_ms(&self, timespan_ms: i64) -> Option<i64> {
        self.next.map(|bucket| bucket.saturating_mul(width_ms(timespan_ms)))
    }

    pub(super) fn is_due(&self, now_ms: i64, timespan_ms: i64) -> bool {
        self.due_ms(timespan_ms).is_some_and(|due_ms| due_ms <= now_ms)
    }

    /// Notes a look at the beginning of a bucket.
    pub(super) fn look(&mut self, holds: bool, end_ms: i64, bucket: i64, first: Option<i64>, is_worth_a_look: bool) {
        self.since_ms = if holds { self.since_ms.or(Some(end_ms)) } else { None };
        self.next = is_worth_a_look.then(|| first.map_or(bucket, |first| first.max(bucket)).saturating_add(1));
    }

    /// Returns whether the condition has held for so long.
    pub(super) fn has_held(&self, end_ms: i64, for_ms: i64) -> bool {
        self.since_ms.is_some_and(|since_ms| end_ms.saturating_sub(since_ms) >= for_ms)
    }
}

layout! {
    Timer { next, since_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_to_hold_without_a_break() {
        let mut timer = Timer::default();
        timer.expect(false, 0, Some(0), 60_000);
        assert_eq!(timer.due_ms(60_000), None);
        timer.expect(true, 1_500, Some(0), 60_000);
        assert_eq!(timer.due_ms(60_000), Some(2_000));
        let looks = [(2, true), (3, true), (4, false), (5, true), (6, true), (7, true)];
        let held: Vec<i64> = looks
            .into_iter()
            .filter(|(bucket, holds)| {
                timer.look(*holds, bucket * 1_000, *bucket, Some(0), true);
                timer.has_held(bucket * 1_000, 2_000)
            })
            .map(|(bucket, _)| bucket)
            .collect();
        assert_eq!(held, [7]);
    }

    #[test]
    fn nothing_is_looked_at_before_there_is_anything() {
        let mut timer = Timer::default();
        timer.expect(true, 0, Some(1_000), 60_000);
        assert_eq!(timer.due_ms(60_000), Some(1_001_000));
        timer.expect(true, 0, Some(500), 60_000);
        assert_eq!(timer.due_ms(60_000), Some(501_000), "something came that is earlier");
        timer.expect(true, 0, Some(2_000), 60_000);
        assert_eq!(timer.due_ms(60_000), Some(501_000));
        timer.look(false, 501_000, 501, Some(900), true);
        assert_eq!(timer.due_ms(60_000), Some(901_000));
    }
}
