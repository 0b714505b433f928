//! The producer's configuration, with the reason for every setting.

use rdkafka::ClientConfig;

use crate::settings::KafkaSettings;

/// The largest record that we hand to the broker: it is the broker that says what is too large.
pub(crate) const MESSAGE_BYTES_MAX: &str = "134217728";

/// How long a reply is tried: whoever awaits it will not wait much longer.
const REPLY_TIMEOUT_MS: &str = "10000";

/// How long a producer waits for company.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linger {
    /// Not at all.
    None,
    /// For as long as it takes to hand a batch over: librdkafka's thread wakes with the first record and would send that alone.
    Moment,
}

/// Returns the configuration of a producer of verdicts. The user's properties come last, but for those that correctness depends on.
#[must_use]
pub fn producer_config(kafka: &KafkaSettings, batch_bytes_max: u64, linger: Linger) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("client.id", "tollgate")
        .set(
            "linger.ms",
            match linger {
                Linger::None => "0",
                Linger::Moment => "1",
            },
        )
        // A verdict is retried until the broker is back. Giving up would need the record to be read again, which is slower.
        .set("message.timeout.ms", "0")
        .set("message.max.bytes", MESSAGE_BYTES_MAX)
        // A batch is refused whole if its topic takes less.
        .set("batch.size", batch_bytes_max.to_string())
        .set("queue.buffering.max.messages", "200000")
        // Only a reply topic can be missing (the others are checked at start), and its sender should not wait for long.
        .set("topic.metadata.propagation.max.ms", "5000");
    if kafka.properties.contains_key("delivery.timeout.ms") {
        // Its other name.
        config.remove("message.timeout.ms");
    }
    for (key, value) in &kafka.properties {
        config.set(key, value);
    }
    config
        .set("bootstrap.servers", &kafka.brokers)
        // Idempotence bounds the requests in flight to five: without that, tiny batches swamp the broker. It also keeps order.
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("partitioner", "murmur2_random");
    config
}

/// Returns the configuration of the reply producer: the same, but it gives up after a while.
#[must_use]
pub fn reply_producer_config(kafka: &KafkaSettings, batch_bytes_max: u64) -> ClientConfig {
    let mut config = producer_config(kafka, batch_bytes_max, Linger::None);
    // Two names for one property, of which either could win.
    config.remove("delivery.timeout.ms").set("message.timeout.ms", REPLY_TIMEOUT_MS);
    config
}
