//! The partition processor: runs a stage on one partition, tracks which records are finished, and prepares checkpoints of the state.
//!
//! ```text
//! record ─▶ new? ─▶ stage ─▶ outcome ─▶ published(due) ─▶ acknowledge … ─▶ committable ─▶ checkpoint
//!              └─no─▶ redelivered        └──────── offset tracker ────────┘
//! ```
//!
//! It is pure: its owner feeds it records and responses, publishes its outcomes, and reports acknowledgements.

mod checkpoints;
mod offset_tracker;

pub use offset_tracker::{OffsetTracker, TrackerError};

use crate::engine::stage::{Progress, Resumed, Stage};
use crate::event::decode::Rejection;
use crate::event::record::{Offset, Partition, Record};

use checkpoints::CheckpointProgress;

/// A stage at work on one partition, with its offset tracker and its checkpoints.
#[derive(Debug)]
pub struct PartitionProcessor<S> {
    partition: Partition,
    stage: S,
    tracker: OffsetTracker,
    /// The offset behind the last record that was applied.
    next: Offset,
    checkpoint: CheckpointProgress,
}

/// The result of applying a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Applied<O, Q> {
    /// The record changed nothing. It is part of the state already, and what followed from it was acknowledged before the state was
    /// written.
    Redelivered,
    /// The stage has taken the record. If it is done, [`PartitionProcessor::published`] must be called with the number of acknowledgements
    /// that it waits for.
    Taken(Progress<O, Q>),
}

/// The result of applying a record to a stage.
pub type AppliedBy<S> = Applied<<S as Stage>::Outcome, <S as Stage>::Request>;
/// The result of resuming a waiting record at a stage.
pub type ResumedBy<S> = Resumed<<S as Stage>::Outcome, <S as Stage>::Request>;

impl<S: Stage> PartitionProcessor<S> {
    /// Returns a processor that has seen nothing of its partition.
    #[must_use]
    pub fn new(partition: Partition, stage: S) -> Self {
        Self {
            partition,
            stage,
            tracker: OffsetTracker::default(),
            next: Offset(0),
            checkpoint: CheckpointProgress::written_up_to(Offset(0)),
        }
    }

    /// Returns a processor whose stage has the state of a checkpoint, which is as of `next`.
    #[must_use]
    pub fn restored(partition: Partition, mut stage: S, next: Offset) -> Self {
        stage.restored(next);
        Self { next, checkpoint: CheckpointProgress::written_up_to(next), ..Self::new(partition, stage) }
    }

    /// Returns the partition.
    #[must_use]
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// Returns the stage.
    #[must_use]
    pub fn stage(&self) -> &S {
        &self.stage
    }

    /// Returns the stage, for what goes on beside its records.
    pub fn stage_mut(&mut self) -> &mut S {
        &mut self.stage
    }

    /// Returns the offset of the first record that is not part of the state.
    #[must_use]
    pub fn next(&self) -> Offset {
        self.next
    }

    /// Applies one record. A record that is part of the state already changes nothing.
    ///
    /// # Errors
    /// [`TrackerError`] if a record comes out of order: nothing may be committed after that.
    pub fn apply(&mut self, record: &Record<'_>, out: &mut S::Output) -> Result<AppliedBy<S>, TrackerError> {
        if !self.advance(record) {
            return Ok(Applied::Redelivered);
        }
        self.tracker.open_undecided(record.offset)?;
        Ok(Applied::Taken(self.stage.apply(record, out)))
    }

    /// Applies a record that its reader could not take apart, with the reason: a header whose name is not UTF-8, for instance.
    ///
    /// # Errors
    /// [`TrackerError`] if a record comes out of order: nothing may be committed after that.
    pub fn reject(&mut self, record: &Record<'_>, rejection: Rejection, out: &mut S::Output) -> Result<AppliedBy<S>, TrackerError> {
        if !self.advance(record) {
            return Ok(Applied::Redelivered);
        }
        self.tracker.open_undecided(record.offset)?;
        Ok(Applied::Taken(Progress::Done(self.stage.reject(record, rejection, out))))
    }

    /// Notes how many acknowledgements a record that is done waits for. A record that waits for none is finished at once.
    ///
    /// # Errors
    /// [`TrackerError::NotUndecided`] if the record was never applied, was redelivered, or was reported before.
    pub fn published(&mut self, offset: Offset, due: u32) -> Result<(), TrackerError> {
        self.tracker.decide(offset, due)
    }

    /// Takes one acknowledgement of a publication of a record.
    ///
    /// # Errors
    /// [`TrackerError`] if no acknowledgement of that record is due.
    pub fn acknowledge(&mut self, offset: Offset) -> Result<(), TrackerError> {
        self.tracker.acknowledge(offset)
    }

    /// Takes the response to the request that was made for the record at an offset, or the reason why there is none.
    pub fn answer(&mut self, offset: Offset, response: S::Response) {
        self.stage.answer(offset, response);
    }

    /// Resumes one waiting record, if any can be resumed. It is called until it returns `None`.
    pub fn resume(&mut self, out: &mut S::Output) -> Option<ResumedBy<S>> {
        let resumed = self.stage.resume(out)?;
        if let Resumed::Done { key, next, .. } = &resumed {
            self.checkpoint.applied_waiting(key, *next, self.stage.state_mut());
        }
        Some(resumed)
    }

    /// Returns how many records are in flight: not finished, or behind one that is not.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.tracker.in_flight()
    }

    /// Returns the offset behind the longest run of finished records from the front.
    #[must_use]
    pub fn committable(&self) -> Option<Offset> {
        self.tracker.committable()
    }

    /// Moves `next` behind a record and returns true, or returns false if the record is part of the state already. The last applied offset
    /// of every key is below `next`, including keys that are gone, so one comparison decides for all of them.
    fn advance(&mut self, record: &Record<'_>) -> bool {
        let is_new = record.offset >= self.next;
        if is_new {
            self.next = record.offset.next();
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::pass_through::PassThrough;

    fn record(offset: i64) -> Record<'static> {
        let (topic, partition, offset) = ("agent.events", Partition(1), Offset(offset));
        Record { topic, partition, offset, timestamp_ms: None, key: None, value: None, headers: &[] }
    }

    type Passing = PartitionProcessor<PassThrough>;

    fn apply(processor: &mut Passing, offset: i64) -> AppliedBy<PassThrough> {
        processor.apply(&record(offset), &mut Default::default()).unwrap()
    }

    const DONE: AppliedBy<PassThrough> = Applied::Taken(Progress::Done(()));

    /// Readers may bring records in any order. A record below one that was applied was applied before it, or by the worker that wrote the
    /// state.
    #[test]
    fn a_record_below_one_that_was_applied_is_redelivered() {
        let mut processor = Passing::new(Partition(1), PassThrough::default());
        apply(&mut processor, 7);
        for offset in [7, 6, 0] {
            assert_eq!(apply(&mut processor, offset), Applied::Redelivered);
        }
        assert_eq!(processor.next(), Offset(8));
        processor.published(Offset(7), 1).unwrap();
        assert_eq!(processor.in_flight(), 1);
    }

    #[test]
    fn what_was_never_applied_is_not_published() {
        let mut processor = Passing::new(Partition(1), PassThrough::default());
        assert_eq!(processor.published(Offset(0), 1), Err(TrackerError::NotUndecided(Offset(0))));
        apply(&mut processor, 0);
        assert_eq!(processor.published(Offset(1), 1), Err(TrackerError::NotUndecided(Offset(1))));
        assert_eq!((processor.committable(), processor.in_flight()), (None, 1));
    }

    /// Nothing is committed beyond a record that is never reported as published.
    #[test]
    fn a_record_that_is_done_and_not_published_holds_those_behind_it_back() {
        let mut processor = Passing::new(Partition(1), PassThrough::default());
        (0..3).for_each(|offset| assert_eq!(apply(&mut processor, offset), DONE));
        processor.published(Offset(1), 0).unwrap();
        processor.published(Offset(2), 0).unwrap();
        assert_eq!((processor.committable(), processor.in_flight()), (None, 3));
        processor.published(Offset(0), 0).unwrap();
        assert_eq!((processor.committable(), processor.in_flight()), (Some(Offset(3)), 0));
    }
}
