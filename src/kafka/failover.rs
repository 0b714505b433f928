//! How quickly clients find a new leader or coordinator when a broker goes away.
//!
//! librdkafka's defaults suit a client that nobody waits for: after a broker was away it may take ten seconds to try it again, and a minute
//! to give up a request to one that is frozen. Here every second of that is a second in which an agent waits for its verdict.

use rdkafka::ClientConfig;

/// Each property, its value, and why.
const PROPERTIES: [(&str, &str, &str); 6] = [
    ("reconnect.backoff.ms", "50", "a broker that restarts is tried at once"),
    (
        "reconnect.backoff.max.ms",
        "500",
        "and twice a second as long as it is away: with the default of 10 s a partition whose leader comes back there waits that long",
    ),
    ("retry.backoff.ms", "50", "a request that a former leader has refused is sent again as soon as the new one is known"),
    ("retry.backoff.max.ms", "250", "and so is one that the new leader is not ready for yet"),
    ("socket.connection.setup.timeout.ms", "5000", "a broker that accepts a connection and does not answer is left for another one"),
    (
        "socket.timeout.ms",
        "6000",
        "a frozen broker is given up before the cluster moves its partitions (after 9 s), so that the new leader is found at once",
    ),
];

/// Sets the properties. The user's own come after them.
pub(super) fn set_failover(config: &mut ClientConfig) {
    for (property, value, _) in PROPERTIES {
        config.set(property, value);
    }
}

/// Returns the table of the properties, in Markdown.
#[must_use]
pub fn failover_table() -> String {
    let mut table = "| property | value | why |\n|---|---|---|\n".to_owned();
    for (property, value, why) in PROPERTIES {
        table += &format!("| `{property}` | {value} | {why} |\n");
    }
    table
}
