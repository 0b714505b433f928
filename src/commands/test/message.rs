//! The record of a step: an event that a test file writes as YAML, or a record with key, headers and value.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use tollgate_core::event::decode;
use tollgate_core::event::record::{Header, Offset, Partition, Record};
use tollgate_core::settings::{Section, shape};

/// The time of a case's first record, 2026-01-01T00:00:00Z, in milliseconds since the epoch. Each later record is a second younger.
const BEGIN_MS: i64 = 1_767_225_600_000;
const STEP_MS: i64 = 1_000;
/// The thread of events that name none.
const THREAD_ID: &str = "thread";

/// The fields that an event may have. A worker ignores others; in a test file they are mistakes.
static EVENT_FIELDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema = decode::schema();
    let fields = schema.pointer("/definitions/fields/properties").and_then(Value::as_object);
    fields.into_iter().flat_map(Map::keys).cloned().collect()
});

const BYTES_FIX: &str = "write a text, a mapping for JSON, {base64: …} for bytes, or null";

/// A record as a test file gives it.
#[derive(Debug, Default)]
pub(super) struct Message {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
    /// The time that the event itself has, in milliseconds since the epoch. Its record is not older.
    time_ms: Option<i64>,
}

impl Message {
    /// Reads the event or the record of a step. `number` is the place of the step in its case, from 1.
    pub(super) fn read(step: &Section<'_>, number: usize) -> Self {
        match (step.is_written("event"), step.is_written("record")) {
            (true, false) => Self::of_event(step, number),
            (false, true) => Self::of_record(&step.section("record")),
            (true, true) => {
                step.fault("record", "both `event` and `record`", "write one of them");
                Self::default()
            }
            (false, false) => {
                step.fault("event", "nothing", "write the event as a mapping, or a `record` with key, headers and value");
                Self::default()
            }
        }
    }

    fn of_event(step: &Section<'_>, number: usize) -> Self {
        let (section, found) = (step.section("event"), step.value("event").and_then(Value::as_object));
        let mut event = found.cloned().unwrap_or_default();
        if event.contains_key("specversion") {
            // The members of a CloudEvent are for its envelope to judge.
            found.into_iter().flat_map(Map::keys).for_each(|name| section.pass_over(name));
        } else {
            EVENT_FIELDS.iter().for_each(|name| section.pass_over(name));
            event.entry("thread_id").or_insert_with(|| THREAD_ID.into());
            event.entry("event_id").or_insert_with(|| format!("event-{number}").into());
        }
        let time = event.get("timestamp").or_else(|| event.get("time")).and_then(Value::as_str);
        Self { value: serde_json::to_vec(&event).ok(), time_ms: time.and_then(tollgate_json::time::parse_timestamp), ..Self::default() }
    }

    fn of_record(section: &Section<'_>) -> Self {
        let bytes = |key: &'static str| section.value(key).and_then(|value| bytes_of(value).or_else(|| fault(section, key, value)));
        let headers = section.value("headers").and_then(|headers| {
            let pairs = headers.as_object().map(|headers| headers.iter());
            if pairs.is_none() {
                section.fault("headers", shape(headers), "write a mapping of names and values");
            }
            pairs
        });
        let header = |(name, value): (&String, &Value)| {
            let bytes = if value.is_null() { None } else { bytes_of(value) };
            if bytes.is_none() && !value.is_null() {
                section.fault(&format!("headers.{name}"), shape(value), BYTES_FIX);
            }
            (name.clone(), bytes)
        };
        let headers = headers.into_iter().flatten().map(header).collect();
        Self { key: bytes("key"), value: bytes("value"), headers, time_ms: None }
    }

    /// Calls `use_record` with the record of this place in its case, from 1.
    pub(super) fn with_record<T>(&self, topic: &str, number: usize, use_record: impl FnOnce(&Record<'_>) -> T) -> T {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
        let offset = i64::try_from(number).unwrap_or(i64::MAX).saturating_sub(1);
        use_record(&Record {
            topic,
            partition: Partition(0),
            offset: Offset(offset),
            timestamp_ms: self.time_ms.max(Some(BEGIN_MS.saturating_add(offset.saturating_mul(STEP_MS)))),
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: &headers,
        })
    }
}

/// Notes a value that is no text and no bytes.
fn fault(section: &Section<'_>, key: &str, value: &Value) -> Option<Vec<u8>> {
    section.fault(key, shape(value), BYTES_FIX);
    None
}

/// Returns the bytes that a value stands for.
fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Object(object) => match object.get("base64").filter(|_| object.len() == 1) {
            Some(encoded) => STANDARD.decode(encoded.as_str()?).ok(),
            None => serde_json::to_vec(value).ok(),
        },
        _ => None,
    }
}
