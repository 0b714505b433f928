//! Tests the HTTP server on the embedded broker: beside a worker in `tollgate dev`, and alone as `tollgate serve`.

mod bad_input;
#[cfg(feature = "tls")]
#[path = "../kafka/security/certificates.rs"]
mod certificates;
pub(crate) mod client;
mod document;
mod servers;
#[cfg(feature = "tls")]
mod tls;

use serde_json::{Value, json};

use crate::brokers::dev::{Dev, after};

pub fn call(thread: &str, id: &str, tool: &str) -> String {
    json!({"type": "tool_call", "thread_id": thread, "tool_call_id": id, "tool_name": tool, "tool_input": {"path": "."}}).to_string()
}

fn with(event: &str, field: &str, value: &str) -> String {
    let mut event: Value = serde_json::from_str(event).unwrap();
    event[field] = json!(value);
    event.to_string()
}

#[test]
fn an_event_is_answered_with_its_verdict() {
    let dev = Dev::start();
    let client = &dev.client;
    let denied = client.events(&call("t1", "c1", "bash"));
    assert_eq!(denied.status, 200, "{denied:?}");
    let verdict = denied.json();
    assert_eq!((&verdict["action"], &verdict["code"]), (&json!("block"), &json!("oap.tool_not_allowed")));
    assert!(denied.head.contains("server-timing: wait;dur=") && denied.head.contains("x-request-id: "), "{denied:?}");
    assert_eq!(client.events(&call("t1", "c2", "ls")).json()["action"], "allow");

    // A response that was cut off, and the call that came with it, in a request.
    let cut_off = json!({
        "type": "model_response", "thread_id": "t2", "provider": "openai",
        "response": {"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}}]},
    });
    let answers = client.events(&format!("[{cut_off},{}]", call("t2", "c1", "ls"))).json();
    let actions: Vec<_> = answers.as_array().unwrap().iter().map(|verdict| verdict["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["suppress", "block"]);

    let turn = client.events(r#"{"type": "turn_start", "thread_id": "t3"}"#);
    assert_eq!((turn.status, &turn.json()["accepted"]), (202, &json!(true)));
    let both = client.events(&format!(r#"[{{"type": "turn_end", "thread_id": "t3"}},{}]"#, call("t3", "c", "ls")));
    assert_eq!((both.status, &both.json()[1]["action"]), (200, &json!("allow")), "{both:?}");
}

#[test]
fn a_repeated_request_gets_the_same_bytes() {
    let dev = Dev::start();
    let client = &dev.client;
    let event = with(&call("t", "c", "ls"), "event_id", "e1");
    let first = client.events(&event);
    let verdict = first.json();
    assert_eq!(verdict["event_id"], "e1");
    assert_eq!(client.events(&event).body, first.body);
    let id = verdict["verdict_id"].as_str().unwrap();
    assert_eq!(client.get(&format!("/v1/verdicts/{id}?wait=1000")).body, first.body);
    let other = client.events(&with(&call("t", "c", "rm"), "event_id", "e1"));
    assert_eq!((other.status, &other.json()["code"]), (409, &json!("event_id_taken")));
    let unknown = client.get("/v1/verdicts/00000000000000000000000000000000");
    assert_eq!((unknown.status, &unknown.json()["allows_execution"]), (404, &json!(false)));

    // The header names the event where the event has no id.
    let keyed = |tool| client.post("/v1/events", &["idempotency-key: \"k1\""], &call("t", "d", tool));
    let (first, second) = (keyed("ls"), keyed("ls"));
    assert_eq!((&first.json()["event_id"], first.body == second.body), (&json!("k1"), true));
}

/// The model writes how deep a response is, and some servers of models number each response anew.
#[test]
fn no_call_of_a_refused_response_runs() {
    let dev = Dev::start();
    let client = &dev.client;
    let response = |reason: &str, content: &str| {
        let response = json!({"choices": [{"finish_reason": reason, "message": {"content": content, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}}]});
        json!({"type": "model_response", "thread_id": "t", "event_id": "r1", "response": response}).to_string()
    };
    let deep = response("content_filter", "deep").replace("\"deep\"", &format!("{}{}", "[".repeat(2_000), "]".repeat(2_000)));
    let list = format!("[{},{{}}]", response("tool_calls", ""));
    let call = call("t", "c1", "ls");
    for (step, (body, code)) in [
        (&deep, "value_too_deep"),
        (&call, "response_not_read"),
        (&response("tool_calls", ""), "allow"),
        (&call, "allow"),
        (&list, "type_missing"),
        (&call.replace("c1", "c2"), "response_not_read"),
        (&response("stop", "").replace("r1", "r2"), "allow"),
        (&response("content_filter", ""), "event_id_taken"),
        (&call, "suppressed_tool_call"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(client.events(body).json()["code"], code, "step {step}");
    }
    let behind = client.events(&format!("[{},{}]", response("content_filter", ""), call.replace("c1", "c3"))).json();
    assert_eq!((&behind[0]["code"], &behind[1]["code"]), (&json!("event_id_taken"), &json!("event_before_refused")));
}

#[test]
fn hooks_are_answered_in_the_hosts_words() {
    let dev = Dev::start();
    let client = &dev.client;
    let hook = |tool: &str, id: &str| {
        let body = json!({"hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "p", "cwd": "/", "tool_name": tool,
            "tool_input": {"path": "."}, "tool_use_id": id});
        client.post("/v1/hooks/claude-code", &[], &body.to_string())
    };
    let denied = hook("bash", "u1");
    assert_eq!((denied.status, &denied.json()["hookSpecificOutput"]["permissionDecision"]), (200, &json!("deny")), "{denied:?}");
    assert_eq!(hook("Read", "u2").body, "{}", "the host's own prompt goes on");
    let opa = client.post("/v1/data/agent/call/decision", &[], r#"{"input": {"tool": {"name": "bash"}, "args": {}}}"#);
    assert_eq!((opa.status, &opa.json()["result"]["allow"]), (200, &json!(false)), "without a thread nothing is allowed: {opa:?}");
    for (path, body) in [("/v1/hooks/claude-code", "garbage"), ("/v1/hooks/no-such-host", "{}")] {
        let refused = client.post(path, &[], body);
        assert_eq!((refused.status, &refused.json()["hookSpecificOutput"]["permissionDecision"]), (200, &json!("deny")), "{path}");
    }
    // A host reads a status as leave to go on, so a request from elsewhere is denied in its words too.
    let body = json!({"hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "p", "cwd": "/", "tool_name": "Read",
        "tool_input": {}, "tool_use_id": "u3"});
    let elsewhere = client.post("/v1/hooks/claude-code", &["host: gate.example.org"], &body.to_string());
    assert_eq!((elsewhere.status, &elsewhere.json()["hookSpecificOutput"]["permissionDecision"]), (200, &json!("deny")));
}
