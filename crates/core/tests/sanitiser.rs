//! Checks how a response is rewritten whose calls must not run. The cases of `tests/sanitiser_cases.jsonl` serve ports to other languages too.

use serde_json::{Value, json};
use tollgate_core::decide::safety::{ResponseContent, sanitise_message, sanitise_response};
use tollgate_fixtures::cases::jsonl;
use tollgate_fixtures::gate::{Gate, default_policy, policy};

use crate::signals_corpus::{cases, with_body};

/// Returns the body of a case, rewritten by the `safety` of a verdict.
fn sanitised(field: &str, body: &Value, safety: &Value) -> Value {
    let mut body = body.clone();
    match field {
        "message" => sanitise_message(&mut body, safety),
        _ => sanitise_response(&mut body, safety),
    }
    body
}

#[test]
fn every_case_is_rewritten_as_it_says() {
    for case in jsonl("../../tests/sanitiser_cases.jsonl") {
        let got = sanitised(case["as"].as_str().unwrap(), &case["in"], &case["safety"]);
        assert_eq!(got, case["out"], "{}", case["name"]);
    }
}

#[test]
fn deerflow_rewrites_the_same() {
    let mut seen = 0;
    for case in jsonl("tests/golden/deerflow/cases.jsonl") {
        if case["in"]["op"] != "safety" || case["out"]["intervened"] != true {
            continue;
        }
        seen += 1;
        let message = &case["in"]["message"];
        let names = ["openai_compatible_content_filter", "anthropic_refusal", "gemini_safety"];
        let mut block = case["in"].get("config").cloned().unwrap_or(json!({}));
        if block["detectors"].is_null() {
            block["detectors"] = json!(names.map(|name| json!({"use": name})));
        }
        let event = json!({"type": "model_response", "thread_id": "t", "event_id": "e", "message": message});
        let verdict = Gate::new(policy(&json!({"safety_finish_reason": block}))).event(&event);
        let mut expected = case["out"]["message"].clone();
        // DeerFlow fills in the fields of its class that the message left out.
        expected.as_object_mut().unwrap().retain(|name, _| message.get(name).is_some());
        assert_eq!(sanitised("message", message, &verdict["safety"]), expected, "{case}");
    }
    assert!(seen > 100, "only {seen} cases");
}

#[test]
fn no_call_is_left_anywhere() {
    let mut seen = 0;
    for case in cases() {
        let found =
            with_body(&case, |body| default_policy().safety().inspect(body).termination.map(|stop| serde_json::to_value(stop).unwrap()));
        let Some(safety) = found.filter(|safety| safety["category"] != "tool_flagged") else { continue };
        let field = case["as"].as_str().unwrap();
        let mut after = case.clone();
        after["body"] = sanitised(field, &case["body"], &safety);
        let left = with_body(&after, |body| ResponseContent::of(body).calls.len());
        assert_eq!(left, 0, "{}: {}", case["id"], after["body"]);
        let has_text = after["body"].to_string().contains("safety-related signal");
        assert!(!has_text || safety["user_message"].is_string(), "{}: a text that the verdict has not", case["id"]);
        seen += usize::from(!case["tools"].as_array().unwrap().is_empty());
    }
    assert!(seen > 100, "only {seen} cases with calls");
}
