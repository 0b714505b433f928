//! The state of the partitions that a member holds: what their checkpoint writers report, and when they write.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tollgate_core::checkpoint::KeyedState;
use tollgate_core::record::{Offset, Partition};
use tollgate_core::stage::Stage;

use crate::metrics::Metrics;
use crate::partition::{AssignedPartition, CheckpointWriter, Effect, Pauses, Phase, WhoAmI, WriterParts, WriterReport};
use crate::stages::StageRuntime;

use super::MemberParts;
use super::assignment::{Assignment, Failure};

/// Into how many parts of the interval the checkpoints of a member's partitions are spread.
const SHARES: i32 = 8;
/// How long to serve the producers at a time while everything is being drained.
const DRAIN_POLL: Duration = Duration::from_millis(2);
/// The pause before a state is read again whose writer was lost.
const LOST_PAUSE: Duration = Duration::from_millis(250);

/// What the consumer has to do for a partition, because its state came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowChange {
    /// Its state is here: let its records flow, from this one on.
    Resume(Partition, Offset),
    /// Its state is somebody else's, or in doubt: hold its records back until it is read anew.
    Pause(Partition),
}

/// How the states of a member's partitions are written down.
#[derive(Debug)]
pub struct Checkpointing<K: KeyedState> {
    parts: WriterParts<K>,
    reports: Receiver<WriterReport<K>>,
    /// Whose state it is that is written.
    owner: String,
    /// How often; `None` keeps it in memory alone.
    interval: Option<Duration>,
    pauses: Pauses,
    /// How many assignments of partitions there were.
    generations: u64,
    /// What the consumer has still to do.
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
            reports: sender,
        };
        // The group tells a member that it has lost a partition with the answer to its next heartbeat.
        let pauses = Pauses { fenced: parts.heartbeat_interval() * 2, lost: LOST_PAUSE };
        let interval = parts.checkpoint_interval;
        Self { parts: parts_of_writers, reports, owner, interval, pauses, generations: 0, flow_changes: Vec::new() }
    }

    /// Returns a partition that was just assigned. Its state is being read, where it is written down.
    pub(super) fn assigned<S: Stage<State = K>>(
        &mut self,
        partition: Partition,
        stage: S,
        metrics: &Metrics,
    ) -> Result<AssignedPartition<S>, Failure> {
        let generation = self.next_generation();
        let phase = match self.interval {
            None => Phase::in_memory(Instant::now()),
            Some(_) => Phase::restoring(self.start_writer(partition, generation)?),
        };
        Ok(AssignedPartition::new(partition, generation, stage, phase, metrics))
    }

    fn start_writer(&self, partition: Partition, generation: u64) -> Result<CheckpointWriter, Failure> {
        let started = CheckpointWriter::start(self.parts.clone(), partition, generation);
        started.map_err(|error| Failure::Thread { partition, error: error.to_string() })
    }

    fn next_generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }

    /// Returns how long a partition waits for its first checkpoint: checkpoints of many partitions at once would stall decisions for as long
    /// as all of them take to encode.
    pub(super) fn first_delay(&self, partition: Partition) -> Duration {
        let share = u32::try_from(partition.0.rem_euclid(SHARES)).unwrap_or_default();
        self.interval.unwrap_or_default() * share / SHARES.unsigned_abs()
    }

    pub(super) fn take_flow_changes(&mut self) -> Vec<FlowChange> {
        std::mem::take(&mut self.flow_changes)
    }
}

impl<R: StageRuntime> Assignment<R> {
    /// Takes up what the checkpoint writers have reported.
    pub(super) fn listen(&mut self) {
        let Self { runtime, partitions, checkpointing, .. } = self;
        while let Ok(WriterReport { partition, generation, report }) = checkpointing.reports.try_recv() {
            let Some(assigned) = partitions.get_mut(&partition).filter(|assigned| assigned.generation() == generation) else { continue };
            match assigned.hear(report, checkpointing.pauses, |state| runtime.stage(Some(state))) {
                Effect::None => {}
                Effect::Resume(start) => checkpointing.flow_changes.push(FlowChange::Resume(partition, start)),
                Effect::Pause => {
                    assigned.forget(checkpointing.next_generation(), runtime.stage(None));
                    checkpointing.flow_changes.push(FlowChange::Pause(partition));
                }
            }
        }
    }

    /// Has the states read again that were lost, each after its pause.
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

    /// Freezes the checkpoints that are due, and has those written before which everything is acknowledged. Nothing after a failure.
    pub fn checkpoint(&mut self, who_am_i: WhoAmI<'_>) {
        let Some(interval) = self.checkpointing.interval.filter(|_| self.failure().is_none()) else { return };
        let owner = &self.checkpointing.owner;
        self.partitions.values_mut().for_each(|assigned| assigned.checkpoint(interval, owner, who_am_i));
    }

    /// Serves the producers and the checkpoint writers until the records of these partitions are finished and their state is written, a
    /// failure comes or the time is up, and returns whether all are.
    pub fn drain(&mut self, partitions: &[Partition], who_am_i: WhoAmI<'_>, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        partitions.iter().for_each(|partition| {
            self.partitions.get_mut(partition).into_iter().for_each(AssignedPartition::drain);
        });
        loop {
            let drained = || partitions.iter().filter_map(|partition| self.partitions.get(partition));
            if drained().all(AssignedPartition::is_drained) {
                return !drained().any(|assigned| assigned.phase().has_failed());
            }
            // The group tells us nothing new while we are here.
            let is_hopeless = drained().all(|assigned| assigned.is_drained() || assigned.phase().is_outdated());
            if is_hopeless || self.failure().is_some() || Instant::now() >= deadline {
                return false;
            }
            self.checkpoint(who_am_i);
            self.settle(DRAIN_POLL);
            // What the consumer has to do for the other partitions waits until it is its turn again.
            self.listen();
        }
    }
}
