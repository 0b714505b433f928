//! What brokers say of a topic.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// Returns how many partitions a topic has; 0 if there is no such topic.
pub(crate) fn partitions_of<C: ConsumerContext>(client: &BaseConsumer<C>, topic: &str, timeout: Duration) -> Result<usize, KafkaError> {
    let metadata = client.fetch_metadata(Some(topic), timeout)?;
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else { return Ok(0) };
    match found.error().map(RDKafkaErrorCode::from) {
        // A topic that we may not see is not a missing topic.
        Some(code @ RDKafkaErrorCode::TopicAuthorizationFailed) => Err(KafkaError::MetadataFetch(code)),
        Some(_) => Ok(0),
        None => Ok(found.partitions().len()),
    }
}
