//! The consumer's callbacks: assignment, revocation, commits and statistics. They run inside the member's own poll.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::statistics::Statistics;
use rdkafka::{ClientContext, Offset as KafkaOffset, TopicPartitionList};

use crate::decode::{Offset, Partition};
use crate::health::{Health, MemberPhase};
use crate::metrics::Metrics;

use super::{Assignment, CommitGate};

/// What the callbacks of one member act on.
#[derive(Debug)]
pub struct MemberContext {
    /// Which member of the process it is.
    pub member: usize,
    /// The partitions that the member holds. The lock is the member's own: nobody else takes it.
    pub assignment: Mutex<Assignment>,
    /// The events topic.
    pub topic: String,
    /// How long a revocation waits for acknowledgements.
    pub drain_timeout: Duration,
    /// Where the member's condition is shown.
    pub health: Arc<Health>,
    /// Where rebalances and commits are counted.
    pub metrics: Metrics,
    /// Whether a commit is under way beside the loop.
    pub commits: CommitGate,
    /// Set when the member has drained and committed for the last time.
    pub is_leaving: AtomicBool,
}

impl MemberContext {
    /// The assignment. A callback that panicked would leave the lock poisoned; its state is still that of whole records.
    pub fn assignment(&self) -> MutexGuard<'_, Assignment> {
        self.assignment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may be committed, as librdkafka wants it; `None` if nothing has moved.
    #[must_use]
    pub fn committable(&self) -> Option<TopicPartitionList> {
        let offsets = self.assignment().committable();
        if offsets.is_empty() {
            return None;
        }
        let mut list = TopicPartitionList::with_capacity(offsets.len());
        for (partition, offset) in offsets {
            // The offset is one behind a consumed record, so it is valid.
            let _valid = list.add_partition_offset(&self.topic, partition.0, KafkaOffset::Offset(offset.0));
        }
        Some(list)
    }

    /// Enters a commit's outcome; failed offsets stay committable.
    pub fn note_commit(&self, result: &KafkaResult<()>, offsets: &TopicPartitionList) {
        if let Err(error) = result {
            self.metrics.commit_failures.inc();
            tracing::warn!(member = self.member, %error, "offsets could not be committed; the next commit covers them");
            return;
        }
        let mut assignment = self.assignment();
        for element in offsets.elements() {
            match (element.error(), element.offset()) {
                (Ok(()), KafkaOffset::Offset(offset)) => assignment.committed(Partition(element.partition()), Offset(offset)),
                (Ok(()), _) => {}
                (Err(error), _) => {
                    self.metrics.commit_failures.inc();
                    tracing::warn!(member = self.member, partition = element.partition(), %error, "an offset could not be committed");
                }
            }
        }
    }

    /// Takes on partitions, before the first record of them can come.
    pub fn assigned(&self, partitions: &[Partition]) {
        let started = Instant::now();
        self.assignment().take(partitions.iter().copied());
        // State is in memory: a partition starts empty, and that is all there is to bring up.
        let restore = self.metrics.restore_duration.with_label_values(&["empty"]);
        partitions.iter().for_each(|_| restore.observe(started.elapsed().as_secs_f64()));
        self.show(MemberPhase::Assigned);
        self.metrics.rebalances.with_label_values(&["assigned"]).inc();
        tracing::info!(member = self.member, partitions = ?numbers(partitions), "assigned");
    }

    /// Stops taking, waits for acknowledgements, commits and lets go. A lost partition has another owner by now: nothing is
    /// committed for it, and the new owner decides its records again, to the same bytes.
    fn revoked(&self, consumer: &BaseConsumer<Self>, partitions: &[Partition]) {
        let is_lost = consumer.assignment_lost();
        let is_leaving = self.is_leaving.load(Ordering::Relaxed);
        if !is_lost && !is_leaving {
            self.show(MemberPhase::Draining);
            let is_drained = self.assignment().drain(partitions, self.drain_timeout);
            if !is_drained {
                tracing::warn!(member = self.member, "revoked with verdicts unacknowledged: their records will be decided again");
            }
            let is_idle = self.commits.wait(self.drain_timeout);
            if let Some(offsets) = self.committable().filter(|_| is_idle) {
                let result = consumer.commit(&offsets, CommitMode::Sync);
                self.note_commit(&result, &offsets);
            }
        }
        self.assignment().release(partitions.iter().copied());
        // Who has lost its partitions waits for the group to take it back.
        self.show(match (is_leaving, is_lost) {
            (true, _) => MemberPhase::Draining,
            (false, true) => MemberPhase::Starting,
            (false, false) => MemberPhase::Assigned,
        });
        self.metrics.rebalances.with_label_values(&[if is_lost { "lost" } else { "revoked" }]).inc();
        tracing::info!(member = self.member, partitions = ?numbers(partitions), is_lost, "revoked");
    }

    /// Shows where the member stands.
    pub fn show(&self, phase: MemberPhase) {
        let partitions = self.assignment().partitions();
        self.health.set(self.member, phase, partitions);
    }
}

impl ClientContext for MemberContext {
    fn stats(&self, statistics: Statistics) {
        let assignment = self.assignment();
        for (number, partition) in statistics.topics.get(&self.topic).iter().flat_map(|topic| &topic.partitions) {
            if partition.hi_offset >= 0 {
                let start = partition.committed_offset.max(partition.lo_offset).max(0);
                assignment.lag(Partition(*number), Offset(partition.hi_offset), Offset(start));
            }
        }
    }

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        crate::librdkafka::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(target: "librdkafka", member = self.member, %error, reason, "consumer");
    }
}

impl ConsumerContext for MemberContext {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => self.assigned(&partitions_of(list)),
            Rebalance::Revoke(list) => self.revoked(consumer, &partitions_of(list)),
            Rebalance::Error(error) => {
                tracing::error!(member = self.member, %error, "rebalance failed");
                let held = self.assignment().partitions();
                self.assignment().release(held);
            }
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
