//! The rules of `agent.session.create`: agents that an agent starts, by their kind and how long they may run.

use super::super::argument_role::ArgumentRole;
use super::super::names::NameSet;
use super::{Amount, Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_amount, check_limit, report};

/// Names for how long a session may run, each with how many seconds one of it is.
const DURATIONS: [(&str, f64); 13] = [
    ("requested_duration", 1.0),
    ("duration", 1.0),
    ("max_duration", 1.0),
    ("session_duration", 1.0),
    ("duration_seconds", 1.0),
    ("max_duration_seconds", 1.0),
    ("duration_ms", 0.001),
    ("duration_minutes", 60.0),
    ("duration_hours", 3_600.0),
    ("timeout", 1.0),
    ("timeout_seconds", 1.0),
    ("timeout_ms", 0.001),
    ("ttl", 1.0),
];

#[derive(Debug)]
pub(super) struct SessionLimits {
    allowed_session_types: Field<NameSet>,
    max_session_duration: Field<Amount>,
}

impl SessionLimits {
    pub(super) fn new(section: &Section<'_>) -> Self {
        Self {
            allowed_session_types: section.strings("allowed_session_types").and_then(NameSet::read),
            max_session_duration: section.number("max_session_duration"),
        }
    }

    fn check_type(&self, call: &RuleCall<'_>) -> Result<(), Denial> {
        check_limit(&self.allowed_session_types, |allowed| {
            let sorted = call.sorted()?;
            let mut types = sorted.of(ArgumentRole::SessionType).peekable();
            match types.peek().is_none() {
                true => Err(Denial::new("oap.missing_required_context", "Session context must include session_type")),
                false if types.all(|name| allowed.contains(name)) => Ok(()),
                false => Err(Denial::new("oap.session_type_not_allowed", "Session type is not in allowed list")),
            }
        })
    }
}

impl Rules for SessionLimits {
    fn faults(&self) -> Vec<&Malformed> {
        [self.allowed_session_types.malformed(), self.max_session_duration.malformed()].into_iter().flatten().collect()
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        report(to, "allowed_session_types", self.check_type(call));
        let asked = || call.arguments.largest(DURATIONS);
        report(
            to,
            "max_session_duration",
            check_amount(&self.max_session_duration, asked, "Session duration exceeds max_session_duration"),
        );
    }
}
