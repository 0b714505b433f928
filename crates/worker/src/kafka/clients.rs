//! What every client has in common: the properties of the user, and a token before its first request.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::KafkaResult;
use rdkafka::producer::{BaseProducer, ProducerContext};

use tollgate_config::settings::KafkaSettings;

use super::failover::fit_failover;
use super::oauth;

/// How long a new client is served, so that it has a token. librdkafka asks for it at once, before anything else.
const SERVE: Duration = Duration::from_millis(1);

/// Sets the user's properties, with the values that are in their files now.
pub(super) fn set_properties(config: &mut ClientConfig, kafka: &KafkaSettings) {
    let properties = kafka.current_properties();
    for (key, value) in properties.iter().filter(|(key, _)| !oauth::is_taken_here(key)) {
        config.set(key, value);
    }
    fit_failover(config, &properties);
    oauth::configure(config, kafka);
}

/// Makes a consumer that may be asked at once. One whose requests block is not polled meanwhile, and could not get a token then.
///
/// # Errors
/// librdkafka does not take a property.
pub fn make_consumer<C: ConsumerContext>(config: &ClientConfig, context: C) -> KafkaResult<BaseConsumer<C>> {
    let consumer: BaseConsumer<C> = config.create_with_context(context)?;
    if wants_token(config) {
        // Nothing is assigned yet, so no record can come.
        let _event = consumer.poll(SERVE);
    }
    Ok(consumer)
}

/// Makes a producer that may be asked at once, like [`make_consumer`].
///
/// # Errors
/// librdkafka does not take a property.
pub fn make_producer<C: ProducerContext>(config: &ClientConfig, context: C) -> KafkaResult<BaseProducer<C>> {
    let producer: BaseProducer<C> = config.create_with_context(context)?;
    if wants_token(config) {
        producer.poll(SERVE);
    }
    Ok(producer)
}

fn wants_token(config: &ClientConfig) -> bool {
    config.get(oauth::CONFIG).is_some()
}
