//! The clocks: how far each source has come in event time, told to every partition of the signals topic once a second.
//!
//! The least of them is the time of a signals partition. So a source without events must not hold it up: one that is caught up and has been
//! silent for some seconds is as late as the latest source of its member, and goes on by the time that passes. That time is measured in this
//! process and is no time of day. It passes only while the brokers take the clocks: what came into the log while they were away may be old.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tollgate_core::decide::signal::Clock;
use tollgate_core::event::record::Partition;

use super::source::Source;

/// For how many ticks a source has to be silent and caught up, and the brokers have to take clocks, before time passes without events.
const SETTLED_TICKS_MIN: u32 = 3;

/// How often a clock is told that does not change. A source that nothing is heard of for ten minutes is left out of the time, and one that
/// only waits must not be: its signals are still to come.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// Whether the brokers take what is told.
#[derive(Debug, Default)]
pub(super) struct SettledTicks {
    /// Whether everything was acknowledged at some time since the last tick.
    is_settled: bool,
    /// For how many ticks that has been so.
    ticks: u32,
}

impl SettledTicks {
    /// Notes whether everything that was told is acknowledged.
    pub(super) fn note(&mut self, is_settled: bool) {
        self.is_settled |= is_settled;
    }

    /// Ends a tick, and returns whether the brokers have been taking what is told.
    pub(super) fn tick(&mut self) -> bool {
        self.ticks = if std::mem::take(&mut self.is_settled) { self.ticks.saturating_add(1) } else { 0 };
        self.ticks >= SETTLED_TICKS_MIN
    }
}

/// What is told of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// How far it has come.
    Clock(Clock),
    /// It is caught up, and no event of any source of its member was decided. So it has no time to tell, and nobody has to wait for it.
    Idle(Partition),
}

/// Calls `tell` for each source whose clock has changed. `has_settled` says that the brokers take clocks.
pub(super) fn report_clocks(sources: &mut FxHashMap<Partition, Source>, has_settled: bool, now: Instant, mut tell: impl FnMut(Report)) {
    for source in sources.values_mut() {
        if std::mem::take(&mut source.is_active) || source.active_at.is_none() {
            source.active_at = Some(now);
        }
        let is_idle = has_settled && source.is_caught_up;
        source.idle_ticks = if is_idle { source.idle_ticks.saturating_add(1) } else { 0 };
    }
    // Idle sources have come as far as the one that has come farthest.
    let farthest = sources.values().filter_map(|source| reached(source, now)).max();
    for (partition, source) in sources {
        if source.idle_ticks >= SETTLED_TICKS_MIN && farthest > source.time_ms {
            (source.time_ms, source.active_at) = (farthest, Some(now));
        }
        let Some(time_ms) = source.time_ms else {
            let is_new = source.idle_at.is_none_or(|at| now.saturating_duration_since(at) >= REPEAT_INTERVAL);
            if source.idle_ticks >= SETTLED_TICKS_MIN && is_new {
                source.idle_at = Some(now);
                tell(Report::Idle(*partition));
            }
            continue;
        };
        let is_published = source.published.is_some_and(|(next, published_ms, at)| {
            (next, published_ms) == (source.next, time_ms) && now.saturating_duration_since(at) < REPEAT_INTERVAL
        });
        if !is_published {
            source.published = Some((source.next, time_ms, now));
            tell(Report::Clock(Clock { source: *partition, next: source.next, time_ms, has_begun: false }));
        }
    }
}

/// Returns the time that a source has reached: that of its events, and what has passed since if it is idle.
fn reached(source: &Source, now: Instant) -> Option<i64> {
    let time_ms = source.time_ms?;
    if source.idle_ticks < SETTLED_TICKS_MIN {
        return Some(time_ms);
    }
    let passed = source.active_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
    Some(time_ms.saturating_add(i64::try_from(passed.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::Waiter;
    use tollgate_core::event::record::Offset;

    /// Two sources and a time of the process.
    struct Member {
        sources: FxHashMap<Partition, Source>,
        settled_ticks: SettledTicks,
        now: Instant,
    }

    impl Member {
        fn new() -> Self {
            let sources = [0, 1].map(|number| (Partition(number), Source::new(None))).into_iter().collect();
            Self { sources, settled_ticks: SettledTicks::default(), now: Instant::now() }
        }

        fn event(&mut self, partition: i32, offset: i64, time_ms: i64) {
            let waiter = Waiter { partition: Partition(partition), generation: 1, offset: Offset(offset) };
            let source = self.sources.get_mut(&Partition(partition)).unwrap();
            assert!(source.decided(waiter.offset));
            source.release(waiter, Some(time_ms));
        }

        /// Lets a second pass, in which the brokers take clocks or do not.
        fn second(&mut self, is_settled: bool) -> Vec<(i32, i64)> {
            self.now += Duration::from_secs(1);
            self.settled_ticks.note(is_settled);
            let (has_settled, mut published) = (self.settled_ticks.tick(), Vec::new());
            report_clocks(&mut self.sources, has_settled, self.now, |report| {
                published.push(match report {
                    Report::Clock(clock) => (clock.source.0, clock.time_ms),
                    Report::Idle(source) => (source.0, -1),
                });
            });
            published.sort_unstable();
            published
        }

        fn caught_up(&mut self) {
            self.sources.values_mut().for_each(|source| source.is_caught_up = true);
        }
    }

    #[test]
    fn a_clock_is_published_when_it_changes() {
        let mut member = Member::new();
        assert_eq!(member.second(true), []);
        member.event(0, 0, 5_000);
        member.event(0, 1, 4_000);
        assert_eq!(member.second(true), [(0, 5_000)]);
        assert_eq!(member.second(true), []);
        member.event(1, 0, 9_000);
        assert_eq!(member.second(true), [(1, 9_000)]);
        let published: Vec<_> = (0..60).flat_map(|_| member.second(true)).collect();
        assert_eq!(published, [(0, 5_000), (1, 9_000)], "it is still there");
    }

    #[test]
    fn an_idle_source_comes_as_far_as_the_others_and_goes_on() {
        let mut member = Member::new();
        (0..SETTLED_TICKS_MIN).for_each(|_| _ = member.second(true));
        member.event(0, 0, 5_000);
        member.caught_up();
        assert_eq!(member.second(true), [(0, 5_000)]);
        assert_eq!(member.second(true), [], "it may only be slow");
        // Both are idle by now: the one without a time takes that of the other, which has passed two seconds since.
        assert_eq!(member.second(true), [(0, 7_000), (1, 7_000)]);
        assert_eq!(member.second(true), [(0, 8_000), (1, 8_000)]);
        member.event(0, 1, 30_000);
        assert_eq!(member.second(true), [(0, 30_000), (1, 30_000)], "the other is still idle");
        member.event(1, 0, 8_500);
        assert_eq!(member.second(true), [(1, 30_000)], "it does not go back");
    }

    #[test]
    fn a_source_without_a_time_says_so_once_it_is_caught_up() {
        let mut member = Member::new();
        let published: Vec<_> = (0..9).flat_map(|_| member.second(true)).collect();
        assert_eq!(published, [], "it may have events that were not taken");
        member.caught_up();
        let published: Vec<_> = (0..SETTLED_TICKS_MIN).flat_map(|_| member.second(true)).collect();
        assert_eq!(published, [(0, -1), (1, -1)]);
        let published: Vec<_> = (0..60).flat_map(|_| member.second(true)).collect();
        assert_eq!(published, [(0, -1), (1, -1)], "it is still there");
        member.event(0, 0, 5_000);
        assert_eq!(member.second(true)[0], (0, 5_000));
    }

    #[test]
    fn no_time_passes_for_who_is_behind_or_while_brokers_are_away() {
        let mut member = Member::new();
        (0..SETTLED_TICKS_MIN).for_each(|_| _ = member.second(true));
        member.event(0, 0, 5_000);
        let published: Vec<_> = (0..9).flat_map(|_| member.second(true)).collect();
        assert_eq!(published, [(0, 5_000)], "there are records that it has not taken");
        member.caught_up();
        let published: Vec<_> = (0..9).flat_map(|_| member.second(false)).collect();
        assert_eq!(published, []);
        let published: Vec<_> = (0..4).flat_map(|_| member.second(true)).collect();
        assert_eq!(published, [], "what they took meanwhile may be old");
        assert_eq!(member.second(true).len(), 2);
    }
}
