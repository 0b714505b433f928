//! How long signals are gathered: a record costs as much as deciding on several events, and so does each subject and second in it. What comes
//! together shares both.

use std::time::{Duration, Instant};

/// After how long without a decision signals are not gathered any longer: a few rounds.
const QUIET_TIME: Duration = Duration::from_millis(2);
/// From how far behind the present an event is old, in milliseconds.
const OLD_MS: i64 = 1_000;

/// How events come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// None comes for now.
    Quiet,
    /// One after the other, soon after they happened.
    Steady,
    /// One after the other, and they are old: the member has fallen behind.
    Behind,
}

impl Pace {
    /// Returns for how long amounts are gathered.
    pub(super) fn gather_time(self) -> Duration {
        match self {
            Self::Quiet => Duration::ZERO,
            Self::Steady => Duration::from_millis(50),
            // What is counted a second late may as well be counted a little later, and the member sooner be done with the rest.
            Self::Behind => Duration::from_millis(200),
        }
    }

    /// Returns for how long what happened is gathered.
    pub(super) fn gather_time_urgent(self) -> Duration {
        match self {
            // Somebody may have to be suspended for it.
            Self::Steady => Duration::from_millis(25),
            Self::Quiet | Self::Behind => self.gather_time(),
        }
    }
}

/// When records were last decided, as of the rounds.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// Whether any was since the last round.
    has_decided: bool,
    /// The time of the last event that has one, in milliseconds since the epoch.
    time_ms: Option<i64>,
    decided_at: Option<Instant>,
}

impl Decisions {
    /// Notes a decision, and the time of its event.
    pub(super) fn note(&mut self, time_ms: Option<i64>) {
        self.has_decided = true;
        self.time_ms = time_ms.or(self.time_ms);
    }

    /// Ends a round, and returns how events come. `now_ms` is the time of the host: no more depends on it than how many signals come in one
    /// record.
    pub(super) fn end_round(&mut self, now: Instant, now_ms: impl FnOnce() -> i64) -> Pace {
        if std::mem::take(&mut self.has_decided) {
            self.decided_at = Some(now);
        }
        let Some(decided_at) = self.decided_at else { return Pace::Quiet };
        if now.saturating_duration_since(decided_at) >= QUIET_TIME {
            return Pace::Quiet;
        }
        let is_old = self.time_ms.is_some_and(|time_ms| now_ms().saturating_sub(time_ms) >= OLD_MS);
        if is_old { Pace::Behind } else { Pace::Steady }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_old_a_second_behind_the_present_and_none_comes_after_two_milliseconds() {
        let (start, mut decisions) = (Instant::now(), Decisions::default());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(decisions.end_round(at(0), || 5_000), Pace::Quiet, "nothing has come");
        decisions.note(None);
        assert_eq!(decisions.end_round(at(0), || 5_000), Pace::Steady, "no time is known");
        decisions.note(Some(4_001));
        assert_eq!(decisions.end_round(at(1), || 5_000), Pace::Steady);
        decisions.note(Some(4_000));
        assert_eq!(decisions.end_round(at(2), || 5_000), Pace::Behind);
        decisions.note(None);
        assert_eq!(decisions.end_round(at(3), || 5_000), Pace::Behind, "as far as is known");
        decisions.note(Some(9_000));
        assert_eq!(decisions.end_round(at(4), || 5_000), Pace::Steady, "a clock that is ahead");
        assert_eq!(decisions.end_round(at(5), || 99_000), Pace::Behind);
        assert_eq!(decisions.end_round(at(6), || 99_000), Pace::Quiet);
    }

    #[test]
    fn what_happened_never_waits_longer_than_amounts() {
        for pace in [Pace::Quiet, Pace::Steady, Pace::Behind] {
            assert!(pace.gather_time_urgent() <= pace.gather_time(), "{pace:?}");
        }
        assert_eq!(Pace::Quiet.gather_time(), Duration::ZERO);
    }
}
