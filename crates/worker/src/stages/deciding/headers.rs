//! The headers of verdicts, and the reply address in the headers of an event.

use rdkafka::message::{Header, OwnedHeaders};

use tollgate_core::event::record;
use tollgate_core::event::record::Record;

/// Headers of the event that its verdict repeats unchanged.
const ECHOED: [&str; 4] = ["traceparent", "tracestate", "correlation_id", "kafka_correlationId"];

/// How many headers are echoed at most: each of them once, with room for repeats.
const ECHOED_MAX: usize = 8;

/// The largest header value that is echoed, in bytes. A larger one is no correlation id, and could make a verdict larger than its topic
/// takes.
const ECHOED_BYTES_MAX: usize = 4 * 1024;

/// How many headers of its own a verdict has, before those that it echoes.
pub const OWN_VERDICT_HEADERS: usize = 2;

/// The place where an event wants a copy of its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyAddress<'a> {
    /// The topic, which the sender chooses.
    pub topic: &'a str,
    /// The partition, if the sender names one.
    pub partition: Option<i32>,
}

/// Returns the headers of a verdict: its event's id, its content type, and the event's correlation headers.
#[must_use]
pub fn verdict_headers(record: &Record<'_>, event_id: &str) -> OwnedHeaders {
    let headers = OwnedHeaders::new_with_capacity(2 + record.headers.len().min(ECHOED.len()))
        .insert(Header { key: "event_id", value: Some(event_id) })
        .insert(Header { key: "content-type", value: Some("application/json") });
    let is_short = |header: &&record::Header<'_>| header.value.is_none_or(|value| value.len() <= ECHOED_BYTES_MAX);
    let echoed = record.headers.iter().filter(|header| ECHOED.contains(&header.name)).filter(is_short).take(ECHOED_MAX);
    echoed.fold(headers, |headers, header| headers.insert(Header { key: header.name, value: header.value }))
}

/// Returns the reply address in a record's headers, as Spring's ReplyingKafkaTemplate writes it.
#[must_use]
pub fn reply_address<'a>(record: &Record<'a>) -> Option<ReplyAddress<'a>> {
    let topic = std::str::from_utf8(record.header("kafka_replyTopic")?).ok()?;
    let partition = record.header("kafka_replyPartition").and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
    Some(ReplyAddress { topic, partition: partition.filter(|partition| *partition >= 0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::message::Headers;
    use tollgate_core::event::record::{Offset, Partition};

    fn record<'a>(headers: &'a [record::Header<'a>]) -> Record<'a> {
        Record { topic: "t", partition: Partition(0), offset: Offset(0), timestamp_ms: None, key: None, value: None, headers }
    }

    #[test]
    fn correlation_is_echoed_byte_for_byte() {
        let headers = [
            record::Header { name: "kafka_correlationId", value: Some(b"\xff\x00") },
            record::Header { name: "secret", value: Some(b"x") },
        ];
        let echoed = verdict_headers(&record(&headers), "e1");
        let names: Vec<_> = echoed.iter().map(|header| (header.key, header.value)).collect();
        assert_eq!(
            names,
            [
                ("event_id", Some(b"e1".as_slice())),
                ("content-type", Some(b"application/json".as_slice())),
                ("kafka_correlationId", Some(b"\xff\x00".as_slice()))
            ]
        );
    }

    #[test]
    fn reply_partitions_are_four_bytes_big_endian() {
        let headers = |partition: &'static [u8]| {
            [
                record::Header { name: "kafka_replyTopic", value: Some(b"r") },
                record::Header { name: "kafka_replyPartition", value: Some(partition) },
            ]
        };
        assert_eq!(reply_address(&record(&headers(&[0, 0, 1, 2]))), Some(ReplyAddress { topic: "r", partition: Some(258) }));
        assert_eq!(reply_address(&record(&headers(b"3"))), Some(ReplyAddress { topic: "r", partition: None }));
        assert_eq!(reply_address(&record(&[])), None);
    }
}
