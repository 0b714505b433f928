//! Puts load on the group: a producer on a thread of its own, at a steady rate, whatever happens to the broker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext};

use tollgate_testkit::{Cluster, Outgoing};

use super::traffic::Traffic;

/// How long the last events may take to be acknowledged.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The producer, while it runs.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<Acknowledged>>,
    thread: JoinHandle<Result<u64>>,
}

/// The broker's acknowledgements of the events.
#[derive(Default)]
struct Acknowledged {
    /// The offsets behind the last events, by partition.
    ends: BTreeMap<i32, i64>,
    failed: Option<String>,
}

impl Load {
    /// Starts sending so many events a second.
    pub(super) fn start(cluster: &Cluster, topic: &str, rate: u64, seed: u64) -> Self {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Acknowledged::default())));
        let reports = Reports(Arc::clone(&acknowledged));
        let (config, topic, is_over) = (cluster.client(), topic.to_owned(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || send(config, &topic, rate, seed, &is_over, reports));
        Self { stop, acknowledged, thread }
    }

    /// Returns the offsets behind the last events that were acknowledged, by partition.
    pub(super) fn ends(&self) -> BTreeMap<i32, i64> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).ends.clone()
    }

    /// Ends it; returns how many events were sent, and where the partitions end.
    pub(super) fn finish(self) -> Result<(u64, BTreeMap<i32, i64>)> {
        self.stop.store(true, Ordering::Relaxed);
        let ends = Arc::clone(&self.acknowledged);
        let sent = self.thread.join().map_err(|_| anyhow!("the load panicked"))??;
        let acknowledged = ends.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(acknowledged.failed.is_none(), "an event could not be sent: {:?}", acknowledged.failed);
        Ok((sent, acknowledged.ends.clone()))
    }
}

/// Stores delivery reports.
struct Reports(Arc<Mutex<Acknowledged>>);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        use rdkafka::message::Message as _;
        let mut acknowledged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(message) => _ = acknowledged.ends.insert(message.partition(), message.offset() + 1),
            Err((error, _)) => acknowledged.failed = Some(error.to_string()),
        }
    }
}

fn send(mut config: ClientConfig, topic: &str, rate: u64, seed: u64, is_over: &AtomicBool, reports: Reports) -> Result<u64> {
    let producer: BaseProducer<Reports> = config
        .set("partitioner", "murmur2_random")
        .set("enable.idempotence", "true")
        .set("max.in.flight", "1")
        // No event is given up, however long the broker is away.
        .set("message.timeout.ms", "0")
        .set("linger.ms", "0")
        .create_with_context(reports)?;
    let mut traffic = Traffic::new(seed);
    let (started, mut sent) = (Instant::now(), 0);
    while !is_over.load(Ordering::Relaxed) {
        let due = started.elapsed().as_millis() as u64 * rate / 1_000;
        while sent < due {
            send_one(&producer, topic, &traffic.next())?;
            sent += 1;
        }
        producer.poll(POLL_INTERVAL);
    }
    producer.flush(FLUSH_TIME_MAX)?;
    Ok(sent)
}

fn send_one(producer: &BaseProducer<Reports>, topic: &str, event: &Outgoing) -> Result<()> {
    let headers =
        event.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: value.as_ref() }));
    let mut unsent: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic).headers(headers);
    (unsent.key, unsent.payload, unsent.partition) = (event.key.as_deref(), event.value.as_deref(), event.partition);
    while let Err((error, refused)) = producer.send(unsent) {
        ensure!(error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull), error);
        producer.poll(POLL_INTERVAL);
        unsent = refused;
    }
    Ok(())
}
