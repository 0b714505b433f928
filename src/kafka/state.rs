//! The clients of the state topic, with the reason for every setting.

use rdkafka::ClientConfig;

use tollgate_core::record::Partition;

use crate::settings::KafkaSettings;

use super::consumer_config;
use super::producer::MESSAGE_BYTES_MAX;

/// A stage's place in Kafka: which group reads which topic, and where its state is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTopics {
    /// The consumer group.
    pub group_id: String,
    /// The topic whose records the stage takes.
    pub input: String,
    /// The compacted topic of its checkpoints, with as many partitions.
    pub state: String,
}

impl StageTopics {
    /// Returns whose state it is that stands in the state topic: the group's, of this topic.
    #[must_use]
    pub fn owner(&self) -> String {
        format!("{}/{}", self.group_id, self.input)
    }

    /// Returns the transactional id of a partition's state: one owner at a time, in every group that has a state topic of its own.
    #[must_use]
    pub fn transactional_id(&self, partition: Partition) -> String {
        // A topic's name holds no slash, so no two groups can come to the same id.
        format!("{}/{}/{partition}", self.group_id, self.state)
    }
}

/// Returns the configuration of the producer of a partition's checkpoints. The user's properties come over ours, but for those that
/// correctness depends on.
#[must_use]
pub(crate) fn state_producer_config(
    kafka: &KafkaSettings,
    topics: &StageTopics,
    partition: Partition,
    batch_bytes_max: u64,
) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("client.id", "tollgate-state")
        // The broker may still be at the transaction before this one; that takes some milliseconds, not the default's tenth of a second.
        .set("retry.backoff.ms", "10")
        // Only where nobody takes the partition over does a transaction that was left open wait for this.
        .set("transaction.timeout.ms", "30000");
    for (key, value) in &kafka.properties {
        config.set(key, value);
    }
    config
        // The verdicts' producer tries for ever; a transaction cannot.
        .remove("message.timeout.ms")
        .remove("delivery.timeout.ms");
    config
        .set("bootstrap.servers", &kafka.brokers)
        .set("transactional.id", topics.transactional_id(partition))
        // A checkpoint is flushed as a whole.
        .set("linger.ms", "0")
        // A batch is refused whole if the topic takes less.
        .set("batch.size", batch_bytes_max.to_string())
        .set("message.max.bytes", MESSAGE_BYTES_MAX)
        .set("enable.idempotence", "true")
        .set("acks", "all");
    config
}

/// Returns the configuration of the client that asks what is committed and where the input ends. It names the group but never joins it.
///
/// It does not insist on offsets that no transaction is about: whoever asks has fenced the last owner, whose transaction is over by then,
/// and brokers have been seen to take one for open for ever whose producer was killed.
#[must_use]
pub(crate) fn asker_config(kafka: &KafkaSettings, group_id: &str) -> ClientConfig {
    let mut config = reader_config(kafka, group_id);
    config.set("isolation.level", "read_uncommitted");
    config
}

/// Returns the configuration of the reader of a state partition.
#[must_use]
pub fn reader_config(kafka: &KafkaSettings, group_id: &str) -> ClientConfig {
    let mut config = consumer_config(kafka, group_id, None);
    // A follower may not have all of it yet.
    config.remove("client.rack");
    config
        .set("client.id", "tollgate-state")
        // What was aborted was never state.
        .set("isolation.level", "read_committed")
        // The state is read from its beginning or not at all.
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        // Somebody waits for the end of the partition, and for the answers to questions behind a fetch that waits for data.
        .set("fetch.wait.max.ms", "10")
        .set("topic.metadata.refresh.fast.interval.ms", "20")
        .set("queued.max.messages.kbytes", "16384")
        .set("statistics.interval.ms", "0");
    config
}
