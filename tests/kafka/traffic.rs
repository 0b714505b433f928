//! Generates traffic of a known mix, the same for the same seed.

use serde_json::{Value, json};

use tollgate_testkit::{Outgoing, Random};

/// Returns so many threads of a few calls each, their events interleaved. Some loop, some are cut off, some break the contract.
pub(crate) fn conversations(threads: usize, seed: u64) -> Vec<Outgoing> {
    let mut random = Random::new(seed);
    let mut waiting: Vec<Vec<Outgoing>> = (0..threads).map(|number| conversation(number, &mut random)).collect();
    let mut events = Vec::new();
    while !waiting.is_empty() {
        let at = random.below(waiting.len());
        match waiting[at].pop() {
            Some(event) => events.push(event),
            None => drop(waiting.swap_remove(at)),
        }
    }
    events
}

/// Returns how many of these events get a verdict.
pub(crate) fn awaited(events: &[Outgoing]) -> usize {
    events.iter().filter(|event| !is_boundary(event)).count()
}

fn is_boundary(event: &Outgoing) -> bool {
    let value: Value = serde_json::from_slice(event.value.as_deref().unwrap_or_default()).unwrap_or_default();
    matches!(value["type"].as_str(), Some("turn_start" | "turn_end"))
}

/// Returns the events of one thread, last first.
fn conversation(number: usize, random: &mut Random) -> Vec<Outgoing> {
    let thread = format!("thread-{number:05}");
    let mut events = Vec::new();
    let mut event = |mut fields: Value| {
        fields["thread_id"] = json!(thread);
        fields["event_id"] = json!(format!("e{}", events.len()));
        fields["turn_id"] = json!("turn-1");
        fields["timestamp"] = json!(format!("2026-01-01T00:{:02}:{:02}Z", events.len() / 60, events.len() % 60));
        events.push(Outgoing::new(thread.as_str(), fields.to_string()));
    };
    event(json!({"type": "turn_start"}));
    if random.below(4) == 0 {
        let reason = ["stop", "tool_calls", "content_filter"][random.below(3)];
        let calls = json!([{"id": "c0", "type": "function", "function": {"name": "write_file", "arguments": "{\"pa"}}]);
        event(
            json!({"type": "model_response", "response": {"choices": [{"finish_reason": reason, "message": {"content": "x", "tool_calls": calls}}]}}),
        );
        event(json!({"type": "tool_call", "tool_call_id": "c0", "tool_name": "write_file", "arguments": "{\"pa"}));
    }
    for call in 1..3 + random.below(4) {
        let tool = ["terminal", "read_file", "web_search", "patch"][random.below(4)];
        let input = json!({"argument": random.below(2)});
        let result = [json!({"exit_code": 1}).to_string(), "Error: no such file".to_owned(), "fine".to_owned()][random.below(3)].clone();
        let id = format!("c{call}");
        event(json!({"type": "tool_call", "tool_call_id": id, "tool_name": tool, "tool_input": input}));
        event(json!({"type": "tool_result", "tool_call_id": id, "tool_name": tool, "result": result}));
    }
    if random.below(10) == 0 {
        event(json!({"type": "tool_call", "tool_call_id": "bad", "tool_name": 5}));
    }
    event(json!({"type": "turn_end"}));
    events.reverse();
    events
}
