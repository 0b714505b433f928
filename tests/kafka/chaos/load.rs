//! Puts load on the group: a producer at a steady rate, whatever happens to the brokers, and a reader of all decisions. What became of each
//! event is noted by its number.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Header, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tollgate_testkit::{Cluster, Outgoing, Record, header};

use super::clock::now_us;
use super::traffic::{SEQUENCE, Traffic, UNREADABLE};

/// How long the last events may take to be acknowledged.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(180);
const REQUEST_TIME_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);
const READ_POLL: Duration = Duration::from_millis(50);

/// What became of an event.
#[derive(Clone, Debug, Default)]
pub(super) struct Event {
    pub(super) partition: i32,
    /// When it was given to the producer, in microseconds since 1970.
    pub(super) sent_us: u64,
    /// When the producer heard that it is written; 0 if it has not.
    pub(super) acknowledged_us: u64,
    /// When the reader of decisions saw its first verdict; 0 if it has not.
    pub(super) seen_us: u64,
    /// When the broker appended that, in microseconds since 1970.
    pub(super) appended_us: u64,
}

/// All events of a run, by their number.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of the event that a record is, or is about.
pub(super) fn number_of(record: &Record) -> Option<usize> {
    let sequence = header(record, SEQUENCE);
    sequence.strip_prefix(UNREADABLE).unwrap_or(&sequence).parse().ok()
}

/// A client that notices soon what has changed: the waits should be the group's and not its own.
fn quick(cluster: &Cluster) -> ClientConfig {
    let mut config = cluster.client();
    config.set("reconnect.backoff.max.ms", "200").set("topic.metadata.refresh.interval.ms", "1000");
    config.set("socket.timeout.ms", "3000").set("socket.connection.setup.timeout.ms", "2000");
    config
}

/// Returns all partitions of a topic, from their beginning.
fn from_beginning(topic: &str) -> Result<TopicPartitionList> {
    let mut all = TopicPartitionList::new();
    for partition in 0..super::run::PARTITIONS {
        all.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    Ok(all)
}

/// A thread that goes on until it is told to end.
pub(super) struct Running {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Running {
    fn start(work: impl FnOnce(&AtomicBool) -> Result<()> + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        Self { is_over, thread: std::thread::spawn(move || work(&seen)) }
    }

    pub(super) fn finish(self) -> Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("a thread of the load panicked"))?
    }
}

struct Reports(Events);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        // Without a time limit nothing fails but for good; the event then stays unacknowledged, which is a finding.
        if let (Ok(message), Some(event)) = (result, self.0.lock().get_mut(number)) {
            (event.acknowledged_us, event.partition) = (now_us(), message.partition());
        }
    }
}

/// Starts sending so many events a second.
pub(super) fn send(cluster: &Cluster, topic: &str, rate: u64, seed: u64, noted: &Events) -> Running {
    let (mut config, topic, noted) = (quick(cluster), topic.to_owned(), noted.clone());
    config.set("partitioner", "murmur2_random").set("enable.idempotence", "true").set("acks", "all").set("max.in.flight", "1");
    // No event is given up, however long brokers are away. Requests to one that is silent are.
    config.set("message.timeout.ms", "0").set("linger.ms", "2").set("request.timeout.ms", "3000");
    Running::start(move |is_over| {
        let producer: BaseProducer<Reports> = config.create_with_context(Reports(noted.clone()))?;
        let (mut traffic, started, mut sent) = (Traffic::new(seed), Instant::now(), 0);
        while !is_over.load(Ordering::Relaxed) {
            let due = started.elapsed().as_millis() * u128::from(rate) / 1_000;
            while sent < due {
                noted.lock().push(Event { sent_us: now_us(), ..Event::default() });
                send_one(&producer, &topic, &traffic.next(), usize::try_from(sent)?)?;
                sent += 1;
            }
            producer.poll(POLL);
        }
        Ok(producer.flush(FLUSH_TIME_MAX)?)
    })
}

fn send_one(producer: &BaseProducer<Reports>, topic: &str, event: &Outgoing, number: usize) -> Result<()> {
    let headers =
        event.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: value.as_ref() }));
    let mut unsent: BaseRecord<'_, [u8], [u8], usize> = BaseRecord::with_opaque_to(topic, number).headers(headers);
    (unsent.key, unsent.payload, unsent.partition) = (event.key.as_deref(), event.value.as_deref(), event.partition);
    while let Err((error, refused)) = producer.send(unsent) {
        ensure!(error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull), error);
        producer.poll(POLL);
        unsent = refused;
    }
    Ok(())
}

/// Starts reading decisions from all partitions, in no group. It ends at the end of the topic.
pub(super) fn read(cluster: &Cluster, topic: &str, noted: &Events) -> Result<Running> {
    let mut config = quick(cluster);
    config.set("group.id", "none").set("enable.auto.commit", "false").set("auto.offset.reset", "earliest");
    config.set("fetch.wait.max.ms", "500").set("fetch.queue.backoff.ms", "5").set("fetch.error.backoff.ms", "50");
    let consumer: BaseConsumer = config.create()?;
    consumer.assign(&from_beginning(topic)?)?;
    let (noted, topic) = (noted.clone(), topic.to_owned());
    Ok(Running::start(move |is_over| {
        loop {
            match consumer.poll(READ_POLL) {
                Some(Ok(message)) => note(&Record::from(&message), &noted),
                // librdkafka reports brokers that are away, and goes on trying.
                _ if is_over.load(Ordering::Relaxed) && is_at_end(&consumer, &topic)? => return Ok(()),
                _ => {}
            }
        }
    }))
}

/// Notes that a verdict was seen. A verdict on nothing is found when the topics are verified.
fn note(verdict: &Record, noted: &Events) {
    let (now, mut events) = (now_us(), noted.lock());
    if let Some(event) = number_of(verdict).and_then(|number| events.get_mut(number)).filter(|event| event.seen_us == 0) {
        event.seen_us = now;
        event.appended_us = verdict.timestamp.and_then(|ms| u64::try_from(ms).ok()).unwrap_or_default() * 1_000;
    }
}

/// Returns whether a consumer has read every partition of a topic to where it ends now.
fn is_at_end(consumer: &BaseConsumer, topic: &str) -> Result<bool> {
    for place in consumer.position()?.elements() {
        let (_, end) = consumer.fetch_watermarks(topic, place.partition(), REQUEST_TIME_MAX)?;
        // A partition of which nothing was read has no position.
        if end > 0 && place.offset() != Offset::Offset(end) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Asks how far a group is, without being a member.
pub(super) struct Lag {
    consumer: BaseConsumer,
    topic: String,
}

impl Lag {
    pub(super) fn of(cluster: &Cluster, group: &str, topic: &str) -> Result<Self> {
        let consumer = cluster.client().set("group.id", group).set("isolation.level", "read_uncommitted").create()?;
        Ok(Self { consumer, topic: topic.to_owned() })
    }

    /// Returns how many records lie between what is committed and where the partitions end.
    pub(super) fn get(&self) -> Result<u64> {
        let mut lag = 0;
        for place in self.consumer.committed_offsets(from_beginning(&self.topic)?, REQUEST_TIME_MAX)?.elements() {
            let next = if let Offset::Offset(offset) = place.offset() { offset } else { 0 };
            lag += self.consumer.fetch_watermarks(&self.topic, place.partition(), REQUEST_TIME_MAX)?.1 - next;
        }
        Ok(u64::try_from(lag)?)
    }
}
