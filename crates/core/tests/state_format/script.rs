//! The script whose state the goldens hold: its events leave threads in every shape that differs in a checkpoint.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::decide::guardrail::{GuardrailChain, GuardrailDecision, GuardrailProvider, GuardrailRequest, Link, Step};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::GuardrailReason;
use tollgate_core::engine::checkpoint::Checkpoint;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_fixtures::gate::{self, Processor};

pub const OWNER: &str = "tollgate-golden";
pub const PARTITION: Partition = Partition(7);
/// The first offset of the log: large enough that it takes several bytes.
const FIRST: i64 = 1_000_000;

/// Denies `deploy` for two reasons, and asks somebody who does not answer about `remote`.
#[derive(Debug)]
struct Department;

impl GuardrailProvider for Department {
    fn name(&self) -> &str {
        "department"
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        let reason = |code: &str, message: &str, policy_id: Option<&str>| GuardrailReason {
            policy_id: policy_id.map(|id| id.to_owned().into()),
            ..GuardrailReason::new(code.to_owned(), message.to_owned())
        };
        let friday = || vec![reason("no_deploy", "nicht am Freitag – später", Some("policy-5")), reason("too_late", "", None)];
        match request.tool_name {
            "deploy" => Step::Decided(Ok(GuardrailDecision { allow: false, reasons: friday() })),
            "remote" => Step::Ask(b"may it?".to_vec()),
            _ => Step::Decided(Ok(GuardrailDecision { allow: true, reasons: Vec::new() })),
        }
    }
}

/// Returns the script's policy. All that state depends on is written here, so that other defaults leave the goldens alone. A thread may
/// remember so little that 33 suppressed calls are too many, and far more than any other thread of the script needs.
pub fn policy() -> Policy {
    let config = json!({
        "limits": {"threads_per_partition_max": 100, "thread_idle_seconds_max": 3_600, "thread_bytes_max": 4_096},
        "tool_loop_guardrails": {
            "exact_failure_warn_after": 2, "exact_failure_block_after": 2,
            "same_tool_failure_warn_after": 2, "same_tool_failure_halt_after": 3,
            "no_progress_warn_after": 2, "no_progress_block_after": 2,
            "idempotent_tools": ["read_file"],
        },
    });
    gate::policy(&config).with_guardrails(GuardrailChain::new(vec![Link { provider: Box::new(Department), tools: None }], false, None))
}

/// Returns the events before the first checkpoint, those before the second one, which is the golden, and some that depend on what it holds.
pub fn script() -> [Vec<Value>; 3] {
    let mut number = 0;
    let mut numbered = |events: Vec<Value>, is_timed: bool| {
        let finish = |mut event: Value| {
            number += 1;
            event["event_id"] = Value::from(format!("e{number}"));
            if is_timed && event.get("timestamp").is_none() {
                event["timestamp"] = Value::from(format!("2026-01-01T00:{:02}:{:02}.5Z", number / 60, number % 60));
            }
            event
        };
        events.into_iter().map(finish).collect::<Vec<_>>()
    };
    let before = numbered(vec![call("gone", "c1", "ls", 1)], false);
    // The partition has no time yet.
    let timeless = numbered(vec![call("no time yet", "c1", "ls", 1)], false);
    let golden = numbered([turns(), loops(), guardrails(), suppressions(), edges()].concat(), true);
    let after = numbered(epilogue(), true);
    [before, [timeless, golden].concat(), after]
}

fn event(thread: &str, event_type: &str, with: &Value) -> Value {
    let mut event = json!({"type": event_type, "thread_id": thread});
    with.as_object().unwrap().iter().for_each(|(name, value)| event[name] = value.clone());
    event
}

fn call(thread: &str, id: &str, tool: &str, x: u8) -> Value {
    event(thread, "tool_call", &json!({"tool_call_id": id, "tool_name": tool, "tool_input": {"x": x}}))
}

fn result(thread: &str, id: &str, tool: &str, x: u8, result: &str) -> Value {
    event(thread, "tool_result", &json!({"tool_call_id": id, "tool_name": tool, "tool_input": {"x": x}, "result": result}))
}

fn turn(thread: &str, event_type: &str, id: &str) -> Value {
    event(thread, event_type, &json!({"turn_id": id}))
}

/// Returns a response that was cut off in these calls.
fn cut_off(thread: &str, calls: &[Value]) -> Value {
    let body = json!({"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": calls}}]});
    event(thread, "model_response", &json!({"response": body}))
}

fn turns() -> Vec<Value> {
    let name = |n: u8| format!("turn {n}");
    let mut events = vec![event("started", "turn_start", &json!({}))];
    // More than are remembered.
    events.extend((1..=6).map(|n| turn("many turns", "turn_start", &name(n))));
    events.extend([call("many turns", "c1", "ls", 1), result("many turns", "c1", "ls", 1, "ok"), call("many turns", "c2", "ls", 2)]);
    events.push(event("joined", "tool_call", &json!({"tool_call_id": "c", "tool_name": "", "tool_input": {}, "turn_id": "übung"})));
    events
}

fn loops() -> Vec<Value> {
    let again = |thread: &'static str, tool: &'static str, said: &'static str| {
        let ran = ["c1", "c2"].into_iter().flat_map(move |id| [call(thread, id, tool, 1), result(thread, id, tool, 1, said)]);
        ran.chain([call(thread, "c3", tool, 1)])
    };
    let mut events: Vec<_> = again("fails again", "bash", "Error: no").collect();
    events.extend(again("learns nothing", "read_file", "the same"));
    events.extend((1..=3).map(|x| result("fails throughout", &format!("c{x}"), "bash", x, "Error: no")));
    events
}

fn guardrails() -> Vec<Value> {
    let denied = [call("denied", "c1", "deploy", 1), result("denied", "c1", "deploy", 1, "ran all the same")];
    denied.into_iter().chain([call("failed open", "c1", "remote", 1)]).collect()
}

fn suppressions() -> Vec<Value> {
    let named = |id: &str| json!({"id": id, "function": {"name": "bash"}});
    let unnamed = json!({"candidates": [{"finishReason": "SAFETY", "content": {"parts": [{"functionCall": {"name": "write_file"}}]}}]});
    let many: Vec<_> = (0..33).map(|n| named(&format!("c{n}"))).collect();
    vec![
        cut_off("cut off", &[named("c1"), named("c2")]),
        call("cut off", "c1", "bash", 1),
        result("cut off", "c1", "bash", 1, "ran all the same"),
        event("cut off without ids", "model_response", &json!({"response": unnamed})),
        cut_off("cut off without a name", &[json!({"function": {}})]),
        cut_off("cut off too often", &many),
        cut_off("cut off and ended", &[named("c1")]),
        turn("cut off and ended", "turn_end", "last"),
        turn("joined and ended/ü", "turn_start", "u1"),
        cut_off("joined and ended/ü", &[named("c1")]),
        turn("joined and ended/ü", "turn_end", "u1"),
    ]
}

fn edges() -> Vec<Value> {
    let old = json!({"tool_call_id": "c", "tool_name": "ls", "tool_input": {}, "timestamp": "1969-12-31T23:59:59.999Z"});
    vec![
        event("gone", "turn_end", &json!({})),
        // A clock that is wrong, and says so with a negative number.
        event("before the epoch", "tool_call", &old),
    ]
}

/// Returns events whose verdicts depend on what the golden holds, thread by thread.
fn epilogue() -> Vec<Value> {
    vec![
        turn("many turns", "turn_start", "turn 3"),
        result("many turns", "c2", "ls", 2, "Error: no"),
        call("fails again", "c4", "bash", 1),
        call("learns nothing", "c4", "read_file", 1),
        result("fails throughout", "c4", "bash", 4, "Error: no"),
        result("denied", "c1", "deploy", 1, "once more"),
        call("failed open", "c1", "ls", 1),
        call("cut off", "c2", "bash", 1),
        call("cut off without ids", "any", "write_file", 1),
        call("cut off without a name", "any", "any", 1),
        call("cut off too often", "any", "any", 1),
        call("cut off and ended", "c1", "bash", 1),
        call("joined and ended/ü", "c1", "bash", 1),
        event("gone", "tool_result", &json!({"tool_call_id": "c1", "tool_name": "ls", "result": "ok"})),
    ]
}

/// Feeds events to a processor from its next offset on, and returns what they become.
pub fn feed(processor: &mut Processor, events: &[Value]) -> Vec<(Outcome, Vec<u8>)> {
    let mut out = VerdictBuffer::default();
    let first = processor.next().0.max(FIRST);
    let feed_one = |(event, offset): (&Value, i64)| {
        out.json.clear();
        let (offset, value) = (Offset(offset), event.to_string());
        let applied = processor.apply(&gate::record(PARTITION, offset, value.as_bytes()), &mut out).expect("the records come in order");
        let outcome = gate::decided(processor, offset, applied, &mut out);
        processor.published(offset, 0).unwrap();
        (outcome, out.json.clone())
    };
    events.iter().zip(first..).map(feed_one).collect()
}

/// Writes down what has changed in a processor.
pub fn checkpoint(processor: &mut Processor) -> Checkpoint {
    processor.freeze(OWNER);
    let checkpoint = processor.take_checkpoint().expect("everything is acknowledged");
    processor.checkpoint_written();
    Checkpoint::clone(&checkpoint)
}

/// Returns the processor behind the script, and its second checkpoint, which holds everything that there is.
pub fn scripted(policy: Policy) -> (Processor, Checkpoint) {
    let [before, golden, _] = script();
    let mut processor = gate::processor(PARTITION, &Arc::new(policy));
    feed(&mut processor, &before);
    checkpoint(&mut processor);
    for (event, (outcome, _)) in golden.iter().zip(feed(&mut processor, &golden)) {
        assert!(!matches!(outcome, Outcome::DeadLetter(_)), "{event}: {outcome:?}");
    }
    let checkpoint = checkpoint(&mut processor);
    (processor, checkpoint)
}
