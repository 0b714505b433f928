//! What has to be true of the topics before a worker joins.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::consume::consumer_config;
use crate::librdkafka::PlainContext;
use crate::settings::KafkaSettings;

use super::Stop;

/// How long one question to the brokers may take.
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait before unreachable brokers are asked again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The most that a batch of verdicts may hold, whatever the topics take; librdkafka's own default.
const BATCH_BYTES_MAX: u64 = 1_000_000;

/// What the topics say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preflight {
    /// Partitions of the events topic.
    pub partitions: u32,
    /// The largest batch that the topics we publish to take, in bytes.
    pub batch_bytes_max: u64,
}

impl Preflight {
    /// Topics of so many partitions whose sizes are not known.
    #[must_use]
    pub fn of(partitions: u32) -> Self {
        Self { partitions, batch_bytes_max: BATCH_BYTES_MAX }
    }
}

/// Why a worker cannot join.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// A property is wrong.
    #[error("kafka.properties: {0}")]
    Client(KafkaError),
    /// The brokers do not let us see a topic.
    #[error("no permission to describe all of the topics {topics}: allow it to the principal that kafka.properties log in as")]
    Forbidden {
        /// All topics that are needed.
        topics: String,
    },
    /// Topics are missing.
    #[error(
        "no such topic: {missing}; create what is missing with {partitions} partitions, for example: kafka-topics.sh --bootstrap-server {brokers} --create --topic {first} --partitions {partitions}"
    )]
    Missing {
        /// All of them.
        missing: String,
        /// The first of them.
        first: String,
        /// How many partitions they should have.
        partitions: usize,
        /// Where.
        brokers: String,
    },
    /// A verdict is published to the partition of its event, so both topics need as many.
    #[error(
        "topic {decisions} has {found} partitions, {events} has {wanted}: verdicts go to the partition of their event, so give {decisions} at least {wanted} partitions"
    )]
    TooFewPartitions {
        /// The decisions topic.
        decisions: String,
        /// How many it has.
        found: usize,
        /// The events topic.
        events: String,
        /// How many that has.
        wanted: usize,
    },
    /// Told to stop before the brokers answered.
    #[error("stopped before the brokers at {0} could be reached")]
    Stopped(String),
}

/// Asks the brokers about the topics, and keeps asking while they cannot be reached.
///
/// # Errors
/// [`PreflightError`], with what to do about it.
pub fn check_topics(kafka: &KafkaSettings, stop: &Stop) -> Result<Preflight, PreflightError> {
    let client: BaseConsumer<PlainContext> =
        consumer_config(kafka, None).create_with_context(PlainContext).map_err(PreflightError::Client)?;
    loop {
        let wanted = [&kafka.topics.events, &kafka.topics.decisions, &kafka.topics.dlq];
        let counts: Result<Vec<usize>, KafkaError> = wanted.iter().map(|topic| partitions_of(&client, topic)).collect();
        match counts {
            Ok(counts) => return judge(kafka, &wanted.map(String::as_str), &counts),
            Err(KafkaError::MetadataFetch(RDKafkaErrorCode::TopicAuthorizationFailed)) => {
                return Err(PreflightError::Forbidden { topics: wanted.map(String::as_str).join(", ") });
            }
            Err(error) => {
                tracing::warn!(brokers = kafka.brokers, %error, "the brokers do not answer; trying again");
                if stop.wait(RETRY_PAUSE) {
                    return Err(PreflightError::Stopped(kafka.brokers.clone()));
                }
            }
        }
    }
}

/// How many partitions a topic has; 0 if there is no such topic.
fn partitions_of(client: &BaseConsumer<PlainContext>, topic: &str) -> Result<usize, KafkaError> {
    let metadata = client.fetch_metadata(Some(topic), METADATA_TIMEOUT)?;
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else { return Ok(0) };
    match found.error().map(RDKafkaErrorCode::from) {
        // A topic that we may not see is not a missing one.
        Some(code @ RDKafkaErrorCode::TopicAuthorizationFailed) => Err(KafkaError::MetadataFetch(code)),
        Some(_) => Ok(0),
        None => Ok(found.partitions().len()),
    }
}

fn judge(kafka: &KafkaSettings, wanted: &[&str], counts: &[usize]) -> Result<Preflight, PreflightError> {
    let missing: Vec<&str> = wanted.iter().zip(counts).filter(|(_, count)| **count == 0).map(|(topic, _)| *topic).collect();
    let (events, decisions) = (counts.first().copied().unwrap_or_default(), counts.get(1).copied().unwrap_or_default());
    if let Some(first) = missing.first() {
        return Err(PreflightError::Missing {
            missing: missing.join(", "),
            first: (*first).to_owned(),
            partitions: events.max(decisions).max(1),
            brokers: kafka.brokers.clone(),
        });
    }
    if decisions < events {
        return Err(PreflightError::TooFewPartitions {
            decisions: kafka.topics.decisions.clone(),
            found: decisions,
            events: kafka.topics.events.clone(),
            wanted: events,
        });
    }
    Ok(Preflight::of(u32::try_from(events).unwrap_or(u32::MAX)))
}

/// Asks for the sizes that the topics take. A batch larger than its topic takes is refused whole, so the producer's batches must not
/// be; a dead letter topic that takes less than the events topic cannot hold every dead letter. Brokers that do not say (they may
/// require a permission for it) leave the default.
pub async fn check_sizes(kafka: &KafkaSettings, preflight: Preflight) -> Preflight {
    let sizes = match describe(kafka).await {
        Ok(sizes) => sizes,
        Err(error) => {
            tracing::warn!(%error, "the topics' max.message.bytes are unknown; batches keep librdkafka's default");
            return preflight;
        }
    };
    let size_of = |topic: &str| sizes.iter().find(|(name, _)| name == topic).map(|(_, bytes)| *bytes);
    let topics = &kafka.topics;
    if let (Some(events), Some(dlq)) = (size_of(&topics.events), size_of(&topics.dlq))
        && dlq < events
    {
        tracing::warn!(
            topic = topics.dlq,
            "max.message.bytes is {dlq}, that of {} is {events}: larger dead letters will be published without their value",
            topics.events
        );
    }
    let smallest = [size_of(&topics.decisions), size_of(&topics.dlq)].into_iter().flatten().min();
    Preflight { batch_bytes_max: preflight.batch_bytes_max.min(smallest.unwrap_or(u64::MAX)), ..preflight }
}

async fn describe(kafka: &KafkaSettings) -> Result<Vec<(String, u64)>, KafkaError> {
    let admin: AdminClient<PlainContext> = consumer_config(kafka, None).create_with_context(PlainContext)?;
    let topics = &kafka.topics;
    let resources = [&topics.events, &topics.decisions, &topics.dlq].map(|topic| ResourceSpecifier::Topic(topic));
    let options = AdminOptions::new().request_timeout(Some(METADATA_TIMEOUT));
    let described = admin.describe_configs(&resources, &options).await?;
    let size = |config: rdkafka::admin::ConfigResource| {
        let name = match &config.specifier {
            rdkafka::admin::OwnedResourceSpecifier::Topic(name) => name.clone(),
            _ => return None,
        };
        let entry = config.get("max.message.bytes")?;
        Some((name, entry.value.as_ref()?.parse().ok()?))
    };
    Ok(described.into_iter().filter_map(Result::ok).filter_map(size).collect())
}
