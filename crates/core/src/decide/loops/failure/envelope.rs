//! Shape: the envelopes of tool servers (MCP), which hold the tool's text in parts and may say that it is an error.

use tollgate_json::{Text, Value};

/// Returns the text inside an envelope, and whether the envelope says that it is an error; `None` where a value is no envelope.
pub fn open(value: Value<'_>) -> Option<(Text<'_>, bool)> {
    let is_error = value.get("isError").or_else(|| value.get("is_error")).and_then(|flag| flag.as_bool()).unwrap_or(false);
    let text = part(value).or_else(|| value.get("content").and_then(first_part)).or_else(|| first_part(value))?;
    Some((text, is_error))
}

/// Returns the text of a list's first part that has one.
fn first_part(list: Value<'_>) -> Option<Text<'_>> {
    if list.is_object() { None } else { list.items().find_map(part) }
}

fn part(value: Value<'_>) -> Option<Text<'_>> {
    value.get("type").filter(|kind| kind.is_text("text")).and_then(|_| value.get("text")?.as_text())
}
