//! The rules of `agent.session.create`: agents that an agent starts, by their kind and how long they may run.
//!
//! A call may start several: then each object of the list is one. What a limit is about has to be told for each.

use tollgate_json::{Shape, Text, Value};

use super::super::argument_names::{are_alike, fold, is_called};
use super::super::argument_role::ArgumentRole;
use super::super::arguments::{Arguments, Sorted};
use super::super::name_kind::is_written_out;
use super::super::names::NameSet;
use super::{Amount, Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_amount, check_limit, report, unknown_argument};

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

/// Tools whose argument `subagent_type` names the kind.
const OWN_KIND: [&str; 2] = ["Agent", "Task"];

#[derive(Debug)]
pub(super) struct SessionLimits {
    allowed_session_types: Field<NameSet>,
    max_session_duration: Field<Amount>,
}

impl SessionLimits {
    pub(super) fn new(section: &Section<'_>) -> Self {
        Self {
            allowed_session_types: section.strings("allowed_session_types").map(NameSet::new),
            max_session_duration: section.number("max_session_duration"),
        }
    }

    fn check_type(&self, call: &RuleCall<'_>, sorted: &Sorted<'_>) -> Result<(), Denial> {
        check_limit(&self.allowed_session_types, |allowed| {
            for session in sessions(call) {
                // These tools take a kind of their own where it is left out, and look at no other argument for it.
                let is_own = |name: &str| !OWN_KIND.contains(&call.tool_name) || is_called(name, "subagent_type");
                if !session.sorted(&call.names)?.named(ArgumentRole::SessionType).any(|(name, _)| is_own(name)) {
                    return Err(Denial::new("oap.missing_required_context", "Session context must include session_type"));
                }
            }
            if !sorted.of(ArgumentRole::SessionType).all(|name| allowed.contains(name)) {
                return Err(Denial::new("oap.session_type_not_allowed", "Session type is not in allowed list"));
            }
            // A kind is a word.
            let is_kind = |text: &str| !text.trim().is_empty() && !text.trim().contains(char::is_whitespace) && !allowed.contains(text);
            if sorted.unknown.iter().any(|text| is_kind(text) || is_written_out(text)) {
                Err(unknown_argument("the kind of an agent"))
            } else {
                Ok(())
            }
        })
    }

    fn check_duration(&self, call: &RuleCall<'_>) -> Result<(), Denial> {
        check_limit(&self.max_session_duration, |_| {
            for session in sessions(call) {
                // To some hosts 0 is no limit, and some round down.
                let is_none = |(_, value): &(usize, Value<'_>)| Amount::read(*value).is_some_and(|asked| asked < Amount::of_bytes(1));
                let has_none = session.named(&DURATIONS.map(|(name, _)| name)).iter().any(is_none);
                if has_none || session.largest(DURATIONS)?.is_none() {
                    return Err(Denial::new("oap.missing_required_context", "Session context must include requested_duration"));
                }
            }
            let mut unknown = call.arguments.members().map(|(key, value)| has_unknown_time(call, &key, value));
            if unknown.any(|has| has) { Err(unknown_argument("a time to run")) } else { Ok(()) }
        })?;
        let asked = || call.arguments.largest(DURATIONS);
        check_amount(&self.max_session_duration, asked, "Session duration exceeds max_session_duration")
    }
}

/// Returns the arguments of each agent that a call starts.
fn sessions<'c>(call: &RuleCall<'c>) -> Vec<Arguments<'c>> {
    let is_unknown = |key: &str| fold(key).is_none_or(|name| call.names.role(&name).is_none());
    let lists = call.arguments.members().filter(|(key, value)| is_unknown(key) && value.shape() == Shape::Array);
    let listed: Vec<_> = lists.flat_map(|(_, value)| value.items()).filter(Value::is_object).map(|item| Arguments(Some(item))).collect();
    if listed.is_empty() { vec![call.arguments] } else { listed }
}

/// Returns whether an argument whose name no table has may be a time: a number, or a text that begins with one or is a period (`PT2H`).
fn has_unknown_time(call: &RuleCall<'_>, key: &str, value: Value<'_>) -> bool {
    let is_known =
        DURATIONS.iter().any(|(known, _)| are_alike(key, known)) || fold(key).is_some_and(|name| call.names.role(&name).is_some());
    let is_time = |value: Value<'_>| match value.shape() {
        Shape::Number => true,
        _ => value.as_text().and_then(Text::into_str).is_some_and(|text| {
            let text = text.trim();
            text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '.'))
                || text.starts_with("PT")
                || is_written_out(text)
        }),
    };
    let says_time = || fold(key).is_none_or(|name| ["time", "limit", "duration", "deadline", "ttl"].iter().any(|part| name.contains(part)));
    let mut members = value.members().filter_map(|(key, value)| Some((key.as_text()?.into_str()?, value)));
    !is_known && (is_time(value) || !value.is_null() && says_time())
        || value.items().any(|item| has_unknown_time(call, key, item))
        || members.any(|(key, value)| has_unknown_time(call, &key, value))
}

impl Rules for SessionLimits {
    fn faults(&self) -> Vec<Option<&Malformed>> {
        vec![self.allowed_session_types.malformed(), self.max_session_duration.malformed()]
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        match call.sorted() {
            Ok(sorted) => report(to, "allowed_session_types", self.check_type(call, &sorted)),
            Err(denial) => report(to, "arguments", Err(denial)),
        }
        report(to, "max_session_duration", self.check_duration(call));
    }
}
