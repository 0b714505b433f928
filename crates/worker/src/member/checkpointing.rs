//! What the checkpoints of a member's partitions share: their writers, their reports and their times.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tollgate_core::engine::checkpoint::KeyedState;
use tollgate_core::engine::processor::PartitionProcessor;
use tollgate_core::engine::stage::Stage;
use tollgate_core::event::record::{Offset, Partition};

use crate::metrics::Metrics;
use crate::partition::{AssignedPartition, CheckpointWriter, Pauses, Phase, WriterParts, WriterReport};

use super::MemberParts;
use super::failure::Failure;

/// How many checkpoints a member writes in an interval at most. Each is a transaction, which costs worker and brokers as much as hundreds of
/// events. If a member has more partitions, the checkpoint of each comes less often.
const CHECKPOINTS_MAX: u32 = 8;
/// The pause before the state is read again after its writer was lost.
const LOST_PAUSE: Duration = Duration::from_millis(250);

/// What the consumer has to do for a partition because of a change in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowChange {
    /// The state is restored: resume the partition from this record on.
    Resume(Partition, Offset),
    /// Another member has the state, or it is uncertain: pause the partition until the state is read again.
    Pause(Partition),
}

/// What a member needs to restore and write the states of its partitions.
#[derive(Debug)]
pub struct Checkpointing<K: KeyedState> {
    pub(super) parts: WriterParts<K>,
    pub(super) reports: Receiver<WriterReport<K>>,
    /// The name under which the state is written: the group and its topic.
    pub(super) owner: String,
    /// The interval between checkpoints of a partition; `None` holds the state in memory only.
    interval: Option<Duration>,
    pub(super) pauses: Pauses,
    /// How many assignments of partitions there have been.
    pub(super) generations: u64,
    /// What the consumer has yet to do.
    pub(super) flow_changes: Vec<FlowChange>,
}

impl<K> Checkpointing<K>
where
    K: KeyedState<Limits: Send + Sync + 'static> + Send + 'static,
{
    pub(super) fn new(parts: &MemberParts, limits: K::Limits) -> Self {
        let (sender, reports) = channel();
        let owner = parts.topics.owner();
        let parts_of_writers = WriterParts {
            kafka: parts.kafka.clone(),
            topics: parts.topics.clone(),
            limits,
            batch_bytes_max: parts.state_batch_bytes_max,
            metrics: parts.metrics.clone(),
            health: Arc::clone(&parts.health),
            reports: sender,
            readers: Arc::default(),
        };
        // A member that has lost a partition learns it from the group with the answer to its next heartbeat.
        let pauses = Pauses { fenced: parts.heartbeat_interval() * 2, lost: LOST_PAUSE };
        let interval = parts.checkpoint_interval;
        Self { parts: parts_of_writers, reports, owner, interval, pauses, generations: 0, flow_changes: Vec::new() }
    }

    /// Returns a partition that was just assigned. Where state is written to a topic, reading it begins.
    pub(super) fn assigned<S: Stage<State = K>>(
        &mut self,
        partition: Partition,
        stage: impl FnOnce() -> S,
        metrics: &Metrics,
    ) -> Result<AssignedPartition<S>, Failure> {
        let generation = self.next_generation();
        let phase = match self.interval {
            None => Phase::in_memory(PartitionProcessor::new(partition, stage()), Instant::now()),
            Some(_) => Phase::restoring(self.start_writer(partition, generation)?),
        };
        Ok(AssignedPartition::new(partition, generation, phase, metrics))
    }

    pub(super) fn start_writer(&self, partition: Partition, generation: u64) -> Result<CheckpointWriter, Failure> {
        let started = CheckpointWriter::start(self.parts.clone(), partition, generation);
        started.map_err(|error| Failure::Thread { partition, error: error.to_string() })
    }

    /// Forgets a panic of the writer of a partition that was given up.
    pub(super) fn released(&self, partition: Partition) {
        self.parts.health.threads().recovered(&self.parts.topics.writer_thread(partition));
    }

    pub(super) fn next_generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }

    /// Returns how often a partition's checkpoint is written while the member has so many partitions; `None` holds the state in memory only.
    pub(super) fn interval(&self, partitions: usize) -> Option<Duration> {
        self.interval.map(|interval| spaced(interval, partitions))
    }

    /// Returns how long a partition waits for its first checkpoint. Encoding the checkpoints of many partitions at once would delay
    /// decisions, so they are spread over the interval.
    pub(super) fn first_delay(&self, partition: Partition, partitions: usize) -> Duration {
        self.interval.unwrap_or_default() / CHECKPOINTS_MAX * (partition.0.unsigned_abs() % places(partitions))
    }

    pub(super) fn take_flow_changes(&mut self) -> Vec<FlowChange> {
        std::mem::take(&mut self.flow_changes)
    }
}

/// Returns how many checkpoints follow each other until each of so many partitions has had one.
fn places(partitions: usize) -> u32 {
    u32::try_from(partitions).unwrap_or(u32::MAX).max(CHECKPOINTS_MAX)
}

fn spaced(interval: Duration, partitions: usize) -> Duration {
    interval / CHECKPOINTS_MAX * places(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_with_many_partitions_writes_the_checkpoint_of_each_less_often() {
        let second = Duration::from_secs(1);
        assert_eq!([0, 1, 8, 12, 64].map(|partitions| spaced(second, partitions)), [1.0, 1.0, 1.0, 1.5, 8.0].map(Duration::from_secs_f64));
    }
}
