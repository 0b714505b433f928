//! Tests the bounds: threads of a partition, bytes of a thread, time per event. And what is never given up to stay within them.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_fixtures::checks::{self, check_each};
use tollgate_fixtures::events::rows::ROWS;
use tollgate_fixtures::gate::{self, Gate, default_policy, policy};
use tollgate_fixtures::measure::processor_time;

fn call(thread_id: &str, id: &str, tool: &str, x: usize) -> Value {
    json!({"type": "tool_call", "thread_id": thread_id, "event_id": format!("{id}-call"), "tool_call_id": id, "tool_name": tool, "tool_input": {"x": x}})
}

fn result(thread_id: &str, id: &str, tool: &str, failed: bool) -> Value {
    json!({"type": "tool_result", "thread_id": thread_id, "event_id": format!("{id}-result"), "tool_call_id": id, "tool_name": tool, "result": "done", "failed": failed})
}

/// Brings a thread to a stop: the same call fails twice and is blocked.
fn stop(gate: &mut Gate, thread_id: &str) {
    for id in ["c1", "c2"] {
        gate.event(&call(thread_id, id, "bash", 0));
        gate.event(&result(thread_id, id, "bash", true));
    }
    assert_eq!(ask_again(gate, thread_id)["action"], "block", "{thread_id}");
}

fn ask_again(gate: &mut Gate, thread_id: &str) -> Value {
    gate.event(&call(thread_id, "c3", "bash", 0))
}

fn threads_max(threads_max: usize) -> Gate {
    Gate::new(policy(&json!({"limits": {"threads_per_partition_max": threads_max}})))
}

/// Of a result the text is decoded, and of a response the arguments that stand in a text. A store and a list of calls grow now and then.
#[test]
fn an_ordinary_event_takes_hardly_any_memory_anew() {
    for (name, most) in [("tool_call", 0.1), ("tool_call, sent again", 0.1), ("tool_result", 1.1), ("model_response", 1.5)] {
        let row = ROWS.iter().map(|make| make()).find(|row| row.name == name).unwrap();
        let mut feed = row.prepare();
        let counted = mockalloc::record_allocs(|| feed.apply_all(&row.measured));
        let each = counted.num_allocs() as f64 / row.measured.len() as f64;
        assert!(each <= most, "{name}: {each} allocations an event");
    }
}

#[test]
fn a_million_threads_stay_within_the_bound() {
    let mut gate = threads_max(1_000);
    for n in 0..1_000_000_usize {
        let event =
            format!(r#"{{"type":"tool_call","thread_id":"{n}","event_id":"e","tool_call_id":"c","tool_name":"ls","tool_input":{{}}}}"#);
        gate.record(None, Some(event.as_bytes()), &[]);
        assert!(gate.threads().len() <= 1_000, "thread {n}");
    }
    let departures = gate.threads().departures();
    assert_eq!((departures.evicted, departures.refused), (999_000, 0));
    assert!(gate.threads().bytes() < 1_000 * 1_024);
}

#[test]
fn a_thread_whose_turn_has_ended_is_not_kept() {
    let mut gate = threads_max(1_000);
    gate.event(&call("t", "c1", "bash", 0));
    assert_eq!(gate.threads().len(), 1);
    gate.event(&json!({"type": "turn_end", "thread_id": "t"}));
    assert!(gate.threads().is_empty());
    gate.event(&json!({"type": "model_response", "thread_id": "t2", "response": {}}));
    assert!(gate.threads().is_empty(), "nothing is to be remembered of it");
}

#[test]
fn a_thread_that_holds_a_stop_never_makes_room() {
    let mut gate = threads_max(100);
    let stopped: Vec<String> = (0..50).map(|n| format!("stopped-{n}")).collect();
    stopped.iter().for_each(|thread_id| stop(&mut gate, thread_id));
    gate.event(&json!({
        "type": "model_response", "thread_id": "cut off",
        "response": {"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": [{"id": "c1", "function": {"name": "bash"}}]}}]},
    }));
    for n in 0..5_000 {
        let verdict = gate.event(&call(&format!("other-{n}"), "c1", "ls", 0));
        assert_eq!(verdict["action"], "allow", "other-{n}: {verdict}");
    }
    for thread_id in &stopped {
        assert_eq!(ask_again(&mut gate, thread_id)["action"], "block", "{thread_id}");
    }
    assert_eq!(gate.event(&call("cut off", "c1", "bash", 0))["code"], "suppressed_tool_call");
}

#[test]
fn where_every_thread_holds_a_stop_a_new_one_is_refused() {
    let mut gate = threads_max(10);
    (0..10).for_each(|n| stop(&mut gate, &format!("stopped-{n}")));
    for event in [
        call("new", "c1", "ls", 0),
        result("new", "c1", "ls", false),
        json!({"type": "model_response", "thread_id": "new", "response": {}}),
    ] {
        let verdict = gate.event(&event);
        let expected = json!({"action": "block", "code": "thread_store_full", "decided_by": "envelope", "allows_execution": false, "should_halt": false});
        checks::assert_has("refused", &verdict, &expected);
    }
    assert!(gate.event(&json!({"type": "turn_start", "thread_id": "new"})).is_null());
    assert_eq!(gate.threads().len(), 10);
    gate.event(&json!({"type": "turn_end", "thread_id": "stopped-3"}));
    assert_eq!(gate.event(&call("new", "c1", "ls", 0))["action"], "allow");
}

/// Agents die behind a stop and never end their turn. A thread that was not touched for long makes room in the end, but not before.
#[test]
fn a_stop_that_was_idle_for_long_makes_room_where_there_is_none() {
    let mut gate = Gate::new(policy(&json!({"limits": {"threads_per_partition_max": 10, "thread_idle_seconds_max": 60}})));
    (0..10).for_each(|n| stop(&mut gate, &format!("stopped-{n}")));
    let mut ask = |thread_id: &str, time: &str| {
        let mut event = call(thread_id, "c1", "ls", 0);
        event["timestamp"] = Value::from(format!("2026-01-01T{time}Z"));
        gate.event(&event)["code"].clone()
    };
    assert_eq!(ask("new", "12:00:00"), "thread_store_full");
    assert_eq!(ask("new", "12:01:59"), "thread_store_full");
    let admitted = (0..1_000).position(|_| ask("new", "12:30:00") == "allow").expect("room in the end");
    assert!(admitted > 100, "one timestamp frees nobody, nor do {admitted}");
    assert_eq!(gate.threads().departures().expired, 1);
}

/// A busy thread leaves stale entries behind in the queue of touches; they are no reason to refuse anybody.
#[test]
fn a_busy_thread_costs_no_other_its_place() {
    let mut gate = threads_max(100);
    for n in 0..1_000 {
        if n == 99 {
            (0..200).for_each(|n| drop(gate.event(&call("busy", &format!("c{n}"), "ls", n))));
        }
        let verdict = gate.event(&call(&format!("other-{n}"), "c1", "ls", 0));
        assert_eq!(verdict["action"], "allow", "other-{n}: {verdict}");
    }
}

/// Some threads hold a stop, most do not: a new one finds a place at the first try.
#[test]
fn stopped_threads_at_the_front_are_no_reason_to_refuse() {
    let mut gate = threads_max(200);
    (0..100).for_each(|n| stop(&mut gate, &format!("stopped-{n}")));
    for n in 0..300 {
        let verdict = gate.event(&call(&format!("other-{n}"), "c1", "ls", 0));
        assert_eq!(verdict["action"], "allow", "other-{n}: {verdict}");
    }
}

/// A turn that never ends: its name, the configuration, and the events of its nth step.
struct Endless {
    name: &'static str,
    config: Value,
    steps: usize,
    step: fn(usize) -> Vec<Value>,
}

fn endless_turns() -> Vec<Endless> {
    let small = json!({"limits": {"thread_bytes_max": 4_096}});
    let deny = json!({"guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"allowed_tools": []}}}});
    let distinct = |n: usize| vec![call("t", &format!("c{n}"), "bash", n), result("t", &format!("c{n}"), "bash", false)];
    let failing = |n: usize| {
        let tool = format!("tool-{n}");
        vec![call("t", &format!("c{n}"), &tool, n), result("t", &format!("c{n}"), &tool, true)]
    };
    let denied = |n: usize| vec![call("t", &format!("c{n}"), &format!("{n:0>512}"), n)];
    let cut_off = |n: usize| {
        let calls: Vec<_> = (0..10).map(|k| json!({"id": format!("c{n}-{k}"), "function": {"name": "bash"}})).collect();
        let body = json!({"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": calls}}]});
        vec![json!({"type": "model_response", "thread_id": "t", "event_id": format!("m{n}"), "response": body})]
    };
    vec![
        Endless { name: "100,000 distinct calls", config: json!({}), steps: 100_000, step: distinct },
        Endless { name: "distinct calls of failing tools", config: json!({}), steps: 10_000, step: failing },
        Endless { name: "distinct calls, denied with a long sentence", config: deny, steps: 10_000, step: denied },
        Endless { name: "distinct calls, cut off", config: json!({}), steps: 1_000, step: cut_off },
        Endless { name: "distinct calls in the least memory", config: small.clone(), steps: 10_000, step: failing },
        Endless { name: "distinct calls, cut off, in the least memory", config: small, steps: 1_000, step: cut_off },
    ]
}

/// How many parts of a quarter of a turn are measured.
const PARTS: usize = 10;

#[test]
fn an_endless_turn_stays_within_its_bytes_and_takes_linear_time() {
    check_each(endless_turns(), |turn| turn.name.to_owned(), check_endless);
}

fn check_endless(turn: &Endless) {
    let settings = gate::settings(&turn.config);
    let bytes_max = settings.limits.thread_bytes_max;
    let mut gate = Gate::new(policy(&turn.config));
    let mut largest = 0;
    let mut parts = [Duration::ZERO; 4 * PARTS];
    for n in 0..turn.steps {
        let events: Vec<_> = (turn.step)(n).iter().map(|event| event.to_string().into_bytes()).collect();
        let started = processor_time();
        for event in &events {
            gate.record(None, Some(event), &[]);
        }
        parts[parts.len() * n / turn.steps] += processor_time() - started;
        largest = largest.max(gate.threads().get("t").map_or(0, |stored| stored.thread.heap_bytes()));
    }
    // What else the machine does makes some parts slower, and none quicker.
    let quickest = |quarter: usize| parts[quarter * PARTS..(quarter + 1) * PARTS].iter().min().copied().unwrap();
    let (second, fourth) = (quickest(1), quickest(3));
    assert!(fourth < 4 * second + Duration::from_millis(10), "{}: the later, the slower: {parts:?}", turn.name);
    assert!(largest <= bytes_max, "{}: {largest} bytes instead of at most {bytes_max}", turn.name);
    assert!(largest > 512, "{}: nothing was remembered", turn.name);
}

/// However many other calls fail behind it, a stop stays one: what it depends on is forgotten last.
#[test]
fn a_stop_outlives_any_number_of_calls() {
    for config in [json!({}), json!({"limits": {"thread_bytes_max": 4_096}})] {
        let mut gate = Gate::new(policy(&config));
        stop(&mut gate, "t");
        for n in 1..5_000 {
            gate.event(&call("t", &format!("d{n}"), "bash", n));
            gate.event(&result("t", &format!("d{n}"), "bash", true));
        }
        let verdict = gate.event(&call("t", "again", "bash", 0));
        assert_eq!(verdict["code"], "repeated_exact_failure_block", "{config}: {verdict}");
    }
}

/// An event with so many parts.
type EventOfSize = fn(usize) -> Value;

/// Four times the input takes about four times as long, not sixteen, of the processor's time.
#[test]
fn time_is_linear_in_the_size_of_an_event() {
    let openai = |n: usize| {
        let calls: Vec<_> = (0..n).map(|k| json!({"id": format!("call-{k}"), "function": {"name": "bash"}})).collect();
        json!({"type": "model_response", "thread_id": "t", "response": {"choices": [{"finish_reason": "stop", "message": {"tool_calls": calls}}]}})
    };
    let blocks = |n: usize| {
        let blocks: Vec<_> = (0..n).map(|k| json!({"type": "tool_use", "id": format!("call-{k}"), "name": "bash"})).collect();
        json!({"type": "model_response", "thread_id": "t", "message": {"content": blocks}})
    };
    let flagged = |n: usize| {
        let ids: serde_json::Map<_, _> = (0..n).map(|k| (format!("flagged-{k}"), json!({"outcome": "flagged"}))).collect();
        let blocks: Vec<_> = (0..n).map(|k| json!({"type": "tool_use", "id": format!("call-{k}"), "name": "bash"})).collect();
        json!({"type": "model_response", "thread_id": "t", "response": {"content": blocks, "safeguard_results": [{"status": {"tool_uses": ids}}]}})
    };
    let older = |n: usize| {
        let message = |k: usize| json!({"message": {"function_call": {"name": format!("tool-{k}")}}});
        let choices: Vec<_> = [json!({"finish_reason": "content_filter"})].into_iter().chain((0..n).map(message)).collect();
        json!({"type": "model_response", "thread_id": "t", "response": {"choices": choices}})
    };
    let keys = |n: usize| {
        let input: serde_json::Map<_, _> = (0..n).map(|k| (format!("{}", k * 7_919 % n), json!(k))).collect();
        json!({"type": "tool_call", "thread_id": "t", "tool_call_id": "c", "tool_name": "bash", "tool_input": input})
    };
    let escapes = |n: usize| json!({"type": "tool_call", "thread_id": "t", "tool_call_id": "c", "tool_name": "bash", "tool_input": {"x": "\"\\\n".repeat(n)}});
    let fields = |n: usize| {
        let mut event: serde_json::Map<_, _> = (0..n).map(|k| (format!("unknown-{k}"), json!({}))).collect();
        event.extend([("type".to_owned(), json!("turn_start")), ("thread_id".to_owned(), json!("t"))]);
        Value::from(event)
    };
    let cases: [(&str, EventOfSize); 7] = [
        ("calls of a response", openai),
        ("blocks of a message", blocks),
        ("blocks of a response that flags others", flagged),
        ("older calls of a response that was cut off", older),
        ("keys of an input", keys),
        ("escapes of an input", escapes),
        ("unknown fields", fields),
    ];
    check_each(cases, |(name, _)| (*name).to_owned(), |(name, event)| check_linear(name, *event));
}

fn check_linear(name: &str, event: EventOfSize) {
    let time = |n: usize| {
        let bytes = event(n).to_string().into_bytes();
        let measure = || {
            let mut gate = Gate::new(default_policy());
            let started = processor_time();
            gate.record(None, Some(&bytes), &[]);
            processor_time() - started
        };
        (0..9).map(|_| measure()).min().unwrap()
    };
    let (small, large) = (time(10_000), time(40_000));
    assert!(large < 10 * small + Duration::from_millis(10), "{name}: {small:?} for 10,000, {large:?} for 40,000");
}
