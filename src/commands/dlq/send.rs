//! Sends records back, and notes which of them were acknowledged.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};

use tollgate_config::settings::KafkaSettings;
use tollgate_worker::kafka::{Linger, make_producer, producer_config};

/// How long the brokers may take to acknowledge a record.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How much longer to wait for librdkafka to report that they did not.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for room in the producer's queue. It is shorter than a reader may fall silent.
const QUEUE_FULL_MAX: Duration = Duration::from_secs(10);
/// How long to serve the producer at a time.
const POLL: Duration = Duration::from_millis(10);
/// The size limit of a batch. A topic refuses a batch as a whole if it is larger than the topic takes; a single record is a batch of its
/// own, however large.
const BATCH_BYTES_MAX: u64 = 100_000;

/// A place in a topic: partition and offset.
pub(super) type Place = (i32, i64);
/// Where a letter's record stands now, or why it was not taken.
pub(super) type Outcome = (Place, Result<Place, KafkaError>);

/// A producer that says what has become of every record.
pub(super) struct Sender {
    producer: BaseProducer<Reports>,
    reports: Reports,
}

#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<Outcome>>>);

impl Sender {
    pub(super) fn new(kafka: &KafkaSettings) -> anyhow::Result<Self> {
        let mut config = producer_config(kafka, BATCH_BYTES_MAX, Linger::Moment);
        // The second name is an alias, and either of the two could win.
        config.set("message.timeout.ms", SEND_TIMEOUT.as_millis().to_string()).remove("delivery.timeout.ms");
        let reports = Reports::default();
        Ok(Self { producer: make_producer(&config, reports.clone()).context("kafka.properties")?, reports })
    }

    /// Sends a letter's record, with these headers, to a partition of a topic; `None` is any.
    pub(super) fn send(
        &self,
        letter: &BorrowedMessage<'_>,
        headers: OwnedHeaders,
        topic: &str,
        partition: Option<i32>,
    ) -> Result<(), KafkaError> {
        let place = (letter.partition(), letter.offset());
        let mut record: BaseRecord<'_, [u8], [u8], Box<Place>> = BaseRecord::with_opaque_to(topic, Box::new(place)).headers(headers);
        (record.partition, record.key, record.payload) = (partition, letter.key(), letter.payload());
        let deadline = Instant::now() + QUEUE_FULL_MAX;
        while let Err((error, refused)) = self.producer.send(record) {
            if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) || Instant::now() >= deadline {
                return Err(error);
            }
            self.producer.poll(POLL);
            record = refused;
        }
        Ok(())
    }

    /// Returns what has become of records since the last time.
    pub(super) fn take(&self) -> Vec<Outcome> {
        self.producer.poll(Duration::ZERO);
        self.reports.take()
    }

    /// Waits until the brokers have acknowledged or refused every record, and returns what has become of the last of them.
    pub(super) fn finish(&self) -> Vec<Outcome> {
        let deadline = Instant::now() + SEND_TIMEOUT + REPORT_TIMEOUT;
        while self.producer.in_flight_count() > 0 && Instant::now() < deadline {
            self.producer.poll(POLL);
        }
        self.reports.take()
    }
}

impl Reports {
    fn take(&self) -> Vec<Outcome> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        tollgate_worker::kafka::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "librdkafka", %error, reason, "producer");
    }

    /// Statistics are for metrics and not for the log.
    fn stats_raw(&self, _: &[u8]) {}
}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<Place>;

    fn delivery(&self, result: &DeliveryResult<'_>, place: Box<Place>) {
        let outcome = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.clone()),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((*place, outcome));
    }
}
