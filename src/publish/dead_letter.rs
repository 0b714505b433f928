//! Dead letters: the record byte for byte, with the reason in Kafka Connect's headers.

use rdkafka::message::{Header, OwnedHeaders};

use crate::decode::{Record, Rejection};

/// The stage that rejects records.
const STAGE: &str = "decode";

/// The record's own headers, and behind them where it stood and why it was rejected.
#[must_use]
pub fn dead_letter_headers(record: &Record<'_>, rejection: &Rejection) -> OwnedHeaders {
    let own = OwnedHeaders::new_with_capacity(record.headers.len() + 6);
    let own = record.headers.iter().fold(own, |headers, header| headers.insert(Header { key: header.name, value: header.value }));
    let reasons = [
        ("__connect.errors.topic", record.topic.to_owned()),
        ("__connect.errors.partition", record.partition.to_string()),
        ("__connect.errors.offset", record.offset.to_string()),
        ("__connect.errors.stage", STAGE.to_owned()),
        ("__connect.errors.class.name", rejection.code.as_str().to_owned()),
        ("__connect.errors.exception.message", rejection.to_string()),
    ];
    reasons.iter().fold(own, |headers, (key, value)| headers.insert(Header { key, value: Some(value) }))
}
