//! Tests responses that were cut off, and the calls that they made.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::deciding::Outcome;
use tollgate_core::event::record::Header;
use tollgate_fixtures::cases::jsonl;
use tollgate_fixtures::checks::{assert_has, check_each};
use tollgate_fixtures::events::Feed;
use tollgate_fixtures::gate::{Gate, default_policy, policy};

use super::stories::*;

#[test]
fn responses() {
    let cases = jsonl("tests/fixtures/responses.jsonl");
    check_each(cases, |case| case["name"].as_str().unwrap().to_owned(), check_response);
}

#[test]
fn a_response_in_doubt_is_told_to_those_who_count_even_where_it_is_allowed() {
    let unknown = json!({"shape_of": "nobody"});
    let broken = json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [
        {"id": "c", "function": {"name": "bash", "arguments": "{\"pa"}}]}}]});
    let healthy = json!({"choices": [{"finish_reason": "stop", "message": {"content": "x"}}]});
    for action in ["allow", "warn", "suppress"] {
        let config = json!({"safety_finish_reason": {"on_unrecognized": action, "on_unreliable": action}});
        let mut feed = Feed::new(&Arc::new(policy(&config)));
        let doubts = [&unknown, &broken, &healthy].map(|body| {
            let mut response = event(json!({"type": "model_response"}), json!({}));
            response["response"] = body.clone();
            let Outcome::Verdict { decided, .. } = feed.apply(&response.to_string()) else { panic!("no verdict") };
            assert_eq!(decided.action.as_str() == action, body != &healthy || action == "allow");
            decided.doubt.map(|doubt| doubt.code())
        });
        assert_eq!(doubts, [Some("unrecognized_response"), Some("tool_calls_unreliable"), None], "{action}");
    }
}

/// The model writes how deep and how large a response is. Only a record that is known to be another event frees its thread's calls.
#[test]
fn a_record_that_cannot_be_read_may_be_a_response() {
    let response = |body: &str| format!(r#"{{"type":"model_response","thread_id":"t","response":{{"a":{body}}}}}"#);
    let deep = response(&("[".repeat(1_100) + &"]".repeat(1_100)));
    let many = response(&format!("[{}0]", "0,".repeat(600_000)));
    let large = response(&format!("\"{}\"", "x".repeat(9_000_000)));
    let [cut, unknown] = [r#"{"type":"model_response","thread_id":"t""#, r#"{"type":"model_respons","thread_id":"t"}"#].map(str::to_owned);
    for (value, is_call) in [(&deep, false), (&many, false), (&large, false), (&cut, false), (&unknown, false), (&deep, true)] {
        let mut gate = Gate::new(default_policy());
        let kind = [("ce_specversion", "1.0"), ("ce_id", "e"), ("ce_type", "tool_call")];
        let headers = kind.map(|(name, value)| Header { name, value: Some(value.as_bytes()) });
        let (outcome, _) = gate.record(Some(b"t"), Some(value.as_bytes()), if is_call { &headers } else { &[] });
        assert!(matches!(outcome, Outcome::DeadLetter(_)), "{outcome:?}");
        let expected = if is_call { allow() } else { says("block", "response_not_read") };
        assert_has("a call behind it", &gate.event(&call("c1", "bash", json!({}))), &expected);
        gate.event(&clean_response());
        assert_has("a call behind an answer", &gate.event(&call("c2", "bash", json!({}))), &allow());
    }
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
fn as_many_calls_as_were_cut_off_at_once_are_blocked() {
    let calls: Vec<_> = (0..1_500).map(|n| (format!("c{n}"), "bash")).collect();
    let calls: Vec<_> = calls.iter().map(|(id, tool)| (id.as_str(), *tool)).collect();
    let blocked = || says("block", "suppressed_tool_call");
    let asked = |turn_id| calls.iter().step_by(100).map(move |(id, tool)| (in_turn(call(id, tool, json!({})), turn_id), blocked()));
    let script = [(cut_off(&calls), json!({"action": "suppress"}))].into_iter().chain(asked("u1")).chain(asked("u2"));
    check_story(default_policy(), &script.collect::<Vec<_>>());
}
