//! What a case expects: the alerts, all of them, and if it says so the controls. And in what those that came differ.

use serde_json::{Map, Value, json};
use tollgate_abuse::{Level, Mode};
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::{Section, duration_text, shape};

use super::super::super::test::expected::Difference;
use super::super::super::test::run::Failure;
use super::names::Ids;
use super::run::Got;
use super::signals::read_at;
use super::suite::Case;
use tollgate_config::Document;

/// The words for what an alert is about.
const STATUSES: [(&str, &str); 3] = [("firing", "firing"), ("escalated", "escalated"), ("ended", "ended")];
/// What stands for a control that was taken back.
const NONE: &str = "none";

/// Something that is expected to come, with the fields that it has to have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expectation {
    /// The line of the file that it stands on.
    pub(super) line: usize,
    /// When it is expected, in milliseconds behind the beginning; `None` at any time.
    pub(super) at_ms: Option<i64>,
    /// The fields, as what comes is shown.
    pub(super) fields: Map<String, Value>,
}

pub(super) type ExpectedAlert = Expectation;
pub(super) type ExpectedControl = Expectation;

/// Reads the alerts that a case expects.
pub(super) fn read_alerts(case: &Section<'_>, document: &Document, hasher: &SubjectHasher) -> Vec<ExpectedAlert> {
    let read = |section: &Section<'_>| {
        let (mut fields, at_ms) = read_shared(section, hasher);
        for key in ["rule", "action", "message"] {
            note(&mut fields, key, section.optional_string(key).map(Value::from));
        }
        note(&mut fields, "status", section.word("status", &STATUSES).map(Value::from));
        let levels: Vec<_> = Level::ALL.iter().map(|level| (level.as_str(), level.as_str())).collect();
        note(&mut fields, "level", section.word("level", &levels).map(Value::from));
        let modes: Vec<_> = Mode::ALL.iter().map(|mode| (mode.as_str(), mode.as_str())).collect();
        note(&mut fields, "mode", section.word("mode", &modes).map(Value::from));
        for key in ["step", "suppressed"] {
            note(&mut fields, key, section.value(key).is_some().then(|| json!(section.u32(key))));
        }
        for key in ["count", "threshold"] {
            note(&mut fields, key, section.value(key).is_some().then(|| json!(section.fraction(key, u32::MAX))));
        }
        note(&mut fields, "group", section.value("group").cloned());
        Expectation { line: document.line_of(&section.path_of("rule")), at_ms, fields }
    };
    case.mappings("alerts").unwrap_or_default().iter().map(read).collect()
}

/// Reads the controls that a case expects.
pub(super) fn read_controls(case: &Section<'_>, document: &Document, hasher: &SubjectHasher) -> Vec<ExpectedControl> {
    let read = |section: &Section<'_>| {
        let (mut fields, at_ms) = read_shared(section, hasher);
        note(&mut fields, "rule", section.optional_string("rule").map(Value::from));
        note(&mut fields, "step", section.value("step").is_some().then(|| json!(section.u32("step"))));
        Expectation { line: document.line_of(&section.path_of("subject")), at_ms, fields }
    };
    case.mappings("controls").unwrap_or_default().iter().map(read).collect()
}

/// Reads the fields that alerts and controls share.
fn read_shared(section: &Section<'_>, hasher: &SubjectHasher) -> (Map<String, Value>, Option<i64>) {
    let mut fields = Map::new();
    if section.is_written("subject") {
        let found = section.value("subject");
        let ids = Ids::read(&section.section("subject"));
        match ids.only_subject(hasher) {
            Some((_, name)) => note(&mut fields, "subject", Some(name.into())),
            None => section.fault(
                "subject",
                found.map_or("nothing", shape),
                "write one subject, such as {user: alice, tenant: acme} or {tool: bash, args: x}",
            ),
        }
    }
    section.pass_over("subject");
    let at_ms = read_at(section, "at");
    note(&mut fields, "at", at_ms.map(|at_ms| duration_text(at_ms).into()));
    let is_none = section.value("until").and_then(Value::as_str) == Some(NONE);
    let until = if is_none { Some(NONE.into()) } else { read_at(section, "until").map(|until_ms| duration_text(until_ms).into()) };
    note(&mut fields, "until", until);
    (fields, at_ms)
}

fn note(fields: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        fields.insert(key.to_owned(), value);
    }
}

/// Returns in what the outcome of a case differs from what it expects.
pub(super) fn compare(case: &Case, got: &Got) -> Vec<Failure> {
    let mut failures = compare_all("alert", &case.alerts, &got.alerts, case.line);
    if let Some(controls) = &case.controls {
        failures.extend(compare_all("control", controls, &got.controls, case.line));
    }
    failures
}

/// Compares what is expected with what came. Each expectation takes the first that is left of its rule and subject.
fn compare_all(what: &'static str, expected: &[Expectation], got: &[Value], line: usize) -> Vec<Failure> {
    let mut left: Vec<Option<&Value>> = got.iter().map(Some).collect();
    let mut failures = Vec::new();
    for (number, expectation) in (1..).zip(expected) {
        let is_meant = |got: &&Value| {
            ["rule", "subject"].iter().all(|key| expectation.fields.get(*key).is_none_or(|expected| got.get(*key) == Some(expected)))
        };
        let found = left.iter_mut().find(|got| got.as_ref().is_some_and(is_meant)).and_then(Option::take);
        let differences: Vec<_> =
            expectation.fields.iter().filter_map(|(field, expected)| difference(what, field, expected, found)).collect();
        if !differences.is_empty() || found.is_none() {
            failures.push(Failure { what, number, line: expectation.line, differences, problems: Vec::new() });
        }
    }
    // What came and was not expected stands behind what was.
    for (number, unexpected) in (expected.len() + 1..).zip(left.into_iter().flatten()) {
        let differences = SHOWN
            .iter()
            .filter_map(|field| Some((*field, unexpected.get(*field).filter(|value| !value.is_null())?)))
            .map(|(field, got)| Difference { field: field.to_owned(), expected: format!("no {what}"), got: got.to_string() })
            .collect();
        failures.push(Failure { what, number, line, differences, problems: Vec::new() });
    }
    failures
}

/// The fields that are shown of what was not expected.
const SHOWN: [&str; 7] = ["rule", "subject", "status", "step", "action", "at", "until"];

fn difference(what: &str, field: &str, expected: &Value, got: Option<&Value>) -> Option<Difference> {
    let found = got.map(|got| got.get(field).unwrap_or(&Value::Null));
    let is_same = |found: &Value| found == expected || expected.as_f64().is_some_and(|expected| found.as_f64() == Some(expected));
    if found.is_some_and(is_same) {
        return None;
    }
    let got = found.map_or_else(|| format!("no {what}"), |found| if found.is_null() { "absent".to_owned() } else { found.to_string() });
    Some(Difference { field: field.to_owned(), expected: expected.to_string(), got })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(fields: Value) -> Expectation {
        Expectation { line: 7, at_ms: None, fields: fields.as_object().cloned().unwrap_or_default() }
    }

    fn failures(expectations: &[Expectation], got: &[Value]) -> Vec<(usize, usize, String)> {
        let text = |differences: &[Difference]| {
            let texts: Vec<_> = differences.iter().map(|one| format!("{}: {} | {}", one.field, one.expected, one.got)).collect();
            texts.join("; ")
        };
        let failures = compare_all("alert", expectations, got, 1);
        failures.iter().map(|failure| (failure.number, failure.line, text(&failure.differences))).collect()
    }

    #[test]
    fn each_expectation_takes_the_next_of_its_rule_and_subject() {
        let got = [json!({"rule": "a", "subject": "user x", "step": 1, "count": 5}), json!({"rule": "b", "subject": "user x", "step": 1})];
        let both = [expected(json!({"rule": "b", "step": 1})), expected(json!({"rule": "a", "subject": "user x", "count": 5.0}))];
        assert_eq!(failures(&both, &got), []);
        let one = (1, 7, "step: 2 | 1".to_owned());
        assert_eq!(failures(&[expected(json!({"rule": "b", "step": 2}))], &got[1..]), [one]);
        let missing = (1, 7, "rule: \"c\" | no alert".to_owned());
        let more = (2, 1, "rule: no alert | \"b\"; subject: no alert | \"user x\"; step: no alert | 1".to_owned());
        assert_eq!(failures(&[expected(json!({"rule": "c"}))], &got[1..]), [missing, more]);
        assert_eq!(failures(&[expected(json!({"rule": "b", "until": "1h"}))], &got[1..])[0].2, "until: \"1h\" | absent");
    }
}
