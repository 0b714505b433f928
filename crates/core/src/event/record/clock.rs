//! The time of a partition, taken from its events.
//!
//! It decides which threads have been idle for too long, so it must be a pure function of the log, and a single broken clock must not shift
//! it. It goes forward by bounded steps, and back only where many events in a row say that it is wrong.

/// The part of the idle limit by which one event can advance the time, as a divisor. A single timestamp from the future must not expire a
/// partition's threads, and a partition that slept catches up within a few hundred events.
const STEPS_PER_IDLE: i64 = 256;

/// The number of events in a row, far behind the time, after which the time counts as set by a broken clock.
const OUTVOTED_AFTER: u32 = 32;

/// The time of one partition, in milliseconds since the epoch, as its events report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamClock {
    /// The first time that an event reported, in milliseconds since the epoch. What came before it counts as of then.
    pub(crate) began_ms: Option<i64>,
    /// The current time, in milliseconds since the epoch.
    pub(crate) now_ms: Option<i64>,
    /// How many events in a row were far behind the current time.
    pub(crate) outvoted: u32,
}

impl StreamClock {
    /// Returns a clock that stands at a time, in milliseconds since the epoch; `None` if no event has reported a time yet.
    #[must_use]
    pub fn at(now_ms: Option<i64>) -> Self {
        Self { began_ms: now_ms, now_ms, outvoted: 0 }
    }

    /// Moves the time towards an event's time. `idle_ms_max` is the idle limit of threads, in milliseconds.
    pub fn advance(&mut self, time_ms: i64, idle_ms_max: i64) {
        let Some(now_ms) = self.now_ms else {
            (self.began_ms, self.now_ms) = (Some(time_ms), Some(time_ms));
            return;
        };
        let is_far_behind = now_ms.saturating_sub(time_ms) > idle_ms_max;
        self.outvoted = if is_far_behind { self.outvoted.saturating_add(1) } else { 0 };
        if self.outvoted >= OUTVOTED_AFTER {
            (self.now_ms, self.outvoted) = (Some(time_ms), 0);
        } else if time_ms > now_ms {
            self.now_ms = Some(time_ms.min(now_ms.saturating_add(idle_ms_max / STEPS_PER_IDLE + 1)));
        }
    }

    /// Returns the current time, or `None` if no event has reported a time yet.
    #[must_use]
    pub fn now_ms(&self) -> Option<i64> {
        self.now_ms
    }

    /// Returns how long ago `touched_ms` was, in milliseconds. `None` counts as the first time that an event reported.
    #[must_use]
    pub fn idle_ms(&self, touched_ms: Option<i64>) -> i64 {
        match (self.now_ms, touched_ms.or(self.began_ms)) {
            (Some(now_ms), Some(touched_ms)) => now_ms.saturating_sub(touched_ms),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE_MS_MAX: i64 = 256_000;

    #[test]
    fn it_goes_forward_by_steps() {
        let mut clock = StreamClock::default();
        clock.advance(1_000, IDLE_MS_MAX);
        clock.advance(900_000_000, IDLE_MS_MAX);
        assert_eq!(clock.now_ms(), Some(2_001));
        clock.advance(1_500, IDLE_MS_MAX);
        assert_eq!(clock.now_ms(), Some(2_001));
    }

    #[test]
    fn it_goes_back_where_many_events_say_so() {
        let mut clock = StreamClock::default();
        clock.advance(900_000_000, IDLE_MS_MAX);
        (1..OUTVOTED_AFTER).for_each(|_| clock.advance(1_000, IDLE_MS_MAX));
        assert_eq!(clock.now_ms(), Some(900_000_000));
        clock.advance(1_000, IDLE_MS_MAX);
        assert_eq!(clock.now_ms(), Some(1_000));
    }

    #[test]
    fn what_came_before_any_time_counts_as_of_the_first() {
        let mut clock = StreamClock::default();
        assert_eq!(clock.idle_ms(None), 0);
        clock.advance(1_000, IDLE_MS_MAX);
        clock.advance(1_700, IDLE_MS_MAX);
        assert_eq!((clock.idle_ms(None), clock.idle_ms(Some(1_600))), (700, 100));
    }
}
