//! A check of the properties: every client that a worker will make is made once, without an address, so that nothing is connected.

use rdkafka::ClientConfig;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaResult;
use rdkafka::producer::BaseProducer;

use tollgate_core::event::record::Partition;

use tollgate_config::settings::KafkaSettings;

use super::oauth::OauthSettings;
use super::property_fault::PropertyFault;
use super::{
    Linger, PlainContext, StageTopics, consumer_config, producer_config, reader_config, reply_producer_config, state_producer_config,
    verdict_producer_config,
};

/// A batch size that every configuration takes, in bytes.
const BATCH_BYTES_MAX: u64 = 1_000_000;

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
