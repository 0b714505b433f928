//! Makes configurations that ask policy servers, and the servers' answers.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tollgate_core::decide::guardrail::{Answer, ProviderError, Question};
use tollgate_json::digest::Digest;

/// The names of the servers.
pub const NAMES: [&str; 2] = ["first", "second"];

/// Returns configurations with one server or two. Which thread makes room, and which one expires while it waits, depends on when answers
/// come: so there is room for every thread of a log, and more idle time than a log without pauses can let pass. Nor is a queue ever too
/// long.
pub fn config() -> impl Strategy<Value = Value> {
    let tools = || select(vec![None, Some(json!(["bash"])), Some(json!(["bash", "terminal"])), Some(json!(["read_*", "terminal"]))]);
    let limits = (select(vec![100_000, 2_678_400]), select(vec![4_096, 65_536])).prop_map(|(idle, bytes)| {
        json!({
            "threads_per_partition_max": 16,
            "thread_idle_seconds_max": idle,
            "thread_bytes_max": bytes,
            "thread_queue_max": 100_000,
        })
    });
    let servers = (tools(), proptest::option::weighted(0.7, tools()));
    (limits, servers, proptest::bool::weighted(0.3), any::<bool>()).prop_map(|(limits, (first, second), has_list, fail_closed)| {
        let list = has_list.then(|| json!({"use": "allowlist", "config": {"denied_tools": ["terminal"]}}));
        let servers = NAMES.into_iter().zip([Some(first), second]);
        let servers = servers.filter_map(|(name, tools)| Some(server(name, tools?)));
        let providers: Vec<_> = servers.chain(list).collect();
        json!({"limits": limits, "guardrails": {"enabled": true, "fail_closed": fail_closed, "providers": providers}})
    })
}

fn server(name: &str, tools: Option<Value>) -> Value {
    let mut server = json!({"use": "http", "config": {"url": "http://127.0.0.1:1/", "name": name}});
    if let Some(tools) = tools {
        server["tools"] = tools;
    }
    server
}

/// Returns what a server answers: always the same to the same question.
pub fn answer_to(question: &Question) -> Answer {
    let digest = Digest::of(&question.body).to_string();
    let digits = digest.get(2 * question.provider..).and_then(|digits| digits.get(..2)).unwrap();
    match u8::from_str_radix(digits, 16).unwrap() {
        0..100 => Ok(br#"{"allow": true}"#.to_vec()),
        100..150 => Ok(br#"{"allow": true, "reasons": [{"code": "acme.fine", "message": "go on"}], "policy_id": "p.v1"}"#.to_vec()),
        150..170 => Ok(br#"{"allow": false}"#.to_vec()),
        170..195 => Ok(br#"{"allow": false, "reasons": [{"code": "acme.no", "message": "not today"}], "policy_id": "p.v1"}"#.to_vec()),
        195..205 => Ok(b"<html>".to_vec()),
        205..215 => Ok(br#"{"reasons": []}"#.to_vec()),
        215..225 => Err(ProviderError::TimedOut),
        225..235 => Err(ProviderError::Status(503)),
        235..245 => Err(ProviderError::CircuitOpen),
        245..=255 => Err(ProviderError::Overloaded),
    }
}
