//! The checkpoints of the partitions that a member holds: it takes what their writers report, and decides when they write.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tollgate_core::engine::checkpoint::{KeyedState, StateOwner};
use tollgate_core::engine::processor::PartitionProcessor;
use tollgate_core::engine::stage::Stage;
use tollgate_core::event::record::{Offset, Partition};

use crate::metrics::Metrics;
use crate::partition::{AssignedPartition, CheckpointWriter, Effect, GroupMetadata, Pauses, Phase, WriterParts, WriterReport};
use crate::stages::StageRuntime;

use super::MemberParts;
use super::assignment::{Assignment, Failure};

/// The number of parts of the interval over which a member's checkpoints are spread.
const SHARES: i32 = 8;
/// How long to serve the producers at a time while partitions are drained.
const DRAIN_POLL: Duration = Duration::from_millis(2);
/// How long a drain waits for the state once all verdicts are published. What is not written then is decided again, to the same bytes; until
/// that has begun, somebody waits.
const LAST_CHECKPOINT_MAX: Duration = Duration::from_secs(2);
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
    parts: WriterParts<K>,
    reports: Receiver<WriterReport<K>>,
    /// The name under which the state is written: the group and its topic.
    owner: String,
    /// The interval between checkpoints; `None` holds the state in memory only.
    interval: Option<Duration>,
    pauses: Pauses,
    /// How many assignments of partitions there have been.
    generations: u64,
    /// What the consumer has yet to do.
    flow_changes: Vec<FlowChange>,
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

    fn start_writer(&self, partition: Partition, generation: u64) -> Result<CheckpointWriter, Failure> {
        let started = CheckpointWriter::start(self.parts.clone(), partition, generation);
        started.map_err(|error| Failure::Thread { partition, error: error.to_string() })
    }

    /// Forgets a panic of the writer of a partition that was given up.
    pub(super) fn released(&self, partition: Partition) {
        self.parts.health.threads().recovered(&self.parts.topics.writer_thread(partition));
    }

    fn next_generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }

    /// Returns how long a partition waits for its first checkpoint. Encoding the checkpoints of many partitions at once would delay
    /// decisions.
    pub(super) fn first_delay(&self, partition: Partition) -> Duration {
        let share = u32::try_from(partition.0.rem_euclid(SHARES)).unwrap_or_default();
        self.interval.unwrap_or_default() * share / SHARES.unsigned_abs()
    }

    pub(super) fn take_flow_changes(&mut self) -> Vec<FlowChange> {
        std::mem::take(&mut self.flow_changes)
    }
}

impl<R: StageRuntime> Assignment<R> {
    /// Takes the reports of the checkpoint writers.
    pub(super) fn take_reports(&mut self) {
        let Self { runtime, partitions, checkpointing, .. } = self;
        while let Ok(WriterReport { partition, generation, report }) = checkpointing.reports.try_recv() {
            let Some(assigned) = partitions.get_mut(&partition).filter(|assigned| assigned.generation() == generation) else { continue };
            let new_end = report.new_end();
            match assigned.take_report(report, checkpointing.pauses, |state| runtime.stage(partition, state)) {
                Effect::None => {}
                Effect::Resume(start) => {
                    runtime.partition_started(partition, new_end);
                    checkpointing.flow_changes.push(FlowChange::Resume(partition, start));
                }
                Effect::Pause => {
                    runtime.state_lost(partition);
                    assigned.begin_generation(checkpointing.next_generation());
                    checkpointing.flow_changes.push(FlowChange::Pause(partition));
                }
            }
        }
    }

    /// Starts to read lost states again, each after its pause.
    pub(super) fn restore_lost(&mut self) {
        let mut failure = None;
        for (partition, assigned) in self.partitions.iter_mut().filter(|(_, assigned)| assigned.is_restore_due()) {
            match self.checkpointing.start_writer(*partition, assigned.generation()) {
                Ok(writer) => assigned.restore_with(writer),
                Err(error) => _ = failure.get_or_insert(error),
            }
        }
        failure.into_iter().for_each(|failure| self.fail(failure));
    }

    /// Freezes the checkpoints that are due, and has those written whose records are all acknowledged. After a failure it does nothing.
    pub fn checkpoint(&mut self, group_metadata: GroupMetadata<'_>) {
        let Some(interval) = self.checkpointing.interval.filter(|_| self.failure().is_none()) else { return };
        let (name, partitions) = (&self.checkpointing.owner, self.checkpointing.parts.topics.partitions);
        let owner = StateOwner { name, partitions };
        self.partitions.values_mut().for_each(|assigned| assigned.checkpoint(interval, owner, group_metadata));
    }

    /// Serves the producers and the checkpoint writers until the records of these partitions are finished and their state is written, a
    /// failure comes or the time is up, which it is soon after all is published. Returns whether everything is finished and written.
    pub fn drain(&mut self, partitions: &[Partition], group_metadata: GroupMetadata<'_>, timeout: Duration) -> bool {
        let (mut deadline, mut is_published) = (Instant::now() + timeout, false);
        partitions.iter().for_each(|partition| {
            self.partitions.get_mut(partition).into_iter().for_each(AssignedPartition::drain);
        });
        loop {
            let drained = || partitions.iter().filter_map(|partition| self.partitions.get(partition));
            if drained().all(AssignedPartition::is_drained) {
                return !drained().any(|assigned| assigned.phase().has_failed());
            }
            if !is_published && drained().all(|assigned| assigned.undone().0 == 0) {
                (is_published, deadline) = (true, deadline.min(Instant::now() + LAST_CHECKPOINT_MAX));
            }
            // The group's answers are not read here, so this does not change any more.
            let is_stuck = drained().all(|assigned| assigned.is_drained() || assigned.phase().is_outdated());
            if is_stuck || self.failure().is_some() || Instant::now() >= deadline {
                for (partition, assigned) in partitions.iter().filter_map(|partition| Some((partition, self.partitions.get(partition)?))) {
                    let (unacknowledged, is_unwritten) = assigned.undone();
                    if !assigned.is_drained() {
                        tracing::info!(%partition, unacknowledged, is_unwritten, "not drained in time");
                    }
                }
                return false;
            }
            self.checkpoint(group_metadata);
            self.settle(DRAIN_POLL);
            // Changes for the consumer are only collected here, and applied after the drain.
            self.take_reports();
            self.restore_lost();
        }
    }
}
