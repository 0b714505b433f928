//! The consumer's configuration, with the reason for every setting.

use rdkafka::ClientConfig;

use crate::settings::KafkaSettings;

/// The configuration of a group member. `instance_id` is its static membership, if any. The user's properties come over ours, but for
/// those that correctness depends on.
#[must_use]
pub fn consumer_config(kafka: &KafkaSettings, instance_id: Option<&str>) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("client.id", "tollgate")
        // A group that is new reads from the start: an event that nobody answers leaves an agent waiting.
        .set("auto.offset.reset", "earliest")
        // A broker answers as soon as there is data, so waiting long costs nothing and spares empty requests.
        .set("fetch.wait.max.ms", "500")
        .set("fetch.min.bytes", "1")
        // The default of a second would stall a partition for that long whenever the local queue is full.
        .set("fetch.queue.backoff.ms", "5")
        .set("fetch.message.max.bytes", "1048576")
        .set("queued.max.messages.kbytes", "65536")
        // Lag per partition comes with librdkafka's own statistics.
        .set("statistics.interval.ms", "5000");
    for (key, value) in &kafka.properties {
        config.set(key, value);
    }
    // KIP-848 leaves assignment to the broker and refuses these.
    if kafka.properties.get("group.protocol").is_none_or(|protocol| !protocol.eq_ignore_ascii_case("consumer")) {
        if !kafka.properties.contains_key("partition.assignment.strategy") {
            config.set("partition.assignment.strategy", "cooperative-sticky");
        }
        if !kafka.properties.contains_key("session.timeout.ms") {
            config.set("session.timeout.ms", "45000");
        }
    }
    if let Some(instance_id) = instance_id {
        config.set("group.instance.id", instance_id);
    }
    config
        .set("bootstrap.servers", &kafka.brokers)
        .set("group.id", &kafka.group_id)
        // Offsets are committed behind acknowledged verdicts, by us.
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false");
    config
}
