//! A source of signals: a partition of the events topic. It releases signals in the order of offsets, and has the time of what it released.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tollgate_core::record::Offset;
use tollgate_core::signal::Clock;

use crate::outbox::Waiter;

use super::Facts;

/// A decided record, with its signals if it has any.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) waiter: Waiter,
    /// The event's time in milliseconds since the epoch, as it counts.
    pub(super) time_ms: Option<i64>,
    pub(super) facts: Option<Facts>,
}

/// What a source releases.
pub(super) enum Released {
    /// It is read from its beginning without any state: its offsets may have begun again. This comes before its first signals.
    Began(Clock),
    /// A record's turn has come.
    Event(Event),
}

/// A partition of the events topic.
#[derive(Debug)]
pub(super) struct Source {
    /// Records that are not decided, by offset. Signals of later ones are held back.
    undecided: BTreeSet<Offset>,
    held: BTreeMap<Offset, Event>,
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
    /// What was last told.
    pub(super) told: Option<(Offset, i64)>,
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
            told: None,
        }
    }

    /// Notes that a record is not decided yet.
    pub(super) fn undecided(&mut self, offset: Offset) {
        self.undecided.insert(offset);
        (self.is_active, self.is_caught_up) = (true, false);
    }

    /// Takes a decided record, and passes everything on whose turn has come.
    pub(super) fn decided(&mut self, event: Event, mut pass: impl FnMut(Released)) {
        (self.is_active, self.is_caught_up) = (true, false);
        let offset = event.waiter.offset;
        if self.undecided.is_empty() {
            return self.release(event, &mut pass);
        }
        self.undecided.remove(&offset);
        self.held.insert(offset, event);
        let first = self.undecided.first().copied();
        while let Some(entry) = self.held.first_entry().filter(|entry| first.is_none_or(|first| *entry.key() < first)) {
            let event = entry.remove();
            self.release(event, &mut pass);
        }
    }

    fn release(&mut self, event: Event, pass: &mut impl FnMut(Released)) {
        if let (Some(time_ms), Some(next)) = (event.time_ms, self.new_end) {
            self.new_end = None;
            pass(Released::Began(Clock { source: event.waiter.partition, next, time_ms, has_begun: true }));
        }
        self.next = self.next.max(event.waiter.offset.next());
        self.time_ms = self.time_ms.max(event.time_ms);
        if event.facts.is_some() {
            pass(Released::Event(event));
        }
    }

    /// Returns how many decided records are held back.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::record::Partition;

    fn event(offset: i64, time_ms: Option<i64>, has_facts: bool) -> Event {
        let waiter = Waiter { partition: Partition(3), generation: 1, offset: Offset(offset) };
        Event { waiter, time_ms, facts: has_facts.then(Facts::default) }
    }

    fn decided(source: &mut Source, event: Event) -> Vec<i64> {
        let mut released = Vec::new();
        source.decided(event, |one| match one {
            Released::Began(clock) => released.push(-clock.next.0),
            Released::Event(event) => released.push(event.waiter.offset.0),
        });
        released
    }

    #[test]
    fn signals_leave_in_the_order_of_offsets() {
        let mut source = Source::new(None);
        assert_eq!(decided(&mut source, event(4, Some(40), true)), [4]);
        source.undecided(Offset(5));
        assert_eq!(decided(&mut source, event(6, Some(90), true)), [0; 0]);
        source.undecided(Offset(7));
        assert_eq!(decided(&mut source, event(8, Some(70), true)), [0; 0]);
        assert_eq!((source.held(), source.next, source.time_ms), (2, Offset(5), Some(40)), "time is that of what has left");
        assert_eq!(decided(&mut source, event(5, Some(50), true)), [5, 6]);
        assert_eq!((source.held(), source.next, source.time_ms), (1, Offset(7), Some(90)));
        assert_eq!(decided(&mut source, event(7, None, false)), [8], "what has no signals leaves nothing");
        assert_eq!((source.held(), source.next), (0, Offset(9)));
        assert_eq!(decided(&mut source, event(9, Some(1), true)), [9]);
        assert_eq!(source.time_ms, Some(90));
    }

    #[test]
    fn a_source_of_which_nothing_is_known_says_so_before_its_first_signals() {
        let mut source = Source::new(Some(Offset(20)));
        assert_eq!(decided(&mut source, event(0, None, false)), [0; 0], "no time is known yet");
        assert_eq!(decided(&mut source, event(1, Some(7), true)), [-20, 1]);
        assert_eq!(decided(&mut source, event(2, Some(8), true)), [2]);
    }
}
