//! Tests events that come again: nothing changes, and the bytes are the same.

use serde_json::{Value, json};
use tollgate_fixtures::checks::{assert_has, check_each};
use tollgate_fixtures::gate::{Gate, default_policy};

use super::stories::*;

/// The event that was the last of its call and type comes again: nothing changes, and the bytes are the same.
#[test]
fn the_last_event_again() {
    let not_executed_then_reopened = || {
        vec![
            response(json!({"candidates": [{"finishReason": "SAFETY", "content": {"parts": [{"functionCall": {"name": "bash"}}]}}]})),
            call("c1", "bash", json!({"x": 1})),
            as_event(result("c1", "bash", true), "again"),
            clean_response(),
            call("c1", "bash", json!({"x": 1})),
        ]
    };
    let not_executed_then_called = || {
        let mut events = not_executed_then_reopened();
        events.remove(1);
        events
    };
    let answered_twice_then_reopened = || {
        vec![
            call("c1", "bash", json!({"x": 1})),
            result("c1", "bash", true),
            as_event(result("c1", "bash", true), "again"),
            call("c1", "bash", json!({"x": 1})),
        ]
    };
    let cases: Vec<(&str, Vec<Value>, Value)> = vec![
        ("a call", vec![as_event(call("c1", "bash", json!({"x": 1})), "again")], call("c1", "bash", json!({"x": 1}))),
        ("a result", vec![call("c1", "bash", json!({})), as_event(result("c1", "bash", true), "again")], result("c1", "bash", true)),
        (
            "a result with the opposite outcome",
            vec![call("c1", "bash", json!({})), as_event(result("c1", "bash", true), "again")],
            result("c1", "bash", false),
        ),
        ("a suppressed response", vec![as_event(cut_off(&[("c1", "bash")]), "again")], cut_off(&[("c1", "bash")])),
        (
            "a call after its result",
            vec![as_event(call("c1", "bash", json!({})), "again"), result("c1", "bash", true)],
            call("c1", "bash", json!({})),
        ),
        ("a call whose arguments are known to fail by now", parallel_failures(), call("f1", "bash", json!({"x": 1}))),
        (
            "a blocked call",
            three_calls().map(|event| if event["tool_call_id"] == "f3" { as_event(event, "again") } else { event }).to_vec(),
            three_calls()[4].clone(),
        ),
        ("a second result, after the call was reopened", answered_twice_then_reopened(), result("c1", "bash", true)),
        ("a result that was not executed, after the call was reopened", not_executed_then_reopened(), result("c1", "bash", true)),
        ("a result that was not executed, before its call was seen", not_executed_then_called(), result("c1", "bash", true)),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(name, before, again)| check_again(name, before, again));
}

/// Arguments that mean the same here may be other ones to a tool: the ruling on a call is not given to such a call, whose event id and call
/// id are the same.
#[test]
fn an_earlier_ruling_is_given_again_for_the_same_bytes_of_the_arguments_alone() {
    let raw = |arguments: &str| {
        let fields = r#""type":"tool_call","thread_id":"t","event_id":"again","tool_call_id":"f1","tool_name":"bash""#;
        format!("{{{fields},{arguments}}}").into_bytes()
    };
    let first = r#""tool_input":{"x":1}"#;
    let others = [
        r#""tool_input":{"x":0,"x":1}"#,
        r#""tool_input":{"x":1,"x":1}"#,
        r#""tool_input":{"x": 1}"#,
        r#""tool_input":{"\u0078":1}"#,
        r#""arguments":{"x":1 }"#,
        r#""arguments":"{\"x\":1}""#,
    ];
    check_each(
        others,
        |other| (*other).to_owned(),
        |other| {
            let mut gate = Gate::new(default_policy());
            let mut ask = |arguments: &str| serde_json::from_slice::<Value>(&gate.record(None, Some(&raw(arguments)), &[]).1).unwrap();
            let allowed = ask(first);
            assert_has("at first", &allowed, &allow());
            // By now a call like it is blocked.
            let failures = [call("f2", "bash", json!({"x": 1})), result("f1", "bash", true), result("f2", "bash", true)];
            failures.iter().for_each(|event| drop(gate.event(event)));
            let mut ask = |arguments: &str| serde_json::from_slice::<Value>(&gate.record(None, Some(&raw(arguments)), &[]).1).unwrap();
            assert_eq!(ask(first), allowed, "the same bytes");
            assert_has("other bytes", &ask(other), &exact_block(2));
            assert_has("now the other bytes are known", &ask(other), &exact_block(2));
            assert_has("and the first ones are not", &ask(first), &exact_block(2));
        },
    );
}

/// Returns a call named `again` that was allowed, and whose like has failed twice since.
fn parallel_failures() -> Vec<Value> {
    let mut events = vec![as_event(call("f1", "bash", json!({"x": 1})), "again"), call("f2", "bash", json!({"x": 1}))];
    events.extend([result("f1", "bash", true), result("f2", "bash", true)]);
    events
}

/// Checks that an event which comes once more changes nothing; one of the events before is named `again`.
fn check_again(name: &str, before: &[Value], again: &Value) {
    let mut gate = Gate::new(default_policy());
    let mut first = Vec::new();
    for (index, event_value) in before.iter().enumerate() {
        let event_id = event_value.get("event_id").cloned().unwrap_or_else(|| Value::from(format!("e{index}")));
        let bytes = gate.bytes(&event(event_value.clone(), json!({"event_id": event_id})));
        if event_id == "again" {
            first = bytes;
        }
    }
    assert!(!first.is_empty(), "{name}: nothing was named `again`");
    // Only the time of touch may change.
    let thread = |gate: &Gate| gate.threads().get("t").map(|stored| stored.thread.clone());
    let state = thread(&gate);
    let second = gate.bytes(&as_event(again.clone(), "again"));
    assert_eq!(String::from_utf8(second).unwrap(), String::from_utf8(first).unwrap(), "{name}");
    assert_eq!(thread(&gate), state, "{name}: the thread has changed");
}
