//! A check of the properties: every client that a worker will make is made once, without an address, so that nothing is connected.

use rdkafka::ClientConfig;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::producer::BaseProducer;
use rdkafka::types::RDKafkaConfRes;

use tollgate_core::event::record::Partition;

use tollgate_config::settings::KafkaSettings;

use super::oauth::OauthSettings;
use super::{
    Linger, PlainContext, StageTopics, consumer_config, producer_config, reader_config, reply_producer_config, state_producer_config,
    verdict_producer_config,
};

/// A batch size that every configuration takes, in bytes.
const BATCH_BYTES_MAX: u64 = 1_000_000;

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

/// Checks that topics can be administered: rdkafka's client for that takes no tokens.
///
/// # Errors
/// Returns why not, for people.
pub fn check_administration(kafka: &KafkaSettings) -> Result<(), &'static str> {
    match OauthSettings::read(kafka) {
        Ok(None) => Ok(()),
        _ => Err("the client for administration takes no OAUTHBEARER tokens; use another mechanism for it, or Kafka's own tools"),
    }
}

/// Makes every kind of client that a worker has, TLS included, connects none, and drops them.
///
/// # Errors
/// Returns the first [`PropertyFault`].
pub fn check_clients(kafka: &KafkaSettings) -> Result<(), PropertyFault> {
    OauthSettings::read(kafka)?;
    let topics = StageTopics::of(kafka);
    check::<BaseConsumer<PlainContext>>(consumer_config(kafka, &kafka.group_id, None), kafka)?;
    check::<BaseConsumer<PlainContext>>(reader_config(kafka, &kafka.group_id), kafka)?;
    for linger in [Linger::None, Linger::Moment] {
        check::<BaseProducer<PlainContext>>(producer_config(kafka, BATCH_BYTES_MAX, linger), kafka)?;
        check::<BaseProducer<PlainContext>>(verdict_producer_config(kafka, BATCH_BYTES_MAX, linger), kafka)?;
    }
    check::<BaseProducer<PlainContext>>(reply_producer_config(kafka, BATCH_BYTES_MAX), kafka)?;
    check::<BaseProducer<PlainContext>>(state_producer_config(kafka, &topics, Partition(0), BATCH_BYTES_MAX), kafka)
}

fn check<C: FromClientConfigAndContext<PlainContext>>(mut config: ClientConfig, kafka: &KafkaSettings) -> Result<(), PropertyFault> {
    config.remove("bootstrap.servers");
    let made: KafkaResult<C> = config.create_with_context(PlainContext::default());
    made.map(drop).map_err(|error| PropertyFault::of(&error, kafka))
}
/// Returns whether librdkafka takes a property of this name and value.
#[must_use]
pub fn is_property(name: &str, value: &str) -> bool {
    ClientConfig::new().set(name, value).create_native_config().is_ok()
}
