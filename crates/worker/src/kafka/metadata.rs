//! What brokers say of a topic, and which errors say that they are away.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};

use tollgate_core::event::record::Partition;

/// Returns how many partitions a topic has; 0 if there is no such topic.
pub fn partitions_of<C: ConsumerContext>(client: &BaseConsumer<C>, topic: &str, timeout: Duration) -> Result<usize, KafkaError> {
    let metadata = client.fetch_metadata(Some(topic), timeout)?;
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else { return Ok(0) };
    match found.error().map(RDKafkaErrorCode::from) {
        // A topic that we may not see is not a missing topic.
        Some(code @ RDKafkaErrorCode::TopicAuthorizationFailed) => Err(KafkaError::MetadataFetch(code)),
        Some(_) => Ok(0),
        None => Ok(found.partitions().len()),
    }
}

/// Asks the leader of each of these partitions of topics for its end, and returns an error if one of them does not answer in time.
pub fn reach_leaders<C: ConsumerContext>(
    client: &BaseConsumer<C>,
    topics: &[String],
    partitions: &[Partition],
    timeout: Duration,
) -> Result<(), KafkaError> {
    let mut ends = TopicPartitionList::new();
    for (topic, partition) in topics.iter().flat_map(|topic| partitions.iter().map(move |partition| (topic, partition))) {
        ends.add_partition_offset(topic, partition.0, Offset::End)?;
    }
    if ends.count() == 0 { Ok(()) } else { client.offsets_for_times(ends, timeout).map(drop) }
}

/// What the brokers say of a topic and of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicMetadata {
    /// How many partitions the topic has; 0 if there is no such topic.
    pub partitions: usize,
    /// How many replicas the partition has that has the fewest.
    pub replicas: usize,
    /// Whether every partition has a leader.
    pub is_led: bool,
    /// How many brokers there are.
    pub brokers: usize,
}

/// Returns what the brokers say of a topic and of themselves.
pub fn cluster_topic<C: ConsumerContext>(client: &BaseConsumer<C>, topic: &str, timeout: Duration) -> Result<TopicMetadata, KafkaError> {
    let metadata = client.fetch_metadata(Some(topic), timeout)?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    let partitions = match found.map(|found| (found.error().map(RDKafkaErrorCode::from), found.partitions())) {
        None | Some((Some(RDKafkaErrorCode::UnknownTopicOrPartition), _)) => &[],
        // Its leaders are being chosen.
        Some((None | Some(RDKafkaErrorCode::LeaderNotAvailable), partitions)) => partitions,
        Some((Some(code), _)) => return Err(KafkaError::MetadataFetch(code)),
    };
    Ok(TopicMetadata {
        partitions: partitions.len(),
        replicas: partitions.iter().map(|partition| partition.replicas().len()).min().unwrap_or(0),
        is_led: partitions.iter().all(|partition| partition.leader() >= 0),
        brokers: metadata.brokers().len(),
    })
}

/// Returns whether an error means that brokers cannot be reached for now. librdkafka connects again by itself.
pub fn is_unreachable(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{
        AllBrokersDown, BrokerTransportFailure, DestroyBroker, FencedLeaderEpoch, LeaderNotAvailable, NotLeaderForPartition,
        OffsetNotAvailable, OperationTimedOut, Resolve, UnknownLeaderEpoch,
    };
    // A broker that nobody names any more ends its requests with `DestroyBroker`.
    let is_away = matches!(code, AllBrokersDown | BrokerTransportFailure | DestroyBroker | OperationTimedOut | Resolve);
    let has_no_leader_yet =
        matches!(code, LeaderNotAvailable | NotLeaderForPartition | FencedLeaderEpoch | UnknownLeaderEpoch | OffsetNotAvailable);
    is_away || has_no_leader_yet
}

/// Returns whether an error goes away by itself where brokers are starting or moving.
pub fn passes(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{
        BrokerNotAvailable, InvalidReplicationFactor, NetworkException, NotController, RequestTimedOut, UnknownTopicOrPartition,
        WaitingForCoordinator,
    };
    is_unreachable(code)
        || matches!(
            code,
            BrokerNotAvailable
                | InvalidReplicationFactor
                | NetworkException
                | NotController
                | RequestTimedOut
                | UnknownTopicOrPartition
                | WaitingForCoordinator
        )
}
