//! The floor: a loop that takes every record and produces a constant verdict for it, and does nothing else.
//!
//! It has one thread, one consumer and one producer with the settings of a worker. A verdict has the record's key and partition, the length
//! of a plain verdict, and the headers of one. Offsets are committed once a second, up to what the broker has acknowledged. It uses nothing
//! of this crate: whatever a worker costs beyond this is the worker's own. It is configured by `TOLLGATE_BROKERS`, `TOLLGATE_EVENTS_TOPIC`,
//! `TOLLGATE_DECISIONS_TOPIC` and `TOLLGATE_GROUP`; `ready` on stderr says that partitions are assigned; SIGTERM ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, DeliveryResult, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};
use tokio::signal::unix::{SignalKind, signal};

/// The bytes of a plain `allow` on a tool call, about.
const VERDICT: &[u8] = &[b'v'; 420];
/// The header by which an event is correlated.
const CORRELATION: &str = "correlation_id";
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
const POLL_TIMEOUT: Duration = Duration::from_millis(100);
const FLUSH_TIMEOUT: Duration = Duration::from_secs(30);
/// How many records go by before delivery reports are fetched.
const RECORDS_PER_POLL: u64 = 128;

/// Says on stderr when partitions are assigned.
struct Assignment;

impl ClientContext for Assignment {}

impl ConsumerContext for Assignment {
    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if matches!(rebalance, Rebalance::Assign(partitions) if partitions.count() > 0) {
            eprintln!("ready");
        }
    }
}

/// Counts what the broker has acknowledged.
#[derive(Default)]
struct Acknowledged {
    records: AtomicU64,
    has_failed: AtomicBool,
}

impl ClientContext for Acknowledged {}

impl ProducerContext for Acknowledged {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => self.records.fetch_add(1, Ordering::Relaxed),
            Err(_) => u64::from(self.has_failed.swap(true, Ordering::Relaxed)),
        };
    }
}

/// The offsets of all partitions when so many verdicts had been produced. They are committed once these are acknowledged.
struct Snapshot {
    produced: u64,
    offsets: TopicPartitionList,
}

struct Loop {
    consumer: BaseConsumer<Assignment>,
    producer: BaseProducer<Acknowledged>,
    events: String,
    decisions: String,
    /// The next offset of every partition, by number; -1 where nothing was read since the last snapshot.
    next: Vec<i64>,
    produced: u64,
    pending: Option<Snapshot>,
}

fn main() -> Result<()> {
    let setting = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
    let brokers = setting("TOLLGATE_BROKERS")?;
    let consumer = ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .set("group.id", setting("TOLLGATE_GROUP")?)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("fetch.queue.backoff.ms", "5")
        .create_with_context(Assignment)?;
    let producer = ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("linger.ms", "0")
        .set("queue.buffering.max.messages", "200000")
        .create_with_context(Acknowledged::default())?;
    let (events, decisions) = (setting("TOLLGATE_EVENTS_TOPIC")?, setting("TOLLGATE_DECISIONS_TOPIC")?);
    consumer_loop(Loop { consumer, producer, events, decisions, next: Vec::new(), produced: 0, pending: None })
}

fn consumer_loop(mut this: Loop) -> Result<()> {
    let is_stopping = stop_flag()?;
    this.consumer.subscribe(&[&this.events])?;
    let mut committed = Instant::now();
    while !is_stopping.load(Ordering::Relaxed) {
        this.pass_some()?;
        this.producer.poll(Duration::ZERO);
        if committed.elapsed() >= COMMIT_INTERVAL {
            committed = Instant::now();
            this.commit(CommitMode::Async)?;
        }
    }
    this.producer.flush(FLUSH_TIMEOUT)?;
    // What waited, and what came after it.
    this.commit(CommitMode::Sync)?;
    this.commit(CommitMode::Sync)
}

impl Loop {
    /// Passes records on until there are none or it is time to look at something else.
    fn pass_some(&mut self) -> Result<()> {
        let mut timeout = POLL_TIMEOUT;
        for _ in 0..RECORDS_PER_POLL {
            let Some(message) = self.consumer.poll(timeout).transpose()? else { return Ok(()) };
            timeout = Duration::ZERO;
            let partition = message.partition();
            let mut record = BaseRecord::to(&self.decisions)
                .partition(partition)
                .key(message.key().unwrap_or_default())
                .payload(VERDICT)
                .headers(headers(&self.events, &message));
            while let Err((error, refused)) = self.producer.send(record) {
                if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                    return Err(error.into());
                }
                self.producer.poll(Duration::from_millis(1));
                record = refused;
            }
            self.produced += 1;
            let at = usize::try_from(partition)?;
            if at >= self.next.len() {
                self.next.resize(at + 1, -1);
            }
            if let Some(next) = self.next.get_mut(at) {
                *next = message.offset() + 1;
            }
        }
        Ok(())
    }

    /// Commits the last snapshot if all of its verdicts are acknowledged, and takes the next one.
    fn commit(&mut self, mode: CommitMode) -> Result<()> {
        let acknowledged = self.producer.context();
        if acknowledged.has_failed.load(Ordering::Relaxed) {
            bail!("a verdict was not delivered");
        }
        match &self.pending {
            Some(pending) if acknowledged.records.load(Ordering::Relaxed) < pending.produced => return Ok(()),
            Some(pending) => self.consumer.commit(&pending.offsets, mode)?,
            None => {}
        }
        self.pending = self.snapshot()?;
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>> {
        let mut offsets = TopicPartitionList::new();
        for (partition, next) in self.next.iter_mut().enumerate().filter(|(_, next)| **next >= 0) {
            offsets.add_partition_offset(&self.events, i32::try_from(partition)?, Offset::Offset(*next))?;
            *next = -1;
        }
        Ok((offsets.count() > 0).then_some(Snapshot { produced: self.produced, offsets }))
    }
}

/// Returns the headers that the worker's pass-through gives a verdict: what is compared is how records go through, not which.
fn headers(events: &str, message: &BorrowedMessage<'_>) -> OwnedHeaders {
    let coordinates = format!("{events}/{}/{}", message.partition(), message.offset());
    let headers = OwnedHeaders::new_with_capacity(3)
        .insert(Header { key: "event_id", value: Some(&coordinates) })
        .insert(Header { key: "content-type", value: Some("application/json") });
    let correlation = message.headers().and_then(|headers| headers.iter().find(|header| header.key == CORRELATION));
    match correlation {
        Some(correlation) => headers.insert(correlation),
        None => headers,
    }
}

/// Returns a flag that SIGTERM and Ctrl-C set.
fn stop_flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt) = {
        let _entered = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        set.store(true, Ordering::Relaxed);
    });
    Ok(flag)
}
