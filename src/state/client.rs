//! The clients of the state topic, with the reason for every setting.

use rdkafka::ClientConfig;

use crate::consume::consumer_config;
use crate::publish::MESSAGE_BYTES_MAX;
use crate::settings::KafkaSettings;
use tollgate_core::record::Partition;

/// The transactional id of a partition's state: one owner at a time, in every group that has a state topic of its own.
#[must_use]
pub fn transactional_id(kafka: &KafkaSettings, partition: Partition) -> String {
    // A topic's name holds no slash, so no two groups can come to the same id.
    format!("{}/{}/{partition}", kafka.group_id, kafka.topics.state)
}

/// The producer of a partition's checkpoints. The user's properties come over ours, but for those that correctness depends on.
#[must_use]
pub(super) fn producer_config(kafka: &KafkaSettings, partition: Partition, batch_bytes_max: u64) -> ClientConfig {
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
        .set("transactional.id", transactional_id(kafka, partition))
        // A checkpoint is flushed as a whole.
        .set("linger.ms", "0")
        // A batch is refused whole if the topic takes less.
        .set("batch.size", batch_bytes_max.to_string())
        .set("message.max.bytes", MESSAGE_BYTES_MAX)
        .set("enable.idempotence", "true")
        .set("acks", "all");
    config
}

/// The client that asks what is committed and where the events end. It names the group but never joins it.
///
/// It does not insist on offsets that no transaction is about: whoever asks has fenced the last owner, whose transaction is over by then,
/// and brokers have been seen to take one for open for ever whose producer was killed.
#[must_use]
pub(super) fn asker_config(kafka: &KafkaSettings) -> ClientConfig {
    let mut config = reader_config(kafka);
    config.set("isolation.level", "read_uncommitted");
    config
}

/// The reader of a state partition.
#[must_use]
pub fn reader_config(kafka: &KafkaSettings) -> ClientConfig {
    let mut config = consumer_config(kafka, None);
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
