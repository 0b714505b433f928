//! The floor: a loop that takes every record and produces a constant verdict for it, and does nothing else.
//!
//! It has one thread, one consumer and one producer with the settings of a worker. A verdict has the record's key and partition, the length
//! of a plain verdict, and the headers of one. librdkafka commits offsets once a second, and at the end behind a flush. It uses nothing
//! of this crate: whatever a worker costs beyond this is the worker's own. It is configured by `TOLLGATE_BROKERS`, `TOLLGATE_EVENTS_TOPIC`,
//! `TOLLGATE_DECISIONS_TOPIC` and `TOLLGATE_GROUP`; `ready` on stderr says that partitions are assigned; SIGTERM ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, ClientContext};
use tokio::signal::unix::{SignalKind, signal};

/// The bytes of a plain `allow` on a tool call, about.
const VERDICT: &[u8] = &[b'v'; 420];
/// The header by which an event is correlated.
const CORRELATION: &str = "correlation_id";
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

struct Loop {
    consumer: BaseConsumer<Assignment>,
    producer: BaseProducer<DefaultProducerContext>,
    events: String,
    decisions: String,
}

fn main() -> Result<()> {
    let setting = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
    let brokers = setting("TOLLGATE_BROKERS")?;
    let consumer = ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .set("group.id", setting("TOLLGATE_GROUP")?)
        .set("auto.offset.reset", "earliest")
        .set("auto.commit.interval.ms", "1000")
        .set("fetch.queue.backoff.ms", "5")
        .create_with_context(Assignment)?;
    let producer = ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("linger.ms", "0")
        .set("queue.buffering.max.messages", "200000")
        .create()?;
    let (events, decisions) = (setting("TOLLGATE_EVENTS_TOPIC")?, setting("TOLLGATE_DECISIONS_TOPIC")?);
    consumer_loop(&Loop { consumer, producer, events, decisions })
}

fn consumer_loop(this: &Loop) -> Result<()> {
    let is_stopping = stop_flag()?;
    this.consumer.subscribe(&[&this.events])?;
    while !is_stopping.load(Ordering::Relaxed) {
        this.pass_some()?;
        this.producer.poll(Duration::ZERO);
    }
    Ok(this.producer.flush(FLUSH_TIMEOUT)?)
}

impl Loop {
    /// Passes records on until there are none or it is time to look at something else.
    fn pass_some(&self) -> Result<()> {
        let mut timeout = POLL_TIMEOUT;
        for _ in 0..RECORDS_PER_POLL {
            let Some(message) = self.consumer.poll(timeout).transpose()? else { return Ok(()) };
            timeout = Duration::ZERO;
            let mut record = BaseRecord::to(&self.decisions)
                .partition(message.partition())
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
        }
        Ok(())
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
