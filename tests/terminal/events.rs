//! Events of conversations that are shown on a terminal, and the time that a process uses.

use std::time::Duration;

use serde_json::{Value, json};

/// A call of a tool.
pub fn call(thread: &str, id: &str, tool: &str) -> Value {
    json!({"type": "tool_call", "thread_id": thread, "event_id": format!("{id}/call"), "turn_id": "turn", "tool_call_id": id, "tool_name": tool,
           "tool_input": {"path": "notes.md"}})
}

/// The result of a call.
pub fn failure(thread: &str, id: &str, tool: &str) -> Value {
    let mut event = call(thread, id, tool);
    event["type"] = json!("tool_result");
    event["event_id"] = json!(format!("{id}/result"));
    event["result"] = json!("no such file");
    event["failed"] = json!(true);
    event
}

/// A call that fails twice with the same arguments and is blocked when it comes again.
pub fn stuck(thread: &str) -> Vec<Value> {
    let tool = "read_file";
    let calls = (1..=3).flat_map(|number| {
        let id = format!("c{number}");
        [call(thread, &id, tool), failure(thread, &id, tool)]
    });
    calls.take(5).collect()
}

/// Returns the CPU time that a process has used.
pub fn cpu_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name stands in parentheses and may hold spaces. The 14th and 15th fields are times, in hundredths of a second.
    let behind_name = stat.rsplit_once(')').unwrap().1;
    let ticks: u64 = behind_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
