//! Tests events that come again: nothing changes, and the bytes are the same.

use serde_json::{Value, json};
use tollgate_fixtures::checks::{assert_has, check_each};
use tollgate_fixtures::gate::{Gate, default_policy};

use super::stories::*;

/// The event that was the last of its call and type comes again: nothing changes, and the bytes are the same. The cases are stories.
#[test]
fn the_last_event_again() {
    let file = file();
    let check = |story: &&Value| {
        let [before, again] = ["steps", "again"].map(|part| steps_of(&file, &story[part]));
        check_again(&before, &again[0].0);
    };
    check_each(file["again"].as_array().unwrap(), |story| story["story"].to_string(), check);
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

/// Checks that an event which comes once more changes nothing; one of the events before is named `again`.
fn check_again(before: &[(Value, Value)], again: &Value) {
    let mut gate = Gate::new(default_policy());
    let mut first = Vec::new();
    for (index, (event_value, _)) in before.iter().enumerate() {
        let event_id = event_value.get("event_id").cloned().unwrap_or_else(|| Value::from(format!("e{index}")));
        let bytes = gate.bytes(&event(event_value.clone(), json!({"event_id": event_id})));
        if event_id == "again" {
            first = bytes;
        }
    }
    assert!(!first.is_empty(), "nothing was named `again`");
    // Only the time of touch may change.
    let thread = |gate: &Gate| gate.threads().get("t").map(|stored| stored.thread.clone());
    let state = thread(&gate);
    let second = gate.bytes(&as_event(again.clone(), "again"));
    assert_eq!(String::from_utf8(second).unwrap(), String::from_utf8(first).unwrap());
    assert_eq!(thread(&gate), state, "the thread has changed");
}
