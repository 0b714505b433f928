//! The consumer's callbacks: assignment, revocation and statistics. They run inside the member's own poll.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::health::{Health, MemberId, MemberPhase};
use crate::kafka::{Callbacks, Closes, Closing, Context, is_forbidden, rebalance, statistics, warn_of};
use crate::metrics::Metrics;
use tollgate_core::event::record::{Offset, Partition};

use crate::stages::StageRuntime;

use super::Assignment;
use super::loss::Loss;

/// How long a revocation waits at most for acknowledgements and the last checkpoint, however long a stop may take. What is not written by
/// then is decided again by the next owner, to the same bytes. Waiting longer would only keep everybody else waiting: while brokers are in
/// trouble, no other partition of the member is served meanwhile, and nobody else may take this one.
const REVOCATION_MAX: Duration = Duration::from_secs(2);
/// How long to wait for metadata of the topics inside a rebalance.
const METADATA_TIMEOUT: Duration = Duration::from_millis(500);

/// The context of a member's consumer.
pub(super) type MemberContext<R> = Context<MemberCallbacks<R>>;

/// What the callbacks of one member work with.
#[derive(Debug)]
pub(super) struct MemberCallbacks<R: StageRuntime> {
    /// The member's stage and number.
    pub member: MemberId,
    /// The partitions that the member holds. The lock is never contended: only the member's thread takes it.
    pub assignment: Mutex<Assignment<R>>,
    /// The input topic.
    pub topic: String,
    /// How long a stop waits for acknowledgements and the last checkpoint.
    pub drain_timeout: Duration,
    /// The health report that shows the member.
    pub health: Arc<Health>,
    /// The metrics that count rebalances.
    pub metrics: Metrics,
    /// Whether the member has drained and has written its state for the last time.
    pub is_leaving: AtomicBool,
    /// Whether its consumer closes.
    pub closing: Closing,
    /// Since when it has been without partitions that it lost.
    pub loss: Loss,
}

impl<R: StageRuntime> MemberCallbacks<R> {
    /// Returns the assignment. A callback that panicked leaves the lock poisoned, but the state behind it is still that of whole records.
    pub fn assignment(&self) -> MutexGuard<'_, Assignment<R>> {
        self.assignment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes on partitions, before their first record can come.
    pub fn assigned(&self, partitions: &[Partition]) {
        self.assignment().take(partitions.iter().copied());
        self.loss.note(None);
        self.show(MemberPhase::Assigned);
        self.metrics.rebalances.with_label_values(&["assigned"]).inc();
        tracing::info!(member = %self.member, partitions = ?numbers(partitions), "assigned");
    }

    /// Takes no more records, waits for acknowledgements, has the state written and gives the partitions up. A lost partition already has
    /// another owner, who has fenced us: its records are decided again, to the same bytes.
    fn revoked(&self, consumer: &BaseConsumer<MemberContext<R>>, partitions: &[Partition]) {
        let is_lost = consumer.assignment_lost();
        let is_leaving = self.is_leaving.load(Ordering::Relaxed);
        // A member that panics drops its consumer during the unwinding and cannot finish anything.
        if !is_lost && !is_leaving && !self.closing.is_left_behind() && !std::thread::panicking() {
            self.show(MemberPhase::Draining);
            if !self.assignment().drain(partitions, &|| consumer.group_metadata(), self.drain_timeout.min(REVOCATION_MAX)) {
                tracing::warn!(
                    member = %self.member,
                    "revoked with verdicts unacknowledged or state unwritten: their records will be decided again"
                );
            }
        }
        self.assignment().release(partitions.iter().copied());
        // A member that has lost its partitions waits for the group to take it back.
        if is_lost {
            self.loss.note(Some(Instant::now()));
        }
        self.show(match (is_leaving, is_lost) {
            (true, _) => MemberPhase::Draining,
            (false, true) => MemberPhase::Starting,
            (false, false) => MemberPhase::Assigned,
        });
        self.metrics.rebalances.with_label_values(&[if is_lost { "lost" } else { "revoked" }]).inc();
        tracing::info!(member = %self.member, partitions = ?numbers(partitions), is_lost, "revoked");
    }

    /// Sets the phase of the member in the health report.
    pub fn show(&self, phase: MemberPhase) {
        // Another consumer has the member's place by then.
        if !self.closing.is_left_behind() {
            self.health.set(self.member, phase, self.assignment().member_partitions());
        }
    }

    /// Sets the partitions of the member in the health report, whatever its phase.
    pub fn show_partitions(&self) {
        self.health.set_partitions(self.member, self.assignment().member_partitions());
    }
}

impl<R: StageRuntime> Callbacks for MemberCallbacks<R> {
    fn statistics(&self, json: &[u8]) {
        // What librdkafka knows of the ends of partitions is from before then.
        if self.health.is_cut_off(self.member.stage) {
            return;
        }
        let Some(statistics) = statistics(json) else { return };
        let mut assignment = self.assignment();
        for (number, partition) in statistics.topics.get(&self.topic).iter().flat_map(|topic| &topic.partitions) {
            if partition.hi_offset >= 0 {
                let start = partition.committed_offset.max(partition.lo_offset).max(0);
                assignment.lag(Partition(*number), Offset(partition.hi_offset), Offset(start));
            }
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The member reports a right that is wanting, once.
        if is_forbidden(&error) {
            tracing::debug!(target: "librdkafka", member = %self.member, %error, reason, "consumer");
        } else {
            warn_of("consumer", &error, reason);
        }
    }
}

impl<R: StageRuntime> Closes for MemberContext<R> {
    fn closing(&self) -> &Closing {
        &self.closing
    }
}

impl<R: StageRuntime> ConsumerContext for MemberContext<R> {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        rebalance(self, consumer, code, list);
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let Rebalance::Assign(list) = rebalance else { return };
        // The pause throws away what librdkafka has fetched by now. It is fetched again when the state is restored.
        if let Err(error) = consumer.pause(list) {
            tracing::warn!(member = %self.member, %error, "assigned partitions could not be paused");
        }
        // librdkafka joins a group at most once a second, and a cooperative rebalance takes two joins: the partitions that move would wait
        // for the second one. A metadata answer lifts that limit, even if it brings nothing new.
        if let Err(error) = consumer.fetch_metadata(Some(&self.topic), METADATA_TIMEOUT) {
            tracing::debug!(member = %self.member, %error, "no news of the topics");
        }
    }

    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => {
                place(list);
                self.assigned(&partitions_of(list));
            }
            Rebalance::Revoke(list) => self.revoked(consumer, &partitions_of(list)),
            Rebalance::Error(error) => {
                tracing::error!(member = %self.member, %error, "rebalance failed");
                let held = self.assignment().partitions();
                self.assignment().release(held);
            }
        }
    }
}

/// Sets some position for assigned partitions. It does not matter which: they are paused, and their state says where to begin. Without a
/// position librdkafka would ask for the committed offsets of all of them in one request, and brokers do not answer that while any of them
/// is part of a transaction that they consider open.
fn place(list: &TopicPartitionList) {
    for mut element in list.elements() {
        if let Err(error) = element.set_offset(KafkaOffset::Offset(0)) {
            tracing::debug!(partition = element.partition(), %error, "no position could be given");
        }
    }
}

fn partitions_of(list: &TopicPartitionList) -> Vec<Partition> {
    let mut partitions: Vec<_> = list.elements().iter().map(|element| Partition(element.partition())).collect();
    partitions.sort();
    partitions
}

fn numbers(partitions: &[Partition]) -> Vec<i32> {
    partitions.iter().map(|partition| partition.0).collect()
}
