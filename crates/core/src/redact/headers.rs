//! Redacting headers: those that a worker reads stay, with the values that it reads; of all others only the number and the lengths do.

use super::text::{none, stand_in};
use super::value::{event_type, is_version};
use super::{Keys, RedactedHeaders, Unkept};
use crate::event::decode::STRUCTURED;
use crate::event::record::Record;
use tollgate_json::time::parse_timestamp;

/// Headers with ids. They stay, unless they are longer than an id can be.
const IDS: [&str; 6] = ["ce_id", "ce_subject", "event_id", "correlation_id", "kafka_correlationId", "kafka_replyTopic"];

/// The longest value of such a header that stays, in bytes.
const ID_BYTES_MAX: usize = 512;

/// The other names that a worker reads.
const OTHERS: [&str; 3] = ["traceparent", "tracestate", "kafka_replyPartition"];

const CONTENT_TYPE: &str = "content-type";

/// Content types that stay.
const CONTENT_TYPES: [&str; 6] = [
    "application/json",
    "application/json; charset=utf-8",
    "application/json;charset=utf-8",
    STRUCTURED,
    "application/cloudevents+json; charset=utf-8",
    "application/cloudevents+json;charset=utf-8",
];

/// Returns the redacted headers of a record, in order.
pub(super) fn redact(keys: &Keys, record: &Record<'_>) -> Result<RedactedHeaders, Unkept> {
    let redacted = record.headers.iter().map(|header| {
        let name = if is_known(header.name) {
            header.name.to_owned()
        } else {
            let is_unknown = |name: &[u8]| std::str::from_utf8(name).is_ok_and(|name| !is_known(name));
            let name = stand_in(&keys.names, header.name.as_bytes(), none, is_unknown)?;
            String::from_utf8(name).map_err(|_| Unkept::Text)?
        };
        Ok((name, header.value.map(|value| redact_value(keys, header.name, value)).transpose()?))
    });
    redacted.collect()
}

/// Returns whether a name stays. Names of CloudEvents attributes do in any case of their letters, because they are refused where one
/// stands twice.
fn is_known(name: &str) -> bool {
    let is_attribute = name.as_bytes().get(..3).is_some_and(|prefix| prefix.eq_ignore_ascii_case(b"ce_"));
    is_attribute || name.eq_ignore_ascii_case(CONTENT_TYPE) || IDS.contains(&name) || OTHERS.contains(&name)
}

fn redact_value(keys: &Keys, name: &str, value: &[u8]) -> Result<Vec<u8>, Unkept> {
    let is_id = IDS.contains(&name) && value.len() <= ID_BYTES_MAX;
    // Some clients send ids and numbers in bytes.
    let is_binary_id = is_id && !name.starts_with("ce_") && value.len() <= 16;
    if is_binary_id || (name == "kafka_replyPartition" && value.len() == 4) {
        return Ok(value.to_vec());
    }
    let Ok(text) = std::str::from_utf8(value) else { return Ok(vec![0xff; value.len()]) };
    let is_known: &dyn Fn(&str) -> bool = match name {
        _ if is_id => &|_| true,
        "ce_type" => return Ok(event_type(keys, value)?.unwrap_or_else(|| value.to_vec())),
        "ce_time" => &|text| parse_timestamp(text).is_some(),
        "ce_specversion" => &is_version,
        "traceparent" => &is_trace_parent,
        _ if name.eq_ignore_ascii_case(CONTENT_TYPE) => {
            // What follows the type of a structured CloudEvent is not read.
            if text.len() > STRUCTURED.len() && text.get(..STRUCTURED.len()).is_some_and(|start| start.eq_ignore_ascii_case(STRUCTURED)) {
                let (start, rest) = value.split_at(STRUCTURED.len());
                let is_known = CONTENT_TYPES.iter().any(|known| known.eq_ignore_ascii_case(text));
                return Ok(if is_known { value.to_vec() } else { [start, &vec![b'x'; rest.len()]].concat() });
            }
            &|text| CONTENT_TYPES.iter().any(|known| known.eq_ignore_ascii_case(text))
        }
        _ => &|_| false,
    };
    if is_known(text) {
        return Ok(value.to_vec());
    }
    stand_in(&keys.texts, value, none, |other| !std::str::from_utf8(other).is_ok_and(is_known))
}

/// Returns whether a text is of the form that W3C Trace Context gives: hexadecimal ids of a trace and a span, and flags.
fn is_trace_parent(text: &str) -> bool {
    text.len() == 55 && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::super::{Keys, words};
    use super::*;

    #[test]
    fn what_is_read_stays_and_all_else_keeps_its_length() {
        let keys = Keys::new(b"key", words::reasons([""; 0]));
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (name, value, stays) in [
            ("event_id", "e-17", true),
            ("ce_id", "e-17", true),
            ("ce_type", "acme.tool_call.v1", true),
            ("ce_type", "acme.something", false),
            ("ce_time", "2026-01-31T12:00:00Z", true),
            ("ce_time", "last Friday", false),
            ("ce_specversion", "1.0", true),
            ("ce_specversion", "of Anna", false),
            ("ce_source", "//billing.acme", false),
            ("Content-Type", "application/json", true),
            ("content-type", "text/anna", false),
            ("content-type", "application/cloudevents+json; for=anna", false),
            ("traceparent", parent, true),
            ("traceparent", "anna", false),
            ("tracestate", "vendor=anna", false),
            ("kafka_replyPartition", "\0\0\0\x05", true),
            ("kafka_replyPartition", "anna!", false),
            ("kafka_correlationId", "\u{1}\u{2}", true),
            ("x-user", "anna", false),
        ] {
            let redacted = redact_value(&keys, name, value.as_bytes()).unwrap();
            assert_eq!(redacted.len(), value.len());
            assert_eq!(redacted == value.as_bytes(), stays, "{name}: {value}");
        }
        assert_eq!(redact_value(&keys, "ce_id", b"a\xff").unwrap(), b"\xff\xff");
        assert!(["x-user", "user", "CE", "event"].iter().all(|name| !is_known(name)));
    }
}
