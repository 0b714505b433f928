//! A thread's state for people: what is known of it line by line, and its calls as a table.

use std::io::Write;

use serde_json::Value;

use crate::commands::shared::{Column, OutputFormat, Screen, TITLE, Table, ago, bytes, hash_text, now_ms, shown, stamp, text};

const CALLS: &[Column] = &[text("call"), text("tool"), text("arguments").wide(), text("the call's verdict"), text("the result's verdict")];

/// Writes a thread's view, as its JSON has it.
pub(super) fn write(out: &mut impl Write, view: &Value, screen: Screen, format: OutputFormat) -> std::io::Result<()> {
    let is_wide = format == OutputFormat::Wide;
    for (name, value) in facts(view, now_ms()) {
        writeln!(out, "{} {}", screen.paint(TITLE, &format!("{name:<12}")), shown(&value))?;
    }
    let calls = view.get("calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if calls.is_empty() {
        return out.flush();
    }
    let mut table = Table::new(CALLS);
    for call in calls {
        let digest = |key: &str| hash_text(call.get(key).and_then(Value::as_str).unwrap_or("-"), is_wide);
        table.row(vec![digest("id"), digest("tool"), digest("args_hash"), answer(call.get("call")), answer(call.get("result"))]);
    }
    writeln!(out)?;
    table.write(out, screen, format)
}

/// Returns what is known of the thread, by name.
fn facts(view: &Value, now_ms: i64) -> Vec<(&'static str, String)> {
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    };
    let at = |pointer: &str| view.pointer(pointer).map_or_else(|| "-".to_owned(), text);
    let time = |pointer: &str| {
        let time_ms = view.pointer(pointer).and_then(Value::as_i64);
        time_ms.map_or_else(|| "-".to_owned(), |time_ms| format!("{} ({})", stamp(time_ms), ago(time_ms, now_ms)))
    };
    let suppressed = view.pointer("/suppression/ids").and_then(Value::as_u64).unwrap_or(0);
    let unnamed = view.pointer("/suppression/unnamed_tools").and_then(Value::as_u64).unwrap_or(0);
    let ended = if view.pointer("/turn/has_ended") == Some(&Value::Bool(true)) { ", ended" } else { "" };
    vec![
        ("thread", at("/thread_id")),
        ("owner", at("/owner")),
        ("partition", format!("{}, applied up to offset {}, the checkpoint is at {}", at("/partition"), at("/applied"), at("/next"))),
        ("size", view.get("bytes").and_then(Value::as_u64).map_or_else(|| "-".to_owned(), bytes)),
        ("last event", time("/last_event_ms")),
        ("touched", time("/touched_ms")),
        ("turn", format!("{}{ended}", at("/turn/id"))),
        ("holds a stop", at("/holds_a_stop")),
        ("suppressed", format!("{suppressed} calls by id, {unnamed} by tool")),
    ]
}

/// Returns what was answered: action and codes.
fn answer(answer: Option<&Value>) -> String {
    let Some(answer) = answer.filter(|answer| !answer.is_null()) else { return "-".to_owned() };
    let action = answer.get("action").and_then(Value::as_str).unwrap_or("-");
    let codes: Vec<&str> = answer.get("codes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if codes.is_empty() || codes == [action] { action.to_owned() } else { format!("{action}: {}", codes.join(", ")) }
}
