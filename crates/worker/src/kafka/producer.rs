//! The configuration of producers, with the reason for every setting.

use rdkafka::ClientConfig;

use tollgate_config::settings::KafkaSettings;

use super::clients::set_properties;
use super::failover::set_failover;

/// The largest record that we hand to librdkafka, in bytes. The limit is high because the broker is to say what is too large.
pub const MESSAGE_BYTES_MAX: &str = "134217728";

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

/// Returns the configuration of a producer that loses nothing and keeps the order of a partition. The user's properties override ours,
/// except those that correctness depends on.
///
/// Idempotence alone does not do that. A broker that has just come to lead a partition may refuse a producer's first batch and take the
/// second, which was in flight behind it: it knows nothing of this producer yet, and takes any batch as its first. From the acknowledgement
/// of the second, librdkafka concludes that the first was written too (`rd_kafka_dr_implicit_ack`). With one request in flight at a broker,
/// none is sent before the one ahead of it is taken.
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
    set_lossless(&mut config);
    config.set("bootstrap.servers", &kafka.brokers).set("partitioner", "murmur2_random");
    config
}

/// Sets what makes acknowledgements true: see [`producer_config`].
pub(super) fn set_lossless(config: &mut ClientConfig) {
    config.set("enable.idempotence", "true").set("acks", "all").set("max.in.flight", "1");
}

/// Returns the configuration of a producer of verdicts: requests for several partitions may be in flight at a broker. With one, a verdict
/// would wait for those of all other partitions, which multiplies its latency. So the caller has to hold back what follows on the same
/// partition until an acknowledgement comes, and must not believe one without an offset.
#[must_use]
pub fn verdict_producer_config(kafka: &KafkaSettings, batch_bytes_max: u64, linger: Linger) -> ClientConfig {
    let mut config = producer_config(kafka, batch_bytes_max, linger);
    config.set("max.in.flight", "5");
    config
}

/// Returns the configuration of the reply producer, which differs from that of verdicts in giving up after a while.
#[must_use]
pub fn reply_producer_config(kafka: &KafkaSettings, batch_bytes_max: u64) -> ClientConfig {
    let mut config = verdict_producer_config(kafka, batch_bytes_max, Linger::None);
    // These are two names of one property, of which either could win.
    config.remove("delivery.timeout.ms").set("message.timeout.ms", REPLY_TIMEOUT_MS);
    config
}
