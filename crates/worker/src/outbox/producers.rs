//! The producers of one member. Their delivery reports wait in a queue, which the member empties between records.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaResult, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::kafka::{Context, Linger, producer_config, reply_producer_config, verdict_producer_config};
use tollgate_config::settings::KafkaSettings;

use super::delivery::is_too_large;
use super::{Delivery, DeliveryOutcome, DeliveryQueue, Returned, Role};

/// How long to serve the producer before a full queue is tried again.
const QUEUE_FULL_POLL: Duration = Duration::from_millis(50);
/// How long to wait at a time for publications to be acknowledged.
const WAIT: Duration = Duration::from_millis(1);
/// How long a queue may stay full before the member gives up and starts over. It must be far below the group's poll interval.
const QUEUE_FULL_MAX: Duration = Duration::from_secs(60);

/// The producers of a member that a publication can go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProducerKind {
    /// The low-latency producer of verdicts, which sends at once.
    LowLatency,
    /// The batched producer of verdicts, which gathers for a moment.
    Batched,
    /// The sequential producer, which has one request in flight at each broker, so that the order of records that are not held back here is
    /// kept too.
    Sequential,
    /// The reply producer, which sends at once and gives up after a while. The sender chose the reply topic, and a reply topic without a
    /// leader must not hold verdicts up.
    Reply,
}

impl ProducerKind {
    /// Returns the producer of a publication that is not batched by its partition.
    pub(super) fn of(role: Role) -> Self {
        match role {
            // One that takes the place of a verdict which was too large: all behind it wait.
            Role::Verdict => Self::LowLatency,
            Role::Reply => Self::Reply,
            // No tool waits for any of these.
            Role::DeadLetter | Role::Signals | Role::Alert | Role::Control => Self::Sequential,
        }
    }

    /// Makes the producer, whose delivery reports go into the queue.
    fn make(self, kafka: &KafkaSettings, batch_bytes_max: u64, queue: &DeliveryQueue) -> KafkaResult<BaseProducer<Context<DeliveryQueue>>> {
        let config = match self {
            Self::LowLatency => verdict_producer_config(kafka, batch_bytes_max, Linger::None),
            Self::Batched => verdict_producer_config(kafka, batch_bytes_max, Linger::Moment),
            Self::Sequential => producer_config(kafka, batch_bytes_max, Linger::Moment),
            Self::Reply => reply_producer_config(kafka, batch_bytes_max),
        };
        config.create_with_context(Context(queue.clone()))
    }
}

/// One record to publish.
#[derive(Debug)]
pub struct Publication<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition; `None` lets the key decide.
    pub partition: Option<i32>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: OwnedHeaders,
    /// The record that it belongs to.
    pub delivery: Delivery,
}

/// The producers of one member.
pub struct Producers {
    low_latency: BaseProducer<Context<DeliveryQueue>>,
    batched: BaseProducer<Context<DeliveryQueue>>,
    /// Created for the first record that it has to publish.
    sequential: OnceCell<BaseProducer<Context<DeliveryQueue>>>,
    /// Created when the first reply is asked for.
    replies: OnceCell<BaseProducer<Context<DeliveryQueue>>>,
    kafka: KafkaSettings,
    batch_bytes_max: u64,
    queue: DeliveryQueue,
}

impl std::fmt::Debug for Producers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producers").finish_non_exhaustive()
    }
}

impl Producers {
    /// Returns producers for these brokers, with batches of at most this many bytes. They connect by themselves.
    ///
    /// # Errors
    /// Returns an error for a property that librdkafka does not know, or a value that it does not take.
    pub fn new(kafka: &KafkaSettings, batch_bytes_max: u64) -> KafkaResult<Self> {
        let queue = DeliveryQueue::default();
        let make = |kind: ProducerKind| kind.make(kafka, batch_bytes_max, &queue);
        let (low_latency, batched) = (make(ProducerKind::LowLatency)?, make(ProducerKind::Batched)?);
        let (sequential, replies) = (OnceCell::new(), OnceCell::new());
        Ok(Self { low_latency, batched, sequential, replies, kafka: kafka.clone(), batch_bytes_max, queue })
    }

    /// Hands a record to librdkafka. If the queue is full, the producer is served until there is room: a verdict or dead letter is never
    /// dropped. What librdkafka refuses at once is reported by the next [`Producers::poll`], as if the broker had refused it.
    pub fn send(&self, kind: ProducerKind, publication: Publication<'_>) {
        let delivery = publication.delivery;
        let producer = match self.producer(kind) {
            Ok(producer) => producer,
            Err(code) => return self.queue.push(delivery, DeliveryOutcome::failed(code, publication.topic)),
        };
        let mut record: BaseRecord<'_, [u8], [u8], Box<Delivery>> =
            BaseRecord::with_opaque_to(publication.topic, Box::new(delivery)).headers(publication.headers);
        (record.partition, record.key, record.payload) = (publication.partition, publication.key, publication.value);
        let deadline = Instant::now() + QUEUE_FULL_MAX;
        while let Err((error, refused)) = producer.send(record) {
            let code = error.rdkafka_error_code();
            let is_full = code == Some(RDKafkaErrorCode::QueueFull) && delivery.role != Role::Reply;
            if !is_full || Instant::now() >= deadline {
                return self.queue.push(delivery, refusal(code, refused));
            }
            producer.poll(QUEUE_FULL_POLL);
            record = refused;
        }
    }

    fn producer(&self, kind: ProducerKind) -> Result<&BaseProducer<Context<DeliveryQueue>>, RDKafkaErrorCode> {
        let late = match kind {
            ProducerKind::LowLatency => return Ok(&self.low_latency),
            ProducerKind::Batched => return Ok(&self.batched),
            ProducerKind::Sequential => &self.sequential,
            ProducerKind::Reply => &self.replies,
        };
        if let Some(producer) = late.get() {
            return Ok(producer);
        }
        let made = kind.make(&self.kafka, self.batch_bytes_max, &self.queue);
        let made = made.map_err(|error| error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail))?;
        Ok(late.get_or_init(|| made))
    }

    /// Returns the producers of what is never given up: all but that of replies.
    fn lasting(&self) -> impl Iterator<Item = &BaseProducer<Context<DeliveryQueue>>> {
        [&self.low_latency, &self.batched].into_iter().chain(self.sequential.get())
    }

    /// Serves the producers and puts the outcomes of publications since the last time into `reports`, in place of what is there. If there
    /// are none yet, it waits for up to `timeout`.
    pub fn poll(&self, timeout: Duration, reports: &mut Vec<(Delivery, DeliveryOutcome)>) {
        let deadline = Instant::now() + timeout;
        loop {
            self.lasting().chain(self.replies.get()).for_each(|producer| self.serve(producer));
            self.queue.take_into(reports);
            let left = deadline.saturating_duration_since(Instant::now());
            if !reports.is_empty() || left.is_zero() {
                return;
            }
            // rdkafka's own waiting returns only when the time is up, and spends the last millisecond of it in a busy loop.
            std::thread::sleep(left.min(WAIT));
        }
    }

    /// Serves a producer until it has no more reports. One call of rdkafka takes at most one batch of them.
    fn serve(&self, producer: &BaseProducer<Context<DeliveryQueue>>) {
        let mut known = usize::MAX;
        while known != self.queue.len() {
            known = self.queue.len();
            producer.poll(Duration::ZERO);
        }
    }

    /// Returns why a producer has failed for good, if one has.
    pub(super) fn fatal_error(&self) -> Option<RDKafkaErrorCode> {
        self.lasting().find_map(|producer| producer.client().fatal_error()).map(|(code, _)| code)
    }

    /// Returns how many publications are not acknowledged, without replies.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.lasting().map(|producer| usize::try_from(producer.in_flight_count()).unwrap_or_default()).sum()
    }
}

fn refusal(code: Option<RDKafkaErrorCode>, record: BaseRecord<'_, [u8], [u8], Box<Delivery>>) -> DeliveryOutcome {
    if !is_too_large(code) {
        return DeliveryOutcome::failed(code.unwrap_or(RDKafkaErrorCode::Fail), record.topic);
    }
    DeliveryOutcome::TooLarge(Box::new(Returned {
        topic: record.topic.to_owned(),
        partition: record.partition,
        key: record.key.map(<[u8]>::to_vec),
        value: record.payload.map(<[u8]>::to_vec),
        headers: record.headers.unwrap_or_default(),
    }))
}
