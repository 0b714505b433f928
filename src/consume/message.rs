//! A consumed message as the core's [`Record`].

use rdkafka::Timestamp;
use rdkafka::message::{BorrowedMessage, Headers, Message};

use crate::decode::{Header, Offset, Partition, Record};

/// Lends the message to `use_record` as a record. Most messages have no headers, and then nothing is allocated.
pub fn with_record<T>(message: &BorrowedMessage<'_>, use_record: impl FnOnce(&Record<'_>) -> T) -> T {
    let headers: Vec<Header<'_>> = match message.headers() {
        Some(headers) => headers.iter().map(|header| Header { name: header.key, value: header.value }).collect(),
        None => Vec::new(),
    };
    use_record(&Record {
        topic: message.topic(),
        partition: Partition(message.partition()),
        offset: Offset(message.offset()),
        timestamp_ms: match message.timestamp() {
            Timestamp::NotAvailable => None,
            Timestamp::CreateTime(ms) | Timestamp::LogAppendTime(ms) => Some(ms),
        },
        key: message.key(),
        // librdkafka gives a null and an empty value different lengths of the same null pointer; an empty one is `Some`.
        value: message.payload(),
        headers: &headers,
    })
}
