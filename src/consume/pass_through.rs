//! A worker without decisions: every record is let through under a constant verdict, and all else is as ever. It is what the worker is
//! measured against.

use crate::publish::Origin;
use tollgate_core::record::Record;

use super::Assignment;

/// What is done with records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deciding {
    /// The policy decides.
    #[default]
    Policy,
    /// Nothing is decided: see the module.
    PassThrough,
}

impl Assignment {
    /// Publishes the constant verdict on a record of a partition that is open.
    pub(super) fn pass_through(&mut self, record: &Record<'_>) {
        let Some(held) = self.held.get_mut(&record.partition) else { return };
        held.last_record_ms = record.timestamp_ms;
        if !held.lane.pass_through(record, &mut self.out) {
            return self.parts.metrics.redelivered_records.inc();
        }
        let origin = Origin { epoch: held.epoch, event_time_ms: record.timestamp_ms };
        self.counts.passed_through();
        let due = self.outbox.publish(record, &self.out, None, origin);
        self.enter(record.partition, |ledger| ledger.open(record.offset, due));
    }
}
