//! The configuration of consumers, with the reason for every setting.

use std::time::Duration;

use rdkafka::ClientConfig;

use tollgate_config::settings::KafkaSettings;

use super::clients::set_properties;
use super::failover::set_failover;

/// How often a member sends the group a heartbeat, unless a property says otherwise.
const HEARTBEAT_INTERVAL_MS: u64 = 100;
/// How long a worker may be silent, unless a property says otherwise.
pub const SILENCE_MAX: Duration = Duration::from_millis(3_500);
/// The heartbeat interval that brokers set for members of the KIP-848 group protocol by default.
const CONSUMER_PROTOCOL_HEARTBEAT_MS: u64 = 5_000;

/// Returns how long a worker may be silent until its peers take it for dead: a pause of three seconds is no reason. A session that the user
/// has set holds for the peers too.
#[must_use]
pub fn silence_max(kafka: &KafkaSettings) -> Duration {
    let set = kafka.properties.get("session.timeout.ms").and_then(|value| value.parse().ok());
    set.map_or(SILENCE_MAX, Duration::from_millis)
}

/// Returns how often a member sends the group a heartbeat.
#[must_use]
pub fn heartbeat_interval(kafka: &KafkaSettings) -> Duration {
    let set = kafka.properties.get("heartbeat.interval.ms").and_then(|value| value.parse().ok());
    let default = if uses_consumer_protocol(kafka) { CONSUMER_PROTOCOL_HEARTBEAT_MS } else { HEARTBEAT_INTERVAL_MS };
    Duration::from_millis(set.unwrap_or(default))
}

/// Returns whether the broker assigns partitions (KIP-848).
#[must_use]
pub fn uses_consumer_protocol(kafka: &KafkaSettings) -> bool {
    kafka.properties.get("group.protocol").is_some_and(|protocol| protocol.eq_ignore_ascii_case("consumer"))
}

/// Returns the configuration of a member of a group. `instance_id` is its static membership, if any. The user's properties override ours,
/// except those that correctness depends on.
#[must_use]
pub fn consumer_config(kafka: &KafkaSettings, group_id: &str, instance_id: Option<&str>) -> ClientConfig {
    let mut config = ClientConfig::new();
    set_failover(&mut config);
    config
        .set("client.id", "tollgate")
        // A new group reads from the start: an event without an answer would leave an agent waiting.
        .set("auto.offset.reset", "earliest")
        // A broker answers as soon as there is data, so a long wait costs nothing and avoids empty requests.
        .set("fetch.wait.max.ms", "500")
        .set("fetch.min.bytes", "1")
        // With the default of a second, a partition would stall for that long whenever the local queue is full.
        .set("fetch.queue.backoff.ms", "5")
        .set("fetch.message.max.bytes", "1048576")
        .set("queued.max.messages.kbytes", "65536")
        // librdkafka's statistics give the lag of each partition.
        .set("statistics.interval.ms", "5000");
    set_properties(&mut config, kafka);
    // With KIP-848 the broker assigns, and librdkafka refuses these settings.
    if !uses_consumer_protocol(kafka) {
        if !kafka.properties.contains_key("partition.assignment.strategy") {
            config.set("partition.assignment.strategy", "cooperative-sticky");
        }
        if !kafka.properties.contains_key("session.timeout.ms") {
            // It is longer than the brokers take to replace a coordinator that died (9 s and its loading): otherwise the whole group
            // would lose its partitions with that broker. A member that died is removed by the others long before.
            config.set("session.timeout.ms", "15000");
        }
        if !kafka.properties.contains_key("heartbeat.interval.ms") {
            // A partition that moves waits until every member has learned of the rebalance, with the answer to its next heartbeat.
            config.set("heartbeat.interval.ms", HEARTBEAT_INTERVAL_MS.to_string());
        }
    }
    if let Some(instance_id) = instance_id {
        config.set("group.instance.id", instance_id);
    }
    config
        .set("bootstrap.servers", &kafka.brokers)
        .set("group.id", group_id)
        // We commit offsets ourselves, after the verdicts are acknowledged.
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false");
    config
}
