//! Says when each event is due. All of it is fixed before the first event is sent, and nothing that happens then changes it.
//!
//! Latency is measured from the moment an event is due. A sender that falls behind does not shift the events that follow, so that what a
//! slow moment does to them is measured too (there is no coordinated omission).

use std::time::Duration;

/// A schedule of evenly spaced events; behind those that are measured the load may change to another rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Events per second.
    pub rate: f64,
    /// How many of them come first and are not measured.
    pub warm_up: usize,
    /// The first event behind those that are measured.
    pub measured_end: usize,
    /// How many events there are.
    pub count: usize,
    /// Events per second from `measured_end` on.
    tail_rate: f64,
}

impl Schedule {
    /// Returns the schedule of a rate, a warm-up and a time that is measured behind it.
    pub fn new(rate: f64, warm_up: Duration, measured: Duration) -> Self {
        let warm_up = events(rate, warm_up);
        let count = warm_up + events(rate, measured).max(1);
        Self { rate, warm_up, measured_end: count, count, tail_rate: rate }
    }

    /// Adds a time at another rate behind it.
    pub fn with_tail(self, tail_rate: f64, tail: Duration) -> Self {
        Self { tail_rate, count: self.measured_end + events(tail_rate, tail), ..self }
    }

    /// Returns when the event of this number is due, from the start.
    pub fn due_time(&self, number: usize) -> Duration {
        let in_tail = number.saturating_sub(self.measured_end);
        Duration::from_secs_f64((number - in_tail) as f64 / self.rate + in_tail as f64 / self.tail_rate)
    }

    /// Returns how many events are due at a time from the start, as far as there are any.
    pub fn due_by(&self, elapsed: Duration) -> usize {
        let end = self.due_time(self.measured_end);
        let due = match elapsed.checked_sub(end) {
            None => (elapsed.as_secs_f64() * self.rate).floor() as usize + 1,
            Some(tail) => self.measured_end + (tail.as_secs_f64() * self.tail_rate).floor() as usize + 1,
        };
        due.min(self.count)
    }

    /// Returns the start and the end of the measured time.
    pub fn window(&self) -> (Duration, Duration) {
        (self.due_time(self.warm_up), self.due_time(self.measured_end))
    }
}

fn events(rate: f64, time: Duration) -> usize {
    (rate * time.as_secs_f64()).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_evenly_spaced_and_never_early() {
        let schedule = Schedule::new(3_000.0, Duration::from_secs(1), Duration::from_secs(2));
        assert_eq!((schedule.count, schedule.warm_up), (9_000, 3_000));
        assert_eq!(schedule.window(), (Duration::from_secs(1), Duration::from_secs(3)));
        assert_eq!(schedule.due_time(1_500), Duration::from_millis(500));
        for number in 0..schedule.count {
            let due = schedule.due_time(number);
            assert!(schedule.due_by(due + Duration::from_micros(1)) > number);
            assert!(number == 0 || schedule.due_by(due.saturating_sub(Duration::from_micros(1))) <= number);
        }
        assert_eq!(schedule.due_by(Duration::from_secs(100)), 9_000);
    }

    #[test]
    fn the_load_may_fall_behind_what_is_measured() {
        let schedule = Schedule::new(1_000.0, Duration::ZERO, Duration::from_secs(2)).with_tail(100.0, Duration::from_secs(3));
        assert_eq!((schedule.measured_end, schedule.count), (2_000, 2_300));
        assert_eq!(schedule.window(), (Duration::ZERO, Duration::from_secs(2)));
        assert_eq!(schedule.due_time(2_100), Duration::from_secs(3));
        assert_eq!(schedule.due_by(Duration::from_millis(2_995)), 2_100);
        assert_eq!(schedule.due_by(Duration::from_secs(9)), 2_300);
    }

    #[test]
    fn a_slow_schedule_has_an_event_all_the_same() {
        assert_eq!(Schedule::new(0.1, Duration::ZERO, Duration::from_secs(1)).count, 1);
    }
}
