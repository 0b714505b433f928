//! The producer of all commands: hands records over, and tells what became of each.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _};

use tollgate_config::settings::KafkaSettings;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_worker::kafka::{Callbacks, Context, Deliveries, Linger, make_producer, producer_config};

/// How much longer than the brokers may take librdkafka takes to report that they did not acknowledge a record.
pub const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the producer is served at a time.
const POLL: Duration = Duration::from_millis(10);
/// The size limit of a batch. A topic refuses a batch as a whole if it is larger than the topic takes; a single record is a batch of its
/// own, however large.
const BATCH_BYTES_MAX: u64 = 100_000;

/// The place of a record in its topic.
pub type Place = (Partition, Offset);

/// What became of a record: its tag, and the place where it stands or why it was not taken.
pub type Outcome<T> = (T, Result<Place, KafkaError>);

/// A record with its tag, on its way to the producer.
pub type Tagged<'r, T> = BaseRecord<'r, [u8], [u8], Box<T>>;

/// A producer that says what became of every record, each of which has a tag.
pub struct Sender<T: Send + Sync + 'static> {
    producer: BaseProducer<Context<Reports<T>>>,
    reports: Reports<T>,
    room_within: Duration,
    time_max: Duration,
}

/// How a command sends.
#[derive(Debug, Clone, Copy)]
pub struct Sending {
    /// How long the brokers may take to acknowledge a record.
    pub acknowledged_within: Duration,
    /// How long to wait for room in the producer's queue.
    pub room_within: Duration,
    /// How the brokers know the client, where that is not as `tollgate`.
    pub client_id: Option<&'static str>,
    /// How long to gather records into a batch.
    pub linger: Linger,
    /// The most bytes that the topic takes at once, if that is known.
    pub batch_bytes_max: Option<u64>,
    /// Whether a record that is written twice says no more than once. Then the producer asks for no id, for which librdkafka waits half a
    /// second after its start.
    pub may_repeat: bool,
}

/// The delivery reports since the last time.
struct Reports<T>(Arc<Mutex<Vec<Outcome<T>>>>);

impl<T> Clone for Reports<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + Sync + 'static> Sender<T> {
    /// Returns a producer with the user's properties.
    ///
    /// # Errors
    /// librdkafka takes a property for none, or not with this value.
    pub fn new(kafka: &KafkaSettings, sending: Sending) -> anyhow::Result<Self> {
        let batch_bytes = sending.batch_bytes_max.map_or(BATCH_BYTES_MAX, |bytes| bytes.clamp(1, BATCH_BYTES_MAX));
        let mut config = producer_config(kafka, batch_bytes, sending.linger);
        // Verdicts are retried for ever, but here somebody waits at a terminal. The second name is an alias, and either of the two could win.
        config.set("message.timeout.ms", sending.acknowledged_within.as_millis().to_string()).remove("delivery.timeout.ms");
        if sending.may_repeat {
            config.set("enable.idempotence", "false");
        }
        if let Some(client_id) = sending.client_id {
            config.set("client.id", client_id);
        }
        let reports = Reports(Arc::default());
        let producer = make_producer(&config, Context(reports.clone())).context("kafka.properties")?;
        Ok(Self { producer, reports, room_within: sending.room_within, time_max: sending.acknowledged_within + REPORT_TIMEOUT })
    }

    /// Hands a record over. A full queue is waited out until `is_stopped`. Returns whether the record was taken.
    ///
    /// # Errors
    /// librdkafka does not take the record for another reason, or its queue stays full for longer than a command waits.
    pub fn send(&self, mut record: Tagged<'_, T>, is_stopped: impl Fn() -> bool) -> Result<bool, KafkaError> {
        let deadline = Instant::now() + self.room_within;
        while let Err((error, refused)) = self.producer.send(record) {
            if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) || Instant::now() >= deadline {
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
    pub fn take(&self) -> Vec<Outcome<T>> {
        self.producer.poll(Duration::ZERO);
        std::mem::take(&mut *self.reports.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the last reports for up to `wait`, and returns whether all are there.
    pub fn settle(&self, wait: Duration) -> bool {
        let deadline = Instant::now() + wait;
        while self.producer.in_flight_count() > 0 && Instant::now() < deadline {
            self.producer.poll(POLL);
        }
        self.producer.in_flight_count() == 0
    }

    /// Waits until each record is acknowledged or refused, and returns what became of those that `take` has not returned.
    pub fn finish(&self) -> Vec<Outcome<T>> {
        self.settle(self.time_max);
        self.take()
    }

    /// Returns the longest that a report takes.
    pub fn time_max(&self) -> Duration {
        self.time_max
    }
}

impl<T: Send + Sync + 'static> Callbacks for Reports<T> {}

impl<T: Send + Sync + 'static> Deliveries for Reports<T> {
    type Tag = Box<T>;

    fn delivered(&self, result: &DeliveryResult<'_>, tag: Box<T>) {
        let outcome = match result {
            Ok(message) => Ok((Partition(message.partition()), Offset(message.offset()))),
            Err((error, _)) => Err(error.clone()),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((*tag, outcome));
    }
}
