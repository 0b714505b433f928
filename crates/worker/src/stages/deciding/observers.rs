//! Observers of the deciding stage: they watch its records, and change no verdict.
//!
//! | observer | what it makes of the records |
//! |---|---|
//! | [`Tracer`] | spans of sampled records |
//! | [`ShadowFeed`] | the same records for the policy on trial |
//! | [`Signals`] | what was seen of the subjects of an event, for the signals topic |

use std::time::Instant;

use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::decide::shadow::Decision;
use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::event::record::{Offset, Partition, Record};

use super::signals::Signals;
use crate::outbox::{LatePublications, Publications};
use crate::shadow::ShadowFeed;
use crate::traces::Tracer;

/// A record that is decided, with its outcome.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'r> {
    pub record: &'r Record<'r>,
    pub outcome: &'r Outcome,
    pub output: &'r VerdictBuffer,
}

/// What watches the records of a member. Each method tells of something that has happened to a record or a partition.
pub(super) trait Observer: Send + std::fmt::Debug {
    /// A partition was taken over, with the state of its last checkpoint.
    fn partition_taken(&self, _partition: Partition, _state: Option<&ThreadStore>) {}

    /// A partition is at work. `new_end` is where it ended when it was taken over without any state.
    fn partition_started(&mut self, _partition: Partition, _new_end: Option<Offset>) {}

    /// The state of a partition is lost.
    fn state_lost(&mut self, _partition: Partition) {}

    /// A partition was given up, and its state with it.
    fn partition_revoked(&mut self, partition: Partition) {
        self.state_lost(partition);
    }

    /// A record is taken.
    fn taken(&mut self, _record: &Record<'_>) {}

    /// The record at a place, which was taken last, waits behind another record of its thread.
    fn waits(&mut self, _partition: Partition, _offset: Offset) {}

    /// A policy server is asked about a record.
    fn asked(&mut self, _partition: Partition, _offset: Offset) {}

    /// The answer of a policy server has come.
    fn answered(&mut self, _partition: Partition, _offset: Offset) {}

    /// A record is decided, and nothing of it is published yet.
    fn decided(&mut self, _observed: Observed<'_>) {}

    /// What follows from a decided record is published. An observer may publish more.
    fn published(&mut self, _observed: Observed<'_>, _publications: &mut Publications<'_>) {}

    /// A publication of a record is acknowledged. Signals are not among them: nobody waits for those.
    fn acknowledged(&mut self, _partition: Partition, _offset: Offset) {}

    /// A round of records is over. What was gathered may be published.
    fn between_rounds(&mut self, _late: &mut LatePublications<'_>) {}

    /// Returns how many finished records wait for a publication of this observer.
    fn held(&self) -> usize {
        0
    }

    /// A second has passed.
    fn tick(&mut self, _now: Instant) {}

    /// So many records of a partition are known of and not taken.
    fn lag(&mut self, _partition: Partition, _records: i64) {}

    /// What was counted is to be handed over.
    fn flush(&mut self) {}
}

impl Observer for Tracer {
    fn taken(&mut self, record: &Record<'_>) {
        self.taken(record);
    }

    fn waits(&mut self, _: Partition, _: Offset) {
        self.waits();
    }

    fn asked(&mut self, partition: Partition, offset: Offset) {
        self.asked(partition, offset);
    }

    fn answered(&mut self, partition: Partition, offset: Offset) {
        self.answered(partition, offset);
    }

    fn decided(&mut self, observed: Observed<'_>) {
        self.decided(observed.record);
    }

    fn published(&mut self, observed: Observed<'_>, publications: &mut Publications<'_>) {
        let rejected = match observed.outcome {
            Outcome::Boundary(_) => return self.without_verdict(),
            Outcome::Verdict { .. } => None,
            Outcome::DeadLetter(rejection) => Some(rejection.code.as_str()),
        };
        self.published(&observed.output.json, rejected, publications.unacknowledged());
    }

    fn acknowledged(&mut self, partition: Partition, offset: Offset) {
        self.acknowledged(partition, offset);
    }

    fn flush(&mut self) {
        self.expire();
    }
}

impl Observer for ShadowFeed {
    fn partition_taken(&self, partition: Partition, state: Option<&ThreadStore>) {
        self.taken(partition, state);
    }

    fn partition_revoked(&mut self, partition: Partition) {
        ShadowFeed::partition_revoked(self, partition);
    }

    /// Hands the record to the policy on trial. A record that cannot be read is the same to both policies, and changes no state.
    fn decided(&mut self, Observed { record, outcome, output }: Observed<'_>) {
        match outcome {
            Outcome::Verdict { decided, .. } => self.decided(record, &output.thread_id, || Some(Decision::of(decided))),
            Outcome::Boundary(_) => self.decided(record, &output.thread_id, || None),
            Outcome::DeadLetter(_) => {}
        }
    }
}

impl Observer for Signals {
    fn partition_started(&mut self, partition: Partition, new_end: Option<Offset>) {
        self.partition_started(partition, new_end);
    }

    fn state_lost(&mut self, partition: Partition) {
        self.forget(partition);
    }

    fn waits(&mut self, partition: Partition, offset: Offset) {
        self.undecided(partition, offset);
    }

    fn asked(&mut self, partition: Partition, offset: Offset) {
        self.undecided(partition, offset);
    }

    fn published(&mut self, observed: Observed<'_>, publications: &mut Publications<'_>) {
        self.decided(&observed.output.signals, publications);
    }

    fn between_rounds(&mut self, late: &mut LatePublications<'_>) {
        self.between_rounds(late);
    }

    fn held(&self) -> usize {
        self.held()
    }

    fn tick(&mut self, now: Instant) {
        self.tick(now);
    }

    fn lag(&mut self, partition: Partition, records: i64) {
        self.lag(partition, records);
    }

    fn flush(&mut self) {
        self.flush();
    }
}
