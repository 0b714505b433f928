//! The producer: hands records over, and notes what became of each.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use tollgate_core::event::record::Partition;

use tollgate_config::settings::KafkaSettings;
use tollgate_worker::kafka::{Linger, make_producer, oauth_token, producer_config};

use super::progress::Place;
use super::rewrite::Ready;

/// How long brokers may be away before a record is given up.
const AWAY_MAX: Duration = Duration::from_secs(120);
/// How much longer to wait for librdkafka to report that they were.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);
/// The size limit of a batch. A topic refuses a batch as a whole if it is larger than the topic takes; a single record is a batch of its
/// own, however large.
const BATCH_BYTES_MAX: u64 = 100_000;
/// What a batch takes besides its records, and more.
const BATCH_HEAD_BYTES: u64 = 256;

/// What became of a record.
pub(super) type Outcome = (Place, Result<(), KafkaError>);

/// The producer.
pub(super) struct Sender {
    producer: BaseProducer<Reports>,
    reports: Reports,
    topic: String,
}

#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<Outcome>>>);

impl Sender {
    /// Returns a producer for a topic that takes so many bytes at once, if that is known.
    pub(super) fn new(kafka: &KafkaSettings, topic: &str, bytes_max: Option<u64>) -> anyhow::Result<Self> {
        let batch_bytes = bytes_max.map_or(BATCH_BYTES_MAX, |bytes| bytes.saturating_sub(BATCH_HEAD_BYTES).clamp(1, BATCH_BYTES_MAX));
        let mut config = producer_config(kafka, batch_bytes, Linger::Moment);
        // The second name is an alias, and either of the two could win.
        config.set("message.timeout.ms", AWAY_MAX.as_millis().to_string()).remove("delivery.timeout.ms");
        config.set("client.id", "tollgate-replay");
        let reports = Reports::default();
        let producer = make_producer(&config, reports.clone()).context("kafka.properties")?;
        Ok(Self { producer, reports, topic: topic.to_owned() })
    }

    /// Hands a record over. A full queue is waited out until `is_stopped`, which makes the records behind late and leaves their schedule as
    /// it is. Returns whether the record was taken.
    ///
    /// # Errors
    /// librdkafka does not take it for another reason.
    pub(super) fn send(
        &self,
        place: Place,
        partition: Option<Partition>,
        ready: &Ready<'_>,
        is_stopped: impl Fn() -> bool,
    ) -> Result<bool, KafkaError> {
        let mut record: BaseRecord<'_, [u8], [u8], Box<Place>> = BaseRecord::with_opaque_to(&self.topic, Box::new(place));
        (record.partition, record.timestamp) = (partition.map(|partition| partition.0), ready.timestamp_ms);
        (record.key, record.payload) = (ready.key.as_deref(), ready.value.as_deref());
        if !ready.headers.is_empty() {
            let none = OwnedHeaders::new_with_capacity(ready.headers.len());
            let add =
                |headers: OwnedHeaders, (name, value): &(&str, Option<_>)| headers.insert(Header { key: name, value: value.as_deref() });
            record.headers = Some(ready.headers.iter().fold(none, add));
        }
        let deadline = Instant::now() + AWAY_MAX + REPORT_TIMEOUT;
        while let Err((error, refused)) = self.producer.send(record) {
            let is_full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
            if !is_full || Instant::now() >= deadline {
                return Err(error);
            }
            if is_stopped() {
                return Ok(false);
            }
            self.producer.poll(POLL);
            record = refused;
        }
        Ok(true)
    }

    /// Returns what became of records since the last time.
    pub(super) fn take(&self) -> Vec<Outcome> {
        self.producer.poll(Duration::ZERO);
        std::mem::take(&mut *self.reports.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the last reports for up to `wait`, and returns whether all are there.
    pub(super) fn settle(&self, wait: Duration) -> bool {
        let deadline = Instant::now() + wait;
        while self.producer.in_flight_count() > 0 && Instant::now() < deadline {
            self.producer.poll(POLL);
        }
        self.producer.in_flight_count() == 0
    }

    /// Returns the longest that reports take.
    pub(super) fn report_time_max() -> Duration {
        AWAY_MAX + REPORT_TIMEOUT
    }
}

impl ClientContext for Reports {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        oauth_token(config)
    }

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
        let outcome = result.as_ref().map(|_| ()).map_err(|(error, _)| error.clone());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((*place, outcome));
    }
}
