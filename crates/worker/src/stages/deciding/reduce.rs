//! The smaller forms of publications that are too large for their topic.
//!
//! A dead letter first loses its value, which can still be read at the place that its headers name; then it loses its key and the headers
//! it came with. A verdict first becomes a short one that blocks; then it loses the headers that it echoes. After that there is nothing
//! left to leave out.

use rdkafka::message::{Header, Headers, OwnedHeaders};

use tollgate_core::decide::evaluate::verdict;
use tollgate_core::event::decode::{EventType, PartialEvent, Rejection, RejectionCode};

use crate::outbox::{Delivery, Reduced, Returned, Role};

use super::dead_letter::REASON_HEADERS;
use super::headers::OWN_VERDICT_HEADERS;

/// A verdict of at most this many bytes is not the reason that its record is too large.
const SHORT_VERDICT_BYTES: usize = 4 * 1024;

/// Returns the next smaller form of a record that came back, or `None` if there is none.
pub fn reduce(delivery: &Delivery, returned: &Returned, policy_version: &str) -> Option<Reduced> {
    let Returned { key, value, headers, .. } = returned;
    match (delivery.role, delivery.reductions) {
        (Role::DeadLetter, 0) => {
            let headers = headers.clone().insert(Header { key: "tollgate.value.omitted", value: Some("true") });
            Some(Reduced { key: key.clone(), value: None, headers })
        }
        // The last headers are the reasons, followed by the note that the value is omitted.
        (Role::DeadLetter, 1) => Some(Reduced {
            key: None,
            value: None,
            headers: take_headers(headers, headers.count().saturating_sub(REASON_HEADERS + 1), REASON_HEADERS + 1),
        }),
        (Role::Verdict | Role::Reply, 0) => {
            Some(Reduced { key: key.clone(), value: Some(short_verdict(value, policy_version)), headers: headers.clone() })
        }
        (Role::Verdict | Role::Reply, 1) => {
            Some(Reduced { key: key.clone(), value: value.clone(), headers: take_headers(headers, 0, OWN_VERDICT_HEADERS) })
        }
        _ => None,
    }
}

/// Returns this many headers from an index on. It goes by index, since the headers before it may have names that cannot be read.
fn take_headers(headers: &OwnedHeaders, from: usize, count: usize) -> OwnedHeaders {
    let taken = (from..headers.count().min(from + count)).filter_map(|at| headers.try_get(at));
    taken.fold(OwnedHeaders::new_with_capacity(count), |own, header| own.insert(header))
}

fn short_verdict(value: &Option<Vec<u8>>, policy_version: &str) -> Vec<u8> {
    let value = value.as_deref().unwrap_or_default();
    if value.len() <= SHORT_VERDICT_BYTES {
        return value.to_vec();
    }
    let event = partial_event_of_verdict(value);
    let event_id = event.event_id.clone().unwrap_or_default();
    let found = format!("what would be a verdict of {} bytes, more than the topic takes", value.len());
    let rejection = Rejection::new(RejectionCode::VerdictTooLarge, "value", found, "raise max.message.bytes of the topic");
    let mut json = Vec::new();
    verdict::write_invalid(&rejection.with_event(event), &event_id, policy_version, &mut json);
    json
}

/// Returns what a verdict holds of its event. Parsing our own JSON is slow but rare; storing the event with every publication would be
/// expensive and frequent.
fn partial_event_of_verdict(verdict: &[u8]) -> PartialEvent {
    let value: serde_json::Value = serde_json::from_slice(verdict).unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
    PartialEvent {
        thread_id: text("thread_id"),
        event_id: text("event_id"),
        event_type: text("type").as_deref().and_then(EventType::from_name),
        turn_id: text("turn_id"),
        tool_call_id: text("tool_call_id"),
        tool_name: text("tool_name"),
        agent_id: text("agent_id"),
        tenant_id: text("tenant_id"),
        timestamp: text("timestamp"),
    }
}
