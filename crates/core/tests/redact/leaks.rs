//! Nothing of what is planted in a record is left after redaction.

use serde_json::{Value, json};
use tollgate_core::event::record::Header;
use tollgate_fixtures::gate::default_policy;
use tollgate_fixtures::pair::Pair;

/// A secret of letters and digits, planted as it is and in parts of other texts.
const SECRET: &str = "hunter2Xq9LmPz4W";
const NUMBER: &str = "4716293847561029";

/// The length of the pieces of a secret that may not be left. That one of 8 characters of an alphabet of 91 comes about by chance has a
/// probability of 2 in 10^16.
const PIECE: usize = 8;

fn assert_gone(bytes: &[u8], what: &str) {
    for secret in [SECRET, NUMBER] {
        for piece in secret.as_bytes().windows(PIECE) {
            let found = bytes.windows(PIECE).any(|window| window == piece);
            assert!(!found, "{what}: {} is left in {}", String::from_utf8_lossy(piece), String::from_utf8_lossy(bytes));
        }
    }
}

fn planted() -> Value {
    let number: Value = serde_json::from_str(NUMBER).unwrap();
    let mut planted = json!({"text": SECRET, "list": [SECRET, {"deep": format!("a {SECRET} b")}], "error": SECRET, "id": SECRET, "name": SECRET, "type": SECRET, "number": number, "content": SECRET, "finish_reason": SECRET, "role": SECRET});
    planted[SECRET] = json!(SECRET);
    planted
}

/// Every field of an event with the secret in it, where it is no id that verdicts repeat.
fn events() -> Vec<Value> {
    let base = |kind: &str| json!({"type": kind, "thread_id": "t", "event_id": "e", "tool_call_id": "c", "tool_name": "bash", "user_id": SECRET, "user_role": SECRET, "unknown": planted(), SECRET: SECRET});
    let with = |kind: &str, field: &str, value: Value| {
        let mut event = base(kind);
        event[field] = value;
        event
    };
    let quoted = planted().to_string();
    let mut events = Vec::new();
    for value in [
        planted(),
        json!(SECRET),
        json!(quoted),
        json!([planted()]),
        json!(format!("Error: {SECRET}")),
        json!(format!("{{\"cut\": \"{SECRET}")),
    ] {
        events.push(with("tool_call", "tool_input", value.clone()));
        events.push(with("tool_call", "arguments", value.clone()));
        events.push(with("tool_result", "result", value.clone()));
        for field in ["response", "message", "error", "provider", "failed", "is_subagent", "timestamp", "type"] {
            events.push(with("model_response", field, value.clone()));
        }
    }
    let block = |kind: &str| json!({"type": kind, "text": SECRET, "input": planted(), "cache_control": SECRET});
    let call = json!({"id": "c1", "type": SECRET, "function": {"name": "bash", "arguments": quoted}});
    let ratings = json!([{"category": SECRET, SECRET: SECRET, "severity": "high"}]);
    let message = json!({"role": SECRET, "content": [SECRET, block("text"), block("thinking"), block("server_tool_use")], "tool_calls": [call], "refusal": SECRET});
    events.push(with("model_response", "response", json!({"choices": [{"finish_reason": "content_filter", "message": message, "content_filter_results": ratings}], "model": SECRET, "usage": planted()})));
    events.push(with("model_response", "response", json!({"candidates": [{"finishReason": "SAFETY", "content": {"parts": [{"text": SECRET}, {"functionCall": {"name": "f", "args": planted()}}]}, "safetyRatings": ratings}]})));
    let langchain = json!({"content": SECRET, "response_metadata": {"finish_reason": SECRET, "more": planted()}, "tool_calls": [{"id": "x", "name": "f", "args": planted()}], "usage_metadata": planted()});
    events.push(with("model_response", "message", json!({"type": "ai", "data": langchain.clone(), "lc": SECRET})));
    events.push(with("model_response", "message", langchain));
    events
}

#[test]
fn nothing_planted_is_left_in_any_field() {
    let mut pair = Pair::new(default_policy);
    let events = events();
    for event in &events {
        let text = event.to_string();
        let cloud = json!({"specversion": "1.0", "id": "e", "source": SECRET, "type": "acme.tool_call.v1", "subject": "t", SECRET: SECRET, "dataschema": SECRET, "data": event}).to_string();
        let cut = text.get(..text.len() - 3).unwrap();
        let mut broken = text.clone().into_bytes();
        broken[text.len() / 2] = 0xff;
        for value in [text.as_bytes(), cloud.as_bytes(), cut.as_bytes(), &broken] {
            // The secret stands as a header too, and its digits as bytes.
            let names = ["x-secret", SECRET, "ce_source", "ce_custom", "tracestate", "content-encoding"];
            let headers: Vec<_> = names.iter().map(|name| Header { name, value: Some(SECRET.as_bytes()) }).collect();
            let redacted = pair.record(Some(b"t"), Some(value), &headers).unwrap();
            assert_gone(redacted.value.as_deref().unwrap(), &text);
            for (name, value) in &redacted.headers {
                assert_gone(name.as_bytes(), "a header's name");
                assert_gone(value.as_deref().unwrap_or_default(), name);
            }
        }
    }
    assert!(events.len() > 60 && pair.rejected > 60 && pair.verdicts > 200, "{} {} {}", events.len(), pair.rejected, pair.verdicts);
}

#[test]
fn the_detector_of_leaks_finds_what_is_left() {
    let left = |text: &str| std::panic::catch_unwind(|| assert_gone(text.as_bytes(), "a test")).is_err();
    assert!(left("xx hunter2X xx") && left("47162938") && !left("hunter2"));
}
