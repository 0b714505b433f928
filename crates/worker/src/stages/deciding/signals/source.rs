//! A source of signals: a partition of the events topic. It releases signals in the order of offsets, and has the time of what it released.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tollgate_core::decide::signal::{Clock, EventSignals};
use tollgate_core::event::record::Offset;

use crate::outbox::Waiter;

/// A decided record that is held back, with its signals if it has any.
#[derive(Debug)]
pub(super) struct HeldRecord {
    pub(super) waiter: Waiter,
    /// The event's time in milliseconds since the epoch, as it counts.
    pub(super) time_ms: Option<i64>,
    pub(super) signals: Option<EventSignals>,
}

/// A partition of the events topic.
#[derive(Debug)]
pub(super) struct Source {
    /// Records that are not decided, by offset. Signals of later ones are held back.
    undecided: BTreeSet<Offset>,
    held: BTreeMap<Offset, HeldRecord>,
    /// Where the partition ended when nothing was known of it. It is told with the first time that is known.
    new_end: Option<Offset>,
    /// The offset behind the last record that was released.
    pub(super) next: Offset,
    /// The greatest time of the records that were released, or a later one that an idle source has come to.
    pub(super) time_ms: Option<i64>,
    /// When the last record was decided.
    pub(super) active_at: Option<Instant>,
    /// Whether a record was decided since the last tick.
    pub(super) is_active: bool,
    /// Whether all records were taken that were known of when it was last said.
    pub(super) is_caught_up: bool,
    /// For how many ticks nothing was decided while it was caught up.
    pub(super) idle_ticks: u32,
    /// What was last published, and when.
    pub(super) published: Option<(Offset, i64, Instant)>,
    /// When it was last said that it has no time to tell.
    pub(super) idle_at: Option<Instant>,
}

impl Source {
    /// Returns a source of which nothing was released.
    pub(super) fn new(new_end: Option<Offset>) -> Self {
        Self {
            undecided: BTreeSet::new(),
            held: BTreeMap::new(),
            new_end,
            next: Offset(0),
            time_ms: None,
            active_at: None,
            is_active: false,
            is_caught_up: false,
            idle_ticks: 0,
            published: None,
            idle_at: None,
        }
    }

    /// Notes that a record is not decided yet.
    pub(super) fn undecided(&mut self, offset: Offset) {
        self.undecided.insert(offset);
        (self.is_active, self.is_caught_up) = (true, false);
    }

    /// Notes that a record is decided, and returns whether its turn has come. If not, it is to be held back, and others may have theirs.
    pub(super) fn decided(&mut self, offset: Offset) -> bool {
        (self.is_active, self.is_caught_up) = (true, false);
        if self.undecided.is_empty() {
            return true;
        }
        self.undecided.remove(&offset);
        false
    }

    /// Holds a decided record back.
    pub(super) fn hold_back(&mut self, held: HeldRecord) {
        self.held.insert(held.waiter.offset, held);
    }

    /// Returns the next record that was held back and whose turn has come.
    pub(super) fn next_held(&mut self) -> Option<HeldRecord> {
        let first = self.undecided.first().copied();
        let entry = self.held.first_entry().filter(|entry| first.is_none_or(|first| *entry.key() < first))?;
        Some(entry.remove())
    }

    /// Notes that a record's turn has come. Returns the clock to be told before its signals if nothing was known of the source: it is read
    /// without any state, so that its offsets may have begun again.
    pub(super) fn release(&mut self, waiter: Waiter, time_ms: Option<i64>) -> Option<Clock> {
        self.next = self.next.max(waiter.offset.next());
        self.time_ms = self.time_ms.max(time_ms);
        let (time_ms, source) = (time_ms?, waiter.partition);
        self.new_end.take().map(|next| Clock { source, next, time_ms, has_begun: true })
    }

    /// Returns how many decided records are held back.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::event::record::Partition;

    fn waiter(offset: i64) -> Waiter {
        Waiter { partition: Partition(3), generation: 1, offset: Offset(offset) }
    }

    /// Returns the offsets that leave with a decided record, with the ends that are told before them as negative numbers.
    fn decided(source: &mut Source, offset: i64, time_ms: Option<i64>) -> Vec<i64> {
        let (waiter, mut released) = (waiter(offset), Vec::new());
        let mut release = |source: &mut Source, waiter: Waiter, time_ms| {
            released.extend(source.release(waiter, time_ms).map(|clock| -clock.next.0));
            released.push(waiter.offset.0);
        };
        if source.decided(waiter.offset) {
            release(source, waiter, time_ms);
        } else {
            source.hold_back(HeldRecord { waiter, time_ms, signals: None });
            while let Some(held) = source.next_held() {
                release(source, held.waiter, held.time_ms);
            }
        }
        released
    }

    #[test]
    fn signals_leave_in_the_order_of_offsets() {
        let mut source = Source::new(None);
        assert_eq!(decided(&mut source, 4, Some(40)), [4]);
        source.undecided(Offset(5));
        assert_eq!(decided(&mut source, 6, Some(90)), [0; 0]);
        source.undecided(Offset(7));
        assert_eq!(decided(&mut source, 8, Some(70)), [0; 0]);
        assert_eq!((source.held(), source.next, source.time_ms), (2, Offset(5), Some(40)), "time is that of what has left");
        assert_eq!(decided(&mut source, 5, Some(50)), [5, 6]);
        assert_eq!((source.held(), source.next, source.time_ms), (1, Offset(7), Some(90)));
        assert_eq!(decided(&mut source, 7, None), [7, 8]);
        assert_eq!((source.held(), source.next), (0, Offset(9)));
        assert_eq!(decided(&mut source, 9, Some(1)), [9]);
        assert_eq!(source.time_ms, Some(90));
    }

    #[test]
    fn a_source_of_which_nothing_is_known_says_so_before_its_first_signals() {
        let mut source = Source::new(Some(Offset(20)));
        assert_eq!(decided(&mut source, 0, None), [0], "no time is known yet");
        assert_eq!(decided(&mut source, 1, Some(7)), [-20, 1]);
        assert_eq!(decided(&mut source, 2, Some(8)), [2]);
    }
}
