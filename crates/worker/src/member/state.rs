//! The states of the partitions that a member holds: it takes what their writers report, decides when they write, and drains them.

use std::time::{Duration, Instant};

use tollgate_core::engine::checkpoint::StateOwner;
use tollgate_core::event::record::Partition;

use crate::partition::{AssignedPartition, Effect, GroupMetadata, WriterReport};
use crate::stages::StageRuntime;

use super::assignment::Assignment;
use super::checkpointing::FlowChange;

/// How long to serve the producers at a time while partitions are drained.
const DRAIN_POLL: Duration = Duration::from_millis(2);
/// How long a drain waits for the state once all verdicts are published. What is not written then is decided again, to the same bytes; until
/// that has begun, somebody waits.
const LAST_CHECKPOINT_MAX: Duration = Duration::from_secs(2);

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
        let interval = self.checkpointing.interval(self.partitions.len()).filter(|_| self.failure().is_none());
        let Some(interval) = interval else { return };
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
