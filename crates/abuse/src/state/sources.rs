//! The sources: the partitions of the events topic. What of each was applied, and how far each is in time.
//!
//! A signal carries the offset of its event. The events of a source come in order, so one number for each source says what was applied
//! already, however often a worker that died had its signals written.
//!
//! The partition's time is the least of its sources' times. So a source that lags loses nothing: nothing is late before the slowest is
//! there. A source that nothing is heard of is left out after a while, or it would hold up everybody.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::decide::signal::{Clock, Signals};
use tollgate_core::engine::wire::layout;
use tollgate_core::event::record::{Offset, Partition};

use crate::time_units::earlier;

/// After how long without a sign of it a source is left out of the partition's time, in milliseconds of the records' own timestamps.
pub(crate) const SILENCE_MS: i64 = 10 * 60 * 1_000;

/// The most sources that are waited for because somebody has said that there are so many. A forged number must not take the memory.
const SOURCES_MAX: u32 = 1 << 14;

/// One source. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// The last offset that was applied.
    applied: Option<Offset>,
    /// How far it is, by its events.
    time_ms: Option<i64>,
    /// The latest timestamp of a record with a sign of it.
    heard_ms: Option<i64>,
    /// Whether it is left out of the partition's time: nothing is heard of it, or it has nothing to tell.
    is_silent: bool,
}

/// All sources of a partition of the signals topic.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    sources: BTreeMap<Partition, Source>,
    /// Sources that have changed since a checkpoint last saw them.
    changed: BTreeSet<Partition>,
    /// As many sources as there are known to be.
    expected: u32,
    /// The latest timestamp of any record.
    newest_ms: Option<i64>,
    /// The earliest timestamp at which any source may have been silent for too long.
    silence_due_ms: Option<i64>,
}

impl Sources {
    /// Returns sources as a checkpoint has them.
    pub(crate) fn restored(sources: BTreeMap<Partition, Source>) -> Self {
        let newest_ms = sources.values().filter_map(|source| source.heard_ms).max();
        Self { sources, newest_ms, silence_due_ms: newest_ms, ..Self::default() }
    }

    /// Notes which sources there are, as a record with this timestamp says.
    pub(crate) fn note(&mut self, signals: &Signals<'_>, timestamp_ms: Option<i64>) {
        signals.sources.into_iter().for_each(|count| self.expect(count, timestamp_ms));
        signals.idle.iter().for_each(|source| self.idle(*source, timestamp_ms));
    }

    /// Notes how many sources there are. Those that nothing was heard of yet are waited for, like any that fall silent.
    fn expect(&mut self, count: u32, timestamp_ms: Option<i64>) {
        let count = count.min(SOURCES_MAX);
        if count <= self.expected || timestamp_ms.is_none() {
            return;
        }
        self.expected = count;
        // As of the log: a worker whose clock is slow must not have them fall silent at once.
        let timestamp_ms = self.log_ms(timestamp_ms);
        for number in (0..count).filter_map(|number| i32::try_from(number).ok().map(Partition)) {
            if !self.sources.contains_key(&number) {
                self.change(number, timestamp_ms, |_| {});
            }
        }
    }

    /// Notes that a source is caught up and has no time to tell, so that nobody has to wait for it. One whose time is known stays what it is.
    fn idle(&mut self, number: Partition, timestamp_ms: Option<i64>) {
        let is_known = |source: &Source| source.time_ms.is_some() || source.applied.is_some();
        if !self.sources.get(&number).is_some_and(is_known) {
            self.change(number, timestamp_ms, |_| {});
            self.sources.entry(number).and_modify(|source| source.is_silent = true);
            self.changed.insert(number);
        }
    }

    /// Returns the last offset of a source that was applied.
    pub(crate) fn applied(&self, source: Partition) -> Option<Offset> {
        self.sources.get(&source).and_then(|source| source.applied)
    }

    /// Notes that a source was applied up to an offset, in a record with this timestamp.
    pub(crate) fn apply(&mut self, source: Partition, offset: Offset, timestamp_ms: Option<i64>) {
        self.change(source, timestamp_ms, |source| source.applied = source.applied.max(Some(offset)));
    }

    /// Notes a source's time. It cannot be ahead of the log: an event that says so has a clock that is wrong, or lies, and would make late
    /// whatever the others bring.
    pub(crate) fn tick(&mut self, clock: &Clock, timestamp_ms: Option<i64>) {
        let time_ms = self.log_ms(timestamp_ms).map_or(clock.time_ms, |log_ms| clock.time_ms.min(log_ms));
        self.change(clock.source, timestamp_ms, |source| source.time_ms = source.time_ms.max(Some(time_ms)));
    }

    /// Returns how far the log has come at a record with this timestamp: the latest timestamp of any record up to it. One worker whose clock
    /// is slow holds nobody back.
    pub(crate) fn log_ms(&self, timestamp_ms: Option<i64>) -> Option<i64> {
        self.newest_ms.max(timestamp_ms)
    }

    /// Begins a source again if its offsets have begun again, and returns whether they have.
    pub(crate) fn begin(&mut self, clock: &Clock, timestamp_ms: Option<i64>) -> bool {
        let is_behind = |applied: Offset| clock.next.0.saturating_sub(1) < applied.0;
        let has_begun_again = clock.has_begun && self.applied(clock.source).is_some_and(is_behind);
        if has_begun_again {
            self.change(clock.source, timestamp_ms, |source| (source.applied, source.time_ms) = (None, None));
        }
        has_begun_again
    }

    /// Returns the sources that were heard of too long ago, each once, in order.
    pub(crate) fn fall_silent(&mut self) -> Vec<Partition> {
        let Some(newest_ms) = self.newest_ms.filter(|newest_ms| self.silence_due_ms.is_some_and(|due_ms| due_ms <= *newest_ms)) else {
            return Vec::new();
        };
        // A source without a time of record would be waited for for ever.
        let is_overdue = |heard_ms: Option<i64>| heard_ms.is_none_or(|heard_ms| newest_ms.saturating_sub(heard_ms) >= SILENCE_MS);
        let mut fallen = Vec::new();
        for (number, source) in &mut self.sources {
            if !source.is_silent && is_overdue(source.heard_ms) {
                source.is_silent = true;
                fallen.push(*number);
            }
        }
        self.changed.extend(fallen.iter().copied());
        let heard = self.sources.values().filter(|source| !source.is_silent).filter_map(|source| source.heard_ms);
        self.silence_due_ms = heard.min().map(|heard_ms| heard_ms.saturating_add(SILENCE_MS));
        fallen
    }

    /// Returns the partition's time: the least of all sources that are not silent. `None` while one of them has not told its time yet, and
    /// where all have fallen silent.
    pub(crate) fn now_ms(&self) -> Option<i64> {
        // None is less than any time.
        self.sources.values().filter(|source| !source.is_silent).map(|source| source.time_ms).min().flatten()
    }

    /// Returns how far all sources are for certain that are not silent: one that has not told its time is as far as when it was first heard
    /// of. `None` where there is none.
    pub(crate) fn reached_ms(&self) -> Option<i64> {
        self.sources.values().filter(|source| !source.is_silent).filter_map(|source| source.time_ms.or(source.heard_ms)).min()
    }

    /// Returns how many sources there are.
    pub(crate) fn len(&self) -> usize {
        self.sources.len()
    }

    /// Returns a source.
    pub(crate) fn get(&self, source: Partition) -> Option<&Source> {
        self.sources.get(&source)
    }

    /// Returns the sources that have changed since the last time.
    pub(crate) fn take_changes(&mut self) -> BTreeSet<Partition> {
        std::mem::take(&mut self.changed)
    }

    /// Marks a source so that it is shown again.
    pub(crate) fn mark_changed(&mut self, source: Partition) {
        self.changed.insert(source);
    }

    /// Notes that a source was shown by itself.
    pub(crate) fn unmark(&mut self, source: Partition) {
        self.changed.remove(&source);
    }

    fn change(&mut self, number: Partition, timestamp_ms: Option<i64>, change: impl FnOnce(&mut Source)) {
        let source = self.sources.entry(number).or_default();
        let before = *source;
        change(source);
        source.heard_ms = source.heard_ms.max(timestamp_ms);
        // It is back. Its own time is the one that it left with until it tells another.
        source.is_silent = false;
        if *source != before {
            self.changed.insert(number);
        }
        self.newest_ms = self.newest_ms.max(timestamp_ms);
        let due_ms = source.heard_ms.map(|heard_ms| heard_ms.saturating_add(SILENCE_MS));
        self.silence_due_ms = earlier(self.silence_due_ms, due_ms);
    }
}

layout! {
    Source { applied, time_ms, heard_ms, is_silent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::engine::wire::{Input, Wire};

    fn clock(source: i32, next: i64, time_ms: i64, has_begun: bool) -> Clock {
        Clock { source: Partition(source), next: Offset(next), time_ms, has_begun }
    }

    #[test]
    fn the_slowest_source_gives_the_time() {
        let mut sources = Sources::default();
        assert_eq!(sources.now_ms(), None);
        sources.tick(&clock(0, 1, 5_000, false), Some(9_000));
        sources.tick(&clock(1, 1, 3_000, false), Some(9_000));
        sources.tick(&clock(1, 1, 2_000, false), Some(9_000));
        assert_eq!(sources.now_ms(), Some(3_000), "and no source goes back");
    }

    /// Or else one event with a time of tomorrow would make late whatever comes today.
    #[test]
    fn no_source_is_ahead_of_the_log() {
        let mut sources = Sources::default();
        sources.tick(&clock(0, 1, i64::MAX, false), Some(5_000));
        assert_eq!(sources.now_ms(), Some(5_000));
        sources.tick(&clock(0, 2, 7_000, false), Some(1_000));
        assert_eq!(sources.now_ms(), Some(5_000), "a writer whose clock is slow does not take the log back");
        sources.tick(&clock(0, 3, 8_000, false), Some(8_500));
        assert_eq!(sources.now_ms(), Some(8_000));
        sources.tick(&clock(0, 4, 8_100, false), None);
        assert_eq!(sources.now_ms(), Some(8_100));
    }

    #[test]
    fn a_source_that_nothing_is_heard_of_is_left_out_until_it_is_back() {
        let mut sources = Sources::default();
        sources.tick(&clock(0, 1, 500, false), Some(1_000));
        sources.tick(&clock(1, 1, 300, false), Some(400));
        sources.tick(&clock(0, 1, 600, false), Some(SILENCE_MS + 399));
        assert_eq!(sources.fall_silent(), []);
        sources.tick(&clock(0, 1, 700, false), Some(SILENCE_MS + 400));
        assert_eq!((sources.fall_silent(), sources.fall_silent()), (vec![Partition(1)], vec![]), "once");
        assert_eq!(sources.now_ms(), Some(700));
        sources.apply(Partition(1), Offset(9), Some(SILENCE_MS + 401));
        assert_eq!(sources.now_ms(), Some(300), "it holds up the time again, so that it loses nothing");
        sources.tick(&clock(1, 1, 900, false), Some(SILENCE_MS * 2 + 401));
        assert_eq!(sources.fall_silent(), [Partition(0)]);
    }

    #[test]
    fn a_source_without_a_time_is_waited_for_and_left_out_at_last() {
        let mut sources = Sources::default();
        sources.expect(3, Some(1_000));
        sources.tick(&clock(0, 1, 500, false), Some(1_000));
        sources.tick(&clock(1, 1, 300, false), Some(1_100));
        assert_eq!((sources.now_ms(), sources.reached_ms()), (None, Some(300)), "the third may be behind");
        let taken = sources.take_changes();
        sources.idle(Partition(2), Some(1_000));
        assert_eq!((taken.len(), sources.take_changes().len(), sources.now_ms()), (3, 1, Some(300)), "a checkpoint has it too");
        sources.apply(Partition(2), Offset(0), Some(1_000));
        assert_eq!(sources.now_ms(), None, "it has signals, and its time is still to come");
        sources.expect(2, Some(2_000));
        sources.expect(3, Some(SILENCE_MS));
        sources.tick(&clock(0, 1, 900, false), Some(SILENCE_MS + 1_000));
        sources.tick(&clock(1, 1, 800, false), Some(SILENCE_MS + 1_000));
        assert_eq!((sources.fall_silent(), sources.now_ms()), (vec![Partition(2)], Some(800)));
        // One that has nothing to tell is not waited for until it has.
        sources.expect(4, Some(SILENCE_MS + 2_000));
        assert_eq!(sources.now_ms(), None);
        sources.idle(Partition(3), Some(SILENCE_MS + 3_000));
        sources.idle(Partition(0), Some(SILENCE_MS + 3_000));
        assert_eq!((sources.now_ms(), sources.fall_silent()), (Some(800), vec![]));
        sources.tick(&clock(3, 1, 700, false), Some(SILENCE_MS + 4_000));
        assert_eq!(sources.now_ms(), Some(700));
        sources.expect(u32::MAX, Some(SILENCE_MS + 2_000));
        assert_eq!((sources.len(), sources.now_ms()), (1 << 14, None), "there is a limit");
    }

    #[test]
    fn offsets_that_begin_again_are_told_from_those_that_go_on() {
        let mut sources = Sources::default();
        assert!(!sources.begin(&clock(0, 0, 1, true), None), "there was nothing before");
        sources.apply(Partition(0), Offset(9), None);
        assert!(!sources.begin(&clock(0, 3, 1, false), None), "a clock that is repeated");
        assert!(!sources.begin(&clock(0, 10, 1, true), None));
        assert!(sources.begin(&clock(0, 9, 1, true), None));
        assert_eq!(sources.applied(Partition(0)), None);
    }

    #[test]
    fn a_source_is_read_as_it_was_written() {
        let source = Source { applied: Some(Offset(7)), time_ms: Some(-1), heard_ms: None, is_silent: true };
        let mut out = Vec::new();
        source.write(&mut out);
        assert_eq!(Input::new(1, &out).whole(), Ok(source));
    }
}
