//! Checks that what SDKs serialise is read. `tests/sdk/record.py` has written the objects, each with the version of its SDK.

use serde_json::{Value, json};
use tollgate_core::decide::safety::Doubt;
use tollgate_fixtures::cases::{Case, jsonl};
use tollgate_fixtures::gate::{Gate, default_policy};

use crate::signals_corpus::{assert_read, with_body};

#[test]
fn objects_of_sdks_are_read() {
    let (records, bodies): (Vec<Value>, Vec<Value>) =
        jsonl("tests/fixtures/sdk_objects.jsonl").into_iter().partition(|object| object["as"] == "record");
    assert_read(&bodies);
    for body in &bodies {
        let doubt = with_body(body, |body| default_policy().safety().inspect(body).doubt);
        assert!(!matches!(doubt, Some(Doubt::Unrecognized(_))), "{} has no known shape", body["id"]);
    }
    assert!(bodies.len() > 25 && records.len() > 4, "{} bodies, {} records", bodies.len(), records.len());
    records.iter().for_each(check_record);
}

fn check_record(object: &Value) {
    let case = json!({"name": object["id"], "headers": object["body"]["headers"], "raw": object["body"]["value"]});
    let (_, verdict) = Case::read(&case).feed(&mut Gate::new(default_policy()));
    let verdict: Value = serde_json::from_slice(&verdict).unwrap();
    let expected = [
        ("type", "tool_call"),
        ("thread_id", "t1"),
        ("event_id", "e1"),
        ("tool_call_id", "call_1"),
        ("tool_name", "shell"),
        ("action", "allow"),
        ("timestamp", "2026-01-02T03:04:05Z"),
    ];
    for (field, value) in expected {
        assert!(
            verdict[field].as_str().is_some_and(|found| found.starts_with(value.trim_end_matches('Z'))),
            "{field} of {case}: {verdict}"
        );
    }
}
