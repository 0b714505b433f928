//! The deciding stage in the model: random logs of threads that come and go, with policy servers and without.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use tollgate_core::decide::deciding::{Deciding, Outcome};
use tollgate_core::decide::guardrail::{Answer, ProviderError, Question};
use tollgate_core::decide::policy::Policy;
use tollgate_core::engine::processor::Applied;
use tollgate_core::engine::stage::{Progress, Stage};
use tollgate_core::event::decode::{EventType, Rejection, decode};
use tollgate_core::event::record::Offset;
use tollgate_json::Parser;
use tollgate_json::digest::Digest;
use tollgate_json::time::rfc_3339;

use super::truth::{Logged, Truth};

/// What becomes of a record beside its outcome.
pub type Output = <Deciding as Stage>::Output;

/// Returns the thread under which a record waits; `None` for a record that is no event and no response.
pub fn thread_of(policy: &Policy, logged: &Logged) -> Option<String> {
    match decode(&logged.record(), &mut Parser::new(), policy.limits().event_bytes_max) {
        Ok(event) => Some(event.thread_id.into_owned()),
        Err(Rejection { event, .. }) => {
            let may_be_response = event.event_type.is_none_or(|kind| kind == EventType::ModelResponse);
            event.thread_id.filter(|_| may_be_response)
        }
    }
}

/// Returns how many publications an outcome waits for: a verdict; a dead letter, and its verdict where the thread is known; none for a
/// control.
pub fn due_of(outcome: &Outcome) -> u32 {
    match outcome {
        Outcome::Verdict { .. } => 1,
        Outcome::DeadLetter(rejection) => 1 + u32::from(rejection.event.thread_id.is_some()),
        Outcome::Boundary(_) => 0,
    }
}

/// Checks that each server that is asked has a say in the verdict, and that none is asked about an event that its thread has twice running.
pub fn check_servers(truth: &Truth, policy: &Policy) {
    let is_server = |provider: &usize| NAMES.contains(&policy.guardrails().name_of(*provider));
    let mut last = BTreeMap::new();
    for (record, asked) in truth.requests.iter().enumerate() {
        assert!(asked.is_sorted_by(|one, other| one.provider < other.provider), "record {record}");
        if let Applied::Taken(Progress::Done(Outcome::Verdict { decided, .. })) = &truth.outcomes[record].0 {
            let called = decided.provider_calls.iter().map(|(provider, _)| *provider).filter(is_server);
            assert!(called.eq(asked.iter().map(|question| question.provider)), "record {record}");
        } else {
            assert_eq!(asked, &[], "record {record}");
        }
        let before = truth.keys[record].as_ref().and_then(|id| last.insert(id, record));
        if let Some(before) = before.filter(|before| truth.log[*before].value == truth.log[record].value) {
            assert_eq!(asked, &[], "record {record} is {before} again");
        }
    }
}

/// Returns configurations with so little room that threads are expired, evicted, refused and trimmed.
pub fn config() -> impl Strategy<Value = Value> {
    (3..8_u8, select(vec![1, 30, 600]), select(vec![4_096, 65_536])).prop_map(|(threads, idle, bytes)| {
        json!({
            "limits": {"threads_per_partition_max": threads, "thread_idle_seconds_max": idle, "thread_bytes_max": bytes},
            "guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["terminal"]}}},
        })
    })
}

/// The shape of a random log.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// How many threads it has at most.
    pub threads: u8,
    /// The weight of calls, where that of results is ten.
    pub calls: u32,
    /// Whether so much time passes in it that threads expire.
    pub has_pauses: bool,
}

/// The next entry of a log.
#[derive(Debug, Clone)]
enum Entry {
    /// An event of a thread. `wander` moves the time for all that follow, `outlier` is the time of a broken clock, and an event that is not
    /// `is_timed` has no timestamp.
    Event { thread: u8, event: Value, wander: i64, outlier: Option<i64>, is_timed: bool },
    /// Bytes that are no event, or no value at all.
    Unreadable(Option<&'static str>),
    /// A copy of an earlier record.
    Repeat(Index),
    /// Enough events from a day later to move the partition's time past the idle limit, which expires every thread that can expire.
    Pause { thread: u8 },
}

fn entry(shape: Shape) -> impl Strategy<Value = Entry> {
    let wander = prop_oneof![12 => 0..40_i64, 2 => -300..0_i64, 1 => Just(2_000_i64)];
    let outlier = weighted(0.05, select(vec![-200_000_i64, 200_000]));
    let event = (0..shape.threads, happening(shape.calls), wander, outlier, proptest::bool::weighted(0.9));
    prop_oneof![
        100 => event.prop_map(|(thread, event, wander, outlier, is_timed)| Entry::Event { thread, event, wander, outlier, is_timed }),
        4 => select(vec![None, Some("{"), Some("[]"), Some(r#"{"type": "tool_call", "thread_id": "thread-1", "event_id": "told"}"#)])
            .prop_map(Entry::Unreadable),
        12 => any::<Index>().prop_map(Entry::Repeat),
        1 => (0..shape.threads, Just(shape.has_pauses)).prop_map(|(thread, is_long)| if is_long { Entry::Pause { thread } } else { Entry::Unreadable(None) }),
    ]
}

/// Returns what a thread does next: short turns with few ids and tools, so that threads come and go, and many of them hold a stop.
fn happening(calls: u32) -> impl Strategy<Value = Value> {
    let (id, tool) = ((0..6_u8).prop_map(|n| format!("c{n}")), select(vec!["bash", "read_file", "terminal"]));
    let cut_off = |id: String, tool: &str| {
        let message = json!({"tool_calls": [{"id": id, "function": {"name": tool}}]});
        json!({"type": "model_response", "response": {"choices": [{"finish_reason": "content_filter", "message": message}]}})
    };
    let unnamed = |tool: &str| {
        let content = json!({"parts": [{"functionCall": {"name": tool}}]});
        json!({"type": "model_response", "response": {"candidates": [{"finishReason": "SAFETY", "content": content}]}})
    };
    let body = prop_oneof![
        calls => (id.clone(), tool.clone(), 0..2_u8)
            .prop_map(|(id, tool, x)| json!({"type": "tool_call", "tool_call_id": id, "tool_name": tool, "tool_input": {"x": x}})),
        10 => (id.clone(), tool.clone(), 0..2_u8, select(vec!["ok", "Error: no", "Error: no"]))
            .prop_map(|(id, tool, x, result)| json!({"type": "tool_result", "tool_call_id": id, "tool_name": tool, "tool_input": {"x": x}, "result": result})),
        // Only a result whose call was seen may leave the arguments out.
        2 => (id.clone(), tool.clone()).prop_map(|(id, tool)| json!({"type": "tool_result", "tool_call_id": id, "tool_name": tool, "failed": true})),
        2 => (id, tool.clone()).prop_map(move |(id, tool)| cut_off(id, tool)),
        1 => tool.prop_map(unnamed),
        2 => Just(json!({"type": "turn_start"})),
        5 => Just(json!({"type": "turn_end"})),
        1 => Just(json!({"type": "thread_reset"})),
        2 => Just(json!({"type": "model_response", "response": {}})),
        1 => Just(json!({"type": "nonsense"})),
    ];
    (body, weighted(0.3, 0..3_u8)).prop_map(|(mut event, turn)| {
        if let Some(turn) = turn {
            event["turn_id"] = Value::from(format!("u{turn}"));
        }
        event
    })
}

/// How many events from a day later move the time past twice the idle limit: time goes by steps.
const PAUSE_EVENTS: usize = 530;

/// Returns logs whose offsets have gaps, as transaction markers and retention leave them.
pub fn log(shape: Shape) -> impl Strategy<Value = Vec<Logged>> {
    let gap = prop_oneof![8 => Just(1_i64), 1 => 2..5_i64];
    (0..50_i64, vec((entry(shape), gap), 1..160)).prop_map(|(start, entries)| {
        let (mut seconds, mut offset) = (86_400 * 9, start);
        let mut log: Vec<Logged> = Vec::new();
        for (index, (entry, gap)) in entries.into_iter().enumerate() {
            for value in values(entry, index, &mut seconds, &log) {
                let is_unreadable = value.is_none() && index % 2 == 0;
                log.push(Logged { offset: Offset(offset), value, is_unreadable });
                offset += gap;
            }
        }
        log
    })
}

fn values(entry: Entry, index: usize, seconds: &mut i64, log: &[Logged]) -> Vec<Option<String>> {
    let text = |event: &Value| Some(event.to_string());
    match entry {
        Entry::Unreadable(found) => vec![found.map(str::to_owned)],
        Entry::Repeat(_) if log.is_empty() => Vec::new(),
        Entry::Repeat(at) => vec![log[at.index(log.len())].value.clone()],
        Entry::Event { thread, mut event, wander, outlier, is_timed } => {
            *seconds += wander;
            event["thread_id"] = Value::from(format!("thread-{thread}"));
            event["event_id"] = Value::from(format!("e{index}"));
            if is_timed {
                event["timestamp"] = Value::from(moment(*seconds + outlier.unwrap_or_default()));
            }
            vec![text(&event)]
        }
        Entry::Pause { thread } => {
            *seconds += 86_400;
            let event = json!({"type": "turn_end", "thread_id": format!("thread-{thread}"), "event_id": format!("e{index}"), "timestamp": moment(*seconds)});
            vec![text(&event); PAUSE_EVENTS]
        }
    }
}

/// Returns a moment by the seconds since the beginning of 2026.
pub fn moment(seconds: i64) -> String {
    rfc_3339((1_767_225_600 + seconds) * 1_000).unwrap()
}

/// The names of the servers.
const NAMES: [&str; 2] = ["first", "second"];

/// Returns configurations with one server or two. Which thread makes room, and which one expires while it waits, depends on when answers
/// come: so there is room for every thread of a log, and more idle time than a log without pauses can let pass. Nor is a queue ever too
/// long.
pub fn config_with_servers() -> impl Strategy<Value = Value> {
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
