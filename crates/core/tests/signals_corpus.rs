//! Checks the corpus of providers' safety stops, and that it has cases for every place that a reader knows.
//!
//! A case has the place or the error that it is about (`row`), the field of the event that holds its body (`as`), and what is expected:
//! the stop, if there is one (`expect`), and the tools that are called (`tools`; of flagged calls, the flagged ones).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tollgate_core::decide::safety::reading::{Explanation, READERS, Test, errors_table};
use tollgate_core::event::decode::ModelBody;
use tollgate_fixtures::cases::jsonl;
use tollgate_fixtures::gate::default_policy;
use tollgate_json::{DEPTH_MAX, Parser};

use crate::golden_signals::got;

/// An API's error that is a text alone, which no stream holds, so that no call stands before it.
const WITHOUT_CALLS: &str = "api_error ";

/// Returns the cases of all files.
pub fn cases() -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir("tests/corpus/signals").unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|file| jsonl(file.to_str().unwrap())).collect()
}

/// Looks at the body of a case.
pub fn with_body<T>(case: &Value, look: impl FnOnce(&ModelBody<'_>) -> T) -> T {
    let text = case["body"].to_string();
    let mut parser = Parser::new();
    let value = parser.parse(text.as_bytes(), DEPTH_MAX).unwrap();
    look(&match case["as"].as_str().unwrap() {
        "response" => ModelBody::Response(value),
        "message" => ModelBody::Message(value),
        "error" => ModelBody::Error(value),
        other => panic!("{}: `as` is {other}", case["id"]),
    })
}

#[test]
fn every_case_is_read_as_it_says() {
    assert_read(&cases());
}

/// Fails with all cases that are read otherwise than they say.
pub fn assert_read(cases: &[Value]) {
    let mut wrong = Vec::new();
    for case in cases {
        let mut expected = json!({"terminated": case.get("expect").is_some(), "tool_names": case["tools"]});
        for (field, value) in case.get("expect").into_iter().flat_map(|expect| expect.as_object().unwrap()) {
            expected[field] = value.clone();
        }
        let got = with_body(case, |body| got(body, &default_policy().safety().inspect(body)));
        if got != expected {
            wrong.push(format!("{}\n  expected {expected}\n  got      {got}", case["id"]));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// The rows of the page about the readers, each with the kinds of cases that it needs.
fn rows() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut rows = BTreeMap::new();
    for reader in READERS {
        for reason in reader.reasons {
            let row = format!("{} {}", reader.name, reason.path);
            let kinds = match reason.test {
                Test::Complete(_) => vec!["pass"],
                // It is about calls.
                _ if reason.rule == "tool_safeguard" => vec!["pass", "calls"],
                _ if row == WITHOUT_CALLS => vec!["stop", "pass"],
                _ => vec!["stop", "pass", "calls"],
            };
            rows.insert(row, BTreeSet::from_iter(kinds));
        }
        let calls = reader.calls.iter().map(|calls| format!("calls {} {}", reader.name, calls.path));
        rows.extend(calls.map(|row| (row, BTreeSet::from(["calls", "pass"]))));
    }
    for (what, values) in errors_table() {
        rows.extend(values.iter().map(|value| (format!("{what}: {value}"), BTreeSet::from(["stop", "pass"]))));
    }
    rows
}

/// Returns the kinds of its row that a case stands for. A stop counts if the place itself spoke, and a look-alike if it has the place.
fn kinds(case: &Value) -> Vec<&'static str> {
    let row = case["row"].as_str().unwrap();
    let is_stop = case.get("expect").is_some();
    let has_calls = !case["tools"].as_array().unwrap().is_empty();
    let of_place = row.strip_prefix("calls ").is_none() && !row.contains(": ");
    let (shape, path) = row.strip_prefix("calls ").unwrap_or(row).split_once(' ').unwrap();
    let spoke = || {
        with_body(case, |body| {
            let reasons = Explanation::of(body).reasons;
            reasons.iter().any(|reason| (reason.shape, reason.path) == (shape, path) && reason.rule.is_some())
        })
    };
    match is_stop {
        true if of_place && !spoke() => vec![],
        true if has_calls => vec!["calls"],
        true => vec!["stop"],
        false if row.contains(": ") || holds(&case["body"], path) => vec!["pass"],
        false => vec![],
    }
}

/// Returns whether a body, or one of a stream's events, has a value at a path.
fn holds(value: &Value, path: &str) -> bool {
    let Value::Array(events) = value else { return leads(value, path) };
    events.iter().any(|event| leads(event, path))
}

fn leads(value: &Value, path: &str) -> bool {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() {
        return !value.is_null();
    }
    if let Some(rest) = path.strip_prefix("[]") {
        return value.as_array().is_some_and(|items| items.iter().any(|item| leads(item, rest)));
    }
    let (name, rest) = match path.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').unwrap(),
        None => path.split_at(path.find(['.', '[']).unwrap_or(path.len())),
    };
    value.get(name).is_some_and(|member| leads(member, rest))
}

#[test]
fn every_place_has_its_cases() {
    let (mut open, mut ids) = (rows(), BTreeSet::new());
    let known: BTreeSet<String> = open.keys().cloned().collect();
    let cases = cases();
    for case in &cases {
        let row = case["row"].as_str().unwrap();
        assert!(known.contains(row), "{}: no reader has the row {row}", case["id"]);
        assert!(ids.insert(case["id"].to_string()), "{} stands twice", case["id"]);
        let missing = open.get_mut(row).unwrap();
        kinds(case).iter().for_each(|kind| _ = missing.remove(kind));
    }
    open.retain(|_, missing| !missing.is_empty());
    assert!(open.is_empty(), "rows without cases: {open:#?}");
    assert!(cases.len() >= 300, "only {} cases", cases.len());
}

#[test]
fn no_spelling_of_json_hides_a_stop() {
    for text in [
        r#"{"choices":[{"finish_reason":"content_filter","finish_reason":"stop"}]}"#,
        r#"{"choices":[{"finish_reason":"stop","finish_reason":"content_filter"}]}"#,
        r#"{"choices":[],"choices":[{"finish_reason":"content_filter"}],"choices":null}"#,
        r#"{"cho\u0069ces":[{"finish\u005freason":"content\u005Ffilter"}]}"#,
        "\t{ \"choices\" :\r\n[ { \"finish_reason\" : \"content_filter\" } ] }",
    ] {
        let mut parser = Parser::new();
        let body = ModelBody::Response(parser.parse(text.as_bytes(), DEPTH_MAX).unwrap());
        assert!(default_policy().safety().inspect(&body).termination.is_some(), "{text}");
    }
}
