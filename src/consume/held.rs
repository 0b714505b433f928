//! One partition that a member holds.

use std::time::{Duration, Instant};

use crate::metrics::{Metrics, PartitionMetrics};
use crate::state::Keeper;
use tollgate_core::processor::Lane;
use tollgate_core::record::Offset;
use tollgate_core::thread::Departures;

/// Whether a partition's records are decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its state is being read; its records wait.
    Restoring,
    /// Its state could not be read, and is tried again; its records wait.
    Failed,
    /// Its state is here, and its records have not begun to flow.
    Restored,
    /// They are.
    Open,
}

/// See the module.
pub(super) struct Held {
    pub(super) lane: Lane,
    /// Which assignment of the partition this is: what belongs to an earlier one is nobody's.
    pub(super) epoch: u64,
    pub(super) phase: Phase,
    /// Writes the state down; `None` where it lives as long as the process, as the broker does.
    pub(super) keeper: Option<Keeper>,
    /// When the next checkpoint is due.
    pub(super) checkpoint_due: Instant,
    /// Whether the group has refused the last checkpoint, because it has moved on: there is no use in another one until it has told us.
    pub(super) is_outdated: bool,
    /// How often in a row a keeper was lost without having written anything.
    pub(super) losses: u32,
    /// The first record that was taken, in case that nothing has been committed when the state is read again.
    pub(super) start: Option<Offset>,
    /// The time of the last record.
    pub(super) last_record_ms: Option<i64>,
    /// The partition's gauges.
    pub(super) gauges: PartitionMetrics,
    counted: Departures,
}

impl Held {
    pub(super) fn new(lane: Lane, epoch: u64, phase: Phase, keeper: Option<Keeper>, gauges: PartitionMetrics) -> Self {
        Self {
            lane,
            epoch,
            phase,
            keeper,
            checkpoint_due: Instant::now(),
            is_outdated: false,
            losses: 0,
            start: None,
            last_record_ms: None,
            gauges,
            counted: Departures::default(),
        }
    }

    /// Whether a checkpoint is due; if so, the next one is an interval later.
    pub(super) fn is_checkpoint_due(&mut self, now: Instant, interval: Duration) -> bool {
        let is_due = self.phase == Phase::Open && now >= self.checkpoint_due && !self.lane.is_checkpointing();
        if is_due {
            self.checkpoint_due = now + interval;
        }
        is_due
    }

    /// Whether everything that was applied is acknowledged and, where there is a keeper, written down.
    pub(super) fn is_finished(&self) -> bool {
        let is_written = self.keeper.is_none() || !(self.lane.is_behind() || self.lane.is_checkpointing());
        self.phase != Phase::Open || (self.lane.ledger.in_flight() == 0 && is_written)
    }

    /// Sets the gauges of the partition, and counts the threads that it has let go of.
    pub(super) fn report(&mut self, metrics: &Metrics) {
        self.gauges.live_threads.set(self.lane.threads.len() as i64);
        self.gauges.state_bytes.set(self.lane.threads.bytes() as i64);
        let now = self.lane.threads.departures();
        let before = std::mem::replace(&mut self.counted, now);
        for (reason, count) in [
            ("expired", now.expired.saturating_sub(before.expired)),
            ("evicted", now.evicted.saturating_sub(before.evicted)),
            ("refused", now.refused.saturating_sub(before.refused)),
        ] {
            if count > 0 {
                metrics.departed_threads.with_label_values(&[reason]).inc_by(count);
            }
        }
    }
}
