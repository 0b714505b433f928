//! How quickly clients find a new leader or coordinator when a broker goes away.
//!
//! librdkafka's defaults suit a client that nobody waits for: after a broker was away it may take ten seconds to try it again, and a minute
//! to give up a request to one that is frozen. Here every second of that is a second in which an agent waits for its verdict.

use rdkafka::ClientConfig;

use tollgate_config::settings::Properties;

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

/// The first pause of something that is repeated, and its longest.
const PAUSES: [(&str, &str); 2] = [("reconnect.backoff.ms", "reconnect.backoff.max.ms"), ("retry.backoff.ms", "retry.backoff.max.ms")];

/// Fits our half of a pair to the user's, where the user has set one of the two: librdkafka refuses a first pause that is longer than the
/// longest, or caps it without a word.
pub(super) fn fit_failover(config: &mut ClientConfig, users: &Properties) {
    for (first, longest) in PAUSES {
        let value = |property: &str| config.get(property).and_then(|value| value.trim().parse::<u64>().ok());
        let (Some(first_ms), Some(longest_ms)) = (value(first), value(longest)) else { continue };
        if first_ms <= longest_ms {
            continue;
        }
        match (users.contains_key(first), users.contains_key(longest)) {
            (true, false) => _ = config.set(longest, first_ms.to_string()),
            (false, true) => _ = config.set(first, longest_ms.to_string()),
            // What the user has set both ways is for librdkafka to judge.
            _ => {}
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns our properties with those of the user, as a client gets them.
    fn fitted(users: &[(&str, &str)]) -> [String; 4] {
        let users: Properties = users.iter().map(|(property, value)| ((*property).to_owned(), (*value).to_owned())).collect();
        let mut config = ClientConfig::new();
        set_failover(&mut config);
        users.iter().for_each(|(property, value)| _ = config.set(property, value));
        fit_failover(&mut config, &users);
        assert!(config.create::<rdkafka::consumer::BaseConsumer>().is_ok());
        ["reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms", "retry.backoff.max.ms"]
            .map(|property| config.get(property).unwrap().to_owned())
    }

    #[test]
    fn a_half_that_the_user_sets_has_the_other_follow() {
        assert_eq!(fitted(&[]), ["50", "500", "50", "250"]);
        assert_eq!(fitted(&[("reconnect.backoff.ms", "1000"), ("retry.backoff.ms", "300")]), ["1000", "1000", "300", "300"]);
        assert_eq!(fitted(&[("reconnect.backoff.ms", "100"), ("retry.backoff.max.ms", "20")]), ["100", "500", "20", "20"]);
        assert_eq!(fitted(&[("reconnect.backoff.ms", "1000"), ("reconnect.backoff.max.ms", "2000")]), ["1000", "2000", "50", "250"]);
    }
}
