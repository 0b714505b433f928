//! What is said of a subject: an operator's word beside that of the abuse stage.

use super::record::{HoldsUntil, SubjectState};

/// The times of an event, in milliseconds since the epoch, where they are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// The earlier one of the event's time and its record's. By it a suspension ends.
    pub(super) earliest_ms: Option<i64>,
    /// The later one of them. By it an exemption ends: an event that is dated back does not make it last longer.
    pub(super) latest_ms: Option<i64>,
}

/// Everything that control records say of one subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Switches {
    pub(super) operators: Option<SubjectState>,
    pub(super) machines: Option<HoldsUntil>,
}

impl Switches {
    /// Returns whether the subject is suspended at any time. One that is exempt for good is not.
    pub(super) fn can_suspend(&self) -> bool {
        match &self.operators {
            Some(SubjectState::Suspended(_)) => true,
            Some(SubjectState::Exempt(HoldsUntil { until_ms: None, .. })) => false,
            Some(SubjectState::Exempt(_)) | None => self.machines.is_some(),
        }
    }

    /// Returns what is said here and under another key: the stricter of both.
    pub(super) fn with(self, other: Self) -> Self {
        let machines = [self.machines, other.machines].into_iter().flatten().reduce(HoldsUntil::later);
        Self { operators: [self.operators, other.operators].into_iter().flatten().reduce(SubjectState::stricter), machines }
    }

    /// Returns why the subject is suspended at an event's time, the operator's reason before the machine's; `None` if it is not. An event of
    /// unknown time is never past the end of a suspension, and always past that of an exemption.
    pub(super) fn suspension(&self, times: Times) -> Option<Option<String>> {
        match &self.operators {
            Some(SubjectState::Suspended(holds)) if !holds.is_over(times.earliest_ms) => return Some(holds.reason.clone()),
            Some(SubjectState::Exempt(holds)) if !holds.may_be_over(times.latest_ms) => return None,
            _ => {}
        }
        self.machines.as_ref().filter(|holds| !holds.is_over(times.earliest_ms)).map(|holds| holds.reason.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(until_ms: Option<i64>) -> HoldsUntil {
        HoldsUntil { reason: Some("chargeback".to_owned()), until_ms }
    }

    fn machines(until_ms: i64) -> Option<HoldsUntil> {
        Some(HoldsUntil { reason: Some("abuse rule safety-stop-user".to_owned()), until_ms: Some(until_ms) })
    }

    #[test]
    fn either_suspends_and_an_exemption_beats_the_machine_alone() {
        let (operators, abuse) = (Some(Some("chargeback".to_owned())), Some(Some("abuse rule safety-stop-user".to_owned())));
        let suspended = |until| Some(SubjectState::Suspended(holds(until)));
        let exempt = |until| Some(SubjectState::Exempt(holds(until)));
        let cases = [
            (None, None, [None.clone(), None.clone(), None]),
            (None, machines(100), [abuse.clone(), None, abuse.clone()]),
            (suspended(None), machines(100), [operators.clone(), operators.clone(), operators.clone()]),
            (suspended(Some(50)), machines(100), [operators.clone(), None, operators.clone()]),
            (suspended(Some(10)), machines(100), [abuse.clone(), None, operators]),
            (exempt(None), machines(100), [None, None, None]),
            (exempt(Some(10)), machines(100), [abuse.clone(), None, abuse]),
            (exempt(Some(10)), None, [None, None, None]),
        ];
        for (operators, machines, expected) in cases {
            let switches = Switches { operators, machines };
            let found = [Some(20), Some(100), None].map(|time_ms| switches.suspension(Times { earliest_ms: time_ms, latest_ms: time_ms }));
            assert_eq!(found, expected, "{switches:?}");
            assert!(switches.can_suspend() || found.iter().all(Option::is_none), "{switches:?}");
        }
        let dated_back = Times { earliest_ms: Some(5), latest_ms: Some(20) };
        assert!(Switches { operators: exempt(Some(10)), machines: machines(100) }.suspension(dated_back).is_some());
    }
}
