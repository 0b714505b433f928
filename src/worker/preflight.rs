//! What has to be true of the topics before a worker joins.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ConfigResource, OwnedResourceSpecifier, ResourceSpecifier};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::kafka::{PlainContext, consumer_config};
use crate::settings::KafkaSettings;

use crate::stop::Stop;

/// How long one question to the brokers may take.
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait before unreachable brokers are asked again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The most that a batch of verdicts may hold, whatever the topics take; librdkafka's own default.
const BATCH_BYTES_MAX: u64 = 1_000_000;
/// What a thread's state record may take beyond the thread's own bytes: key, ids of full length, the batch around it.
const STATE_RECORD_OVERHEAD: u64 = 4_096;

/// What the topics say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preflight {
    /// Partitions of the events topic.
    pub partitions: u32,
    /// The largest batch that the topics we publish to take, in bytes.
    pub batch_bytes_max: u64,
    /// The largest batch that the state topic takes, in bytes.
    pub state_batch_bytes_max: u64,
}

impl Preflight {
    /// Topics of so many partitions whose sizes are not known.
    #[must_use]
    pub fn of(partitions: u32) -> Self {
        Self { partitions, batch_bytes_max: BATCH_BYTES_MAX, state_batch_bytes_max: BATCH_BYTES_MAX }
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
    #[error("no such topic: {missing}; create what is missing, for example: {create}")]
    Missing {
        /// All of them.
        missing: String,
        /// A command that creates them.
        create: String,
    },
    /// The state of a partition stands on the partition of the same number, so both topics have as many.
    #[error(
        "topic {state} has {found} partitions, {events} has {wanted}: the state of a partition stands on the partition of the same number. Where {events} was given more partitions, give {state} as many (threads that now hash elsewhere start anew); where {state} has too many, recreate it"
    )]
    StatePartitions {
        /// The state topic.
        state: String,
        /// How many it has.
        found: usize,
        /// The events topic.
        events: String,
        /// How many that has.
        wanted: usize,
    },
    /// The state topic loses state by age, or the controls topic controls.
    #[error(
        "topic {topic} has cleanup.policy={found}: {lost} would be deleted by age. Set it to compact: kafka-configs.sh --bootstrap-server {brokers} --entity-type topics --entity-name {topic} --alter --add-config cleanup.policy=compact"
    )]
    NotCompacted {
        /// The topic.
        topic: String,
        /// What would be lost.
        lost: &'static str,
        /// Its policy.
        found: String,
        /// Where.
        brokers: String,
    },
    /// A thread's state may not fit into the state topic.
    #[error(
        "topic {state} has max.message.bytes={found}, and a thread's state may take {wanted} bytes: raise it, or lower limits.thread_bytes_max"
    )]
    StateTooSmall {
        /// The state topic.
        state: String,
        /// What it takes.
        found: u64,
        /// What it may have to.
        wanted: u64,
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
        consumer_config(kafka, &kafka.group_id, None).create_with_context(PlainContext).map_err(PreflightError::Client)?;
    loop {
        match ask_for_topics(&client, kafka) {
            Ok(found) => return judge(kafka, found),
            Err(KafkaError::MetadataFetch(RDKafkaErrorCode::TopicAuthorizationFailed)) => {
                return Err(PreflightError::Forbidden { topics: needed(kafka).join(", ") });
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

/// How many partitions each topic has that a worker needs; 0 for one that is missing.
#[derive(Debug, Clone, Copy)]
struct Found {
    events: usize,
    decisions: usize,
    dlq: usize,
    state: usize,
    controls: usize,
}

/// The topics that a worker needs.
fn needed(kafka: &KafkaSettings) -> [&str; 5] {
    let topics = &kafka.topics;
    [&topics.events, &topics.decisions, &topics.dlq, &topics.state, &topics.controls].map(String::as_str)
}

fn ask_for_topics(client: &BaseConsumer<PlainContext>, kafka: &KafkaSettings) -> Result<Found, KafkaError> {
    let [events, decisions, dlq, state, controls] = needed(kafka).map(|topic| partitions_of(client, topic, METADATA_TIMEOUT));
    Ok(Found { events: events?, decisions: decisions?, dlq: dlq?, state: state?, controls: controls? })
}

/// How many partitions a topic has; 0 if there is no such topic.
pub(crate) fn partitions_of<C: ConsumerContext>(client: &BaseConsumer<C>, topic: &str, timeout: Duration) -> Result<usize, KafkaError> {
    let metadata = client.fetch_metadata(Some(topic), timeout)?;
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else { return Ok(0) };
    match found.error().map(RDKafkaErrorCode::from) {
        // A topic that we may not see is not a missing one.
        Some(code @ RDKafkaErrorCode::TopicAuthorizationFailed) => Err(KafkaError::MetadataFetch(code)),
        Some(_) => Ok(0),
        None => Ok(found.partitions().len()),
    }
}

fn judge(kafka: &KafkaSettings, found: Found) -> Result<Preflight, PreflightError> {
    let Found { events, decisions, dlq, state, controls } = found;
    let missing: Vec<&str> = needed(kafka)
        .into_iter()
        .zip([events, decisions, dlq, state, controls])
        .filter(|(_, count)| *count == 0)
        .map(|(topic, _)| topic)
        .collect();
    if !missing.is_empty() {
        // The state needs as many as the events; where these are missing too, all are given as many as there is reason for.
        let partitions = if events > 0 { events } else { decisions.max(state).max(1) };
        let create = missing.iter().map(|topic| create_command(kafka, topic, partitions)).collect::<Vec<_>>().join("; ");
        return Err(PreflightError::Missing { missing: missing.join(", "), create });
    }
    if decisions < events {
        return Err(PreflightError::TooFewPartitions {
            decisions: kafka.topics.decisions.clone(),
            found: decisions,
            events: kafka.topics.events.clone(),
            wanted: events,
        });
    }
    if state != events {
        return Err(PreflightError::StatePartitions {
            state: kafka.topics.state.clone(),
            found: state,
            events: kafka.topics.events.clone(),
            wanted: events,
        });
    }
    Ok(Preflight::of(u32::try_from(events).unwrap_or(u32::MAX)))
}

/// How to create a topic that is missing.
fn create_command(kafka: &KafkaSettings, topic: &str, partitions: usize) -> String {
    let is_controls = topic == kafka.topics.controls;
    let compacted = if is_controls || topic == kafka.topics.state { " --config cleanup.policy=compact" } else { "" };
    // Controls are few, and in one partition they have one order.
    let partitions = if is_controls { 1 } else { partitions };
    format!("kafka-topics.sh --bootstrap-server {} --create --topic {topic} --partitions {partitions}{compacted}", kafka.brokers)
}

/// Asks how the topics are configured. A batch larger than its topic takes is refused whole, so the producer's batches must not be; a dead
/// letter topic that takes less than the events topic cannot hold every dead letter; a state topic must keep state, all of it, and the
/// controls topic controls. Brokers that do not say (they may require a permission for it) leave the defaults.
///
/// # Errors
/// [`PreflightError::NotCompacted`] and [`PreflightError::StateTooSmall`].
pub async fn check_configs(kafka: &KafkaSettings, preflight: Preflight, thread_bytes_max: usize) -> Result<Preflight, PreflightError> {
    let described = match describe(kafka).await {
        Ok(described) => described,
        Err(error) => {
            tracing::warn!(%error, "how the topics are configured is unknown; batches keep librdkafka's default size, and {} and {} had better be compacted", kafka.topics.state, kafka.topics.controls);
            return Ok(preflight);
        }
    };
    let entry = |topic: &str, name: &str| described.iter().find(|config| is_of(config, topic))?.get(name)?.value.clone();
    let size_of = |topic: &str| entry(topic, "max.message.bytes")?.parse::<u64>().ok();
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
    for (topic, lost) in [(&topics.state, "state"), (&topics.controls, "controls")] {
        if let Some(found) = entry(topic, "cleanup.policy").filter(|policy| policy != "compact") {
            return Err(PreflightError::NotCompacted { topic: topic.clone(), lost, found, brokers: kafka.brokers.clone() });
        }
    }
    let wanted = thread_bytes_max as u64 + STATE_RECORD_OVERHEAD;
    if let Some(found) = size_of(&topics.state).filter(|found| *found < wanted) {
        return Err(PreflightError::StateTooSmall { state: topics.state.clone(), found, wanted });
    }
    let smallest = [size_of(&topics.decisions), size_of(&topics.dlq)].into_iter().flatten().min();
    let state = size_of(&topics.state).unwrap_or(u64::MAX);
    Ok(Preflight {
        batch_bytes_max: preflight.batch_bytes_max.min(smallest.unwrap_or(u64::MAX)),
        state_batch_bytes_max: preflight.state_batch_bytes_max.min(state),
        ..preflight
    })
}

fn is_of(config: &ConfigResource, topic: &str) -> bool {
    matches!(&config.specifier, OwnedResourceSpecifier::Topic(name) if name == topic)
}

async fn describe(kafka: &KafkaSettings) -> Result<Vec<ConfigResource>, KafkaError> {
    let admin: AdminClient<PlainContext> = consumer_config(kafka, &kafka.group_id, None).create_with_context(PlainContext)?;
    let resources = needed(kafka).map(ResourceSpecifier::Topic);
    let options = AdminOptions::new().request_timeout(Some(METADATA_TIMEOUT));
    let described = admin.describe_configs(&resources, &options).await?;
    Ok(described.into_iter().filter_map(Result::ok).collect())
}
