//! A reader of the decisions topic, in no consumer group.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;
use tollgate_core::event::record::Record;
use tollgate_worker::kafka::{PlainContext, consumer_config, is_unreachable, make_consumer};

use crate::{BROKERS_TIMEOUT, Topics};

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the oldest verdict.
    Beginning,
    /// Behind the newest verdict.
    End,
    /// With the first verdict of this time or later, in milliseconds since 1970.
    Since(i64),
}

/// A verdict, as it stands in the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The verdict's JSON.
    pub value: Vec<u8>,
    /// Its key: the thread.
    pub thread: Vec<u8>,
    /// When it was published, in milliseconds since 1970.
    pub time_ms: Option<i64>,
}

impl Verdict {
    /// Returns the verdict that a record of the decisions topic holds.
    #[must_use]
    pub fn of(record: &Record<'_>) -> Self {
        let bytes = |bytes: Option<&[u8]>| bytes.unwrap_or_default().to_vec();
        Self { value: bytes(record.value), thread: bytes(record.key), time_ms: record.timestamp_ms }
    }
}

/// A reader of all partitions of the decisions topic.
pub struct VerdictReader {
    consumer: BaseConsumer<PlainContext>,
}

impl VerdictReader {
    /// Returns a reader that begins there.
    pub fn new(kafka: &KafkaSettings, start: Start) -> anyhow::Result<Self> {
        let topics = Topics::new(kafka)?;
        let topic = topics.find(TopicRole::Decisions)?;
        let mut config = consumer_config(kafka, &kafka.group_id, None);
        // What has been deleted meanwhile is skipped. A long wait costs nothing: brokers answer as soon as there is data.
        config.set("client.id", "tollgate-reader").set("auto.offset.reset", "earliest").set("statistics.interval.ms", "0");
        let consumer = make_consumer(&config, PlainContext::default()).context("kafka.properties")?;
        let mut places = TopicPartitionList::new();
        for partition in topic.all()? {
            let asked = match start {
                Start::Beginning => Offset::Beginning,
                Start::End => Offset::End,
                Start::Since(time_ms) => Offset::Offset(time_ms),
            };
            places.add_partition_offset(topic.name, partition.0, asked)?;
        }
        if start != Start::Beginning {
            // The offsets are asked for now, so that nothing is missed that is published before the first fetch.
            let found = consumer.offsets_for_times(places, BROKERS_TIMEOUT);
            places = found.map_err(|error| anyhow!("the ends of {} are unknown: {error}", topic.name))?;
        }
        consumer.assign(&places)?;
        Ok(Self { consumer })
    }

    /// Waits for the next verdict for up to `wait`.
    pub fn next(&self, wait: Duration) -> anyhow::Result<Option<Verdict>> {
        match self.consumer.poll(wait) {
            None => Ok(None),
            Some(Ok(message)) => Ok(Some(Verdict {
                value: message.payload().unwrap_or_default().to_vec(),
                thread: message.key().unwrap_or_default().to_vec(),
                time_ms: message.timestamp().to_millis(),
            })),
            // librdkafka connects again by itself.
            Some(Err(KafkaError::MessageConsumption(code))) if is_unreachable(code) => Ok(None),
            Some(Err(error)) => Err(error).context("the decisions cannot be read"),
        }
    }
}
