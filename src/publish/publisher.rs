//! The producers of one member, whose acknowledgements the member takes up between records.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaResult, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::settings::KafkaSettings;

use super::delivery::is_too_large;
use super::{Delivery, DeliveryOutcome, DeliveryQueue, Returned, Role, producer_config, reply_producer_config};

/// How long to serve the producer before a full queue is tried again.
const QUEUE_FULL_POLL: Duration = Duration::from_millis(50);
/// How long a queue may stay full before the member gives up and starts over. It must be far below the group's poll interval.
const QUEUE_FULL_MAX: Duration = Duration::from_secs(60);

/// One record on its way out.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Where to.
    pub topic: &'a str,
    /// On which partition; `None` lets the key decide.
    pub partition: Option<i32>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: OwnedHeaders,
    /// Which record it belongs to.
    pub delivery: Delivery,
}

/// See the module.
pub struct Publisher {
    verdicts: BaseProducer<DeliveryQueue>,
    /// Replies have a producer of their own, which gives up in time: a reply topic is its sender's word, and one without a leader must
    /// not hold verdicts up. It is made when the first reply is asked for.
    replies: OnceCell<BaseProducer<DeliveryQueue>>,
    kafka: KafkaSettings,
    batch_bytes_max: u64,
    queue: DeliveryQueue,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

impl Publisher {
    /// A publisher to these brokers, in batches of at most that many bytes; it connects by itself.
    ///
    /// # Errors
    /// A property that librdkafka does not know, or a value that it does not take.
    pub fn new(kafka: &KafkaSettings, batch_bytes_max: u64) -> KafkaResult<Self> {
        let queue = DeliveryQueue::default();
        let verdicts = producer_config(kafka, batch_bytes_max).create_with_context(queue.clone())?;
        Ok(Self { verdicts, replies: OnceCell::new(), kafka: kafka.clone(), batch_bytes_max, queue })
    }

    /// Hands a record to librdkafka. Where its queue is full, the producer is served until there is room: a verdict or dead letter is
    /// never dropped. What librdkafka refuses at once comes back with the next [`Publisher::poll`], as if the broker had refused it.
    pub fn send(&self, outgoing: Outgoing<'_>) {
        let delivery = outgoing.delivery;
        let producer = match self.producer(delivery.role) {
            Ok(producer) => producer,
            Err(code) => return self.queue.push(delivery, DeliveryOutcome::Failed(code)),
        };
        let mut record: BaseRecord<'_, [u8], [u8], Box<Delivery>> =
            BaseRecord::with_opaque_to(outgoing.topic, Box::new(delivery)).headers(outgoing.headers);
        (record.partition, record.key, record.payload) = (outgoing.partition, outgoing.key, outgoing.value);
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

    fn producer(&self, role: Role) -> Result<&BaseProducer<DeliveryQueue>, RDKafkaErrorCode> {
        if role != Role::Reply {
            return Ok(&self.verdicts);
        }
        if let Some(replies) = self.replies.get() {
            return Ok(replies);
        }
        let made = reply_producer_config(&self.kafka, self.batch_bytes_max).create_with_context(self.queue.clone());
        let made = made.map_err(|error| error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail))?;
        Ok(self.replies.get_or_init(|| made))
    }

    /// Serves the producers, for up to `timeout` that of the verdicts, and returns what became of publications since the last time.
    #[must_use]
    pub fn poll(&self, timeout: Duration) -> Vec<(Delivery, DeliveryOutcome)> {
        if let Some(replies) = self.replies.get() {
            replies.poll(Duration::ZERO);
        }
        self.verdicts.poll(timeout);
        self.queue.take()
    }

    /// How many verdicts and dead letters are not acknowledged.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        usize::try_from(self.verdicts.in_flight_count()).unwrap_or_default()
    }
}

fn refusal(code: Option<RDKafkaErrorCode>, record: BaseRecord<'_, [u8], [u8], Box<Delivery>>) -> DeliveryOutcome {
    if !is_too_large(code) {
        return DeliveryOutcome::Failed(code.unwrap_or(RDKafkaErrorCode::Fail));
    }
    DeliveryOutcome::TooLarge(Box::new(Returned {
        topic: record.topic.to_owned(),
        partition: record.partition,
        key: record.key.map(<[u8]>::to_vec),
        value: record.payload.map(<[u8]>::to_vec),
        headers: record.headers.unwrap_or_default(),
    }))
}
