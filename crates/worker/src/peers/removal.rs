//! Removes the members of a worker from its group.
//!
//! A member with an instance id can be replaced by another one with the same id, at once and without a rebalance. So this process joins in
//! the place of each member, and then leaves in its name. A member that lives after all is told that it was fenced, and joins again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;

use tollgate_config::settings::KafkaSettings;

use crate::kafka::{Callbacks, Context, StageTopics, StaticMember, answer_leaving, consumer_config};
use crate::stop::Stop;

use super::beat::Beat;

/// How long all of it may take. The beat of this process stands still meanwhile.
const REMOVAL_MAX: Duration = Duration::from_secs(2);
/// How long to serve a client at a time.
const POLL: Duration = Duration::from_millis(2);

/// How far a client has come that stands in for a member.
#[derive(Debug, Default)]
struct StandIn {
    has_joined: AtomicBool,
}

impl Callbacks for StandIn {}

impl ConsumerContext for Context<StandIn> {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, _: &mut TopicPartitionList) {
        answer_leaving(consumer, code);
        self.has_joined.store(true, Ordering::Relaxed);
    }
}

/// Removes every member of a worker from the group.
pub(super) fn remove(kafka: &KafkaSettings, topics: &StageTopics, worker: &Beat, stop: &Stop) -> KafkaResult<()> {
    let stand_in = |id: String| {
        let mut config = consumer_config(kafka, &topics.group_id, Some(&id));
        let client: BaseConsumer<Context<StandIn>> =
            config.set("statistics.interval.ms", "0").create_with_context(Context(StandIn::default()))?;
        client.subscribe(&[&topics.input]).map(|()| client)
    };
    let clients = worker.instance_ids().map(stand_in).collect::<KafkaResult<Vec<_>>>()?;
    let joined = all_joined(&clients, stop);
    // A stand-in that has joined leaves again, also where another stand-in failed: a stand-in that only closes would stay in the group.
    clients.iter().for_each(BaseConsumer::unsubscribe);
    for client in &clients {
        // librdkafka serves what it is asked in order: once it has answered this, its question about the partitions is there.
        let _served = client.rebalance_protocol();
        while client.poll(POLL).is_some() {}
    }
    if joined.is_err() {
        let members = worker.instance_ids().map(|id| StaticMember::new(&topics.group_id, id));
        clients.iter().zip(members).for_each(|(client, member)| member.wait_until_gone(client));
    }
    // Dropping them waits for the brokers' answers.
    joined
}

/// Waits until all have joined, before the first leaves: the rebalance that follows would wait for those that are dead.
fn all_joined(clients: &[BaseConsumer<Context<StandIn>>], stop: &Stop) -> KafkaResult<()> {
    let deadline = Instant::now() + REMOVAL_MAX;
    while clients.iter().any(|client| !client.context().has_joined.load(Ordering::Relaxed)) {
        if Instant::now() >= deadline || stop.is_for_good() {
            return Err(KafkaError::Global(RDKafkaErrorCode::OperationTimedOut));
        }
        for client in clients {
            if let Some(Err(error @ KafkaError::MessageConsumptionFatal(_))) = client.poll(POLL) {
                return Err(error);
            }
        }
    }
    Ok(())
}
