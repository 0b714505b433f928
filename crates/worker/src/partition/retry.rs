//! What a thread of a partition does about work that fails: it tries again, says so now and then, and ends when nobody wants the work any more.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::restore_error::RestoreError;

/// The first pause before failed work is tried again; each pause is twice the one before.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause while brokers, leaders or coordinators are away: events wait for the first answer.
const AWAY_PAUSE_MAX: Duration = Duration::from_millis(500);
/// The longest pause if somebody has to mend what is wrong.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often to check whether the work is still wanted.
const WANTED_POLL: Duration = Duration::from_millis(50);

/// Kept by whoever wants the work of a thread. When it is dropped, the work is not wanted any more.
#[derive(Debug, Default)]
pub struct Owner(Arc<()>);

impl Owner {
    /// Returns what the thread asks whether its work is still wanted.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        Wanted(Arc::downgrade(&self.0))
    }
}

/// Tells a thread whether its work is still wanted.
#[derive(Debug)]
pub struct Wanted(Weak<()>);

impl Wanted {
    /// Returns whether the work is still wanted.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Waits for a time, or until the work is not wanted any more. It returns whether it is still wanted.
    #[must_use]
    pub fn wait(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while self.is_wanted() && Instant::now() < deadline {
            std::thread::sleep(WANTED_POLL.min(deadline.saturating_duration_since(Instant::now())));
        }
        self.is_wanted()
    }
}

/// The failed attempts at one piece of work.
#[derive(Debug)]
pub struct Failures {
    report_interval: Duration,
    pause: Duration,
    reported: Option<(&'static str, Instant)>,
}

impl Failures {
    /// Returns no failures yet. One that goes on is reported once in an interval.
    #[must_use]
    pub fn new(report_interval: Duration) -> Self {
        Self { report_interval, pause: Duration::ZERO, reported: None }
    }

    /// Returns how long to wait before the next attempt.
    pub fn pause(&mut self, error: &RestoreError) -> Duration {
        let longest = if error.reason() == "kafka" { AWAY_PAUSE_MAX } else { PAUSE_MAX };
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, longest);
        self.pause
    }

    /// Returns whether this failure is to be reported: the first, one of another kind, and one now and then.
    pub fn is_report_due(&mut self, error: &RestoreError, now: Instant) -> bool {
        let reason = error.reason();
        let is_due = self.reported.is_none_or(|(known, at)| known != reason || now >= at + self.report_interval);
        if is_due {
            self.reported = Some((reason, now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::error::KafkaError;
    use tollgate_core::event::record::Offset;

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn recreated() -> RestoreError {
        RestoreError::BeyondEvents { next: Offset(2), end: Offset(1) }
    }

    fn away() -> RestoreError {
        RestoreError::Kafka { doing: "reading", error: KafkaError::Canceled }
    }

    #[test]
    fn pauses_grow_further_where_somebody_has_to_mend_something() {
        let mut failures = Failures::new(INTERVAL);
        let pauses: Vec<_> = (0..5).map(|_| failures.pause(&away()).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 500, 500]);
        let pauses: Vec<_> = (0..8).map(|_| failures.pause(&recreated()).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(failures.pause(&away()), AWAY_PAUSE_MAX);
    }

    #[test]
    fn a_failure_is_reported_first_when_it_changes_and_once_in_an_interval() {
        let (mut failures, begin) = (Failures::new(INTERVAL), Instant::now());
        let due = [(0, away()), (9, away()), (10, away()), (11, recreated()), (12, recreated()), (13, away())]
            .map(|(second, error)| failures.is_report_due(&error, begin + Duration::from_secs(second)));
        assert_eq!(due, [true, false, true, true, false, true]);
    }

    #[test]
    fn work_is_wanted_while_its_owner_lives() {
        let owner = Owner::default();
        let wanted = owner.wanted();
        assert!(wanted.wait(Duration::ZERO));
        let waits = std::thread::spawn(move || wanted.wait(Duration::from_secs(3_600)));
        drop(owner);
        assert!(!waits.join().unwrap());
    }
}
