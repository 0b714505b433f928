//! The clients of the state topic, with the reason for every setting.

use rdkafka::ClientConfig;

use crate::consume::consumer_config;
use crate::decode::Partition;
use crate::settings::KafkaSettings;

/// The transactional id of a partition's state: one owner at a time, in every group that has a state topic of its own.
#[must_use]
pub fn transactional_id(kafka: &KafkaSettings, partition: Partition) -> String {
    format!("{}-{}-{partition}", kafka.group_id, kafka.topics.state)
}

/// The producer of a partition's checkpoints. The user's properties come over ours, but for those that correctness depends on.
#[must_use]
pub(super) fn producer_config(kafka: &KafkaSettings, partition: Partition) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("client.id", "tollgate-state")
        // A checkpoint is flushed as a whole.
        .set("linger.ms", "0")
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
        .set("transactional.id", transactional_id(kafka, partition))
        .set("enable.idempotence", "true")
        .set("acks", "all");
    config
}

/// The reader of a state partition. It belongs to the group, to ask for its offsets, but never joins it.
#[must_use]
pub fn reader_config(kafka: &KafkaSettings) -> ClientConfig {
    let mut config = consumer_config(kafka, None);
    config
        .set("client.id", "tollgate-state")
        // What was aborted was never state.
        .set("isolation.level", "read_committed")
        .set("enable.partition.eof", "true")
        // Somebody waits for the end of the partition, and for the answers to questions behind a fetch that waits for data.
        .set("fetch.wait.max.ms", "10")
        .set("topic.metadata.refresh.fast.interval.ms", "20")
        .set("queued.max.messages.kbytes", "16384")
        .set("statistics.interval.ms", "0");
    config
}
