//! Decoding: a record gives an event, or a rejection that says what to mend.
//!
//! ```text
//! record ─▶ value (size, UTF-8, JSON) ─▶ envelope (plain, CloudEvents) ─▶ fields ─▶ Event
//! ```
//!
//! Each record is parsed once, and the event borrows from it. The code does not depend on where a record came from, and a rejection never
//! quotes the record.

mod base64_data;
mod envelope;
mod event;
mod fields;
mod members;
mod rejection;
mod schema;

pub(crate) use base64_data::with_data;
pub(crate) use envelope::partial_event_of;
pub(crate) use envelope::{STRUCTURED, is_structured, short_type, skip_schema_registry_prefix};
pub use event::{Attribution, Body, Event, EventType, ModelBody, ToolCall, ToolResult};
pub use rejection::{PartialEvent, Rejection, RejectionCode};
pub use schema::schema;

use crate::event::record::Record;
use tollgate_json::{DEPTH_MAX, Parser, Shape, SyntaxErrorKind, Value};

/// How many containers may be open at once in a whole event: the event and a CloudEvents envelope around what tool arguments may nest.
pub(crate) const EVENT_DEPTH_MAX: usize = DEPTH_MAX + 4;

/// The longest `thread_id`, in bytes.
pub const THREAD_ID_BYTES_MAX: usize = 256;
/// The longest `event_id`, in bytes.
pub const EVENT_ID_BYTES_MAX: usize = 128;
/// The longest `turn_id`, in bytes. Verdicts repeat it, so it is bounded as the thread's id is.
pub const TURN_ID_BYTES_MAX: usize = 256;
/// The longest `tool_call_id`, in bytes: gateways put signatures of thoughts into them. State keeps a fingerprint.
pub const TOOL_CALL_ID_BYTES_MAX: usize = 4_096;
/// The longest `tool_name`, in bytes. Verdicts repeat it in several places.
pub const TOOL_NAME_BYTES_MAX: usize = 512;
/// How far an event's timestamp may be ahead of its record's, in milliseconds. One that is further ahead counts as that far ahead.
pub const CLOCK_SKEW_MS_MAX: i64 = 5 * 60 * 1_000;
/// The longest `agent_id` and `tenant_id` that a verdict repeats, in bytes. A longer id is left out of the verdict.
pub const ATTRIBUTION_BYTES_MAX: usize = 256;
/// The longest `timestamp` that a verdict repeats as it stands, in bytes. Of a longer one the verdict has the milliseconds.
pub(crate) const TIMESTAMP_BYTES_MAX: usize = 64;

/// Decodes one record.
///
/// # Errors
/// [`Rejection`] for the first rule of the event contract that the record breaks, with whatever is known of the event.
pub fn decode<'d>(record: &Record<'d>, parser: &'d mut Parser, value_bytes_max: usize) -> Result<Event<'d>, Rejection> {
    if let Some(envelope) = envelope::open_without_data(record) {
        return fields::read(record, "", &envelope?);
    }
    let (document, root) = match read_value(record, parser, value_bytes_max) {
        Ok(read) => read,
        Err(rejection) => return Err(rejection.with_event(partial_event_of(record))),
    };
    let envelope = envelope::open(record, root)?;
    fields::read(record, document, &envelope)
}

/// Returns the text of a record's value, and what it is as JSON. Data in base64 are read from another text.
fn read_value<'d>(record: &Record<'d>, parser: &'d mut Parser, value_bytes_max: usize) -> Result<(&'d str, Value<'d>), Rejection> {
    let value = record
        .value
        .ok_or_else(|| Rejection::new(RejectionCode::ValueNull, "value", "null (a tombstone)", "send one JSON object per record"))?;
    if value.is_empty() {
        return Err(Rejection::new(RejectionCode::ValueEmpty, "value", "0 bytes", "send one JSON object per record"));
    }
    if value.len() > value_bytes_max {
        return Err(too_large(format!("{} bytes", value.len())));
    }
    let text = envelope::skip_schema_registry_prefix(value);
    let document = simdutf8::compat::from_utf8(text).map_err(|error| {
        let found = format!("{} bytes, not UTF-8 from byte {} on", text.len(), error.valid_up_to());
        Rejection::new(RejectionCode::ValueNotUtf8, "value", found, "encode the JSON as UTF-8")
    })?;
    let parsed = match with_data(text) {
        Some(text) => parser.parse_owned(text, EVENT_DEPTH_MAX),
        None => parser.parse(text, EVENT_DEPTH_MAX),
    };
    let root = parsed.map_err(|error| {
        let found = format!("{} bytes, {error}", text.len());
        match error.kind {
            SyntaxErrorKind::TooDeep => {
                Rejection::new(RejectionCode::ValueTooDeep, "value", found, "nest fewer than 1,024 arrays and objects")
            }
            SyntaxErrorKind::TooManyValues => too_many_values("value", found),
            _ => Rejection::new(RejectionCode::ValueNotJson, "value", found, "send one JSON object per record"),
        }
    })?;
    if !root.is_object() {
        let fix = match root.shape() {
            Shape::Array => "send each event of the list, or each CloudEvent of the batch, as a record of its own",
            _ => "send one JSON object per record",
        };
        let found = root.shape().to_string();
        return Err(Rejection::new(RejectionCode::ValueNotAnObject, "value", found, fix));
    }
    Ok((document, root))
}

/// Returns the rejection of a field with more values than are read.
fn too_many_values(field: &'static str, found: String) -> Rejection {
    Rejection::new(RejectionCode::ValueTooMany, field, found, "send at most 500,000 values and keys, or long lists of them as one text")
}

/// Returns the rejection of a value that is too large. A reader that cuts such a value short beforehand uses it too.
#[must_use]
pub fn too_large(found: String) -> Rejection {
    Rejection::new(RejectionCode::ValueTooLarge, "value", found, "send less, or raise limits.event_bytes_max")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::record::{Header, Offset, Partition};

    #[test]
    fn a_binary_cloud_event_needs_no_data() {
        let headers = [("ce_specversion", "1.0"), ("ce_id", "e1"), ("ce_type", "acme.turn_end.v1"), ("ce_subject", "t")];
        let headers = headers.map(|(name, value)| Header { name, value: Some(value.as_bytes()) });
        for value in [None, Some(b"".as_slice())] {
            let (partition, offset) = (Partition(0), Offset(0));
            let record = Record { topic: "t", partition, offset, timestamp_ms: None, key: None, value, headers: &headers };
            let mut parser = Parser::new();
            assert_eq!(decode(&record, &mut parser, 1_000).unwrap().event_type(), EventType::TurnEnd);
            let plain = Record { headers: &[], ..record };
            assert!(decode(&plain, &mut Parser::new(), 1_000).is_err());
        }
    }

    #[test]
    fn a_clock_that_runs_ahead_counts_as_five_minutes() {
        let time_of = |timestamp: &str, record_ms| {
            let value = format!("{{\"type\":\"turn_end\",\"thread_id\":\"t\",\"timestamp\":\"{timestamp}\"}}");
            let (partition, offset) = (Partition(0), Offset(0));
            let record =
                Record { topic: "t", partition, offset, timestamp_ms: record_ms, key: None, value: Some(value.as_bytes()), headers: &[] };
            decode(&record, &mut Parser::new(), 1_000).unwrap().time_ms
        };
        assert_eq!(time_of("1970-01-01T00:10:00Z", Some(60_000)), Some(360_000));
        assert_eq!(time_of("1970-01-01T00:02:00Z", Some(60_000)), Some(120_000));
        assert_eq!(time_of("1970-01-01T00:10:00Z", None), Some(600_000));
    }
}
