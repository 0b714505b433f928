//! The configuration of producers, with the reason for every setting.

use rdkafka::ClientConfig;

use crate::settings::KafkaSettings;

use super::clients::set_properties;
use super::failover::set_failover;

/// The largest record that we hand to librdkafka, in bytes. The limit is high because the broker is to say what is too large.
pub(crate) const MESSAGE_BYTES_MAX: &str = "134217728";

/// How long a broker may wait for its replicas before it answers a producer, in milliseconds.
pub(super) const ACKNOWLEDGE_TIMEOUT_MS: &str = "5000";

/// How long a reply is tried, in milliseconds: its receiver will not wait much longer.
const REPLY_TIMEOUT_MS: &str = "10000";

/// How long a producer gathers records before it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linger {
    /// It sends at once.
    None,
    /// It gathers for as long as it takes to hand a batch over. Otherwise librdkafka's thread would wake with the first record and send it
    /// alone.
    Moment,
}

/// Returns the configuration of a producer of verdicts. The user's properties override ours, except those that correctness depends on.
#[must_use]
pub fn producer_config(kafka: &KafkaSettings, batch_bytes_max: u64, linger: Linger) -> ClientConfig {
    let mut config = ClientConfig::new();
    set_failover(&mut config);
    config
        .set("client.id", "tollgate")
        .set(
            "linger.ms",
            match linger {
                Linger::None => "0",
                Linger::Moment => "1",
            },
        )
        // A verdict is retried until the broker is back. If it were given up, the record would have to be read again, which is slower.
        .set("message.timeout.ms", "0")
        .set("message.max.bytes", MESSAGE_BYTES_MAX)
        // A topic refuses a batch as a whole if it is larger than the topic takes.
        .set("batch.size", batch_bytes_max.to_string())
        .set("queue.buffering.max.messages", "200000")
        // A leader that has just changed may never answer a request that waited for replicas, though it has the records. It says so then, and
        // gets them again. It must be less than socket.timeout.ms.
        .set("request.timeout.ms", ACKNOWLEDGE_TIMEOUT_MS)
        // Only a reply topic can be missing, since the others are checked at start, and its sender should not wait for long.
        .set("topic.metadata.propagation.max.ms", "5000");
    if kafka.properties.contains_key("delivery.timeout.ms") {
        // This is another name of the same property.
        config.remove("message.timeout.ms");
    }
    set_properties(&mut config, kafka);
    config
        .set("bootstrap.servers", &kafka.brokers)
        // Idempotence limits the requests in flight to five, so that tiny batches cannot flood the broker. It also preserves order.
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("partitioner", "murmur2_random");
    config
}

/// Returns the configuration of the reply producer, which differs from that of verdicts in giving up after a while.
#[must_use]
pub fn reply_producer_config(kafka: &KafkaSettings, batch_bytes_max: u64) -> ClientConfig {
    let mut config = producer_config(kafka, batch_bytes_max, Linger::None);
    // These are two names of one property, of which either could win.
    config.remove("delivery.timeout.ms").set("message.timeout.ms", REPLY_TIMEOUT_MS);
    config
}
