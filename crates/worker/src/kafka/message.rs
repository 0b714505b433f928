//! Consumed messages as the core's [`Record`]s.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rdkafka::Timestamp;
use rdkafka::message::{BorrowedHeaders, BorrowedMessage, Headers, Message, OwnedHeaders};

use tollgate_core::event::decode::{Rejection, RejectionCode};
use tollgate_core::event::record::{Header, Offset, Partition, Record};

/// Calls `use_record` with the message as a record, and with a rejection if its headers cannot be read. Most messages have no headers, and
/// then nothing is allocated.
pub fn with_record<T>(message: &BorrowedMessage<'_>, use_record: impl FnOnce(&Record<'_>, Option<Rejection>) -> T) -> T {
    let headers = message.headers().map_or(Ok(Vec::new()), read_headers);
    let (headers, rejection) = match headers {
        Ok(headers) => (headers, None),
        Err(rejection) => (Vec::new(), Some(rejection)),
    };
    let record = Record {
        topic: message.topic(),
        partition: Partition(message.partition()),
        offset: Offset(message.offset()),
        timestamp_ms: match message.timestamp() {
            Timestamp::NotAvailable => None,
            Timestamp::CreateTime(ms) | Timestamp::LogAppendTime(ms) => Some(ms),
        },
        key: message.key(),
        value: message.payload(),
        headers: &headers,
    };
    use_record(&record, rejection)
}

/// Reads the headers, or returns a rejection if one of their names is not UTF-8. rdkafka panics on such a name, and the panic is the only
/// sign of it. Without catching it here, such a record would end every reader that takes it.
fn read_headers(headers: &BorrowedHeaders) -> Result<Vec<Header<'_>>, Rejection> {
    let read = || headers.iter().map(|header| Header { name: header.key, value: header.value }).collect();
    catch_unwind(AssertUnwindSafe(read))
        .map_err(|_| Rejection::new(RejectionCode::HeaderInvalid, "headers", "a header whose name is not UTF-8", "name headers in UTF-8"))
}

/// Returns the message's own headers byte for byte, readable or not.
#[must_use]
pub fn own_headers(message: &BorrowedMessage<'_>) -> OwnedHeaders {
    message.headers().map_or_else(OwnedHeaders::new, BorrowedHeaders::detach)
}

/// Returns the headers of a record that waited.
#[must_use]
pub fn headers_of(record: &Record<'_>) -> OwnedHeaders {
    record
        .headers
        .iter()
        .fold(OwnedHeaders::new(), |headers, header| headers.insert(rdkafka::message::Header { key: header.name, value: header.value }))
}
