//! Publishes one record and waits for its acknowledgement, for a limited time.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DeliveryResult, ProducerContext};

use crate::kafka::{Linger, Right, make_producer, oauth_token, producer_config};
use crate::settings::KafkaSettings;
use tollgate_core::record::{Offset, Partition};

/// How long the brokers may take to acknowledge the record.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
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
    pub(super) key: &'a str,
    /// The value. Null deletes the key in a compacted topic.
    pub(super) value: Option<&'a [u8]>,
    /// What the record is, for people: `the event`.
    pub(super) what: &'a str,
}

/// Publishes a record and returns its place, once all replicas that the topic asks for have acknowledged it.
pub(super) fn publish(kafka: &KafkaSettings, outgoing: &Outgoing<'_>) -> anyhow::Result<(Partition, Offset)> {
    let Outgoing { topic, partition, key, value, what } = *outgoing;
    let place = partition.map_or_else(|| topic.to_owned(), |partition| format!("partition {partition} of {topic}"));
    let mut config = producer_config(kafka, BATCH_BYTES_MAX, Linger::None);
    // Verdicts are retried for ever, but here somebody waits at a terminal. The second name is an alias, and either of the two could win.
    config.set("message.timeout.ms", PUBLISH_TIMEOUT.as_millis().to_string()).remove("delivery.timeout.ms");
    let producer = make_producer(&config, Acknowledgements).context("kafka.properties")?;
    let acknowledgement = Acknowledgement::default();
    let mut record: BaseRecord<'_, str, [u8], Acknowledgement> = BaseRecord::with_opaque_to(topic, Arc::clone(&acknowledgement)).key(key);
    record.partition = partition.map(|partition| partition.0);
    record.payload = value;
    producer.send(record).map_err(|(error, _)| anyhow!("{what} cannot be published to {place}: {error}"))?;
    let deadline = Instant::now() + PUBLISH_TIMEOUT + REPORT_TIMEOUT;
    let outcome = loop {
        producer.poll(POLL);
        match acknowledgement.get() {
            Some(outcome) => break outcome.clone(),
            None if Instant::now() >= deadline => break Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut)),
            None => {}
        }
    };
    outcome.map_err(|error| match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::MessageTimedOut) => anyhow!(
            "the brokers at {} did not acknowledge {what} within {} s: whether it stands in {place} is unknown",
            kafka.brokers,
            PUBLISH_TIMEOUT.as_secs()
        ),
        code => match Right::refused_by(code, &kafka.group_id, || Right::write(topic)) {
            Some(right) => anyhow!("{what} was not published to {place}: {}", right.refusal(kafka)),
            None => anyhow!("{what} was not published to {place}: {error}"),
        },
    })
}

type Acknowledgement = Arc<OnceLock<Result<(Partition, Offset), KafkaError>>>;

/// Stores the delivery report where the sender looks for it.
struct Acknowledgements;

impl ClientContext for Acknowledgements {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        oauth_token(config)
    }

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        crate::kafka::log(level, facility, message);
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
