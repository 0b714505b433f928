//! Publishes records and waits for their acknowledgements, for a limited time.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, ProducerContext};

use tollgate_config::settings::KafkaSettings;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_worker::kafka::{Linger, Right, make_producer, oauth_token, producer_config};

/// How long the brokers may take to acknowledge the record: as long as it takes until a partition whose leader has died has another one.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);
/// How much longer to wait for librdkafka to report that they did not.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to serve the producer at a time.
const POLL: Duration = Duration::from_millis(10);
/// The size limit of a batch. A topic refuses a batch as a whole if it is larger than the topic takes; a single record is a batch of its
/// own, however large.
const BATCH_BYTES_MAX: u64 = 100_000;

/// A record to publish.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) topic: &'a str,
    /// The partition; `None` is where murmur2 puts the key.
    pub(super) partition: Option<Partition>,
    /// The key; `None` is a record without one, which its partition alone places.
    pub(super) key: Option<&'a str>,
    /// The value. Null deletes the key in a compacted topic.
    pub(super) value: Option<&'a [u8]>,
    /// What the record is, for people: `the event`.
    pub(super) what: &'a str,
}

/// Publishes a record and returns its place, once all replicas that the topic asks for have acknowledged it.
pub(super) fn publish(kafka: &KafkaSettings, outgoing: &Outgoing<'_>) -> anyhow::Result<(Partition, Offset)> {
    let places = publish_all(kafka, std::slice::from_ref(outgoing))?;
    places.into_iter().next().with_context(|| format!("{} has no place", outgoing.what))
}

/// Publishes records, all at once, and returns their places in the same order. If one fails, others may stand in the topic all the same.
pub(super) fn publish_all(kafka: &KafkaSettings, all: &[Outgoing<'_>]) -> anyhow::Result<Vec<(Partition, Offset)>> {
    let mut config = producer_config(kafka, BATCH_BYTES_MAX, Linger::None);
    // Verdicts are retried for ever, but here somebody waits at a terminal. The second name is an alias, and either of the two could win.
    config.set("message.timeout.ms", PUBLISH_TIMEOUT.as_millis().to_string()).remove("delivery.timeout.ms");
    let producer: Producer = make_producer(&config, Acknowledgements).context("kafka.properties")?;
    let sent = all.iter().map(|outgoing| send(&producer, outgoing)).collect::<anyhow::Result<Vec<_>>>()?;
    let deadline = Instant::now() + PUBLISH_TIMEOUT + REPORT_TIMEOUT;
    let each = all.iter().zip(&sent);
    each.map(|(outgoing, acknowledgement)| await_place(&producer, outgoing, acknowledgement, deadline, kafka)).collect()
}

/// Hands a record to librdkafka.
fn send(producer: &Producer, outgoing: &Outgoing<'_>) -> anyhow::Result<Acknowledgement> {
    let acknowledgement = Acknowledgement::default();
    let mut record: BaseRecord<'_, str, [u8], Acknowledgement> = BaseRecord::with_opaque_to(outgoing.topic, Arc::clone(&acknowledgement));
    (record.key, record.payload) = (outgoing.key, outgoing.value);
    record.partition = outgoing.partition.map(|partition| partition.0);
    let deadline = Instant::now() + PUBLISH_TIMEOUT;
    loop {
        let Err((error, back)) = producer.send(record) else { return Ok(acknowledgement) };
        let is_full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
        if !is_full || Instant::now() >= deadline {
            return Err(anyhow!("{} cannot be published to {}: {error}", outgoing.what, outgoing.place()));
        }
        producer.poll(POLL);
        record = back;
    }
}

/// Waits until a record is acknowledged.
fn await_place(
    producer: &Producer,
    outgoing: &Outgoing<'_>,
    acknowledgement: &Acknowledgement,
    deadline: Instant,
    kafka: &KafkaSettings,
) -> anyhow::Result<(Partition, Offset)> {
    let outcome = loop {
        match acknowledgement.get() {
            Some(outcome) => break outcome.clone(),
            None if Instant::now() >= deadline => break Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut)),
            None => producer.poll(POLL),
        }
    };
    let (what, place) = (outgoing.what, outgoing.place());
    outcome.map_err(|error| match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::MessageTimedOut) => anyhow!(
            "the brokers at {} did not acknowledge {what} within {} s: whether it stands in {place} is unknown",
            kafka.brokers,
            PUBLISH_TIMEOUT.as_secs()
        ),
        code => match Right::refused_by(code, &kafka.group_id, || Right::write(outgoing.topic)) {
            Some(right) => anyhow!("{what} was not published to {place}: {}", right.refusal(kafka)),
            None => anyhow!("{what} was not published to {place}: {error}"),
        },
    })
}

impl Outgoing<'_> {
    /// Returns where it goes, for people.
    fn place(&self) -> String {
        self.partition.map_or_else(|| self.topic.to_owned(), |partition| format!("partition {partition} of {}", self.topic))
    }
}

/// The producer of commands.
type Producer = BaseProducer<Acknowledgements>;

type Acknowledgement = Arc<OnceLock<Result<(Partition, Offset), KafkaError>>>;

/// Stores the delivery report where the sender looks for it.
struct Acknowledgements;

impl ClientContext for Acknowledgements {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
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

impl ProducerContext for Acknowledgements {
    type DeliveryOpaque = Acknowledgement;

    fn delivery(&self, result: &DeliveryResult<'_>, acknowledgement: Acknowledgement) {
        let outcome = match result {
            Ok(message) => Ok((Partition(message.partition()), Offset(message.offset()))),
            Err((error, _)) => Err(error.clone()),
        };
        // A message is reported only once.
        let _set = acknowledgement.set(outcome);
    }
}
