//! The rules of the gate, seen through whole events and verdicts: scripts of events, each with what its verdict must hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod support;

use serde_json::{Value, json};
use support::{Gate, assert_has, check_each, default_policy, jsonl, policy, verdict_id};
use tollgate::evaluate::guardrail::{GuardrailChain, GuardrailDecision, GuardrailProvider, GuardrailRequest, ProviderError, Step};
use tollgate::evaluate::verdict::GuardrailReason;
use tollgate::policy::Policy;

/// A story: its name, the policy, and events with what their verdicts must hold (null for none).
struct Story {
    name: &'static str,
    policy: fn() -> Policy,
    script: Vec<(Value, Value)>,
}

fn story(name: &'static str, policy: fn() -> Policy, script: Vec<(Value, Value)>) -> Story {
    Story { name, policy, script }
}

/// A story under the default policy.
fn plain(name: &'static str, script: Vec<(Value, Value)>) -> Story {
    story(name, default_policy, script)
}

fn check_stories(stories: Vec<Story>) {
    check_each(stories, |story| story.name.to_owned(), check_story);
}

fn check_story(story: &Story) {
    let mut gate = Gate::new((story.policy)());
    for (index, (event, expected)) in story.script.iter().enumerate() {
        let mut event = event.clone();
        if event.get("event_id").is_none() {
            event["event_id"] = Value::from(format!("e{index}"));
        }
        let verdict = gate.event(&event);
        let step = format!("{}, step {index}, {event}", story.name);
        if expected.is_null() {
            assert!(verdict.is_null(), "{step}: {verdict}");
        } else {
            assert_has(&step, &verdict, expected);
        }
    }
}

/// An event of thread `t`: `with` replaces or adds fields, null takes one away.
fn event(fields: Value, with: Value) -> Value {
    let mut event = json!({"thread_id": "t"});
    for (name, value) in [fields, with].iter().flat_map(|part| part.as_object().unwrap()) {
        event[name] = value.clone();
    }
    event
}

fn call(id: &str, tool: &str, input: Value) -> Value {
    event(json!({"type": "tool_call", "tool_call_id": id, "tool_name": tool, "tool_input": input}), json!({}))
}

/// A result whose call was seen.
fn result(id: &str, tool: &str, failed: bool) -> Value {
    let result = if failed { "Error: no" } else { "ok" };
    event(json!({"type": "tool_result", "tool_call_id": id, "tool_name": tool, "result": result, "failed": failed}), json!({}))
}

fn response(body: Value) -> Value {
    event(json!({"type": "model_response", "response": body}), json!({}))
}

fn turn(kind: &str, with: Value) -> Value {
    event(json!({"type": kind}), with)
}

fn as_event(event_value: Value, event_id: &str) -> Value {
    event(event_value, json!({"event_id": event_id}))
}

fn in_turn(event_value: Value, turn_id: &str) -> Value {
    event(event_value, json!({"turn_id": turn_id}))
}

fn says(action: &str, code: &str) -> Value {
    json!({"action": action, "code": code, "allows_execution": action == "allow" || action == "warn"})
}

fn allow() -> Value {
    json!({"action": "allow", "code": "allow", "message": "", "decided_by": "none", "reasons": [], "allows_execution": true, "should_halt": false})
}

fn counted(action: &str, code: &str, count: u32) -> Value {
    let mut verdict = says(action, code);
    verdict["count"] = Value::from(count);
    verdict
}

fn exact_block(count: u32) -> Value {
    counted("block", "repeated_exact_failure_block", count)
}

/// The same call fails twice: the third is blocked.
fn two_failures() -> Vec<(Value, Value)> {
    vec![
        (call("f1", "bash", json!({"x": 1})), allow()),
        (result("f1", "bash", true), counted("allow", "allow", 1)),
        (call("f2", "bash", json!({"x": 1})), allow()),
        (result("f2", "bash", true), counted("warn", "repeated_exact_failure_warning", 2)),
    ]
}

fn third_failure_is_blocked() -> (Value, Value) {
    (call("f3", "bash", json!({"x": 1})), exact_block(2))
}

fn third_failure_is_allowed() -> (Value, Value) {
    (call("f3", "bash", json!({"x": 1})), allow())
}

fn script(parts: Vec<Vec<(Value, Value)>>) -> Vec<(Value, Value)> {
    parts.concat()
}

/// A response that was cut off while it called these tools.
fn cut_off(calls: &[(&str, &str)]) -> Value {
    let calls: Vec<_> =
        calls.iter().map(|(id, tool)| json!({"id": id, "type": "function", "function": {"name": tool, "arguments": "{\"pa"}})).collect();
    response(json!({"choices": [{"finish_reason": "content_filter", "message": {"content": null, "tool_calls": calls}}]}))
}

fn clean_response() -> Value {
    response(json!({"choices": [{"finish_reason": "stop", "message": {"content": "done"}}]}))
}

/// A provider for tests: what it says depends on how the call's id begins.
#[derive(Debug)]
struct Script;

impl GuardrailProvider for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        let reason = |code: &str, message: &str, policy_id: Option<&str>| GuardrailReason {
            code: code.to_owned(),
            message: message.to_owned(),
            policy_id: policy_id.map(str::to_owned),
        };
        let denial = |reasons| Step::Decided(Ok(GuardrailDecision { allow: false, reasons }));
        match request.tool_call_id.split('-').next().unwrap_or_default() {
            "deny" => denial(vec![reason("acme.budget_spent", "the budget of today is spent", Some("pol-7"))]),
            "twice" => denial(vec![reason("acme.first", "one reason", None), reason("acme.second", "another", Some("pol-8"))]),
            "mute" => denial(Vec::new()),
            "fail" => Step::Decided(Err(ProviderError::Malformed("not a decision"))),
            "ask" => Step::Ask(b"may it?".to_vec()),
            _ => Step::Decided(Ok(GuardrailDecision { allow: true, reasons: Vec::new() })),
        }
    }
}

fn guarded(fail_closed: bool) -> Policy {
    default_policy().with_guardrails(GuardrailChain::new(vec![Box::new(Script)], fail_closed, None))
}

fn closed() -> Policy {
    guarded(true)
}

fn open() -> Policy {
    guarded(false)
}

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
    let closed_sentence = "Guardrail denied: tool 'bash' was blocked (oap.evaluator_error). Reason: guardrail provider error (fail-closed). Choose an alternative approach.";
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

fn script_events(parts: Vec<Vec<(Value, Value)>>) -> Vec<Value> {
    script(parts).into_iter().map(|(event, _)| event).collect()
}

/// A call named `again` that was allowed, and whose like has failed twice since.
fn parallel_failures() -> Vec<Value> {
    let mut events = vec![as_event(call("f1", "bash", json!({"x": 1})), "again"), call("f2", "bash", json!({"x": 1}))];
    events.extend([result("f1", "bash", true), result("f2", "bash", true)]);
    events
}

/// One of the events before is named `again`; it comes once more after them.
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
    let state = gate.lane().threads.get("t").cloned();
    let second = gate.bytes(&as_event(again.clone(), "again"));
    assert_eq!(String::from_utf8(second).unwrap(), String::from_utf8(first).unwrap(), "{name}");
    assert_eq!(gate.lane().threads.get("t").cloned(), state, "{name}: the thread has changed");
}

#[test]
fn turns() {
    let in_u = |turn_id: &str| two_failures().into_iter().map(|(event, expected)| (in_turn(event, turn_id), expected)).collect::<Vec<_>>();
    let blocked_in = |turn_id: &str| (in_turn(third_failure_is_blocked().0, turn_id), exact_block(2));
    let allowed_in = |turn_id: &str| (in_turn(third_failure_is_allowed().0, turn_id), allow());
    check_stories(vec![
        plain("a turn goes on without boundaries", script(vec![two_failures(), vec![third_failure_is_blocked()]])),
        plain(
            "a turn_start starts anew",
            script(vec![two_failures(), vec![(turn("turn_start", json!({})), Value::Null), third_failure_is_allowed()]]),
        ),
        plain(
            "the same turn_start twice starts anew once",
            script(vec![
                vec![(turn("turn_start", json!({"event_id": "s"})), Value::Null)],
                two_failures(),
                vec![(turn("turn_start", json!({"event_id": "s"})), Value::Null), third_failure_is_blocked()],
            ]),
        ),
        plain(
            "a turn_start that names the running turn changes nothing",
            script(vec![in_u("u1"), vec![(turn("turn_start", json!({"turn_id": "u1"})), Value::Null), blocked_in("u1")]]),
        ),
        plain(
            "a turn_start that names another turn starts it",
            script(vec![in_u("u1"), vec![(turn("turn_start", json!({"turn_id": "u2"})), Value::Null), allowed_in("u2")]]),
        ),
        plain("a new turn_id on a call starts a new turn", script(vec![in_u("u1"), vec![allowed_in("u2")]])),
        plain("the same turn_id does not", script(vec![in_u("u1"), vec![blocked_in("u1")]])),
        plain(
            "a new turn_id on a response starts a new turn",
            script(vec![in_u("u1"), vec![(in_turn(clean_response(), "u2"), json!({"turn_id": "u2"})), allowed_in("u2")]]),
        ),
        plain(
            "an event without a turn_id belongs to the running turn, and its verdict says so",
            script(vec![
                in_u("u1"),
                vec![(third_failure_is_blocked().0, event(exact_block(2), json!({"turn_id": "u1", "thread_id": "t"})))],
            ]),
        ),
        plain("a first turn_id on a thread that had none starts a new turn", script(vec![two_failures(), vec![allowed_in("u1")]])),
        plain(
            "a turn_end ends the turn",
            script(vec![two_failures(), vec![(turn("turn_end", json!({})), Value::Null), third_failure_is_allowed()]]),
        ),
        plain(
            "a turn_end that names the running turn ends it",
            script(vec![in_u("u1"), vec![(turn("turn_end", json!({"turn_id": "u1"})), Value::Null), allowed_in("u1")]]),
        ),
        plain(
            "a late turn_end of an earlier turn changes nothing",
            script(vec![in_u("u2"), vec![(turn("turn_end", json!({"turn_id": "u1"})), Value::Null), blocked_in("u2")]]),
        ),
        plain(
            "another thread's boundaries change nothing",
            script(vec![
                two_failures(),
                vec![
                    (turn("turn_start", json!({"thread_id": "t2"})), Value::Null),
                    (turn("turn_end", json!({"thread_id": "t2"})), Value::Null),
                    third_failure_is_blocked(),
                ],
            ]),
        ),
        plain(
            "a subagent is a thread of its own",
            script(vec![
                two_failures(),
                vec![
                    (event(third_failure_is_allowed().0, json!({"thread_id": "t/child", "is_subagent": true})), allow()),
                    third_failure_is_blocked(),
                ],
            ]),
        ),
    ]);
}

/// A result that was published late, or twice, bears the id of a turn that is over. Its id is no new one.
#[test]
fn a_late_event_of_an_earlier_turn_takes_no_stop_with_it() {
    let mut steps = vec![(in_turn(call("c0", "bash", json!({})), "u1"), allow())];
    steps.extend(two_failures().into_iter().map(|(event, expected)| (in_turn(event, "u2"), expected)));
    steps.push((in_turn(event(result("c0", "bash", false), json!({"tool_input": {}})), "u1"), json!({"turn_id": "u1"})));
    steps.push((in_turn(third_failure_is_blocked().0, "u2"), exact_block(2)));
    check_stories(vec![plain("a late result of an earlier turn", steps)]);
}

#[test]
fn responses() {
    let cases = jsonl("tests/fixtures/responses.jsonl");
    check_each(cases, |case| case["name"].as_str().unwrap().to_owned(), check_response);
}

fn check_response(case: &Value) {
    let mut response = event(json!({"type": "model_response", "event_id": "e"}), json!({}));
    let field = if case.get("message").is_some() { "message" } else { "response" };
    response[field] = case[field].clone();
    let verdict = Gate::new(policy(&case["config"])).event(&response);
    assert_has("the verdict", &verdict, &case["expect"]);
    assert_has("the verdict", &verdict, &json!({"count": null, "signature": null, "synthetic_result": null, "guidance": null}));
}

#[test]
fn suppressed_calls() {
    let blocked = || {
        json!({
            "action": "block",
            "code": "suppressed_tool_call",
            "decided_by": "safety",
            "should_halt": false,
            "synthetic_result": "Tool call not executed (suppressed_tool_call): The model provider stopped the response that made this call with a safety-related signal; its arguments may be truncated and unsafe to execute. Choose an alternative approach.",
        })
    };
    let suppress = || json!({"action": "suppress"});
    let gemini = || {
        response(
            json!({"candidates": [{"finishReason": "SAFETY", "content": {"parts": [{"functionCall": {"name": "write_file", "args": {}}}]}}]}),
        )
    };
    check_stories(vec![
        plain(
            "in this turn only",
            vec![
                (cut_off(&[("c1", "bash"), ("c2", "ls")]), suppress()),
                (call("c1", "bash", json!({})), blocked()),
                (call("c2", "ls", json!({})), blocked()),
                (call("c3", "bash", json!({})), allow()),
                (clean_response(), allow()),
                (call("c1", "bash", json!({})), blocked()),
                (turn("turn_start", json!({})), Value::Null),
                (call("c1", "bash", json!({})), allow()),
            ],
        ),
        plain(
            "hole 5: arguments that parse are as suspicious as those that do not",
            vec![
                (cut_off(&[("c1", "bash")]), suppress()),
                (call("c1", "bash", json!({})), blocked()),
                (event(call("c1", "bash", json!(null)), json!({"arguments": "{\"command\": \"ls\"}"})), blocked()),
                (event(call("c1", "bash", json!(null)), json!({"arguments": "{\"pa"})), blocked()),
            ],
        ),
        plain(
            "on another thread the id is another call",
            vec![(cut_off(&[("c1", "bash")]), suppress()), (event(call("c1", "bash", json!({})), json!({"thread_id": "t2"})), allow())],
        ),
        plain(
            "a call that has no id is known by its tool until the model answers",
            vec![
                (gemini(), suppress()),
                (call("made-up-1", "write_file", json!({})), blocked()),
                (call("made-up-2", "read_file", json!({})), allow()),
                (clean_response(), allow()),
                (call("made-up-3", "write_file", json!({})), allow()),
            ],
        ),
        plain(
            "the result of a call that was allowed before counts, whatever was cut off since",
            vec![
                (call("c1", "write_file", json!({})), allow()),
                (gemini(), suppress()),
                (result("c1", "write_file", true), counted("allow", "allow", 1)),
            ],
        ),
        plain(
            "an end of the turn alone frees nothing: a call may come late",
            vec![
                (cut_off(&[("c1", "bash")]), suppress()),
                (turn("turn_end", json!({})), Value::Null),
                (call("c1", "bash", json!({})), blocked()),
                (clean_response(), allow()),
                (call("c1", "bash", json!({})), allow()),
            ],
        ),
        plain(
            "a call without id and name may be any call until the model answers",
            vec![
                (response(json!({"candidates": [{"finishReason": "SAFETY", "content": {"parts": [{"functionCall": {}}]}}]})), suppress()),
                (call("made-up", "ls", json!({})), blocked()),
                (clean_response(), allow()),
                (call("made-up-2", "ls", json!({})), allow()),
            ],
        ),
        plain(
            "an API error is no answer",
            vec![
                (gemini(), suppress()),
                (event(json!({"type": "model_response", "error": {"code": 503}}), json!({})), json!({"action": "allow"})),
                (call("made-up", "write_file", json!({})), blocked()),
            ],
        ),
        plain(
            "a call is suppressed by a turn that has no id yet",
            vec![
                (cut_off(&[("c1", "bash")]), suppress()),
                (in_turn(call("c1", "bash", json!({})), "u1"), blocked()),
                (in_turn(call("c1", "bash", json!({})), "u2"), allow()),
            ],
        ),
        plain("1,500 calls cut off at once are all blocked", {
            let calls: Vec<_> = (0..1_500).map(|n| (format!("c{n}"), "bash")).collect();
            let calls: Vec<_> = calls.iter().map(|(id, tool)| (id.as_str(), *tool)).collect();
            let asked = calls.iter().step_by(100).map(|(id, tool)| (call(id, tool, json!({})), blocked()));
            [(cut_off(&calls), suppress())].into_iter().chain(asked).collect()
        }),
    ]);
}

/// The digest of arguments in canonical form.
fn args_hash(canonical: &str) -> String {
    tollgate::digest::Digest::of(canonical.as_bytes()).to_string()
}

/// Field order, absent fields and spelling are the contract's, to the byte.
#[test]
fn verdicts_to_the_byte() {
    let hash = args_hash(r#"{"x":1}"#);
    let bytes = |policy: Policy, events: &[Value]| {
        let version = policy.version().to_owned();
        let mut gate = Gate::new(policy);
        let last = events.iter().enumerate().map(|(n, value)| gate.bytes(&as_event(value.clone(), &format!("e{n}")))).last().unwrap();
        String::from_utf8(last).unwrap().replace(&version, "VERSION")
    };
    let two: Vec<_> = two_failures().into_iter().map(|(event, _)| event).collect();
    let three: Vec<_> = two.iter().cloned().chain([third_failure_is_blocked().0]).collect();
    let stopped =
        "the same tool call failed 2 times with identical arguments. Stop retrying it unchanged; change strategy or explain the blocker.";
    let cases = vec![
        (
            "an allowed call",
            bytes(default_policy(), &[in_turn(call("c1", "bash", json!({"x": 1})), "u1")]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e0","type":"tool_call","thread_id":"t","turn_id":"u1","tool_call_id":"c1","tool_name":"bash","action":"allow","allows_execution":true,"should_halt":false,"code":"allow","message":"","decided_by":"none","reasons":[],"count":0,"signature":{{"tool_name":"bash","args_hash":"{hash}"}},"policy_version":"VERSION"}}"#,
                verdict_id("t", "e0")
            ),
        ),
        (
            "a warned result",
            bytes(default_policy(), &two),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e3","type":"tool_result","thread_id":"t","tool_call_id":"f2","tool_name":"bash","action":"warn","allows_execution":true,"should_halt":false,"code":"repeated_exact_failure_warning","message":"{warning}","decided_by":"loop","reasons":[{{"source":"loop","code":"repeated_exact_failure_warning","message":"{warning}","policy_id":null}}],"count":2,"signature":{{"tool_name":"bash","args_hash":"{hash}"}},"guidance":"\n\n[Tool guardrail: repeated_exact_failure_warning; count=2; {warning}]","policy_version":"VERSION"}}"#,
                verdict_id("t", "e3"),
                warning = "Tool guardrail: bash has failed 2 times with identical arguments. Do not retry it unchanged; inspect the error and change strategy."
            ),
        ),
        (
            "a blocked call",
            bytes(default_policy(), &three),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e4","type":"tool_call","thread_id":"t","tool_call_id":"f3","tool_name":"bash","action":"block","allows_execution":false,"should_halt":true,"code":"repeated_exact_failure_block","message":"Blocked bash: {stopped}","decided_by":"loop","reasons":[{{"source":"loop","code":"repeated_exact_failure_block","message":"Blocked bash: {stopped}","policy_id":null}}],"count":2,"signature":{{"tool_name":"bash","args_hash":"{hash}"}},"synthetic_result":"{{\"error\": \"Blocked bash: {stopped}\", \"guardrail\": {{\"action\": \"block\", \"code\": \"repeated_exact_failure_block\", \"message\": \"Blocked bash: {stopped}\", \"tool_name\": \"bash\", \"count\": 2, \"signature\": {{\"tool_name\": \"bash\", \"args_hash\": \"{hash}\"}}}}}}","policy_version":"VERSION"}}"#,
                verdict_id("t", "e4")
            ),
        ),
        (
            "a denied call",
            bytes(closed(), &[call("deny-1", "bash", json!({"x": 1}))]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e0","type":"tool_call","thread_id":"t","tool_call_id":"deny-1","tool_name":"bash","action":"block","allows_execution":false,"should_halt":false,"code":"acme.budget_spent","message":"the budget of today is spent","decided_by":"guardrail","reasons":[{{"source":"guardrail","code":"acme.budget_spent","message":"the budget of today is spent","policy_id":"pol-7"}}],"synthetic_result":"Guardrail denied: tool 'bash' was blocked (acme.budget_spent). Reason: the budget of today is spent. Choose an alternative approach.","policy_version":"VERSION"}}"#,
                verdict_id("t", "e0")
            ),
        ),
        (
            "a suppressed response",
            bytes(default_policy(), &[cut_off(&[("c1", "bash")])]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e0","type":"model_response","thread_id":"t","action":"suppress","allows_execution":false,"should_halt":false,"code":"safety_terminated","message":"{summary}.","decided_by":"safety","reasons":[{{"source":"safety","code":"safety_terminated","message":"{summary}.","policy_id":null}}],"safety":{{"detector":"openai_compatible_content_filter","category":"safety","reason_field":"finish_reason","reason_value":"content_filter","suppressed_tool_call_count":1,"suppressed_tool_call_names":["bash"],"suppressed_tool_call_ids":["c1"],"user_message":"{summary}. Any tool calls produced in this turn were suppressed because their arguments may be truncated and unsafe to execute. Please rephrase the request or ask for a narrower output.","extras":{{}}}},"policy_version":"VERSION"}}"#,
                verdict_id("t", "e0"),
                summary = "The model provider stopped this response with a safety-related signal (finish_reason='content_filter', detector='openai_compatible_content_filter')"
            ),
        ),
        (
            "an allowed response",
            bytes(default_policy(), &[clean_response()]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e0","type":"model_response","thread_id":"t","action":"allow","allows_execution":true,"should_halt":false,"code":"allow","message":"","decided_by":"none","reasons":[],"policy_version":"VERSION"}}"#,
                verdict_id("t", "e0")
            ),
        ),
        (
            "a result that was not executed",
            bytes(closed(), &[call("deny-1", "bash", json!({})), result("deny-1", "bash", true)]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e1","type":"tool_result","thread_id":"t","tool_call_id":"deny-1","tool_name":"bash","action":"allow","allows_execution":true,"should_halt":false,"code":"not_executed","message":"The call was not allowed to run, so its result changes nothing.","decided_by":"none","reasons":[],"policy_version":"VERSION"}}"#,
                verdict_id("t", "e1")
            ),
        ),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(name, actual, expected)| assert_eq!(actual, expected, "{name}"));
}

/// No argument, result or user id ever comes out.
#[test]
fn nothing_raw_leaves() {
    const MARKER: &str = "MARKER-7f3a";
    let mut gate =
        Gate::new(policy(&json!({"guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["rm"]}}}})));
    let who = json!({"user_id": MARKER, "tenant_id": MARKER, "user_role": MARKER, "run_id": MARKER, "agent_id": MARKER});
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

fn a_minute() -> Policy {
    policy(&json!({"limits": {"thread_idle_seconds_max": 60}}))
}

fn at(time: &str, event_value: Value) -> Value {
    event(event_value, json!({"timestamp": format!("{time}Z")}))
}

fn two_failures_at(time: &str) -> Vec<(Value, Value)> {
    two_failures().into_iter().map(|(event, expected)| (at(time, event), expected)).collect()
}

/// The third failure at a time: blocked, or after a pause allowed.
fn third_at(time: &str, expected: Value) -> Vec<(Value, Value)> {
    vec![(at(time, third_failure_is_blocked().0), expected)]
}

#[test]
fn a_long_pause_by_event_time_starts_anew() {
    let noon = || two_failures_at("2026-01-01T12:00:00");
    check_stories(vec![
        story("a minute is no pause", a_minute, script(vec![noon(), third_at("2026-01-01T12:01:00", exact_block(2))])),
        story("more than a minute is one", a_minute, script(vec![noon(), third_at("2026-01-01T12:01:00.001", allow())])),
        story(
            "an event from before does not turn the clock back",
            a_minute,
            script(vec![noon(), third_at("2026-01-01T11:00:00", exact_block(2)), third_at("2026-01-01T12:00:59", exact_block(2))]),
        ),
        story("an event without a time knows no pause", a_minute, script(vec![noon(), vec![third_failure_is_blocked()]])),
        story(
            "time may lie at either end of the calendar",
            a_minute,
            script(vec![noon(), third_at("0000-01-01T00:00:00", exact_block(2)), third_at("9999-12-31T23:59:59", allow())]),
        ),
        plain("by default a day is no pause", script(vec![noon(), third_at("2026-01-02T12:00:00", exact_block(2))])),
        plain("by default more than a day is one", script(vec![noon(), third_at("2026-01-02T12:00:01", allow())])),
    ]);
}

/// A verdict depends on its own thread's events: what time it is for others changes nothing.
#[test]
fn the_clocks_of_others_change_nothing() {
    let noon = || two_failures_at("2026-01-01T12:00:00");
    let other = |n: usize, event_value: Value| {
        (event(call(&format!("o{n}"), "ls", json!({})), event(event_value, json!({"thread_id": "t2"}))), allow())
    };
    let elsewhere = |time: &str| vec![other(0, at(time, json!({})))];
    check_stories(vec![
        plain(
            "a thread without times beside one that has them",
            script(vec![two_failures(), elsewhere("2026-01-01T12:00:00"), vec![third_failure_is_blocked()]]),
        ),
        plain(
            "one timestamp from the future",
            script(vec![noon(), elsewhere("2226-01-01T00:00:00"), third_at("2026-01-01T12:00:30", exact_block(2))]),
        ),
        plain(
            "one timestamp from the future, beside a thread that holds no stop yet",
            script(vec![
                noon()[..2].to_vec(),
                elsewhere("2226-01-01T00:00:00"),
                noon()[2..].to_vec(),
                third_at("2026-01-01T12:00:30", exact_block(2)),
            ]),
        ),
        story(
            "one timestamp from the future, where a pause is short",
            a_minute,
            script(vec![noon(), elsewhere("2226-01-01T00:00:00"), third_at("2026-01-01T12:00:30", exact_block(2))]),
        ),
        plain(
            "a host whose clock is a century ahead",
            script(vec![
                noon(),
                (0..2_000).map(|n| other(n, at("2126-01-01T00:00:00", json!({})))).collect(),
                third_at("2026-01-01T12:00:30", exact_block(2)),
            ]),
        ),
    ]);
}
