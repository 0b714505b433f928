//! Puts load on both groups: a producer at a steady rate, whatever happens to the brokers, and a reader of all decisions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tollgate_testkit::{Cluster, Mix, MixEvent, MixSettings};

use super::clock::now_us;
use super::events::{Event, Events};

/// How long the last events may take to be acknowledged.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(2);
const READ_POLL: Duration = Duration::from_millis(50);
/// Results are kept small, because the machine has three brokers to run besides.
const RESULT_BYTES_MAX: usize = 2_000;
const THREADS: usize = 2_000;
/// Before the number in an event's id, as the traffic writes it.
const ID_PREFIX: &str = "event-";

/// Returns the traffic of a seed.
fn traffic(seed: u64) -> Mix {
    Mix::new(MixSettings { seed, threads: THREADS, result_bytes_max: RESULT_BYTES_MAX, ..MixSettings::default() })
}

/// Returns the number of an event from its JSON, whose id stands near the beginning.
pub(crate) fn number_of(value: &[u8]) -> Option<usize> {
    let head = &value[..value.len().min(200)];
    let (_, id) = std::str::from_utf8(head).ok()?.split_once(r#""event_id":"event-"#)?;
    id.split('"').next()?.parse().ok()
}

/// A client that notices soon what has changed: the waits should be the group's and not its own.
fn quick(cluster: &Cluster) -> ClientConfig {
    let mut config = cluster.client();
    config.set("reconnect.backoff.max.ms", "200").set("topic.metadata.refresh.interval.ms", "1000");
    config.set("socket.timeout.ms", "3000").set("socket.connection.setup.timeout.ms", "2000");
    config
}

/// A thread that goes on until it is told to end.
pub(crate) struct Running {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Running {
    fn start(work: impl FnOnce(&AtomicBool) -> Result<()> + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        Self { is_over, thread: std::thread::spawn(move || work(&seen)) }
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("a thread of the load panicked"))?
    }
}

struct Reports(Arc<Events>);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let now = now_us();
        // Without a time limit nothing fails but for good; the event then stays unacknowledged, which is a finding.
        if let Ok(message) = result {
            self.0.change(number, |event| {
                (event.acknowledged_us, event.partition, event.offset) = (now, message.partition(), message.offset());
            });
        }
    }
}

/// Starts sending so many events a second.
pub(crate) fn send(cluster: &Cluster, topic: &str, rate: u64, seed: u64, noted: &Arc<Events>) -> Running {
    let (mut config, topic, noted) = (quick(cluster), topic.to_owned(), Arc::clone(noted));
    config.set("partitioner", "murmur2_random").set("enable.idempotence", "true").set("acks", "all").set("max.in.flight", "1");
    // No event is given up, however long brokers are away. Requests to one that is silent are.
    config.set("message.timeout.ms", "0").set("linger.ms", "2").set("request.timeout.ms", "3000");
    Running::start(move |is_over| {
        let producer: BaseProducer<Reports> = config.create_with_context(Reports(Arc::clone(&noted)))?;
        let (mut mix, mut event) = (traffic(seed), MixEvent::blank());
        let (started, mut sent) = (Instant::now(), 0);
        while !is_over.load(Ordering::Relaxed) {
            let due = started.elapsed().as_millis() as u64 * rate / 1_000;
            while sent < due {
                mix.next_into(&mut event);
                let fresh =
                    Event { thread: event.thread_id.clone(), is_awaited: event.is_awaited(), sent_us: now_us(), ..Event::default() };
                noted.events().push(fresh);
                send_one(&producer, &topic, &event)?;
                sent += 1;
            }
            producer.poll(POLL);
        }
        Ok(producer.flush(FLUSH_TIME_MAX)?)
    })
}

fn send_one(producer: &BaseProducer<Reports>, topic: &str, event: &MixEvent) -> Result<()> {
    let number = usize::try_from(event.number)?;
    let mut unsent: BaseRecord<'_, str, [u8], usize> =
        BaseRecord::with_opaque_to(topic, number).key(event.thread_id.as_str()).payload(event.value.as_slice());
    while let Err((error, refused)) = producer.send(unsent) {
        ensure!(error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull), error);
        producer.poll(POLL);
        unsent = refused;
    }
    Ok(())
}

/// Starts reading decisions from all partitions, in no group.
pub(crate) fn read(cluster: &Cluster, topic: &str, partitions: i32, noted: &Arc<Events>) -> Result<Running> {
    let mut config = quick(cluster);
    config.set("group.id", "none").set("enable.auto.commit", "false").set("auto.offset.reset", "earliest");
    config.set("fetch.wait.max.ms", "500").set("fetch.queue.backoff.ms", "5").set("fetch.error.backoff.ms", "50");
    let consumer: BaseConsumer = config.create()?;
    let mut all = TopicPartitionList::new();
    for partition in 0..partitions {
        all.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&all)?;
    let noted = Arc::clone(noted);
    Ok(Running::start(move |is_over| {
        while !is_over.load(Ordering::Relaxed) {
            // librdkafka reports brokers that are away, and goes on trying.
            if let Some(Ok(message)) = consumer.poll(READ_POLL) {
                note(&message, &noted).with_context(|| format!("decisions {}/{}", message.partition(), message.offset()))?;
            }
        }
        Ok(())
    }))
}

fn note(message: &BorrowedMessage<'_>, noted: &Events) -> Result<()> {
    let now = now_us();
    let header = message.headers().into_iter().flat_map(|headers| headers.iter()).find(|header| header.key == "event_id");
    let id = header.and_then(|header| std::str::from_utf8(header.value?).ok()).context("a verdict without an event_id")?;
    let number = id.strip_prefix(ID_PREFIX).and_then(|number| number.parse().ok()).with_context(|| format!("no event of ours: {id}"))?;
    let value = message.payload().unwrap_or_default();
    let found = noted.change(number, |event| {
        if event.seen_us == 0 {
            (event.seen_us, event.appended_ms) = (now, message.timestamp().to_millis().unwrap_or_default());
            event.verdict = value.to_vec();
        } else {
            event.copies += 1;
            if event.verdict != value {
                event.unlike = Some(value.to_vec());
            }
        }
    });
    ensure!(found, "a verdict on an event that was never sent: {id}");
    Ok(())
}
