//! The alerts and controls that came, compared with those that a case expects.

use serde_json::Value;

use super::expected::Expectation;
use super::run::CaseResult;
use super::suite::Case;
use crate::commands::shared::suites::{Difference, Failure};

/// Returns in what the outcome of a case differs from what it expects.
pub(super) fn compare(case: &Case, got: &CaseResult) -> Vec<Failure> {
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
    use serde_json::json;

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
