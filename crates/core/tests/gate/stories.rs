//! Stories: events of one thread with what their verdicts must hold, and functions that write such events.

use serde_json::{Value, json};
use tollgate_core::decide::guardrail::{GuardrailChain, GuardrailDecision, GuardrailProvider, GuardrailRequest, Link, ProviderError, Step};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::GuardrailReason;
use tollgate_fixtures::checks::{assert_has, check_each};
use tollgate_fixtures::gate::{Gate, default_policy};

/// A story: its name, the policy, and events with what their verdicts must hold (null for none).
pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) policy: fn() -> Policy,
    pub(crate) script: Vec<(Value, Value)>,
}

pub(crate) fn story(name: &'static str, policy: fn() -> Policy, script: Vec<(Value, Value)>) -> Story {
    Story { name, policy, script }
}

/// Returns a story under the default policy.
pub(crate) fn plain(name: &'static str, script: Vec<(Value, Value)>) -> Story {
    story(name, default_policy, script)
}

pub(crate) fn check_stories(stories: Vec<Story>) {
    check_each(stories, |story| story.name.to_owned(), check_story);
}

pub(crate) fn check_story(story: &Story) {
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

/// Returns an event of thread `t`: `with` replaces or adds fields, null takes one away.
pub(crate) fn event(fields: Value, with: Value) -> Value {
    let mut event = json!({"thread_id": "t"});
    for (name, value) in [fields, with].iter().flat_map(|part| part.as_object().unwrap()) {
        event[name] = value.clone();
    }
    event
}

pub(crate) fn call(id: &str, tool: &str, input: Value) -> Value {
    event(json!({"type": "tool_call", "tool_call_id": id, "tool_name": tool, "tool_input": input}), json!({}))
}

/// Returns a result whose call was seen.
pub(crate) fn result(id: &str, tool: &str, failed: bool) -> Value {
    let result = if failed { "Error: no" } else { "ok" };
    event(json!({"type": "tool_result", "tool_call_id": id, "tool_name": tool, "result": result, "failed": failed}), json!({}))
}

pub(crate) fn response(body: Value) -> Value {
    event(json!({"type": "model_response", "response": body}), json!({}))
}

pub(crate) fn turn(kind: &str, with: Value) -> Value {
    event(json!({"type": kind}), with)
}

pub(crate) fn as_event(event_value: Value, event_id: &str) -> Value {
    event(event_value, json!({"event_id": event_id}))
}

pub(crate) fn in_turn(event_value: Value, turn_id: &str) -> Value {
    event(event_value, json!({"turn_id": turn_id}))
}

pub(crate) fn says(action: &str, code: &str) -> Value {
    json!({"action": action, "code": code, "allows_execution": action == "allow" || action == "warn"})
}

pub(crate) fn allow() -> Value {
    json!({"action": "allow", "code": "allow", "message": "", "decided_by": "none", "reasons": [], "allows_execution": true, "should_halt": false})
}

pub(crate) fn counted(action: &str, code: &str, count: u32) -> Value {
    let mut verdict = says(action, code);
    verdict["count"] = Value::from(count);
    verdict
}

pub(crate) fn exact_block(count: u32) -> Value {
    counted("block", "repeated_exact_failure_block", count)
}

/// Returns a call that fails twice and is blocked the third time.
pub(crate) fn two_failures() -> Vec<(Value, Value)> {
    vec![
        (call("f1", "bash", json!({"x": 1})), allow()),
        (result("f1", "bash", true), counted("allow", "allow", 1)),
        (call("f2", "bash", json!({"x": 1})), allow()),
        (result("f2", "bash", true), counted("warn", "repeated_exact_failure_warning", 2)),
    ]
}

pub(crate) fn third_failure_is_blocked() -> (Value, Value) {
    (call("f3", "bash", json!({"x": 1})), exact_block(2))
}

pub(crate) fn third_failure_is_allowed() -> (Value, Value) {
    (call("f3", "bash", json!({"x": 1})), allow())
}

pub(crate) fn script(parts: Vec<Vec<(Value, Value)>>) -> Vec<(Value, Value)> {
    parts.concat()
}

/// Returns a response that was cut off while it called these tools.
pub(crate) fn cut_off(calls: &[(&str, &str)]) -> Value {
    let calls: Vec<_> =
        calls.iter().map(|(id, tool)| json!({"id": id, "type": "function", "function": {"name": tool, "arguments": "{\"pa"}})).collect();
    response(json!({"choices": [{"finish_reason": "content_filter", "message": {"content": null, "tool_calls": calls}}]}))
}

pub(crate) fn clean_response() -> Value {
    response(json!({"choices": [{"finish_reason": "stop", "message": {"content": "done"}}]}))
}

/// A provider for tests: what it says depends on how the call's id begins.
#[derive(Debug)]
pub(crate) struct Script;

impl GuardrailProvider for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        let reason = |code: &str, message: &str, policy_id: Option<&str>| GuardrailReason {
            policy_id: policy_id.map(|id| id.to_owned().into()),
            ..GuardrailReason::new(code.to_owned(), message.to_owned())
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

pub(crate) fn guarded(fail_closed: bool) -> Policy {
    default_policy().with_guardrails(GuardrailChain::new(vec![Link { provider: Box::new(Script), tools: None }], fail_closed, None))
}

pub(crate) fn closed() -> Policy {
    guarded(true)
}

pub(crate) fn open() -> Policy {
    guarded(false)
}

/// Returns the digest of arguments in canonical form.
pub(crate) fn args_hash(canonical: &str) -> String {
    tollgate_json::digest::Digest::of(canonical.as_bytes()).to_string()
}
