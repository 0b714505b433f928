//! Tests verdicts to the byte, and what never stands in them.

use serde_json::{Value, json};
use tollgate_core::event::record::Header;
use tollgate_fixtures::checks::check_each;
use tollgate_fixtures::gate::{Gate, default_policy, policy};

use super::stories::*;

/// A verdict ends with whose event it answers and when that happened, if that is known. A rejected event has what could be read of it.
#[test]
fn verdicts_end_with_agent_tenant_and_time() {
    const WRITTEN: i64 = 1_767_225_600_123;
    let call = json!({"type": "tool_call", "thread_id": "t", "tool_call_id": "c1", "tool_name": "bash", "tool_input": {}});
    let of_coder = event(call.clone(), json!({"agent_id": "coder", "tenant_id": "acme"}));
    let at = |time: &str| event(of_coder.clone(), json!({"timestamp": time}));
    let (zoned, of_digits) = ("2026-01-01T01:00:00+01:00", format!("2026-01-01T00:00:00.{}Z", "5".repeat(60)));
    let broken = event(at(zoned), json!({"tool_input": null, "user_id": 7}));
    let too_long = event(call.clone(), json!({"agent_id": "a".repeat(257), "tenant_id": "a".repeat(256)}));
    let untimed = || r#"","agent_id":"coder","tenant_id":"acme"}"#.to_owned();
    let timed = format!(r#"","agent_id":"coder","tenant_id":"acme","timestamp":"{zoned}"}}"#);
    let cases = [
        ("nothing is known", None, call, r#""}"#.to_owned()),
        ("the record's time is not told: a copy has another", Some(WRITTEN), of_coder.clone(), untimed()),
        ("its own time, as it says it", Some(WRITTEN), at(zoned), timed.clone()),
        ("a time of many digits", None, at(&of_digits), untimed()),
        ("a rejected event", Some(WRITTEN), broken, timed),
        ("a time that cannot be read", Some(WRITTEN), at("soon"), untimed()),
        ("a long id", None, too_long, format!(r#"","tenant_id":"{}"}}"#, "a".repeat(256))),
    ];
    check_each(
        cases,
        |(name, ..)| (*name).to_owned(),
        |(name, record_ms, value, expected)| {
            let policy = default_policy();
            let version = policy.version().to_owned();
            let mut gate = Gate::new(policy);
            gate.timestamp_ms = *record_ms;
            let text = String::from_utf8(gate.bytes(value)).unwrap();
            assert_eq!(text.split_once(&version).unwrap().1, expected, "{name}");
        },
    );
}

/// Whatever the envelope is, a record that is no event is answered with its time.
#[test]
fn a_rejected_record_is_answered_with_its_time() {
    let time_of = |headers: &[(&str, &str)], value: &str| {
        let headers: Vec<_> = headers.iter().map(|(name, value)| Header { name, value: Some(value.as_bytes()) }).collect();
        let mut gate = Gate::new(default_policy());
        gate.timestamp_ms = Some(1_767_225_600_123);
        let verdict: Value = serde_json::from_slice(&gate.record(Some(b"t"), Some(value.as_bytes()), &headers).1).unwrap();
        assert_eq!(verdict["code"], "invalid_event");
        verdict["timestamp"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(time_of(&[], "{"), "");
    let binary = [("ce_specversion", "1.0"), ("ce_id", "e"), ("ce_type", "tool_call"), ("ce_time", "2026-01-01T09:00:00Z")];
    assert_eq!(time_of(&binary, "{"), "2026-01-01T09:00:00Z");
    let structured = r#"{"specversion":"2.0","source":"s","id":"e","type":"tool_call","time":"2026-01-01T09:00:00Z","data":{}}"#;
    assert_eq!(time_of(&[], structured), "2026-01-01T09:00:00Z");
    assert_eq!(time_of(&[], &structured.replace("2026", "soon")), "");
}

/// No argument, result or user id ever comes out.
#[test]
fn nothing_raw_leaves() {
    const MARKER: &str = "MARKER-7f3a";
    let mut gate =
        Gate::new(policy(&json!({"guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["rm"]}}}})));
    let who = json!({"user_id": MARKER, "tenant_id": "acme", "user_role": MARKER, "run_id": MARKER, "agent_id": "coder"});
    let raw = json!({"tool_input": {MARKER: MARKER}, "result": format!("Error: {MARKER}")});
    let events = (0..8).flat_map(|n| {
        let tool = ["bash", "read_file", "rm", "terminal"][n % 4];
        let with = |value: Value| event(event(value, who.clone()), raw.clone());
        [with(call(&format!("c{n}"), tool, json!({}))), with(result(&format!("c{n}"), tool, n % 2 == 0))]
    });
    let body = json!({"choices": [{"finish_reason": "content_filter", "message": {"content": MARKER, "tool_calls": [{"id": "z", "function": {"name": "bash", "arguments": MARKER}}]}}]});
    let mut checked = 0;
    for event_value in events.chain([event(response(body), who.clone())]) {
        let verdict = String::from_utf8(gate.bytes(&event_value)).unwrap();
        assert!(!verdict.is_empty() && !verdict.contains(MARKER), "{verdict}");
        checked += 1;
    }
    assert_eq!(checked, 17);
}
