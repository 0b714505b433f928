//! Telling the format of a line.

use tollgate_json::{DEPTH_MAX, Parser, Value};

use super::{Format, LineFault, console};

/// How many containers of an event may be open at once: as many as the gate reads.
pub(super) const EVENT_DEPTH_MAX: usize = DEPTH_MAX + 4;

/// The member that lines of kcat and captures have, and events do not. Both programs write it without escapes.
const OFFSET: &[u8] = b"\"offset\"";

/// Returns the format of a line that does not begin as a captured record, by the first of these rules that applies. A line that begins as
/// one and is no JSON is a fault, since a capture that was cut off ends so.
///
/// 1. A JSON object with `type` or `specversion` is an event.
/// 2. A JSON object with `topic`, `partition`, `offset` and `value` is a captured record, and one with `payload` in place of `value` a line
///    of kcat. With both it is a fault.
/// 3. A line with a tab is the console consumer's, if it does not begin as JSON, or if there is a whole JSON object behind one of its tabs.
/// 4. Every other line is an event, and rejected if it is none.
pub(super) fn detect(line: &[u8], parser: &mut Parser) -> Result<Format, LineFault> {
    let has_tab = memchr::memchr(b'\t', line).is_some();
    if begins_as_json(line) {
        if memchr::memmem::find(line, OFFSET).is_none() && !has_tab {
            return Ok(Format::Events);
        }
        if let Ok(root) = parser.parse(line, EVENT_DEPTH_MAX) {
            return format_of(root);
        }
        let is_console = has_tab && console::holds_a_value(line, parser);
        return Ok(if is_console { Format::Console } else { Format::Events });
    }
    Ok(if has_tab { Format::Console } else { Format::Events })
}

fn begins_as_json(line: &[u8]) -> bool {
    let line = console::without_registry_prefix(line);
    line.trim_ascii_start().first() == Some(&b'{')
}

/// Returns the format of a line that is a JSON object.
pub(super) fn format_of(root: Value<'_>) -> Result<Format, LineFault> {
    let has = |name| root.get(name).is_some();
    let is_event = has("type") || has("specversion");
    if is_event || !["topic", "partition", "offset"].into_iter().all(has) {
        return Ok(Format::Events);
    }
    match (has("value"), has("payload")) {
        (true, false) => Ok(Format::Envelope),
        (false, true) => Ok(Format::Kcat),
        (false, false) => Ok(Format::Events),
        (true, true) => {
            let found = "a record with both `value` and `payload`";
            Err(LineFault::new("format_unclear", "value", found, "name the format: --format envelope, or --format kcat"))
        }
    }
}
