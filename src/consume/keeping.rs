//! The state of the partitions that a member holds: what their keepers report, and when they write.

use std::time::{Duration, Instant};

use rdkafka::consumer::ConsumerGroupMetadata;

use crate::health::MemberPartitions;
use crate::state::{Job, KeeperReport, Report, Takeover};
use tollgate_core::processor::Lane;
use tollgate_core::record::{Offset, Partition};

use super::Assignment;
use super::held::Phase;

/// Into how many parts of the interval the checkpoints of a member's partitions are spread.
const SHARES: i32 = 8;
/// How long to serve the producer at a time while everything is being finished.
const FINISH_POLL: Duration = Duration::from_millis(2);

/// The pause before a state is read again whose keeper was lost; each is twice the one before, since two members that each take a
/// partition for theirs must not keep each other from it.
const LOST_PAUSE: Duration = Duration::from_millis(250);
/// How often that pause is doubled.
const DOUBLINGS_MAX: u32 = 6;

/// What the consumer has to do for a partition, because its state came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Its state is here: let its records flow, from this one on.
    Open(Partition, Offset),
    /// Its state is somebody else's, or in doubt: hold its records back until it is read anew.
    Close(Partition),
}

/// Says who the member is in its group now; `None` if the consumer cannot tell.
pub type WhoAmI<'c> = &'c dyn Fn() -> Option<ConsumerGroupMetadata>;

impl Assignment {
    /// Takes up what keepers have reported, and says what the consumer has to do about it.
    pub fn hear_keepers(&mut self) -> Vec<Flow> {
        self.listen();
        std::mem::take(&mut self.flows)
    }

    fn listen(&mut self) {
        while let Ok(report) = self.reports.try_recv() {
            let flow = self.hear(report);
            self.flows.extend(flow);
        }
    }

    fn hear(&mut self, KeeperReport { partition, epoch, report }: KeeperReport) -> Option<Flow> {
        let held = self.held.get_mut(&partition).filter(|held| held.epoch == epoch)?;
        match report {
            Report::Restored(takeover) => {
                let Takeover { restored, start, default_start, .. } = *takeover;
                let start = start.or(held.start).unwrap_or(default_start);
                if let Some(restored) = restored {
                    held.lane = Lane::restored(partition, &self.parts.policy, restored);
                }
                (held.phase, held.start) = (Phase::Restored, Some(start));
                Some(Flow::Open(partition, start))
            }
            Report::RestoreFailed(error) => {
                // Kafka being away is nobody's fault, and says so elsewhere; state that does not fit wants somebody to look.
                if error.reason() == "kafka" {
                    tracing::warn!(%partition, %error, "the state could not be read; trying again");
                } else {
                    tracing::error!(%partition, %error, "the state could not be read, and its events are not decided until it can be");
                }
                held.phase = Phase::Failed;
                None
            }
            Report::Written => {
                held.lane.checkpoint_written();
                (held.is_outdated, held.losses) = (false, 0);
                None
            }
            Report::Refused => {
                held.lane.checkpoint_refused();
                None
            }
            Report::Outdated => {
                held.lane.checkpoint_refused();
                held.is_outdated = true;
                None
            }
            // Whoever fenced us is the owner now, and the group is about to tell us so. If it does not within some heartbeats, the other
            // one was late, not we.
            Report::Fenced => Some(self.take_again(partition, self.parts.fenced_pause)),
            Report::Lost => Some(self.take_again(partition, LOST_PAUSE)),
        }
    }

    /// Has the state of a partition read again, after a pause that grows from loss to loss; one that is being given up is left to its next
    /// owner.
    fn take_again(&mut self, partition: Partition, pause: Duration) -> Flow {
        let Some(held) = self.held.get_mut(&partition) else { return Flow::Close(partition) };
        if self.finishing.contains(&partition) {
            (held.keeper, held.phase) = (None, Phase::Failed);
            return Flow::Close(partition);
        }
        let (losses, start) = (held.losses, held.start);
        self.hold(partition, pause * (1 << losses.min(DOUBLINGS_MAX)));
        if let Some(held) = self.held.get_mut(&partition) {
            (held.losses, held.start) = (losses + 1, start);
        }
        Flow::Close(partition)
    }

    /// Whether a partition's state is here and its records do not flow yet.
    #[must_use]
    pub fn is_restored(&self, partition: Partition) -> bool {
        self.held.get(&partition).is_some_and(|held| held.phase == Phase::Restored)
    }

    /// Notes that the records of a partition flow.
    pub fn opened(&mut self, partition: Partition) {
        let now = Instant::now();
        // Checkpoints of many partitions at once would stall decisions for as long as all of them take to encode.
        let share = self.parts.checkpoint_interval.unwrap_or_default() * u32::try_from(partition.0.rem_euclid(SHARES)).unwrap_or_default()
            / SHARES.unsigned_abs();
        if let Some(held) = self.held.get_mut(&partition).filter(|held| held.phase == Phase::Restored) {
            (held.phase, held.checkpoint_due) = (Phase::Open, now + share);
        }
    }

    /// The partitions whose records flow, or may.
    #[must_use]
    pub fn open(&self) -> Vec<Partition> {
        self.in_phase(|phase| phase == Phase::Open)
    }

    /// All partitions, by what has become of their state.
    #[must_use]
    pub fn member_partitions(&self) -> MemberPartitions {
        MemberPartitions {
            held: self.partitions(),
            restoring: self.in_phase(|phase| matches!(phase, Phase::Restoring | Phase::Restored)),
            failed: self.in_phase(|phase| phase == Phase::Failed),
        }
    }

    /// Whether any partition waits for its state.
    #[must_use]
    pub fn is_restoring(&self) -> bool {
        self.held.values().any(|held| held.phase != Phase::Open)
    }

    fn in_phase(&self, is_it: impl Fn(Phase) -> bool) -> Vec<Partition> {
        let mut partitions: Vec<_> = self.held.iter().filter(|(_, held)| is_it(held.phase)).map(|(partition, _)| *partition).collect();
        partitions.sort();
        partitions
    }

    /// Freezes the checkpoints that are due, and has those written whose verdicts are acknowledged. Nothing after a failure.
    pub fn keep(&mut self, who_am_i: WhoAmI<'_>) {
        let Some(interval) = self.parts.checkpoint_interval.filter(|_| self.failure.is_none()) else { return };
        let now = Instant::now();
        for held in self.held.values_mut().filter(|held| held.keeper.is_some()) {
            if held.is_checkpoint_due(now, interval) {
                held.lane.freeze(&self.owner);
            }
            let Some(checkpoint) = held.lane.take_checkpoint() else { continue };
            match (who_am_i(), &held.keeper) {
                (Some(group), Some(keeper)) => keeper.write(Job { checkpoint, group }),
                _ => held.lane.checkpoint_refused(),
            }
        }
    }

    /// Serves the producer and the keepers until the records of these partitions are finished and their state is written, a failure comes
    /// or the time is up; whether all are.
    pub fn finish(&mut self, partitions: &[Partition], who_am_i: WhoAmI<'_>, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        // The group may have told us who we are since.
        self.held.values_mut().for_each(|held| held.is_outdated = false);
        self.finishing = partitions.to_vec();
        let is_finished = self.try_to_finish(partitions, who_am_i, deadline);
        self.finishing.clear();
        is_finished
    }

    fn try_to_finish(&mut self, partitions: &[Partition], who_am_i: WhoAmI<'_>, deadline: Instant) -> bool {
        loop {
            let held = || partitions.iter().filter_map(|partition| self.held.get(partition));
            if held().all(|held| held.is_finished()) {
                return held().all(|held| held.phase != Phase::Failed);
            }
            // The group tells us nothing new while we are here.
            let is_hopeless = held().all(|held| held.is_finished() || held.is_outdated);
            if is_hopeless || self.failure.is_some() || Instant::now() >= deadline {
                return false;
            }
            for partition in partitions {
                if let Some(held) = self.held.get_mut(partition) {
                    held.checkpoint_due = Instant::now();
                }
            }
            self.keep(who_am_i);
            self.settle(FINISH_POLL);
            // What the consumer has to do for the other partitions waits until it is its turn again.
            self.listen();
        }
    }
}
