//! Open transactions: what they hide from readers that wait for commits, which is every reader here.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaResult;
use rdkafka::message::Message as _;
use rdkafka::{Offset, TopicPartitionList};

use super::{PlainContext, make_consumer, reader_config};
use crate::host_time::now_ms;
use tollgate_config::settings::KafkaSettings;

/// How long one request may take, and how long the first hidden record is waited for.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);

/// What an open transaction hides of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTransaction {
    /// The partition.
    pub partition: i32,
    /// The first offset that is hidden.
    pub offset: i64,
    /// How long ago the first hidden record was written, in milliseconds; `None` if that cannot be told.
    pub age_ms: Option<i64>,
}

impl std::fmt::Display for OpenTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let age = self.age_ms.map_or(String::new(), |age_ms| format!(", open since {} s", age_ms / 1_000));
        write!(f, "an open transaction hides partition {} from offset {} on{age}", self.partition, self.offset)
    }
}

/// Returns the open transactions of some partitions of a topic.
///
/// # Errors
/// The brokers do not say where the partitions end.
pub fn open_transactions(
    kafka: &KafkaSettings,
    topic: &str,
    partitions: impl IntoIterator<Item = i32>,
) -> KafkaResult<Vec<OpenTransaction>> {
    let config = reader_config(kafka, &kafka.group_id);
    let mut impatient = config.clone();
    impatient.set("isolation.level", "read_uncommitted").set("auto.offset.reset", "earliest");
    let (committed, all): (BaseConsumer<PlainContext>, BaseConsumer<PlainContext>) =
        (make_consumer(&config, PlainContext::default())?, make_consumer(&impatient, PlainContext::default())?);
    let mut open = Vec::new();
    for partition in partitions {
        // The end, to a consumer that waits for commits, is where the first open transaction begins.
        let (_, offset) = committed.fetch_watermarks(topic, partition, TIMEOUT)?;
        let (_, end) = all.fetch_watermarks(topic, partition, TIMEOUT)?;
        if offset < end {
            open.push(OpenTransaction { partition, offset, age_ms: age_ms(&all, topic, partition, offset)? });
        }
    }
    Ok(open)
}

/// Returns the age of a record.
fn age_ms(consumer: &BaseConsumer<PlainContext>, topic: &str, partition: i32, offset: i64) -> KafkaResult<Option<i64>> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Offset(offset))?;
    consumer.assign(&list)?;
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        match consumer.poll(POLL) {
            Some(Ok(message)) => return Ok(message.timestamp().to_millis().map(|written| now_ms().saturating_sub(written).max(0))),
            // Nothing but the mark of a transaction is there.
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
}
