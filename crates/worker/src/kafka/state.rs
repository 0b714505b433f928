//! The clients of the state topic: their configuration, with the reason for every setting.

use rdkafka::ClientConfig;
use tracing::span::EnteredSpan;

use tollgate_core::event::record::Partition;

use tollgate_config::settings::KafkaSettings;

use super::clients::set_properties;
use super::consumer_config;
use super::failover::set_failover;
use super::producer::{ACKNOWLEDGE_TIMEOUT_MS, MESSAGE_BYTES_MAX, set_lossless};

pub use crate::metrics::ABUSE;

/// The group of a stage, with its input topic and its state topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTopics {
    /// The stage's name, as threads and reports have it; `None` for the stage that gives verdicts.
    pub stage: Option<&'static str>,
    /// The consumer group.
    pub group_id: String,
    /// The topic whose records the stage takes.
    pub input: String,
    /// The compacted topic of its checkpoints, with as many partitions as the input.
    pub state: String,
    /// How many partitions the state is keyed for; `None` before the brokers were asked.
    pub partitions: Option<u32>,
}

impl StageTopics {
    /// Returns the topics of the stage that gives verdicts.
    #[must_use]
    pub fn of(kafka: &KafkaSettings) -> Self {
        let topics = &kafka.topics;
        let (input, state) = (topics.events.clone(), topics.state.clone());
        Self { stage: None, group_id: kafka.group_id.clone(), input, state, partitions: None }
    }

    /// Returns the topics of the stage that counts signals, in a group of this id.
    #[must_use]
    pub fn of_abuse(kafka: &KafkaSettings, group_id: &str) -> Self {
        let topics = &kafka.topics;
        let (input, state) = (topics.signals.clone(), topics.abuse.clone());
        Self { stage: Some(ABUSE), group_id: group_id.to_owned(), input, state, partitions: None }
    }

    /// Enters what says in each log line of this thread which stage the line is of. It ends when it is dropped.
    pub fn enter_log(&self) -> EnteredSpan {
        tracing::error_span!("work", stage = self.stage.unwrap_or("deciding")).entered()
    }

    /// Returns the owner of the state in the state topic: the group, with its input topic.
    #[must_use]
    pub fn owner(&self) -> String {
        format!("{}/{}", self.group_id, self.input)
    }

    /// Returns whether a partition is one of those that the state is keyed for.
    #[must_use]
    pub fn covers(&self, partition: Partition) -> bool {
        self.partitions.is_none_or(|count| u32::try_from(partition.0).is_ok_and(|number| number < count))
    }

    /// Returns the name of the thread of a partition's checkpoint writer.
    #[must_use]
    pub fn writer_thread(&self, partition: Partition) -> String {
        match self.stage {
            None => format!("state-{partition}"),
            Some(stage) => format!("{stage}-state-{partition}"),
        }
    }

    /// Returns the transactional id of a partition's state. It lets a partition have one owner at a time, in every group with its own state
    /// topic.
    #[must_use]
    pub fn transactional_id(&self, partition: Partition) -> String {
        // A topic's name holds no slash, so two groups cannot have the same id.
        format!("{}/{}/{partition}", self.group_id, self.state)
    }

    /// Returns the transactional id of what moves state from one partition to another. There is one such process at a time.
    #[must_use]
    pub fn rekey_transactional_id(&self) -> String {
        format!("{}/{}/rekey", self.group_id, self.state)
    }
}

/// Returns the configuration of the producer of a partition's checkpoints. The user's properties override ours, except those that
/// correctness depends on.
#[must_use]
pub fn state_producer_config(kafka: &KafkaSettings, topics: &StageTopics, partition: Partition, batch_bytes_max: u64) -> ClientConfig {
    let mut config = ClientConfig::new();
    set_failover(&mut config);
    config
        .set("client.id", "tollgate-state")
        // The broker may still be finishing the transaction before this one. That takes some milliseconds, not the default's tenth of a
        // second.
        .set("retry.backoff.ms", "10")
        // As for verdicts.
        .set("request.timeout.ms", ACKNOWLEDGE_TIMEOUT_MS)
        // An open transaction waits for this only if nobody takes the partition over.
        .set("transaction.timeout.ms", "30000");
    set_properties(&mut config, kafka);
    config
        // The producer of verdicts retries for ever, but a transaction cannot.
        .remove("message.timeout.ms")
        .remove("delivery.timeout.ms");
    set_lossless(&mut config);
    config
        .set("bootstrap.servers", &kafka.brokers)
        .set("transactional.id", topics.transactional_id(partition))
        // A checkpoint is flushed as a whole.
        .set("linger.ms", "0")
        // A topic refuses a batch as a whole if it is larger than the topic takes.
        .set("batch.size", batch_bytes_max.to_string())
        .set("message.max.bytes", MESSAGE_BYTES_MAX);
    config
}

/// Returns the configuration of the client that reads the committed offset and the end of the input. It names the group but never joins it.
///
/// It does not require stable offsets. Its caller has already fenced the last owner, whose transaction is therefore over, and some brokers
/// consider the transaction of a killed producer open for ever.
#[must_use]
pub fn asker_config(kafka: &KafkaSettings, group_id: &str) -> ClientConfig {
    let mut config = reader_config(kafka, group_id);
    config.set("isolation.level", "read_uncommitted");
    config
}

/// Returns the configuration of the reader of a state partition.
#[must_use]
pub fn reader_config(kafka: &KafkaSettings, group_id: &str) -> ClientConfig {
    let mut config = consumer_config(kafka, group_id, None);
    // A follower may not have all of the state yet.
    config.remove("client.rack");
    config
        .set("client.id", "tollgate-state")
        // Aborted records are not state.
        .set("isolation.level", "read_committed")
        // The state is read from its beginning or not at all.
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        // Somebody waits for the end of the partition, and for answers that are queued behind a fetch that waits for data.
        .set("fetch.wait.max.ms", "10")
        .set("topic.metadata.refresh.fast.interval.ms", "20")
        .set("queued.max.messages.kbytes", "16384")
        .set("statistics.interval.ms", "0");
    config
}
