//! Tests tool calls and results: which part decides, what providers say, and what happens to repeats.

use serde_json::{Value, json};
use tollgate_fixtures::checks::{assert_has, check_each};
use tollgate_fixtures::gate::{Gate, default_policy, verdict_id};

use super::stories::*;

#[test]
fn precedence() {
    let suppressed = || json!({"action": "block", "code": "suppressed_tool_call", "decided_by": "safety", "should_halt": false, "count": null, "signature": null});
    let denied = || json!({"action": "block", "code": "acme.budget_spent", "decided_by": "guardrail", "should_halt": false, "count": null, "signature": null});
    let not_executed = || json!({"action": "allow", "code": "not_executed", "decided_by": "none", "reasons": [], "count": null, "signature": null, "guidance": null});
    check_stories(vec![
        story(
            "a suppressed call is not asked about: the provider would deny it, the loop controller block it",
            closed,
            script(vec![
                two_failures(),
                vec![
                    (cut_off(&[("deny-1", "bash")]), says("suppress", "safety_terminated")),
                    (call("deny-1", "bash", json!({"x": 1})), suppressed()),
                ],
            ]),
        ),
        story(
            "a denied call is no loop, though the loop controller would block it",
            closed,
            script(vec![two_failures(), vec![(call("deny-1", "bash", json!({"x": 1})), denied()), third_failure_is_blocked()]]),
        ),
        story(
            "the loop controller never observes a denied call",
            closed,
            vec![
                (call("deny-1", "bash", json!({"x": 1})), denied()),
                (result("deny-1", "bash", true), not_executed()),
                (call("deny-2", "bash", json!({"x": 1})), denied()),
                (result("deny-2", "bash", true), not_executed()),
                (call("c3", "bash", json!({"x": 1})), allow()),
                (result("c3", "bash", true), counted("allow", "allow", 1)),
            ],
        ),
        plain(
            "the loop controller never observes a suppressed call",
            vec![
                (cut_off(&[("c1", "bash"), ("c2", "bash")]), says("suppress", "safety_terminated")),
                (call("c1", "bash", json!({"x": 1})), suppressed()),
                (result("c1", "bash", true), not_executed()),
                (result("c2", "bash", true), not_executed()),
                (clean_response(), allow()),
                (call("c3", "bash", json!({"x": 1})), allow()),
                (result("c3", "bash", true), counted("allow", "allow", 1)),
            ],
        ),
        plain(
            "the loop controller never observes a call that it has blocked itself",
            script(vec![
                two_failures(),
                vec![
                    third_failure_is_blocked(),
                    (result("f3", "bash", true), not_executed()),
                    (call("f4", "bash", json!({"x": 1})), exact_block(2)),
                    (call("f5", "bash", json!({"x": 2})), allow()),
                ],
            ]),
        ),
        plain(
            "a loop block asks the turn to stop, and so does a halt",
            script(vec![
                two_failures(),
                vec![
                    (call("f3", "bash", json!({"x": 1})), json!({"should_halt": true, "decided_by": "loop"})),
                    (call("g3", "bash", json!({"x": 2})), allow()),
                    (result("g3", "bash", true), json!({"action": "warn", "code": "same_tool_failure_warning", "should_halt": false})),
                    (call("g4", "bash", json!({"x": 3})), allow()),
                    (result("g4", "bash", true), json!({"action": "warn", "count": 4})),
                    (call("g5", "bash", json!({"x": 4})), allow()),
                    (
                        result("g5", "bash", true),
                        json!({"action": "halt", "code": "same_tool_failure_halt", "allows_execution": false, "should_halt": true, "count": 5, "synthetic_result": null}),
                    ),
                ],
            ]),
        ),
    ]);
}

#[test]
fn guardrail_providers() {
    let closed_sentence = "Tool call not executed (oap.evaluator_error): the policy service that decides on tool 'bash' is unavailable. The call itself was not judged. Do not try another way: retry later, or tell the user.";
    let failed_closed = || json!({"action": "block", "code": "oap.evaluator_error", "decided_by": "guardrail", "should_halt": false, "synthetic_result": closed_sentence});
    let passed_over = || json!({"source": "guardrail", "code": "guardrail_failed_open", "message": "guardrail provider error (fail-open)", "policy_id": null});
    let failed_open = || json!({"action": "allow", "code": "guardrail_failed_open", "decided_by": "guardrail", "allows_execution": true, "reasons": [passed_over()], "count": 0, "synthetic_result": null});
    check_stories(vec![
        story(
            "the first reason is shown, with its policy",
            closed,
            vec![(
                call("deny-1", "bash", json!({})),
                json!({
                    "code": "acme.budget_spent",
                    "message": "the budget of today is spent",
                    "synthetic_result": "Guardrail denied: tool 'bash' was blocked (acme.budget_spent). Reason: the budget of today is spent. Choose an alternative approach.",
                }),
            )],
        ),
        story(
            "a denial without a reason",
            closed,
            vec![(
                call("mute-1", "bash", json!({})),
                json!({
                    "code": "oap.denied",
                    "message": "blocked by guardrail policy",
                    "reasons": [{"source": "guardrail", "code": "oap.denied", "message": "blocked by guardrail policy", "policy_id": null}],
                }),
            )],
        ),
        story("a provider that fails closes", closed, vec![(call("fail-1", "bash", json!({})), failed_closed())]),
        story("a question that nobody answers closes", closed, vec![(call("ask-1", "bash", json!({})), failed_closed())]),
        story("a provider that fails is passed over, and that is said", open, vec![(call("fail-1", "bash", json!({})), failed_open())]),
        story("a question that nobody answers is passed over", open, vec![(call("ask-1", "bash", json!({})), failed_open())]),
        story(
            "a denial is a denial, failing open or not",
            open,
            vec![(call("deny-1", "bash", json!({})), says("block", "acme.budget_spent"))],
        ),
        story(
            "a call that ran because a provider was passed over counts",
            open,
            vec![
                (call("fail-1", "bash", json!({"x": 1})), failed_open()),
                (result("fail-1", "bash", true), counted("allow", "allow", 1)),
                (call("fail-2", "bash", json!({"x": 1})), failed_open()),
                (result("fail-2", "bash", true), counted("warn", "repeated_exact_failure_warning", 2)),
                (
                    call("fail-3", "bash", json!({"x": 1})),
                    json!({
                        "action": "block",
                        "code": "repeated_exact_failure_block",
                        "decided_by": "loop",
                        "reasons": [
                            {
                                "source": "loop",
                                "code": "repeated_exact_failure_block",
                                "message": "Blocked bash: the same tool call failed 2 times with identical arguments. Stop retrying it unchanged; change strategy or explain the blocker.",
                                "policy_id": null
                            },
                            passed_over(),
                        ],
                    }),
                ),
            ],
        ),
        story("an allowed call says nothing of its provider", closed, vec![(call("c1", "bash", json!({})), allow())]),
    ]);
}

/// Only the first reason is shown to the agent; the verdict's list holds all that spoke.
#[test]
fn a_denial_names_all_its_reasons() {
    let reasons = json!([
        {"source": "guardrail", "code": "acme.first", "message": "one reason", "policy_id": null},
        {"source": "guardrail", "code": "acme.second", "message": "another", "policy_id": "pol-8"},
    ]);
    let expected = json!({"code": "acme.first", "message": "one reason", "reasons": reasons});
    check_stories(vec![story("two reasons", closed, vec![(call("twice-1", "bash", json!({})), expected)])]);
}

#[test]
fn repeats() {
    check_stories(vec![
        plain(
            "a second result under another event id gets the first one's answer and changes nothing",
            vec![
                (call("c1", "bash", json!({"x": 1})), allow()),
                (as_event(result("c1", "bash", true), "r1"), counted("allow", "allow", 1)),
                (
                    as_event(result("c1", "bash", true), "r2"),
                    event(counted("allow", "allow", 1), json!({"event_id": "r2", "verdict_id": verdict_id("t", "r2"), "thread_id": "t"})),
                ),
                (as_event(result("c1", "bash", false), "r3"), counted("allow", "allow", 1)),
                (call("c2", "bash", json!({"x": 1})), allow()),
                (result("c2", "bash", true), counted("warn", "repeated_exact_failure_warning", 2)),
            ],
        ),
        plain(
            "a call that comes again is decided anew, and its next result counts",
            vec![
                (call("c1", "bash", json!({"x": 1})), allow()),
                (result("c1", "bash", true), counted("allow", "allow", 1)),
                (call("c1", "bash", json!({"x": 1})), allow()),
                (result("c1", "bash", true), counted("warn", "repeated_exact_failure_warning", 2)),
                (result("c1", "bash", true), counted("warn", "repeated_exact_failure_warning", 2)),
                (call("c1", "bash", json!({"x": 1})), exact_block(2)),
                (result("c1", "bash", true), says("allow", "not_executed")),
            ],
        ),
        plain(
            "a call that comes again with other arguments is known by the new ones",
            vec![
                (call("c1", "bash", json!({"x": 1})), allow()),
                (call("c1", "bash", json!({"x": 2})), allow()),
                (result("c1", "bash", true), json!({"count": 1, "signature": {"args_hash": args_hash(r#"{"x":2}"#)}})),
            ],
        ),
        plain(
            "a result whose call was never seen counts once",
            vec![
                (event(result("c1", "bash", true), json!({"tool_input": {"x": 1}})), counted("allow", "allow", 1)),
                (event(result("c1", "bash", true), json!({"tool_input": {"x": 1}})), counted("allow", "allow", 1)),
                (event(result("c2", "bash", true), json!({"tool_input": {"x": 1}})), counted("warn", "repeated_exact_failure_warning", 2)),
            ],
        ),
        plain(
            "two calls with the same arguments are two calls",
            vec![
                (call("c1", "bash", json!({"x": 1})), allow()),
                (call("c2", "bash", json!({"x": 1})), allow()),
                (result("c1", "bash", true), counted("allow", "allow", 1)),
                (result("c2", "bash", true), counted("warn", "repeated_exact_failure_warning", 2)),
            ],
        ),
    ]);
}

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
            script_events(vec![two_failures(), vec![(as_event(third_failure_is_blocked().0, "again"), Value::Null)]]),
            third_failure_is_blocked().0,
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

fn script_events(parts: Vec<Vec<(Value, Value)>>) -> Vec<Value> {
    script(parts).into_iter().map(|(event, _)| event).collect()
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
