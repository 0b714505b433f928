//! The sender: publishes each event when it is due, and never waits for a verdict.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _};

use super::Schedule;
use super::topics::client;
use tollgate_config::settings::KafkaSettings;
use tollgate_testkit::{Mix, MixEvent};
use tollgate_worker::kafka::{Callbacks, Context, Deliveries};

/// The header that names an event's number. Verdicts bring it back, from every worker.
pub const NUMBER_HEADER: &str = "correlation_id";

/// A wait shorter than this is not worth a sleep: the events that are due within it are sent together.
const NAP: Duration = Duration::from_micros(500);
const FLUSH_TIME_MAX: Duration = Duration::from_secs(60);
/// Events between two looks at acknowledgements.
const POLL_EVERY: usize = 64;

/// Counts what the broker did not take.
#[derive(Debug, Clone, Default)]
struct Refusals(Arc<(AtomicU64, Mutex<Option<String>>)>);

impl Callbacks for Refusals {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(target: "librdkafka", %error, reason, "sender");
    }
}

impl Deliveries for Refusals {
    type Tag = ();

    fn delivered(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            let (count, last) = &*self.0;
            count.fetch_add(1, Ordering::Relaxed);
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
    }
}

/// Publishes events when they are due.
pub struct Sender {
    producer: BaseProducer<Context<Refusals>>,
    refusals: Refusals,
    mix: Mix,
    next: u64,
}

/// What was sent in a phase.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// For each event, whether it gets a verdict.
    pub awaited: Vec<bool>,
    /// Bytes of all events.
    pub bytes: u64,
    /// How long after the start the last one was handed over.
    pub elapsed: Duration,
    /// Events that the broker did not take.
    pub refused: u64,
}

impl Sender {
    /// Returns a sender of this traffic, from its beginning.
    pub fn new(kafka: &KafkaSettings, mix: Mix) -> Result<Self> {
        let refusals = Refusals::default();
        let mut config = client(kafka);
        config
            .set("client.id", "tollgate-bench")
            .set("partitioner", "murmur2_random")
            .set("enable.idempotence", "true")
            .set("linger.ms", "0")
            .set("queue.buffering.max.messages", "500000")
            .set("queue.buffering.max.kbytes", "524288")
            // An event that waits behind an overload is late, not lost.
            .set("message.timeout.ms", "120000");
        let producer = config.create_with_context(Context(refusals.clone())).context("kafka.properties")?;
        Ok(Self { producer, refusals, mix, next: 0 })
    }

    /// Returns the number of the next event.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Sends the events of a schedule that began, or begins, at `start`.
    pub fn send(&mut self, topic: &str, schedule: Schedule, start: Instant, progress: impl Fn(usize)) -> Result<Sent> {
        let mut sent = Sent { awaited: Vec::with_capacity(schedule.count), ..Sent::default() };
        let refused = self.refusals.0.0.load(Ordering::Relaxed);
        let mut event = MixEvent::blank();
        let mut number = 0;
        while number < schedule.count {
            let elapsed = start.elapsed();
            let due = schedule.due_by(elapsed).max(usize::from(schedule.due_time(number) <= elapsed));
            if due <= number {
                self.producer.poll(Duration::ZERO);
                std::thread::sleep(schedule.due_time(number).saturating_sub(elapsed).clamp(NAP, NAP * 20));
                continue;
            }
            while number < due {
                self.publish(topic, &mut event, &mut sent)?;
                number += 1;
                if number % POLL_EVERY == 0 {
                    self.producer.poll(Duration::ZERO);
                    progress(number);
                }
            }
        }
        sent.elapsed = start.elapsed();
        self.flush()?;
        sent.refused = self.refusals.0.0.load(Ordering::Relaxed) - refused;
        Ok(sent)
    }

    /// Publishes so many events at once, or what can be published until `is_late`.
    pub fn preload(&mut self, topic: &str, count: usize, progress: impl Fn(usize), is_late: impl Fn() -> bool) -> Result<Sent> {
        let mut sent = Sent { awaited: Vec::with_capacity(count), ..Sent::default() };
        let mut event = MixEvent::blank();
        for number in 0..count {
            self.publish(topic, &mut event, &mut sent)?;
            if number % POLL_EVERY == 0 {
                self.producer.poll(Duration::ZERO);
                progress(number);
                if is_late() {
                    break;
                }
            }
        }
        self.flush()?;
        let (refused, last) = &*self.refusals.0;
        let last = last.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        ensure!(refused.load(Ordering::Relaxed) == 0, "the broker did not take all events: {last}");
        Ok(sent)
    }

    fn flush(&self) -> Result<()> {
        self.producer.flush(FLUSH_TIME_MAX).context("the brokers do not acknowledge what is sent")
    }

    /// Takes the next event of the traffic, which is then sent in some way.
    pub(super) fn draw(&mut self, event: &mut MixEvent, sent: &mut Sent) {
        self.mix.next_into(event);
        self.next = event.number + 1;
        sent.awaited.push(event.is_awaited());
        sent.bytes += event.value.len() as u64;
    }

    /// Hands the next event over. A full queue is waited out, which makes the events behind late and leaves their schedule as it is.
    fn publish(&mut self, topic: &str, event: &mut MixEvent, sent: &mut Sent) -> Result<()> {
        self.draw(event, sent);
        let number = event.number.to_string();
        let headers = OwnedHeaders::new_with_capacity(1).insert(Header { key: NUMBER_HEADER, value: Some(&number) });
        let mut record = BaseRecord::to(topic).key(&event.thread_id).payload(&event.value).headers(headers);
        while let Err((error, refused)) = self.producer.send(record) {
            let is_full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
            ensure!(is_full, "an event cannot be sent to {topic}: {error}");
            self.producer.poll(Duration::from_millis(1));
            record = refused;
        }
        Ok(())
    }
}
