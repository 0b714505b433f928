//! The script for what the step controller remembers, and for its findings.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::policy::Policy;
use tollgate_core::engine::checkpoint::{Checkpoint, VERSION};
use tollgate_fixtures::gate;

use super::script::{PARTITION, checkpoint, feed};
use super::{Script, check_golden, restore};

fn policy() -> Policy {
    gate::policy(&json!({"tool_loop_guardrails": {"preset": "tollgate", "once_tools": ["pay"], "calls_per_turn_max": {"web_*": 3}}}))
}

/// Returns a call and its result.
fn step(thread: &str, number: u32, tool: &str, result: &str) -> [Value; 2] {
    let event = |kind: &str, with: Value| {
        let mut event = json!({"type": kind, "thread_id": thread, "event_id": format!("{kind}-{number}"), "turn_id": "u",
                               "tool_call_id": number.to_string(), "tool_name": tool, "tool_input": {"q": tool}});
        with.as_object().unwrap().iter().for_each(|(name, value)| event[name] = value.clone());
        event
    };
    [event("tool_call", json!({})), event("tool_result", json!({"result": result}))]
}

/// Returns the checkpoint behind the script's events.
pub fn scripted() -> Checkpoint {
    let mut processor = gate::processor(PARTITION, &Arc::new(policy()));
    let mut events: Vec<Value> = (0..4).flat_map(|number| step("repeats", number, "list", "a\nb")).collect();
    events.extend((0..2).flat_map(|number| step("fails", number, "change", "Error: not allowed")));
    events.push(json!({"type": "turn_start", "thread_id": "fails", "event_id": "s", "turn_id": "v"}));
    events.extend(step("pays", 0, "pay", "paid"));
    events.extend((1..4).flat_map(|number| step("pays", number, "web_search", &format!("page {number}"))));
    events.extend((0..2).map(|number| step("waits", number, "fetch", "").into_iter().next().unwrap()));
    events.extend((0..6).flat_map(|number| step(&format!("quiet {number}"), number, "look", &format!("[{number}]"))));
    feed(&mut processor, &events);
    checkpoint(&mut processor)
}

#[test]
fn steps_are_written_as_the_golden_says() {
    check_golden(Script::Steps, &scripted());
}

#[test]
fn a_restored_thread_is_refused_what_it_would_have_been_refused() {
    for version in 1..=VERSION {
        let policy = Arc::new(policy());
        for (thread, tool, expected) in [
            ("repeats", "list", "same_result_denied"),
            ("pays", "pay", "once_denied"),
            ("pays", "web_search", "calls_per_turn_denied"),
            ("waits", "fetch", "allow"),
        ] {
            let mut restored = gate::restored(PARTITION, &policy, restore(&Script::Steps.golden(version), &policy));
            let [call, _] = step(thread, 9, tool, "");
            let verdict: Value = serde_json::from_slice(&feed(&mut restored, &[call])[0].1).unwrap();
            assert_eq!(verdict["code"], expected, "version {version}: {thread} {tool}");
        }
    }
}
