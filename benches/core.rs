//! What a decision costs, without Kafka: nanoseconds per event, and the ratio to `serde_json` reading the same bytes into a `Value`.
//!
//! The two are timed in turn, so that a machine that gets slower gets slower for both: quote the ratio. `cargo bench --bench core`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tollgate::controls::Controls;
use tollgate::decode::{Offset, Partition, Record};
use tollgate::lane::{Lane, VerdictBuffer};
use tollgate::policy::Policy;
use tollgate::settings::Settings;

const ROUNDS: usize = 25;
const EVENTS: usize = 20_000;
const THREADS: usize = 1_000;

fn main() {
    let defaults = tollgate::config::embedded_defaults().expect("the defaults parse");
    let settings = Settings::read(&json!({}), &defaults).expect("the defaults are valid");
    let policy = Policy::new(&settings.policy);
    println!("{:<16} {:>8} {:>12} {:>12} {:>18}", "events", "bytes", "gate ns", "parse ns", "gate/parse (med)");
    for (name, events) in [("tool_call", calls()), ("call + result", calls_and_results()), ("model_response", responses())] {
        measure(name, &policy, &events);
    }
    // Somebody else is suspended, so that every call's user has to be looked for: by a hash that is remembered, and by one that is not.
    let policy = Policy::under(&settings.policy, Arc::new(suspended()));
    for (name, events) in [("… user known", calls()), ("… user new", calls_of_new_users())] {
        measure(name, &policy, &events);
    }
}

fn suspended() -> Controls {
    let controls = Controls::new(Some("a key"));
    let hash = "ab".repeat(32);
    let value = json!({"type": "subject", "kind": "user", "hash": hash, "state": "suspended"}).to_string();
    controls.apply(Some(format!("subject/user/{hash}").as_bytes()), Some(value.as_bytes())).expect("a control");
    controls
}

fn measure(name: &str, policy: &Policy, events: &[String]) {
    let bytes = events.iter().map(String::len).sum::<usize>() / events.len();
    let (mut gate, mut parse, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let decided = time_per_event(events.len(), || decide(policy, events));
        let parsed = time_per_event(events.len(), || events.iter().for_each(|event| drop(black_box(serde_json::from_str::<Value>(event)))));
        gate.push(decided);
        parse.push(parsed);
        ratios.push(decided / parsed);
    }
    println!("{name:<16} {bytes:>8} {:>12.0} {:>12.0} {:>18.2}", median(gate), median(parse), median(ratios));
}

fn decide(policy: &Policy, events: &[String]) {
    let (mut lane, mut out) = (Lane::new(Partition(0), policy), VerdictBuffer::default());
    for (offset, event) in events.iter().enumerate() {
        let (key, value) = (None, Some(event.as_bytes()));
        let offset = Offset(offset as i64);
        let record = Record { topic: "agent.events", partition: Partition(0), offset, timestamp_ms: None, key, value, headers: &[] };
        black_box(lane.apply(policy, &record, &mut out));
    }
}

fn time_per_event(events: usize, run: impl FnOnce()) -> f64 {
    let started = Instant::now();
    run();
    started.elapsed().as_nanos() as f64 / events as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// An event of about 600 bytes with about 200 bytes of arguments.
fn event(number: usize, kind: &str) -> Value {
    let thread = number % THREADS;
    json!({
        "type": kind, "thread_id": format!("thread-{thread:06}"), "event_id": format!("turn-{number:08}/call_{number:010}/{kind}"),
        "turn_id": format!("turn-{:04}", number / (THREADS * 8)), "agent_id": "coder-7", "user_id": "user-4711", "tenant_id": "acme",
        "run_id": "run-20260101-000017", "timestamp": "2026-01-01T00:00:00.000Z", "tool_call_id": format!("call_{number:024}"), "tool_name": "read_file",
        "tool_input": {"path": format!("src/module_{}/component_{}.py", number % 7, number % 11), "start_line": number % 500, "end_line": number % 500 + 40,
            "encoding": "utf-8", "reason": "look at how the total of the cart is computed before the discount is applied to it"},
    })
}

fn calls() -> Vec<String> {
    (0..EVENTS).map(|number| event(number, "tool_call").to_string()).collect()
}

fn calls_of_new_users() -> Vec<String> {
    (0..EVENTS).map(|number| event(number, "tool_call").to_string().replace("user-4711", &format!("user-{number}"))).collect()
}

fn calls_and_results() -> Vec<String> {
    let pair = |number| {
        let mut result = event(number, "tool_result");
        result["result"] = json!(format!("def total(items):\n    return sum(item.price for item in items)  # {}\n", number % 3));
        [event(number, "tool_call").to_string(), result.to_string()]
    };
    (0..EVENTS / 2).flat_map(pair).collect()
}

fn responses() -> Vec<String> {
    let response = |number: usize| {
        let call = json!({"id": format!("call_{number}"), "type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"src/cart.py\"}"}});
        let message = json!({"role": "assistant", "content": "I will read the file and then change it. ".repeat(10), "tool_calls": [call]});
        json!({"type": "model_response", "thread_id": format!("thread-{}", number % THREADS), "event_id": format!("m{number}"),
            "response": {"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}})
        .to_string()
    };
    (0..EVENTS).map(response).collect()
}
