//! Tests responses that were cut off, and the calls that they made.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::deciding::Outcome;
use tollgate_fixtures::cases::jsonl;
use tollgate_fixtures::checks::{assert_has, check_each};
use tollgate_fixtures::events::Feed;
use tollgate_fixtures::gate::{Gate, policy};

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
    let healthy = |ids: &[&str]| {
        let calls: Vec<_> = ids.iter().map(|id| json!({"id": id, "function": {"name": "bash", "arguments": "{}"}})).collect();
        response(json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": calls}}]}))
    };
    let flagged = || {
        let outcome = |outcome: &str| json!({"type": "evaluated", "outcome": outcome});
        let calls = json!([{"id": "call_1", "function": {"name": "read"}}, {"id": "call_2", "function": {"name": "bash"}}]);
        let tool_uses = json!({"call_1": outcome("not_flagged"), "call_2": outcome("flagged")});
        response(json!({
            "choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": calls}}],
            "safeguard_results": [{"type": "dangerous_tool_use", "status": {"type": "available", "tool_uses": tool_uses}}],
        }))
    };
    check_stories(vec![
        plain(
            "in this turn and in every other, whatever its name",
            vec![
                (cut_off(&[("c1", "bash"), ("c2", "ls")]), suppress()),
                (call("c1", "bash", json!({})), blocked()),
                (call("c2", "ls", json!({})), blocked()),
                (clean_response(), allow()),
                (call("c3", "bash", json!({})), allow()),
                (call("c1", "bash", json!({})), blocked()),
                (turn("turn_start", json!({})), Value::Null),
                (call("c1", "bash", json!({})), blocked()),
                (in_turn(call("c2", "ls", json!({})), "u1"), blocked()),
                (in_turn(call("c4", "ls", json!({})), "u1"), allow()),
                (clean_response(), allow()),
                (turn("turn_end", json!({"turn_id": "u1"})), Value::Null),
                (in_turn(call("c1", "bash", json!({})), "u2"), blocked()),
                (in_turn(result("c1", "bash", true), "u2"), says("allow", "not_executed")),
                (in_turn(call("c2", "ls", json!({})), "u1"), blocked()),
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
                (call("", "write_file", json!({})), blocked()),
                (call("", "read_file", json!({})), allow()),
                (call("made-up-1", "write_file", json!({})), blocked()),
                (call("made-up-2", "read_file", json!({})), blocked()),
                (clean_response(), allow()),
                (call("made-up-3", "write_file", json!({})), allow()),
                (call("made-up-2", "read_file", json!({})), blocked()),
            ],
        ),
        plain(
            "under an id that the host has changed, until the model answers, and asking again does not make it known",
            vec![
                (call("c0", "bash", json!({})), allow()),
                (cut_off(&[("call_abc|fc_1", "bash")]), suppress()),
                (call("call_abc", "bash", json!({})), blocked()),
                (event(call("call_abc", "bash", json!({})), json!({"event_id": "again"})), blocked()),
                (call("another", "read_file", json!({})), blocked()),
                (event(call("c0", "bash", json!({})), json!({"event_id": "asked-again"})), allow()),
                (clean_response(), allow()),
                (call("call_abc", "bash", json!({})), blocked()),
                (call("c5", "bash", json!({})), allow()),
            ],
        ),
        plain(
            "an id that the provider begins again is the new call's once a healthy response names it",
            vec![
                (cut_off(&[("call_0", "bash"), ("call_1", "bash")]), suppress()),
                (healthy(&["call_0"]), allow()),
                (call("call_0", "bash", json!({})), allow()),
                (call("call_1", "bash", json!({})), blocked()),
            ],
        ),
        plain(
            "of a response that cannot be read, until one can be read",
            vec![
                (call("c0", "bash", json!({})), allow()),
                (response(json!("{\"choices\": []}")), says("block", "invalid_event")),
                (call("c1", "bash", json!({})), says("block", "response_not_read")),
                (event(call("c0", "bash", json!({})), json!({"event_id": "asked-again"})), allow()),
                (clean_response(), allow()),
                (call("c2", "bash", json!({})), allow()),
            ],
        ),
        plain(
            "a call that the provider flagged, and no other call of the response",
            vec![(flagged(), suppress()), (call("call_2", "bash", json!({})), blocked()), (call("call_1", "read", json!({})), allow())],
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
                (call("c1", "bash", json!({})), blocked()),
            ],
        ),
        plain(
            "after any number of turns",
            [(cut_off(&[("c1", "bash")]), suppress())]
                .into_iter()
                .chain((0..50).map(|n| (turn("turn_start", json!({"turn_id": format!("u{n}")})), Value::Null)))
                .chain([(in_turn(call("c1", "bash", json!({})), "u7"), blocked()), (call("c2", "bash", json!({})), allow())])
                .collect(),
        ),
        plain(
            "a call that has no id is known by its tool in a later turn too, until the model answers",
            vec![
                (gemini(), suppress()),
                (in_turn(call("made-up-1", "write_file", json!({})), "u1"), blocked()),
                (turn("turn_start", json!({"turn_id": "u2"})), Value::Null),
                (call("made-up-2", "write_file", json!({})), blocked()),
                (clean_response(), allow()),
                (call("made-up-3", "write_file", json!({})), allow()),
            ],
        ),
        plain(
            "a reset forgets it",
            vec![
                (cut_off(&[("c1", "bash")]), suppress()),
                (turn("thread_reset", json!({})), Value::Null),
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
                (in_turn(call("c1", "bash", json!({})), "u2"), blocked()),
            ],
        ),
        plain("1,500 calls cut off at once are all blocked", {
            let calls: Vec<_> = (0..1_500).map(|n| (format!("c{n}"), "bash")).collect();
            let calls: Vec<_> = calls.iter().map(|(id, tool)| (id.as_str(), *tool)).collect();
            let asked = |turn_id| calls.iter().step_by(100).map(move |(id, tool)| (in_turn(call(id, tool, json!({})), turn_id), blocked()));
            [(cut_off(&calls), suppress())].into_iter().chain(asked("u1")).chain(asked("u2")).collect()
        }),
    ]);
}
