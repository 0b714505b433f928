//! What brokers say of a topic, and which errors say that they are away.

use std::time::Duration;

use rdkafka::client::{Client, ClientContext};
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

/// Asks the leader of each of these partitions of topics for its end, and returns whether each says it: a partition may have no leader, or has
/// had another one until now.
///
/// # Errors
/// A leader does not answer in time.
pub fn reach_leaders<C: ConsumerContext>(
    client: &BaseConsumer<C>,
    topics: &[String],
    partitions: &[Partition],
    timeout: Duration,
) -> Result<bool, KafkaError> {
    let mut ends = TopicPartitionList::new();
    for (topic, partition) in topics.iter().flat_map(|topic| partitions.iter().map(move |partition| (topic, partition))) {
        ends.add_partition_offset(topic, partition.0, Offset::End)?;
    }
    if ends.count() == 0 {
        return Ok(true);
    }
    Ok(client.offsets_for_times(ends, timeout)?.elements().iter().all(|end| end.error().is_ok()))
}

/// Returns the sentence that names the first partition without a leader of these topics, among those that are wanted; `None` if each has one.
///
/// # Errors
/// The brokers do not answer in time.
pub fn leaderless<C: ClientContext>(
    client: &Client<C>,
    topics: &[String],
    is_wanted: impl Fn(Partition) -> bool,
    timeout: Duration,
) -> Result<Option<String>, KafkaError> {
    for topic in topics {
        let metadata = client.fetch_metadata(Some(topic), timeout)?;
        let mut partitions = metadata.topics().iter().filter(|found| found.name() == topic).flat_map(|found| found.partitions());
        if let Some(found) = partitions.find(|found| found.leader() < 0 && is_wanted(Partition(found.id()))) {
            return Ok(Some(said_leaderless(topic, found.id())));
        }
    }
    Ok(None)
}

/// Returns the sentence that names a partition without a leader.
#[must_use]
pub fn said_leaderless(topic: &str, partition: i32) -> String {
    format!("partition {partition} of topic {topic} has no leader: no broker that has a replica of it and may lead is up")
}

/// What the brokers say of a topic and of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicMetadata {
    /// How many partitions the topic has; 0 if there is no such topic.
    pub partitions: usize,
    /// How many replicas the partition has that has the fewest.
    pub replicas: usize,
    /// The first partition that has no leader.
    pub leaderless: Option<i32>,
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
        leaderless: partitions.iter().find(|partition| partition.leader() < 0).map(|partition| partition.id()),
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
