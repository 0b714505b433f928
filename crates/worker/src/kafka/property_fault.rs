//! Why librdkafka makes no client with the properties of the configuration.

use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use tollgate_config::settings::KafkaSettings;

/// Why librdkafka makes no client with `kafka.properties`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: found {found}; {fix}")]
pub struct PropertyFault {
    /// The key of the property, or of all of them.
    pub key: String,
    /// What was found.
    pub found: String,
    /// What to write.
    pub fix: &'static str,
}

impl PropertyFault {
    /// Reads librdkafka's error. The value of a secret is not repeated.
    #[must_use]
    pub fn of(error: &KafkaError, kafka: &KafkaSettings) -> Self {
        match error {
            KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, _, key, _) => Self {
                key: format!("kafka.properties.{key}"),
                found: "a property that librdkafka does not know".to_owned(),
                fix: "write the name of one (librdkafka's CONFIGURATION.md lists them), or remove it",
            },
            KafkaError::ClientConfig(_, what, key, _) => Self {
                key: format!("kafka.properties.{key}"),
                found: if KafkaSettings::is_secret(key) { "a value that librdkafka does not take".to_owned() } else { refusal(what) },
                fix: "write a value that librdkafka's CONFIGURATION.md allows, or remove it",
            },
            error => {
                let what = if let KafkaError::ClientCreation(what) = error { what.clone() } else { error.to_string() };
                // librdkafka's sentence names the property, if it is about one.
                let named = kafka.properties.keys().filter(|key| what.contains(key.as_str())).max_by_key(|key| key.len());
                let (key, fix) = match named {
                    _ if what.starts_with("No provider for SASL mechanism") => {
                        ("kafka.properties.sasl.mechanism".to_owned(), "write PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER")
                    }
                    Some(key) if what.contains("must be set") => (
                        format!("kafka.properties.{key}"),
                        "set both; a password belongs into a file: TOLLGATE__KAFKA__PROPERTIES__SASL_PASSWORD_FILE=…",
                    ),
                    Some(key) if key.ends_with(".location") => (format!("kafka.properties.{key}"), "name a readable file that holds it"),
                    Some(key) => (format!("kafka.properties.{key}"), "mend it, or remove it"),
                    None => ("kafka.properties".to_owned(), "mend them"),
                };
                Self { key, found: refusal(&what), fix }
            }
        }
    }
}

fn refusal(what: &str) -> String {
    format!("what librdkafka refuses ({})", what.trim())
}
