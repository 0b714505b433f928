//! The records of a topic in the order of their times, across its partitions: what `capture` writes and `replay` sends.
//!
//! ```text
//! partition 0 ─▶ its next record ─┐
//! partition 1 ─▶ its next record ─┼─▶ the earliest of them
//! partition 2 ─▶ its next record ─┘
//! ```
//!
//! Brokers send what is there of one partition and then of the next, so their order says nothing of what came first. Within a partition the
//! order is that of offsets, whatever the times say.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message as _, Offset as KafkaOffset, TopicPartitionList};
use tollgate_core::event::record::OwnedRecord;

use tollgate_config::settings::KafkaSettings;
use tollgate_worker::kafka::{PlainContext, Right, consumer_config, is_forbidden, is_unreachable, make_consumer, with_record};

use crate::BROKERS_TIMEOUT;

/// How long to wait for a record at a time.
const POLL: Duration = Duration::from_millis(50);
/// How long the brokers may be silent while records are missing.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How often partitions that were read to their end are looked at again.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// How long the answer to where a partition begins is good for: compaction leaves gaps everywhere, and each would cost a question.
const BEGINNING_AGE_MAX: Duration = Duration::from_secs(1);
/// How much is fetched ahead, in KiB: of all partitions, of one, and at least of one.
const AHEAD_KIB: usize = 262_144;
const AHEAD_OF_ONE_KIB: usize = 8_192;
const AHEAD_OF_ONE_KIB_MIN: usize = 64;

/// A part of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The partition.
    pub partition: i32,
    /// The next offset to read.
    pub next: i64,
    /// The offset behind the last; `None` if there is no end.
    pub end: Option<i64>,
}

/// What comes next.
#[derive(Debug)]
pub enum Step {
    /// A record.
    Record(Box<OwnedRecord>),
    /// A record at this partition and offset that has a header whose name is not UTF-8. No reader can take it.
    Unreadable(i32, i64),
    /// Retention has taken so many offsets of a partition from this one on before they were read.
    Deleted {
        /// The partition.
        partition: i32,
        /// The first offset that is gone.
        from: i64,
        /// How many are gone.
        count: u64,
    },
    /// Nothing has come for a moment.
    Nothing,
    /// Every part is read.
    End,
}

/// Returns a reader in no consumer group. It reads what a worker reads: records of transactions that were aborted are none.
pub fn consumer(kafka: &KafkaSettings, client_id: &str, partitions: usize) -> anyhow::Result<BaseConsumer<PlainContext>> {
    let ahead = (AHEAD_KIB / partitions.max(1)).clamp(AHEAD_OF_ONE_KIB_MIN, AHEAD_OF_ONE_KIB);
    let mut config = consumer_config(kafka, &kafka.group_id, None);
    config.set("client.id", client_id).set("statistics.interval.ms", "0").set("enable.partition.eof", "true");
    config.set("queued.max.messages.kbytes", ahead.to_string());
    if !kafka.properties.contains_key("fetch.wait.max.ms") {
        // A broker says so late that a partition ends here. Where a transaction's mark is the last entry, a reader waits for that.
        config.set("fetch.wait.max.ms", "100");
    }
    // Where retention has taken what comes next, reading goes on with the first record that is there, and the gap is told.
    config.set("auto.offset.reset", "earliest");
    make_consumer(&config, PlainContext::default()).context("kafka.properties")
}

/// A topic that is being read.
pub struct TopicRecords {
    kafka: KafkaSettings,
    consumer: Arc<BaseConsumer<PlainContext>>,
    /// Asks where partitions begin. The consumer's own questions wait behind its fetches, half a second each where no more records come, and
    /// every transaction leaves a gap that is asked about.
    asker: BaseConsumer<PlainContext>,
    topic: String,
    partitions: Vec<Reading>,
    /// The partitions that have a next record, by its time.
    waiting: BinaryHeap<Reverse<(i64, usize)>>,
    /// The partitions whose next record is on its way.
    awaited: Vec<usize>,
    /// The partitions that have no end and were read to where they end now.
    idle: Vec<usize>,
    heard: Instant,
    looked: Instant,
}

/// A partition that is being read.
struct Reading {
    span: Span,
    queue: PartitionQueue<PlainContext>,
    /// What comes next of it.
    head: Option<Head>,
    /// Whether it has no end and was read to where it ends now.
    is_idle: bool,
    /// Where the partition began when brokers were last asked, and when that was.
    beginning: Option<(Instant, i64)>,
}

/// What comes next of a partition.
struct Head {
    /// Offsets before it that retention has taken.
    deleted: Option<(i64, u64)>,
    /// The record; `None` for one that cannot be read, at this offset.
    record: Option<Box<OwnedRecord>>,
    offset: i64,
    /// The offset is behind the end: nothing more comes.
    is_last: bool,
}

/// The condition of a partition after a look at its queue.
enum Look {
    HasHead(i64),
    Awaited,
    AtEnd,
}

impl TopicRecords {
    /// Begins to read these parts of a topic.
    ///
    /// # Errors
    /// librdkafka does not take the configuration or the assignment.
    pub fn open(kafka: &KafkaSettings, client_id: &str, topic: &str, spans: &[Span]) -> anyhow::Result<Self> {
        let open = spans.iter().filter(|span| span.end.is_none_or(|end| span.next < end));
        let (consumer, asker) = (Arc::new(consumer(kafka, client_id, spans.len())?), consumer(kafka, client_id, 1)?);
        let (mut list, mut partitions) = (TopicPartitionList::new(), Vec::new());
        for span in open {
            list.add_partition_offset(topic, span.partition, KafkaOffset::Offset(span.next))?;
            let queue = consumer.split_partition_queue(topic, span.partition);
            let queue = queue.ok_or_else(|| anyhow!("partition {} of {topic} has no queue", span.partition))?;
            partitions.push(Reading { span: *span, queue, head: None, is_idle: false, beginning: None });
        }
        consumer.assign(&list)?;
        let (awaited, now) = ((0..partitions.len()).collect(), Instant::now());
        let (waiting, idle, topic) = (BinaryHeap::new(), Vec::new(), topic.to_owned());
        Ok(Self { kafka: kafka.clone(), consumer, asker, topic, partitions, waiting, awaited, idle, heard: now, looked: now })
    }

    /// Returns how many offsets there are still to go through, of the partitions that have an end.
    pub fn left(&self) -> u64 {
        self.partitions.iter().filter_map(|reading| u64::try_from(reading.span.end? - reading.span.next).ok()).sum()
    }

    /// Returns what comes next.
    ///
    /// # Errors
    /// The topic cannot be read any more.
    pub fn step(&mut self) -> anyhow::Result<Step> {
        if self.looked.elapsed() >= LOOK_INTERVAL {
            self.looked = Instant::now();
            let idle = std::mem::take(&mut self.idle);
            self.look_at(idle, Duration::ZERO)?;
        }
        let awaited = std::mem::take(&mut self.awaited);
        self.look_at(awaited, Duration::ZERO)?;
        if let Some(first) = self.awaited.pop() {
            self.look_at(vec![first], POLL)?;
        }
        if !self.awaited.is_empty() {
            return self.nothing();
        }
        let Some(Reverse((time_ms, index))) = self.waiting.pop() else {
            return if self.idle.is_empty() { Ok(Step::End) } else { self.nothing() };
        };
        Ok(self.take(time_ms, index))
    }

    /// Notes that nothing has come for a moment, and waits for another one where nothing is awaited in particular.
    fn nothing(&mut self) -> anyhow::Result<Step> {
        // Errors of the whole client come here; records come to the queues.
        let wait = if self.awaited.is_empty() { LOOK_INTERVAL } else { Duration::ZERO };
        if let Some(Err(error)) = self.consumer.poll(wait) {
            self.check(error)?;
        }
        if !self.awaited.is_empty() && self.heard.elapsed() > SILENCE_MAX {
            bail!("topic {}: the brokers are silent since {} s", self.topic, SILENCE_MAX.as_secs());
        }
        Ok(Step::Nothing)
    }

    /// Takes what comes next of a partition.
    fn take(&mut self, time_ms: i64, index: usize) -> Step {
        let Some(Reading { span, head: slot, .. }) = self.partitions.get_mut(index) else { return Step::Nothing };
        let Some(mut head) = slot.take() else { return Step::Nothing };
        if let Some((from, count)) = head.deleted.take() {
            *slot = Some(head);
            self.waiting.push(Reverse((time_ms, index)));
            return Step::Deleted { partition: span.partition, from, count };
        }
        if head.is_last {
            span.next = span.end.unwrap_or(head.offset);
            return Step::Nothing;
        }
        span.next = head.offset + 1;
        if span.end.is_none_or(|end| span.next < end) {
            self.awaited.push(index);
        }
        head.record.map_or(Step::Unreadable(span.partition, head.offset), Step::Record)
    }

    /// Looks at the queues of some partitions, and waits for each for up to `wait`.
    fn look_at(&mut self, indexes: Vec<usize>, wait: Duration) -> anyhow::Result<()> {
        for index in indexes {
            let Some(reading) = self.partitions.get_mut(index) else { continue };
            match reading.look(&self.asker, &self.topic, wait, &mut self.heard) {
                Ok(Look::HasHead(time_ms)) => self.waiting.push(Reverse((time_ms, index))),
                Ok(Look::Awaited) => self.awaited.push(index),
                Ok(Look::AtEnd) => self.idle.push(index),
                Err(error) => {
                    self.awaited.push(index);
                    let error = error.downcast::<KafkaError>()?;
                    self.check(error)?;
                }
            }
        }
        Ok(())
    }

    /// Passes over an error that librdkafka mends by itself.
    fn check(&self, error: KafkaError) -> anyhow::Result<()> {
        match error {
            KafkaError::MessageConsumption(code) if is_unreachable(code) => Ok(()),
            error if is_forbidden(&error) => bail!("{}", Right::read(&self.topic).refusal(&self.kafka)),
            error => Err(error).with_context(|| format!("topic {} cannot be read", self.topic)),
        }
    }
}

impl Reading {
    /// Looks at the queue for what comes next.
    fn look(&mut self, consumer: &BaseConsumer<PlainContext>, topic: &str, wait: Duration, heard: &mut Instant) -> anyhow::Result<Look> {
        let Some(polled) = self.queue.poll(wait) else { return Ok(if self.is_idle { Look::AtEnd } else { Look::Awaited }) };
        *heard = Instant::now();
        let (offset, time_ms, record) = match polled {
            Ok(message) => {
                let record = with_record(&message, |record, fault| fault.is_none().then(|| Box::new(OwnedRecord::of(record))));
                (message.offset(), message.timestamp().to_millis().unwrap_or(i64::MIN), record)
            }
            Err(KafkaError::PartitionEOF(_)) => match self.span.end {
                None => {
                    self.is_idle = true;
                    return Ok(Look::AtEnd);
                }
                // What is left up to the end are marks of transactions, records that were compacted, or what retention has taken.
                Some(end) => (end, i64::MAX, None),
            },
            Err(error) => return Err(error.into()),
        };
        self.is_idle = false;
        let Span { partition, next, end } = self.span;
        ensure!(offset >= next, "partition {partition}: found offset {offset} where {next} comes next: the topic was made anew");
        let is_last = end.is_some_and(|end| offset >= end);
        let up_to = end.map_or(offset, |end| end.min(offset));
        let deleted = if up_to > next { self.deleted(consumer, topic, up_to) } else { 0 };
        self.head = Some(Head { deleted: (deleted > 0).then_some((next, deleted)), record, offset, is_last });
        Ok(Look::HasHead(time_ms))
    }

    /// Returns how many of the offsets up to another one retention has taken. A gap is also what compaction and marks of transactions leave.
    fn deleted(&mut self, consumer: &BaseConsumer<PlainContext>, topic: &str, up_to: i64) -> u64 {
        let Span { partition, next, .. } = self.span;
        let known = self.beginning.filter(|(asked, low)| asked.elapsed() < BEGINNING_AGE_MAX || *low >= up_to);
        let beginning = known.or_else(|| {
            let (low, _) = consumer.fetch_watermarks(topic, partition, BROKERS_TIMEOUT).ok()?;
            Some((Instant::now(), low))
        });
        self.beginning = beginning.or(self.beginning);
        u64::try_from(beginning.map_or(next, |(_, low)| low).min(up_to) - next).unwrap_or_default()
    }
}
