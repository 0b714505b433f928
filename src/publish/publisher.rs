//! The publisher of one member: a producer whose acknowledgements the member takes up between records.

use std::time::Duration;

use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::settings::KafkaSettings;

use super::{Delivery, DeliveryOutcome, DeliveryQueue, producer_config};

/// How long to serve the producer before a full queue is tried again.
const QUEUE_FULL_POLL: Duration = Duration::from_millis(50);

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
    producer: BaseProducer<DeliveryQueue>,
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
        let producer = producer_config(kafka, batch_bytes_max).create_with_context(queue.clone())?;
        Ok(Self { producer, queue })
    }

    /// Hands a record to librdkafka. Where its queue is full, the producer is served until there is room: a record is never
    /// dropped. What librdkafka refuses at once comes back as an outcome, as if the broker had refused it.
    pub fn send(&self, outgoing: Outgoing<'_>) -> Option<(Delivery, DeliveryOutcome)> {
        let delivery = outgoing.delivery;
        let mut record: BaseRecord<'_, [u8], [u8], Box<Delivery>> =
            BaseRecord::with_opaque_to(outgoing.topic, Box::new(delivery)).headers(outgoing.headers);
        record.partition = outgoing.partition;
        record.key = outgoing.key;
        record.payload = outgoing.value;
        loop {
            let (error, refused) = self.producer.send(record).err()?;
            match error.rdkafka_error_code() {
                Some(RDKafkaErrorCode::QueueFull) => self.producer.poll(QUEUE_FULL_POLL),
                code => return Some((delivery, refusal(code, &error, outgoing.key, outgoing.value))),
            }
            record = refused;
        }
    }

    /// Serves the producer for up to `timeout` and returns what became of publications since the last time.
    #[must_use]
    pub fn poll(&self, timeout: Duration) -> Vec<(Delivery, DeliveryOutcome)> {
        self.producer.poll(timeout);
        self.queue.take()
    }

    /// Leaves an outcome for the next [`Publisher::poll`].
    pub fn remember(&self, delivery: Delivery, outcome: DeliveryOutcome) {
        self.queue.push(delivery, outcome);
    }

    /// How many publications are not acknowledged.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        usize::try_from(self.producer.in_flight_count()).unwrap_or_default()
    }
}

fn refusal(code: Option<RDKafkaErrorCode>, error: &KafkaError, key: Option<&[u8]>, value: Option<&[u8]>) -> DeliveryOutcome {
    match code {
        Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize) => {
            DeliveryOutcome::TooLarge { key: key.unwrap_or_default().to_vec(), value: value.unwrap_or_default().to_vec() }
        }
        Some(code) => DeliveryOutcome::Failed(code),
        None => {
            tracing::error!(%error, "a record could not be handed to the producer");
            DeliveryOutcome::Failed(RDKafkaErrorCode::Fail)
        }
    }
}
