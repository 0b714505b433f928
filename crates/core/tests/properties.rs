//! Checks properties of every input: the JSON dialect, decoding, the offset tracker, and the order in which a log is read.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use tollgate_core::decide::deciding::Outcome;
use tollgate_core::engine::processor::{OffsetTracker, TrackerError};
use tollgate_core::event::decode::schema;
use tollgate_core::event::record::{Header, Offset, partition_of};
use tollgate_fixtures::gate::{Gate, default_policy, policy};
use tollgate_json::time::rfc_3339;
use tollgate_json::{DEPTH_MAX, Parser, canonical};

/// Returns values that `serde_json` and Python's dialect both hold, with floats short enough for either to read exactly.
fn shared_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 64.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![vec(inner.clone(), 0..8).prop_map(Value::from), btree_map(text(), inner, 0..8).prop_map(|map| json!(map))]
    })
}

/// Returns text with the characters that JSON, UTF-16 order and Python's escapes are particular about.
fn text() -> impl Strategy<Value = String> {
    let odd = ['"', '\\', '/', '\n', '\u{0}', '\u{1f}', '\u{7f}', '\u{e9}', '\u{2028}', '\u{ffff}', '\u{1d11e}', 'Z', 'a', '9'];
    vec(prop_oneof![select(odd.to_vec()), any::<char>()], 0..12).prop_map(|chars| chars.into_iter().collect())
}

fn canonical_of(text: &[u8]) -> Option<Vec<u8>> {
    let mut parser = Parser::new();
    let value = parser.parse(text, DEPTH_MAX).ok()?;
    let mut out = Vec::new();
    canonical::write(value, &mut out);
    Some(out)
}

/// Writes the canonical form in the simplest way possible.
fn naive(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => naive_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                naive(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().collect();
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                naive_text(key, out);
                out.push(':');
                naive(member, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn naive_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Returns JSON text that is not canonical: escapes where none are needed, white space, keys in any order.
fn spelled(value: &Value, spaces: &str) -> String {
    let escaped = |text: &str| {
        let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        format!("\"{units}\"")
    };
    match value {
        Value::String(text) => escaped(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| spelled(item, spaces)).collect();
            format!("[{spaces}{}{spaces}]", items.join(&format!("{spaces},")))
        }
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().rev().map(|(key, member)| format!("{}{spaces}:{}", escaped(key), spelled(member, spaces))).collect();
            format!("{{{}{spaces}}}", members.join(&format!(",{spaces}")))
        }
        other => format!("{spaces}{other}{spaces}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_canonical_form_is_sorted_and_means_the_same(value in shared_json()) {
        let written = canonical_of(value.to_string().as_bytes()).unwrap();
        let mut expected = String::new();
        naive(&value, &mut expected);
        prop_assert_eq!(std::str::from_utf8(&written).unwrap(), &expected);
        prop_assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), value);
    }

    #[test]
    fn spelling_does_not_matter(value in shared_json(), spaces in "[ \t\r\n]{0,3}") {
        let plain = canonical_of(value.to_string().as_bytes()).unwrap();
        prop_assert_eq!(canonical_of(spelled(&value, &spaces).as_bytes()), Some(plain));
    }

    /// Every finite float is read back as itself, in the shortest digits.
    #[test]
    fn floats_keep_their_value(float in prop_oneof![any::<u64>().prop_map(f64::from_bits), any::<i32>().prop_map(|n| f64::from(n) * 1e-13), any::<i64>().prop_map(|n| n as f64)]) {
        prop_assume!(float.is_finite());
        let bits = float.to_bits();
        let written = canonical_of(format!("{float:?}").as_bytes()).unwrap();
        let written = String::from_utf8(written).unwrap();
        prop_assert_eq!(written.parse::<f64>().unwrap().to_bits(), bits, "{}", written);
        prop_assert!(written.contains(['.', 'e']), "{} looks like an integer", written);
        let is_positional = float == 0.0 || (1e-4..1e16).contains(&float.abs());
        prop_assert_eq!(!written.contains('e'), is_positional, "{}", written);
        prop_assert!(written.bytes().filter(u8::is_ascii_digit).count() <= 22, "{}", written);
    }
}

/// The gap below a power of two is half the gap above it: the closest decimal of so many digits may be another float.
#[test]
fn powers_of_two_keep_their_value() {
    let written = |exponent: i32| {
        let float = 2_f64.powi(exponent);
        let written = String::from_utf8(canonical_of(format!("{float:?}").as_bytes()).unwrap()).unwrap();
        (written.parse::<f64>() != Ok(float)).then_some(written)
    };
    let wrong: Vec<_> = (-1_022..1_024).filter_map(written).collect();
    assert!(wrong.is_empty(), "{} of them: {wrong:?}", wrong.len());
    assert_eq!(canonical_of(b"5.684341886080802e-14").unwrap(), b"5.684341886080802e-14", "2 to the power of -44, as Python prints it");
}

/// Returns events that the contract allows, one of each kind and envelope.
fn valid_events() -> Vec<Value> {
    let call = json!({"tool_call_id": "c", "tool_name": "bash", "tool_input": {"x": [1, "two"]}});
    vec![
        json!({"type": "turn_start", "thread_id": "t", "event_id": "e", "turn_id": "u", "timestamp": "2026-01-01T00:00:00Z"}),
        json!({"type": "turn_end", "thread_id": "t", "event_id": "e"}),
        json!({"type": "tool_call", "thread_id": "t", "event_id": "e", "tool_call_id": "c", "tool_name": "bash", "tool_input": {"x": 1}, "user_id": "7", "is_subagent": true}),
        json!({"type": "tool_call", "thread_id": "t", "event_id": "e", "tool_call_id": "c", "tool_name": "bash", "arguments": "{\"x\": 1}"}),
        json!({"type": "tool_result", "thread_id": "t", "event_id": "e", "tool_call_id": "c", "tool_name": "bash", "tool_input": {"x": 1}, "result": "Error: no", "failed": true}),
        json!({"type": "model_response", "thread_id": "t", "event_id": "e", "provider": "openai", "response": {"choices": [{"finish_reason": "content_filter", "message": {"content": "x", "tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": "{\"pa"}}]}}]}}),
        json!({"type": "model_response", "thread_id": "t", "event_id": "e", "message": {"type": "ai", "content": [{"type": "tool_use", "id": "c", "name": "f"}], "response_metadata": {"stop_reason": "refusal"}}}),
        json!({"type": "model_response", "thread_id": "t", "event_id": "e", "response": {"candidates": [{"finishReason": "SAFETY", "content": {"parts": [{"functionCall": {"name": "f"}}]}}]}}),
        json!({"type": "model_response", "thread_id": "t", "event_id": "e", "error": {"code": 1301}}),
        json!({"specversion": "1.0", "id": "e", "source": "/a", "type": "agent.tool_call.v1", "subject": "t", "data": call}),
    ]
}

/// One thing done to an event.
#[derive(Debug, Clone)]
enum Mutation {
    Remove(Index),
    Replace(Index, Value),
    Insert(Index, Value),
    Nested(Index, Index, Value),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        any::<Index>().prop_map(Mutation::Remove),
        (any::<Index>(), shared_json()).prop_map(|(at, value)| Mutation::Replace(at, value)),
        (any::<Index>(), shared_json()).prop_map(|(at, value)| Mutation::Insert(at, value)),
        (any::<Index>(), any::<Index>(), shared_json()).prop_map(|(at, within, value)| Mutation::Nested(at, within, value)),
    ]
}

/// The names of all fields of events, and those of a CloudEvent.
static KNOWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema = schema();
    let fields = schema.pointer("/definitions/fields/properties").and_then(Value::as_object).unwrap().keys().cloned();
    fields.chain(["specversion", "source", "id", "subject", "data", "data_base64"].map(str::to_owned)).collect()
});

fn mutate(event: &mut Value, mutation: &Mutation) {
    let Some(fields) = event.as_object_mut() else { return };
    let keys: Vec<String> = fields.keys().cloned().collect();
    match mutation {
        _ if keys.is_empty() => {}
        Mutation::Remove(at) => drop(fields.remove(at.get(&keys))),
        Mutation::Replace(at, value) => drop(fields.insert(at.get(&keys).clone(), value.clone())),
        Mutation::Insert(at, value) => drop(fields.insert(at.get(&KNOWN[..]).clone(), value.clone())),
        Mutation::Nested(at, within, value) => {
            if let Some(inner) = fields.get_mut(at.get(&keys)) {
                mutate(inner, &Mutation::Replace(*within, value.clone()));
            }
        }
    }
}

/// Feeds a value, and checks that it has exactly one outcome, and that the written bytes fit that outcome.
fn check_outcome(gate: &mut Gate, key: Option<&[u8]>, value: &[u8], headers: &[Header<'_>]) -> Result<(), TestCaseError> {
    let (outcome, bytes) = gate.record(key, Some(value), headers);
    if let Outcome::Boundary(_) = outcome {
        prop_assert!(bytes.is_empty());
        return Ok(());
    }
    let verdict: Value = serde_json::from_slice(&bytes).unwrap();
    let (action, allows) = (verdict["action"].as_str().unwrap(), verdict["allows_execution"].as_bool().unwrap());
    prop_assert_eq!(allows, matches!(action, "allow" | "warn"));
    prop_assert!(verdict["verdict_id"].as_str().unwrap().len() == 32 && verdict["event_id"].is_string());
    match outcome {
        Outcome::DeadLetter(rejection) => {
            prop_assert_eq!(&verdict["code"], "invalid_event");
            prop_assert_eq!(verdict.get("thread_id").and_then(Value::as_str), rejection.event.thread_id.as_deref());
        }
        _ => {
            prop_assert!(verdict["code"] != "invalid_event" && verdict["thread_id"].is_string());
            prop_assert_eq!(
                verdict["reasons"].as_array().unwrap().is_empty(),
                matches!(verdict["code"].as_str(), Some("allow" | "not_executed"))
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_upset_the_gate(value in vec(any::<u8>(), 0..200), key in proptest::option::of(vec(any::<u8>(), 0..8))) {
        check_outcome(&mut Gate::new(default_policy()), key.as_deref(), &value, &[])?;
    }

    #[test]
    fn no_bent_event_upsets_the_gate(event in select(valid_events()), bends in vec(mutation(), 0..4), before in select(valid_events())) {
        let mut gate = Gate::new(default_policy());
        let mut bent = event;
        bends.iter().for_each(|bend| mutate(&mut bent, bend));
        check_outcome(&mut gate, None, before.to_string().as_bytes(), &[])?;
        check_outcome(&mut gate, None, bent.to_string().as_bytes(), &[])?;
    }

    #[test]
    fn no_damaged_event_upsets_the_gate(event in select(valid_events()), at in any::<Index>(), byte in any::<u8>(), cut in any::<Index>()) {
        let mut bytes = event.to_string().into_bytes();
        let (at, cut) = (at.index(bytes.len()), cut.index(bytes.len() + 1));
        bytes[at] = byte;
        check_outcome(&mut Gate::new(default_policy()), Some(b"t"), &bytes, &[])?;
        check_outcome(&mut Gate::new(default_policy()), None, &bytes[..cut], &[])?;
    }

    #[test]
    fn no_header_upsets_the_gate(
        event in select(valid_events()),
        headers in vec((select(vec!["content-type", "ce_id", "ce_specversion", "ce_type", "ce_subject", "ce_time", "event_id"]), vec(any::<u8>(), 0..6)), 0..5),
    ) {
        let headers: Vec<_> = headers.iter().map(|(name, value)| Header { name, value: Some(value) }).collect();
        check_outcome(&mut Gate::new(default_policy()), None, event.to_string().as_bytes(), &headers)?;
    }
}

/// A step on an offset tracker. Indices choose among the records opened so far.
#[derive(Debug, Clone)]
enum Step {
    Open { gap: i64, due: u32 },
    Acknowledge(Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..4_i64, 0..3_u32).prop_map(|(gap, due)| Step::Open { gap, due }),
        6 => any::<Index>().prop_map(Step::Acknowledge),
    ]
}

/// The simplest offset tracker: every record with what it waits for.
#[derive(Default)]
struct Model {
    records: Vec<(i64, u32)>,
}

impl Model {
    /// Returns the offset behind the finished run from the front.
    fn committable(&self) -> Option<i64> {
        let run = self.records.iter().take_while(|(_, due)| *due == 0);
        run.map(|(offset, _)| offset + 1).last()
    }

    fn in_flight(&self) -> usize {
        self.records.iter().skip_while(|(_, due)| *due == 0).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_committable_ahead_of_an_acknowledgement(start in 0..1_000_i64, steps in vec(step(), 0..120)) {
        let (mut tracker, mut model) = (OffsetTracker::default(), Model::default());
        let mut next = start;
        for step in steps {
            match step {
                Step::Open { gap, due } => {
                    next += gap;
                    prop_assert_eq!(tracker.open(Offset(next), due), Ok(()));
                    model.records.push((next, due));
                    let again = TrackerError::NotAscending { offset: Offset(next), opened: Offset(next) };
                    prop_assert_eq!(tracker.open(Offset(next), due), Err(again));
                }
                Step::Acknowledge(_) if model.records.is_empty() => {}
                Step::Acknowledge(at) => {
                    let at = at.index(model.records.len());
                    let (offset, due) = &mut model.records[at];
                    let expected = if *due > 0 { Ok(()) } else { Err(TrackerError::NotOpen(Offset(*offset))) };
                    *due = due.saturating_sub(1);
                    prop_assert_eq!(tracker.acknowledge(Offset(*offset)), expected);
                }
            }
            prop_assert_eq!(tracker.committable().map(|offset| offset.0), model.committable());
            prop_assert_eq!(tracker.in_flight(), model.in_flight());
            let first_due = model.records.iter().find(|(_, due)| *due > 0).map(|(offset, _)| *offset);
            if let (Some(committable), Some(first_due)) = (tracker.committable(), first_due) {
                prop_assert!(committable.0 <= first_due, "{:?} would be read again, {} not", committable, first_due);
            }
        }
    }
}

/// Returns what a thread does next. Few ids, tools and arguments, so that loops, repeats and suppressions come about.
fn happening() -> impl Strategy<Value = Value> {
    let id = (0..16_u8).prop_map(|n| format!("c{n}"));
    let tool = select(vec!["bash", "read_file", "terminal"]);
    let with_turn = |mut event: Value, turn: Option<u8>| {
        turn.into_iter().for_each(|turn| event["turn_id"] = Value::from(format!("u{turn}")));
        event
    };
    let body = prop_oneof![
        16 => (id.clone(), tool.clone(), 0..2_u8).prop_map(|(id, tool, x)| json!({"type": "tool_call", "tool_call_id": id, "tool_name": tool, "tool_input": {"x": x}})),
        24 => (id.clone(), tool.clone(), 0..2_u8, select(vec!["ok", "Error: no", "Error: no"]))
            .prop_map(|(id, tool, x, result)| json!({"type": "tool_result", "tool_call_id": id, "tool_name": tool, "tool_input": {"x": x}, "result": result})),
        4 => (id.clone(), tool.clone(), any::<bool>()).prop_map(|(id, tool, failed)| json!({"type": "tool_result", "tool_call_id": id, "tool_name": tool, "result": null, "failed": failed})),
        1 => (id, tool).prop_map(|(id, tool)| json!({"type": "model_response", "response": {"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": [{"id": id, "function": {"name": tool}}]}}]}})),
        1 => select(vec!["bash", "read_file"]).prop_map(|tool| json!({"type": "model_response", "response": {"candidates": [{"finishReason": "SAFETY", "content": {"parts": [{"functionCall": {"name": tool}}]}}]}})),
        1 => select(vec![json!({"type": "turn_start"}), json!({"type": "turn_end"}), json!({"type": "model_response", "response": {}}), json!({"type": "nonsense"})]),
    ];
    (body, proptest::option::weighted(0.02, 0..3_u8)).prop_map(move |(event, turn)| with_turn(event, turn))
}

/// Returns logs over a few threads: time goes up, with a long pause now and then; some events come twice.
fn log() -> impl Strategy<Value = Vec<Value>> {
    let entry = (0..5_u8, happening(), prop_oneof![20 => 0..60_i64, 1 => Just(100_000_i64)], proptest::bool::weighted(0.1));
    vec(entry, 1..200).prop_map(|entries| {
        let mut seconds = 1_767_225_600_i64;
        let mut log = Vec::new();
        for (index, (thread, mut event, pause, twice)) in entries.into_iter().enumerate() {
            seconds += pause;
            event["thread_id"] = Value::from(format!("thread-{thread}"));
            event["event_id"] = Value::from(format!("e{index}"));
            event["timestamp"] = Value::from(rfc_3339(seconds * 1_000).unwrap());
            log.push(event.clone());
            if twice {
                log.push(event);
            }
        }
        log
    })
}

/// Returns the verdicts of each thread, byte for byte, when the log is cut into partitions.
fn verdicts(log: &[Value], partitions: u32) -> BTreeMap<String, Vec<Vec<u8>>> {
    let config = json!({"guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["terminal"]}}}});
    let mut gates: Vec<_> = (0..partitions).map(|_| Gate::new(policy(&config))).collect();
    let mut by_thread: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for event in log {
        let thread_id = event["thread_id"].as_str().unwrap();
        let partition = usize::try_from(partition_of(thread_id.as_bytes(), partitions).0).unwrap();
        by_thread.entry(thread_id.to_owned()).or_default().push(gates[partition].bytes(event));
    }
    by_thread
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// A thread's verdicts depend on its own events alone: neither on the other threads nor on how many partitions there are.
    #[test]
    fn the_number_of_partitions_changes_no_byte(log in log(), partitions in 2..12_u32) {
        let together = verdicts(&log, 1);
        prop_assert_eq!(&verdicts(&log, partitions), &together);
        prop_assert_eq!(&verdicts(&log, 1), &together);
        for (thread_id, expected) in &together {
            let alone: Vec<_> = log.iter().filter(|event| event["thread_id"] == thread_id.as_str()).cloned().collect();
            prop_assert_eq!(&verdicts(&alone, 1)[thread_id], expected, "{} alone", thread_id);
        }
    }
}

/// Every kind of decision comes about in the random logs.
#[test]
fn the_logs_hold_every_kind_of_decision() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::<String, usize>::new();
    for _ in 0..40 {
        let log = log().new_tree(&mut runner).unwrap().current();
        for bytes in verdicts(&log, 1).into_values().flatten().filter(|bytes| !bytes.is_empty()) {
            let verdict: Value = serde_json::from_slice(&bytes).unwrap();
            *seen.entry(verdict["code"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    for code in [
        "allow",
        "invalid_event",
        "safety_terminated",
        "suppressed_tool_call",
        "oap.tool_not_allowed",
        "not_executed",
        "repeated_exact_failure_warning",
        "repeated_exact_failure_block",
        "same_tool_failure_warning",
        "same_tool_failure_halt",
        "idempotent_no_progress_warning",
        "idempotent_no_progress_block",
    ] {
        assert!(seen.contains_key(code), "{code} never came about: {seen:?}");
    }
}
