//! The script for what signals have counted of a thread.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::signal::Interest;
use tollgate_core::engine::checkpoint::Checkpoint;
use tollgate_fixtures::gate;

use super::script::{PARTITION, checkpoint, feed};
use super::{Script, check_golden};

/// Returns a policy with signals.
fn policy() -> Policy {
    gate::default_policy().with_signals(Interest::default())
}

fn event(thread: &str, event_type: &str, id: &str, with: &Value) -> Value {
    let mut event = json!({"type": event_type, "thread_id": thread, "event_id": id, "timestamp": "2026-01-01T00:00:00Z"});
    with.as_object().unwrap().iter().for_each(|(name, value)| event[name] = value.clone());
    event
}

fn response(thread: &str, id: &str, finish_reason: &str) -> Value {
    event(thread, "model_response", id, &json!({"response": {"choices": [{"finish_reason": finish_reason}]}}))
}

fn start(thread: &str, id: &str) -> Value {
    event(thread, "turn_start", id, &json!({}))
}

fn in_turn(mut event: Value, turn: &str) -> Value {
    event["turn_id"] = json!(turn);
    event
}

/// Returns the checkpoint behind the script's events.
pub fn scripted() -> Checkpoint {
    let mut processor = gate::processor(PARTITION, &Arc::new(policy()));
    let events = [
        start("nothing yet", "e1"),
        start("a response", "e2"),
        response("a response", "e3", "stop"),
        start("a stop", "e4"),
        response("a stop", "e5", "content_filter"),
        start("a turn after a stop", "e6"),
        response("a turn after a stop", "e7", "content_filter"),
        start("a turn after a stop", "e8"),
        start("two responses", "e10"),
        response("two responses", "e11", "stop"),
        response("two responses", "e12", "length"),
        start("a stop and a response", "e13"),
        response("a stop and a response", "e14", "content_filter"),
        response("a stop and a response", "e15", "stop"),
        in_turn(response("a named turn", "e16", "content_filter"), "u1"),
        in_turn(response("a named turn after another", "e17", "content_filter"), "u1"),
        in_turn(response("a named turn after another", "e18", "stop"), "u2"),
        in_turn(response("a turn that was reset", "e19", "content_filter"), "u1"),
        in_turn(event("a turn that was reset", "thread_reset", "e20", &json!({})), "u1"),
        in_turn(response("a late response", "e21", "stop"), "u1"),
        in_turn(response("a late response", "e22", "stop"), "u2"),
        in_turn(response("a late response", "e23", "content_filter"), "u1"),
    ];
    feed(&mut processor, &events);
    checkpoint(&mut processor)
}

#[test]
fn what_was_counted_is_written_as_the_golden_says() {
    check_golden(Script::Counted, &scripted());
}
