//! Every host reads every answer about a call as it is meant, by the rules of its own documentation.

use serde_json::{Value, json};
use tollgate_hosts::{Unanswered, Verdict, Wire};

use crate::support::{OUTCOMES, Reading, all, answer, read, reading, recorded};

/// Returns the recorded calls: what names the event to the host, and the body.
fn calls(wire: &dyn Wire) -> Vec<(String, String, Vec<u8>)> {
    let requests = recorded(wire).into_iter().filter_map(|request| {
        let bytes = request.bytes();
        let question = read(wire, &request.path, &bytes).ok()?;
        let is_call = question.events.iter().any(|event| event["type"] == "tool_call");
        is_call.then(|| (event_of(&request.path, &bytes), request.path, bytes))
    });
    requests.collect()
}

/// Returns the name of the event, as the host's answer repeats it; for OPA it is the path.
fn event_of(path: &str, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let named = body["hook_event_name"].as_str().or(body["hookEventName"].as_str());
    named.unwrap_or(path).to_owned()
}

#[test]
fn a_call_runs_after_leave_alone_and_never_past_the_hosts_own_prompt() {
    for wire in all() {
        let calls = calls(wire);
        assert!(calls.len() >= 2, "{}: {} calls", wire.name(), calls.len());
        for (event, path, body) in calls {
            for outcome in OUTCOMES {
                let answer = answer(read(wire, &path, &body).unwrap(), outcome);
                let wanted = if matches!(outcome, "allow" | "warn") { Reading::Runs } else { Reading::Blocked };
                assert_eq!(reading(wire.name(), &event, &answer), wanted, "{}: {outcome}: {answer}", wire.name());
            }
        }
    }
}

/// A verdict that two readers could read two ways lets nothing run.
#[test]
fn a_verdict_that_contradicts_itself_blocks() {
    let contradictions =
        [("block", true), ("halt", true), ("suppress", true), ("allow", false), ("warn", false), ("Allow", true), ("", true)];
    for wire in all() {
        for (event, path, body) in calls(wire) {
            for (action, allows) in contradictions {
                let verdict = json!({"action": action, "allows_execution": allows, "should_halt": false, "code": "x", "message": ""});
                let question = read(wire, &path, &body).unwrap();
                let verdicts: Vec<Verdict> = vec![serde_json::from_value(verdict).unwrap(); question.events.len()];
                let answer = (question.answer)(Ok(&verdicts)).body.unwrap();
                assert_eq!(reading(wire.name(), &event, &answer), Reading::Blocked, "{}: {action}, {allows}: {answer}", wire.name());
            }
        }
    }
}

/// Longer texts are cut by the host, or put where the model does not see them.
#[test]
fn texts_fit_into_what_the_host_reads() {
    let limits = [("codex", 7_500)];
    for wire in all() {
        let limit = limits.iter().find(|(host, _)| *host == wire.name()).map_or(10_000, |(_, limit)| *limit);
        for (_, path, body) in calls(wire) {
            for length in [limit - 3, limit, limit * 4] {
                let unanswered = Unanswered { code: "x", message: "ß".repeat(length / 2) };
                let answer = (read(wire, &path, &body).unwrap().answer)(Err(&unanswered)).body.unwrap();
                let longest = texts(&answer).into_iter().map(|text| text.len()).max().unwrap_or(0);
                assert!(longest <= limit, "{}: {longest} bytes", wire.name());
                assert!(path.trim_end_matches('/').ends_with("allow") || longest > limit - 100, "{}: {longest} bytes", wire.name());
            }
        }
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// The members that Codex takes in an answer, by event: any other fails the hook, and the call runs.
#[test]
fn codex_knows_every_member_of_every_answer() {
    let text = json!({"type": "string", "minLength": 1});
    let own = |event: &str, more: Value| {
        let mut properties = json!({"hookEventName": {"const": event}, "additionalContext": text});
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": "object", "additionalProperties": false, "required": ["hookEventName"], "properties": properties})
    };
    let decision = json!({"permissionDecision": {"const": "deny"}, "permissionDecisionReason": text});
    let before =
        json!({"additionalProperties": false, "properties": {"hookSpecificOutput": own("PreToolUse", decision), "systemMessage": text}});
    let after = json!({"additionalProperties": false, "dependentRequired": {"decision": ["reason"], "continue": ["stopReason"]}, "properties": {
        "continue": {"const": false}, "stopReason": text, "decision": {"const": "block"}, "reason": text, "systemMessage": text,
        "hookSpecificOutput": own("PostToolUse", json!({})),
    }});
    let turn = json!({"additionalProperties": false, "properties": {"systemMessage": text}});
    let wire = tollgate_hosts::wire("codex").unwrap();
    let mut checked = 0;
    for request in recorded(wire) {
        let bytes = request.bytes();
        for outcome in OUTCOMES {
            let Ok(question) = read(wire, "", &bytes) else { continue };
            let schema = match event_of("", &bytes).as_str() {
                "PreToolUse" => &before,
                "PostToolUse" => &after,
                _ => &turn,
            };
            let answer = answer(question, outcome);
            assert!(jsonschema::is_valid(schema, &answer), "{}: {outcome}: {answer}", request.name);
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked} answers");
}
