//! What to publish in place of a record that is too large for its topic.
//!
//! A dead letter first loses its value, which stays where its headers say, then its key and the headers it came with. A verdict first becomes
//! a short closed one, then loses what it echoes. After that there is nothing left to leave out.

use rdkafka::message::{Header, Headers, OwnedHeaders};

use tollgate_core::decode::{EventType, PartialEvent, Rejection, RejectionCode};
use tollgate_core::evaluate::verdict;

use crate::outbox::{Delivery, Reduced, Returned, Role};

use super::dead_letter::REASON_HEADERS;
use super::headers::OWN_VERDICT_HEADERS;

/// A verdict this short is not what makes its record too large.
const SHORT_VERDICT_BYTES: usize = 4 * 1024;

/// Returns the next smaller form of what came back, or `None` if there is none.
pub(crate) fn reduce(delivery: &Delivery, returned: &Returned, policy_version: &str) -> Option<Reduced> {
    let Returned { key, value, headers, .. } = returned;
    match (delivery.role, delivery.reductions) {
        (Role::DeadLetter, 0) => {
            let headers = headers.clone().insert(Header { key: "tollgate.value.omitted", value: Some("true") });
            Some(Reduced { key: key.clone(), value: None, headers })
        }
        // The reasons are the last of its headers, and the note that the value is omitted stands behind them.
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

/// So many headers from a place on. By index, since those before it may have names that cannot be read.
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

/// What a verdict says of its event. Reading our own JSON back is slow and rare; keeping the event with every publication would be neither.
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
    }
}
