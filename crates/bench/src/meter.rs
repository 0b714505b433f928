//! Records which verdicts came, and how long after their events were due. It is pure: the reader of the decisions feeds it.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::Schedule;

/// Stands for the latency of an event without a verdict.
const NONE: u32 = u32::MAX;
/// The time for which events have to be quick to count as settled, and the steps in which that is checked.
const SETTLED_FOR: Duration = Duration::from_secs(1);
const SETTLED_STEP: Duration = Duration::from_millis(100);

/// The verdicts on the events of one phase, by the number of their event.
#[derive(Debug, Clone)]
pub struct Arrivals {
    schedule: Schedule,
    /// The number of the phase's first event.
    first: u64,
    /// Microseconds from the moment the event was due; [`NONE`] while there is no verdict.
    latencies: Vec<u32>,
    /// Verdicts that came again.
    pub duplicates: u64,
    /// How many events are known to be answered from the front.
    answered: usize,
}

/// Percentiles of a latency, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half are quicker.
    pub p50: f64,
    /// 90 % are quicker.
    pub p90: f64,
    /// 99 % are quicker.
    pub p99: f64,
    /// 99.9 % are quicker.
    pub p999: f64,
    /// 99.99 % are quicker.
    pub p9999: f64,
    /// The slowest.
    pub max: f64,
}

/// Counts and latencies of the measured events of a phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tally {
    /// The events that should have got a verdict.
    pub awaited: u64,
    /// The events whose verdict did not come within the deadline.
    pub misses: u64,
    /// The verdicts that came more than once.
    pub duplicates: u64,
    /// Verdicts per second that came while the phase was measured, on events that await one.
    pub verdicts_per_second: f64,
    /// Latency in milliseconds, from the moment an event was due to its verdict; a miss counts as the deadline.
    pub latency_ms: Percentiles,
    /// Median latency of the first and of the last third.
    pub medians_ms: [f64; 2],
}

impl Arrivals {
    /// Returns a meter that has seen no verdict yet.
    pub fn new(schedule: Schedule, first: u64) -> Self {
        Self { schedule, first, latencies: vec![NONE; schedule.count], duplicates: 0, answered: 0 }
    }

    /// Notes that a verdict on this event came this long after the start. The first one counts; other senders' events do not.
    pub fn observe(&mut self, number: u64, elapsed: Duration) {
        let Some(at) = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok()) else { return };
        let due = self.schedule.due_time(at);
        let Some(latency) = self.latencies.get_mut(at) else { return };
        if *latency != NONE {
            self.duplicates += 1;
            return;
        }
        *latency = u32::try_from(elapsed.saturating_sub(due).as_micros()).map_or(NONE - 1, |micros| micros.min(NONE - 1));
    }

    /// Returns whether every event that awaits a verdict has one.
    pub fn is_complete(&mut self, awaited: &[bool]) -> bool {
        let is_open = |at: usize| awaited.get(at) == Some(&true) && self.latencies.get(at) == Some(&NONE);
        while self.answered < awaited.len() && !is_open(self.answered) {
            self.answered += 1;
        }
        self.answered >= awaited.len()
    }

    /// Returns how long after the end of the measured time events are answered within `settled` again: from then on, for a second, 99 of a
    /// hundred are. `None` if that never happens.
    pub fn recovered_after(&self, awaited: &[bool], settled: Duration) -> Option<Duration> {
        let settled_us = u32::try_from(settled.as_micros()).unwrap_or(NONE - 1);
        let (_, end) = self.schedule.window();
        let last = self.schedule.due_time(self.schedule.count);
        let is_settled = |from: Duration| {
            let (from, to) = (self.schedule.due_by(from), self.schedule.due_by(from + SETTLED_FOR));
            let events = awaited.iter().zip(&self.latencies).take(to).skip(from).filter(|(awaited, _)| **awaited);
            let (slow, count) = events.fold((0, 0), |(slow, count), (_, us)| (slow + u32::from(*us > settled_us), count + 1));
            count > 0 && slow * 100 <= count
        };
        let mut after = Duration::ZERO;
        while end + after + SETTLED_FOR <= last {
            if is_settled(end + after) {
                return Some(after);
            }
            after += SETTLED_STEP;
        }
        None
    }

    /// Returns how many events were due when the measured time was over, and had no verdict yet.
    pub fn backlog(&self, awaited: &[bool]) -> usize {
        let (_, end) = self.schedule.window();
        let events = awaited.iter().zip(&self.latencies).enumerate().take(self.schedule.measured_end);
        let is_late = |at: usize, us: u32| us == NONE || self.schedule.due_time(at) + Duration::from_micros(u64::from(us)) > end;
        events.filter(|(at, (awaited, us))| **awaited && is_late(*at, **us)).count()
    }

    /// Adds up the verdicts on the events behind the warm-up that await one.
    pub fn tally(&self, awaited: &[bool], deadline: Duration) -> Tally {
        let deadline_us = u32::try_from(deadline.as_micros()).unwrap_or(NONE - 1);
        let Schedule { warm_up, measured_end, .. } = self.schedule;
        let behind = awaited.iter().zip(&self.latencies).take(measured_end).skip(warm_up);
        let measured: Vec<u32> = behind.filter(|(awaited, _)| **awaited).map(|(_, us)| *us).collect();
        let misses = measured.iter().filter(|us| **us > deadline_us).count();
        let capped = |part: &[u32]| percentiles(part.iter().map(|us| (*us).min(deadline_us)));
        let third = (measured.len() / 3).max(1);
        let (first, last) = (measured.get(..third), measured.get(measured.len().saturating_sub(third)..));
        let (from, to) = self.schedule.window();
        let in_window = (0..).zip(awaited.iter().zip(&self.latencies)).filter(|(at, (awaited, us))| {
            let came = self.schedule.due_time(*at) + Duration::from_micros(u64::from(**us));
            **awaited && **us != NONE && came >= from && came < to
        });
        let verdicts_per_second = in_window.count() as f64 / (to - from).as_secs_f64();
        Tally {
            awaited: measured.len() as u64,
            misses: misses as u64,
            duplicates: self.duplicates,
            verdicts_per_second,
            latency_ms: capped(&measured),
            medians_ms: [first, last].map(|part| capped(part.unwrap_or_default()).p50),
        }
    }
}

fn percentiles(latencies_us: impl Iterator<Item = u32>) -> Percentiles {
    let zero = Percentiles { p50: 0.0, p90: 0.0, p99: 0.0, p999: 0.0, p9999: 0.0, max: 0.0 };
    // From a microsecond to more than an hour, to three figures.
    let Ok(mut histogram) = Histogram::<u64>::new_with_bounds(1, u64::from(u32::MAX), 3) else { return zero };
    latencies_us.for_each(|us| histogram.saturating_record(u64::from(us.max(1))));
    if histogram.is_empty() {
        return zero;
    }
    let at = |percentile| histogram.value_at_percentile(percentile) as f64 / 1e3;
    Percentiles { p50: at(50.0), p90: at(90.0), p99: at(99.0), p999: at(99.9), p9999: at(99.99), max: histogram.max() as f64 / 1e3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(5);

    /// Returns a thousand events a second: two seconds of warm-up, ten that count. The first event's number is 500.
    fn arrivals() -> Arrivals {
        Arrivals::new(Schedule::new(1_000.0, Duration::from_secs(2), Duration::from_secs(10)), 500)
    }

    fn answer(arrivals: &mut Arrivals, numbers: std::ops::Range<u64>, latency_ms: u64) {
        for number in numbers {
            arrivals.observe(500 + number, Duration::from_millis(number + latency_ms));
        }
    }

    #[test]
    fn latency_counts_from_when_an_event_was_due_and_the_warm_up_does_not() {
        let mut arrivals = arrivals();
        let awaited = vec![true; 12_000];
        answer(&mut arrivals, 0..2_000, 900);
        answer(&mut arrivals, 2_000..11_000, 3);
        assert!(!arrivals.is_complete(&awaited));
        answer(&mut arrivals, 11_000..12_000, 50);
        assert!(arrivals.is_complete(&awaited));
        let tally = arrivals.tally(&awaited, DEADLINE);
        assert_eq!((tally.awaited, tally.misses, tally.duplicates), (10_000, 0, 0));
        assert!((2.9..3.1).contains(&tally.latency_ms.p50) && (49.0..51.0).contains(&tally.latency_ms.p99), "{tally:?}");
        // What came of the warm-up while it was measured, and not what came behind the end.
        assert!((10_800.0..10_900.0).contains(&(tally.verdicts_per_second * 10.0)), "{tally:?}");
    }

    #[test]
    fn what_does_not_come_in_time_is_a_miss_and_counts_as_the_deadline() {
        let mut arrivals = arrivals();
        let awaited = vec![true; 12_000];
        answer(&mut arrivals, 0..11_000, 1);
        answer(&mut arrivals, 11_000..11_500, 6_000);
        let tally = arrivals.tally(&awaited, DEADLINE);
        assert_eq!((tally.awaited, tally.misses), (10_000, 1_000));
        assert!((4_990.0..5_010.0).contains(&tally.latency_ms.p99) && tally.latency_ms.p50 < 1.1, "{tally:?}");
        assert!(!arrivals.is_complete(&awaited));
    }

    #[test]
    fn copies_strangers_and_events_that_nobody_awaits_do_not_count() {
        let mut arrivals = arrivals();
        let awaited: Vec<bool> = (0..12_000).map(|number| number % 2 == 0).collect();
        answer(&mut arrivals, 0..12_000, 1);
        answer(&mut arrivals, 0..10, 2_000);
        arrivals.observe(499, DEADLINE);
        arrivals.observe(12_500, DEADLINE);
        let tally = arrivals.tally(&awaited, DEADLINE);
        assert_eq!((tally.awaited, tally.misses, tally.duplicates), (5_000, 0, 10));
        assert!(tally.latency_ms.max < 1.1, "{tally:?}");
    }

    #[test]
    fn what_is_answered_behind_the_end_was_backlog() {
        let schedule = Schedule::new(1_000.0, Duration::ZERO, Duration::from_secs(2)).with_tail(100.0, Duration::from_secs(1));
        let mut arrivals = Arrivals::new(schedule, 0);
        let awaited = vec![true; schedule.count];
        // Half as fast as was asked.
        (0..2_000).for_each(|number| arrivals.observe(number, Duration::from_millis(number * 2 + 1)));
        assert_eq!(arrivals.backlog(&awaited), 1_000);
        let tally = arrivals.tally(&awaited, DEADLINE);
        assert_eq!((tally.awaited, tally.misses), (2_000, 0));
        assert!((499.0..501.0).contains(&tally.verdicts_per_second), "{tally:?}");
    }

    #[test]
    fn recovery_is_when_events_are_quick_again_but_for_one_in_a_hundred() {
        let schedule = Schedule::new(1_000.0, Duration::ZERO, Duration::from_secs(2)).with_tail(1_000.0, Duration::from_secs(10));
        let mut arrivals = Arrivals::new(schedule, 500);
        let awaited = vec![true; schedule.count];
        answer(&mut arrivals, 0..5_000, 700);
        answer(&mut arrivals, 5_000..9_000, 2);
        answer(&mut arrivals, 9_000..9_005, 900);
        answer(&mut arrivals, 9_005..12_000, 2);
        let recovered = |ms| arrivals.recovered_after(&awaited, Duration::from_millis(ms));
        // The load fell after two seconds, and what was due three seconds later was answered quickly.
        assert_eq!([recovered(10), recovered(1), recovered(1_000)], [Some(Duration::from_secs(3)), None, Some(Duration::ZERO)]);
    }
}
