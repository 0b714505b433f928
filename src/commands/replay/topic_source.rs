//! The records of a topic up to where it ends now, in the order of their times across partitions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message as _, Offset as KafkaOffset, TopicPartitionList};
use tollgate_core::record::OwnedRecord;

use crate::kafka::{PlainContext, consumer_config, make_consumer, with_record};
use crate::settings::KafkaSettings;

use super::super::topics::Topics;
use super::progress::Place;
use super::source::{Item, unreadable_header};
use crate::capture::LineFault;

const POLL: Duration = Duration::from_millis(50);
/// How long brokers may be silent while records are missing.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long the answer to where a partition begins is good for: compaction leaves gaps everywhere, and each would cost a question.
const BEGINNING_AGE_MAX: Duration = Duration::from_secs(1);
/// How many bytes of a partition are fetched ahead, in KiB.
const AHEAD_KIB: &str = "8192";

/// A partition, and its next items.
struct Reading {
    number: i32,
    queue: PartitionQueue<PlainContext>,
    /// The next offset.
    next: i64,
    end: i64,
    /// Where the partition began when brokers were last asked, and when that was.
    beginning: Option<(Instant, i64)>,
    /// Items with their times, in order: a record, and a fault before it if there is one.
    heads: VecDeque<(i64, Item)>,
}

/// A topic as it stood when it was opened.
pub(super) struct TopicSource {
    consumer: Arc<BaseConsumer<PlainContext>>,
    topic: String,
    partitions: Vec<Reading>,
}

impl TopicSource {
    /// Opens a topic behind these offsets, by partition.
    ///
    /// # Errors
    /// The topic is not there, or the brokers do not answer.
    pub(super) fn open(kafka: &KafkaSettings, name: &str, behind: &BTreeMap<i32, i64>) -> anyhow::Result<Self> {
        let topics = Topics::new(kafka)?;
        let topic = topics.named(name, "SOURCE")?;
        let mut config = consumer_config(kafka, &kafka.group_id, None);
        config.set("client.id", "tollgate-replay").set("auto.offset.reset", "earliest").set("statistics.interval.ms", "0");
        config.set("enable.partition.eof", "true").set("queued.max.messages.kbytes", AHEAD_KIB);
        let consumer = Arc::new(make_consumer(&config, PlainContext).context("kafka.properties")?);
        let (mut list, mut partitions) = (TopicPartitionList::new(), Vec::new());
        for partition in topic.all()? {
            let (begin, end) = topics.ends(topic, partition)?;
            let next = behind.get(&partition.0).map_or(begin.0, |last| last + 1);
            list.add_partition_offset(name, partition.0, KafkaOffset::Offset(next))?;
            let queue = consumer.split_partition_queue(name, partition.0).ok_or_else(|| anyhow!("partition {partition} of {name}"))?;
            partitions.push(Reading { number: partition.0, queue, next, end: end.0, beginning: None, heads: VecDeque::new() });
        }
        consumer.assign(&list)?;
        Ok(Self { consumer, topic: name.to_owned(), partitions })
    }

    pub(super) fn next(&mut self) -> anyhow::Result<Item> {
        for partition in &mut self.partitions {
            if partition.heads.is_empty() && partition.next < partition.end {
                partition.fill(&self.consumer, &self.topic)?;
            }
        }
        let waiting = self.partitions.iter_mut().filter(|partition| !partition.heads.is_empty());
        let earliest = waiting.min_by_key(|partition| partition.heads.front().map(|(time, _)| *time));
        Ok(earliest.and_then(|partition| partition.heads.pop_front()).map_or(Item::End, |(_, item)| item))
    }
}

impl Reading {
    /// Waits for the next record, or for the end.
    fn fill(&mut self, consumer: &BaseConsumer<PlainContext>, topic: &str) -> anyhow::Result<()> {
        let since = Instant::now();
        loop {
            // Errors of the whole client come here; records come to the queues.
            if let Some(Err(error)) = consumer.poll(Duration::ZERO) {
                tracing::debug!(%error, "source");
            }
            match self.queue.poll(POLL) {
                Some(Ok(message)) => {
                    let (offset, place) = (message.offset(), Place { partition: self.number, at: message.offset() });
                    if offset >= self.end {
                        self.next = self.end;
                        return Ok(());
                    }
                    let time_ms = message.timestamp().to_millis().unwrap_or(i64::MIN);
                    let item = with_record(&message, |record, fault| match fault {
                        None => Item::Record(place, Box::new(OwnedRecord::of(record))),
                        Some(_) => Item::Fault(place, unreadable_header()),
                    });
                    drop(message);
                    let missing = offset - self.next;
                    if missing > 0 && self.is_deleted(consumer, topic) {
                        let at = Place { partition: self.number, at: self.next };
                        self.heads.push_back((i64::MIN, Item::Fault(at, deleted(missing))));
                    }
                    self.next = offset + 1;
                    self.heads.push_back((time_ms, item));
                    return Ok(());
                }
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    if self.is_deleted(consumer, topic) {
                        let at = Place { partition: self.number, at: self.next };
                        self.heads.push_back((i64::MIN, Item::Fault(at, deleted(self.end - self.next))));
                    }
                    self.next = self.end;
                    return Ok(());
                }
                Some(Err(error)) => tracing::debug!(%error, "source"),
                None => {}
            }
            if since.elapsed() > SILENCE_MAX {
                bail!("partition {} of {topic}: the brokers are silent since {} s", self.number, SILENCE_MAX.as_secs());
            }
        }
    }

    /// Returns whether the next record was deleted by retention. A gap may also be what compaction or a transaction left.
    fn is_deleted(&mut self, consumer: &BaseConsumer<PlainContext>, topic: &str) -> bool {
        let known = self.beginning.filter(|(asked, low)| asked.elapsed() < BEGINNING_AGE_MAX || *low > self.next);
        let beginning = known.or_else(|| {
            let (low, _) = consumer.fetch_watermarks(topic, self.number, Duration::from_secs(10)).ok()?;
            Some((Instant::now(), low))
        });
        self.beginning = beginning;
        beginning.is_some_and(|(_, low)| low > self.next)
    }
}

/// Returns the fault of records that went while the topic was read, or since a replay was interrupted.
fn deleted(records: i64) -> LineFault {
    LineFault::new("deleted_by_retention", "offset", format!("{records} records that are gone"), "replay within the topic's retention")
}
