//! Stories: events of one thread with what their verdicts must hold, read from a file; and functions that write such events.

use serde_json::{Value, json};
use tollgate_core::decide::guardrail::{GuardrailChain, GuardrailDecision, GuardrailProvider, GuardrailRequest, Link, ProviderError, Step};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::GuardrailReason;
use tollgate_core::settings::parse;
use tollgate_fixtures::checks::{assert_has, check_each};
use tollgate_fixtures::gate::{Gate, default_policy, policy};

/// Tells the stories of `fixtures/stories.yaml`, whose first lines say what stands there.
#[test]
fn every_story_goes_as_it_is_written() {
    let file = file();
    let groups = file["stories"].as_object().unwrap().iter();
    let stories = groups.flat_map(|(group, stories)| stories.as_array().unwrap().iter().map(move |story| (group, story)));
    let check = |(_, story): &(&String, &Value)| {
        let policy = policy_of(&story["under"]);
        let version = policy.version().to_owned();
        let last = check_story(policy, &steps_of(&file, &story["steps"]));
        if let Some(bytes) = story["bytes"].as_str() {
            assert_eq!(String::from_utf8(last).unwrap().replace(&version, "VERSION"), bytes);
        }
    };
    check_each(stories, |(group, story)| format!("{group}: {}", story["story"]), check);
}

/// Reads the file of the stories.
pub(crate) fn file() -> Value {
    parse(include_str!("../fixtures/stories.yaml")).unwrap()
}

fn policy_of(under: &Value) -> Policy {
    match under.as_str() {
        Some("closed") => closed(),
        Some("open") => guarded(false),
        Some(other) => panic!("{other} is no policy"),
        None if under.is_null() => default_policy(),
        None => policy(under),
    }
}

/// Returns the events of steps, with what their verdicts must hold, or with what there is to count of them.
pub(crate) fn steps_of(file: &Value, steps: &Value) -> Vec<(Value, Value)> {
    let step = |step: &Value| {
        let with = step.get("with").cloned().unwrap_or_else(|| json!({}));
        if let Some(script) = step["script"].as_str() {
            let steps = steps_of(file, &file["scripts"][script]);
            return steps.into_iter().map(|(event_value, says)| (event(event_value, with.clone()), says)).collect();
        }
        let says = step.get("counts").cloned().unwrap_or_else(|| says_of(file, &step["says"]));
        let text = event(event_of(step), with).to_string();
        let numbered = |n: u64| (serde_json::from_str(&text.replace("{n}", &n.to_string())).unwrap(), says.clone());
        (0..step["times"].as_u64().unwrap_or(1)).map(numbered).collect::<Vec<_>>()
    };
    steps.as_array().unwrap().iter().flat_map(step).collect()
}

fn event_of(step: &Value) -> Value {
    let is_kind = |(name, _): &(&String, &Value)| !["with", "says", "counts", "times"].contains(&name.as_str());
    let (kind, of) = step.as_object().unwrap().iter().find(is_kind).unwrap();
    let text = |at: usize| of[at].as_str().unwrap();
    match kind.as_str() {
        "call" => call(text(0), text(1), of[2].clone()),
        "failed" | "succeeded" => result(text(0), text(1), kind == "failed"),
        "cut_off" => {
            let calls = of.as_array().unwrap().iter().map(|call| (call[0].as_str().unwrap(), call[1].as_str().unwrap()));
            cut_off(&calls.collect::<Vec<_>>())
        }
        "response" => response(of.clone()),
        "finished" => clean_response(),
        "event" => event(of.clone(), json!({})),
        boundary => turn(boundary, of.clone()),
    }
}

fn says_of(file: &Value, says: &Value) -> Value {
    let Some(text) = says.as_str() else { return says.clone() };
    match text.split(' ').collect::<Vec<_>>()[..] {
        ["none"] => Value::Null,
        [name] => file["verdicts"].get(name).unwrap_or_else(|| panic!("{name} is no verdict")).clone(),
        [action, code] => self::says(action, code),
        [action, code, count] => counted(action, code, count.parse().unwrap()),
        _ => panic!("{text} is no verdict"),
    }
}

/// Feeds events, and checks that their verdicts hold this; null stands for no verdict. Returns the bytes of the last verdict.
pub(crate) fn check_story(policy: Policy, script: &[(Value, Value)]) -> Vec<u8> {
    let (mut gate, mut bytes) = (Gate::new(policy), Vec::new());
    for (index, (event, expected)) in script.iter().enumerate() {
        let mut event = event.clone();
        if event.get("event_id").is_none() {
            event["event_id"] = Value::from(format!("e{index}"));
        }
        bytes = gate.bytes(&event);
        let step = format!("step {index}, {event}");
        if expected.is_null() {
            assert!(bytes.is_empty(), "{step}: it has a verdict");
        } else {
            assert_has(&step, &serde_json::from_slice(&bytes).unwrap(), expected);
        }
    }
    bytes
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

fn guarded(fail_closed: bool) -> Policy {
    default_policy().with_guardrails(GuardrailChain::new(vec![Link { provider: Box::new(Script), tools: None }], fail_closed, None))
}

pub(crate) fn closed() -> Policy {
    guarded(true)
}

/// Returns the digest of arguments in canonical form.
pub(crate) fn args_hash(canonical: &str) -> String {
    tollgate_json::digest::Digest::of(canonical.as_bytes()).to_string()
}
