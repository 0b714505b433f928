//! Telling the format of a line.

use tollgate_json::{DEPTH_MAX, Parser, Value};

use super::{Format, LineFault};

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
/// 3. A line with a tab that does not begin as JSON is a fault: it may be columns of a program that does not say what they are.
/// 4. Every other line is an event, and rejected if it is none.
pub(super) fn detect(line: &[u8], parser: &mut Parser) -> Result<Format, LineFault> {
    if !begins_as_json(line) {
        return match memchr::memchr(b'\t', line) {
            None => Ok(Format::Events),
            Some(_) => {
                let found = "columns with tabs between them, such as kafka-console-consumer.sh prints";
                let fix = "print records with kcat -C -J, or take tollgate capture: both say what is key, header and value";
                Err(LineFault::new("format_unclear", "record", found, fix))
            }
        };
    }
    if memchr::memmem::find(line, OFFSET).is_none() {
        return Ok(Format::Events);
    }
    parser.parse(line, EVENT_DEPTH_MAX).map_or(Ok(Format::Events), format_of)
}

fn begins_as_json(line: &[u8]) -> bool {
    let line = without_registry_prefix(line);
    line.trim_ascii_start().first() == Some(&b'{')
}

/// Returns a value without the prefix of a schema registry, as the gate reads it.
fn without_registry_prefix(value: &[u8]) -> &[u8] {
    match value {
        [0, _, _, _, _, json @ ..] => json,
        _ => value,
    }
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
