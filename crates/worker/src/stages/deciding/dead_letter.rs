//! Dead letters: the rejected record byte for byte, with the reason in the headers that Kafka Connect uses.

use rdkafka::message::{Header, OwnedHeaders};

use tollgate_core::event::decode::Rejection;
use tollgate_core::event::record::{Offset, Partition};

/// The stage that rejects records.
const STAGE: &str = "decode";

/// How many headers hold the place of a record and why it was rejected.
pub const REASON_HEADERS: usize = 6;

/// Returns the record's own headers, followed by those with its place and why it was rejected.
#[must_use]
pub fn dead_letter_headers(own: OwnedHeaders, topic: &str, partition: Partition, offset: Offset, rejection: &Rejection) -> OwnedHeaders {
    let reasons: [_; REASON_HEADERS] = [
        ("__connect.errors.topic", topic.to_owned()),
        ("__connect.errors.partition", partition.to_string()),
        ("__connect.errors.offset", offset.to_string()),
        ("__connect.errors.stage", STAGE.to_owned()),
        ("__connect.errors.class.name", rejection.code.as_str().to_owned()),
        ("__connect.errors.exception.message", rejection.to_string()),
    ];
    reasons.iter().fold(own, |headers, (key, value)| headers.insert(Header { key, value: Some(value) }))
}
