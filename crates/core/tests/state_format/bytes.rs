//! Tests what checkpoints hold of a call's arguments byte for byte, and of calls that were suppressed in earlier turns.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::deciding::VerdictBuffer;
use tollgate_core::engine::checkpoint::VERSION;
use tollgate_core::event::record::Offset;
use tollgate_fixtures::gate::{self, Processor};

use super::script::{PARTITION, checkpoint, feed, policy, script, scripted};
use super::{golden, restore};

/// Returns the code of the verdict on an event that is fed as this text.
fn code(processor: &mut Processor, text: &str) -> String {
    let mut out = VerdictBuffer::default();
    let offset = processor.next().max(Offset(0));
    let applied = processor.apply(&gate::record(PARTITION, offset, text.as_bytes()), &mut out).expect("the records come in order");
    gate::decided(processor, offset, applied, &mut out);
    processor.published(offset, 0).unwrap();
    serde_json::from_slice::<Value>(&out.json).unwrap()["code"].as_str().unwrap().to_owned()
}

/// Returns the script's second call of a thread that has learned nothing since: it was allowed, and the next one like it is blocked.
fn repeated_call() -> String {
    let [_, golden, _] = script();
    let is_it = |event: &&Value| event["thread_id"] == "learns nothing" && event["type"] == "tool_call" && event["tool_call_id"] == "c2";
    golden.iter().find(is_it).expect("the script has it").to_string()
}

#[test]
fn an_earlier_ruling_is_given_again_where_the_bytes_are_known_to_be_the_same() {
    let event = repeated_call();
    let other = event.replace(r#"{"x":1}"#, r#"{"x":0,"x":1}"#);
    assert_ne!(event, other);
    for version in 1..=VERSION {
        let policy = Arc::new(policy());
        let restored = || gate::restored(PARTITION, &policy, restore(&golden(version), &policy));
        assert_eq!(code(&mut restored(), &event), "allow", "version {version}, the same bytes");
        assert_eq!(code(&mut restored(), &other), "idempotent_no_progress_block", "version {version}, other bytes");
    }
    assert_eq!(code(&mut scripted(super::policy()).0, &event), "allow", "without a restore");
}

#[test]
fn a_call_that_was_suppressed_in_an_earlier_turn_is_suppressed_behind_a_restore() {
    let policy = Arc::new(policy());
    let call = |id: &str| json!({"type": "tool_call", "thread_id": "t", "tool_call_id": id, "tool_name": "bash", "tool_input": {}});
    let body =
        json!({"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": [{"id": "c1", "function": {"name": "bash"}}]}}]});
    let turn = |event_type: &str, id: &str| json!({"type": event_type, "thread_id": "t", "turn_id": id});
    let cut_off = json!({"type": "model_response", "thread_id": "t", "turn_id": "u1", "response": body});
    for turns in [vec![turn("turn_start", "u2"), turn("turn_start", "u3")], vec![turn("turn_start", "u2"), turn("turn_end", "u2")]] {
        let mut processor = gate::processor(PARTITION, &policy);
        feed(&mut processor, &[std::slice::from_ref(&cut_off), turns.as_slice()].concat());
        let records = checkpoint(&mut processor).records;
        let mut restored = gate::restored(PARTITION, &policy, restore(&records, &policy));
        let mut late = call("c1");
        late["turn_id"] = json!("u9");
        assert_eq!(code(&mut restored, &late.to_string()), "suppressed_tool_call", "{turns:?}");
        assert_eq!(code(&mut restored, &call("c2").to_string()), "allow", "{turns:?}");
    }
}
