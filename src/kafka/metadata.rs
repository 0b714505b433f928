//! What brokers say of a topic, and which errors say that they are away.

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

/// Returns whether an error means that brokers cannot be reached for now. librdkafka connects again by itself.
pub(crate) fn is_unreachable(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure, LeaderNotAvailable, NotLeaderForPartition, OperationTimedOut, Resolve};
    matches!(code, AllBrokersDown | BrokerTransportFailure | LeaderNotAvailable | NotLeaderForPartition | OperationTimedOut | Resolve)
}
