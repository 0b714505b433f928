//! The partition processor: a stage at work on one partition, which of its records are finished, and what of it can be written down.
//!
//! ```text
//! record ─▶ new? ─▶ stage ─▶ outcome ─▶ published(due) ─▶ acknowledge … ─▶ committable ─▶ checkpoint
//!              └─no─▶ redelivered        └──────── offset tracker ────────┘
//! ```
//!
//! It is pure: whoever owns it feeds it records and responses, asks what it wants to know and publishes what it decides.

mod checkpoints;
mod offset_tracker;

pub use offset_tracker::{OffsetTracker, TrackerError};

use crate::decode::Rejection;
use crate::record::{Offset, Partition, Record};
use crate::stage::{Progress, Resumed, Stage};

use checkpoints::CheckpointProgress;

/// A stage at work on one partition.
#[derive(Debug)]
pub struct PartitionProcessor<S> {
    partition: Partition,
    stage: S,
    tracker: OffsetTracker,
    /// The record behind the last one that was applied.
    next: Offset,
    checkpoint: CheckpointProgress,
}

/// What a record has become.
#[derive(Debug, PartialEq, Eq)]
pub enum Applied<O, Q> {
    /// Nothing: the state knows the record already, and what followed from it was acknowledged before the state was written.
    Redelivered,
    /// The stage has taken it. Of what is done, [`PartitionProcessor::published`] is told how many acknowledgements it waits for.
    Taken(Progress<O, Q>),
}

/// What a record has become at a stage.
pub type AppliedBy<S> = Applied<<S as Stage>::Outcome, <S as Stage>::Request>;
/// What a record that waited has become at a stage.
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

    /// Returns a processor whose stage has the state as of `next`, as a checkpoint left it.
    #[must_use]
    pub fn restored(partition: Partition, stage: S, next: Offset) -> Self {
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

    /// Returns the first record that the state does not know.
    #[must_use]
    pub fn next(&self) -> Offset {
        self.next
    }

    /// Takes one record. One that the state knows already changes nothing.
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

    /// Takes a record that its reader could not even take apart.
    ///
    /// # Errors
    /// As [`PartitionProcessor::apply`].
    pub fn reject(&mut self, record: &Record<'_>, rejection: Rejection, out: &mut S::Output) -> Result<AppliedBy<S>, TrackerError> {
        if !self.advance(record) {
            return Ok(Applied::Redelivered);
        }
        self.tracker.open_undecided(record.offset)?;
        Ok(Applied::Taken(Progress::Done(self.stage.reject(record, rejection, out))))
    }

    /// Notes how many acknowledgements a record that is done waits for; one that waits for none is finished at once.
    ///
    /// # Errors
    /// [`TrackerError::NotUndecided`] if the record was never applied, came again, or was published before.
    pub fn published(&mut self, offset: Offset, due: u32) -> Result<(), TrackerError> {
        self.tracker.decide(offset, due)
    }

    /// Takes one acknowledgement of what was published for a record.
    ///
    /// # Errors
    /// [`TrackerError`] if nothing of that record is due.
    pub fn acknowledge(&mut self, offset: Offset) -> Result<(), TrackerError> {
        self.tracker.acknowledge(offset)
    }

    /// Takes the response to the request that was made for the record at an offset, or why there is none.
    pub fn answer(&mut self, offset: Offset, response: S::Response) {
        self.stage.answer(offset, response);
    }

    /// Goes on with a record that waited, if there is one that can. It is called until there is none.
    pub fn resume(&mut self, out: &mut S::Output) -> Option<ResumedBy<S>> {
        let resumed = self.stage.resume(out)?;
        if let Resumed::Done { key, next, .. } = &resumed {
            self.checkpoint.passed(key, *next, self.stage.state_mut());
        }
        Some(resumed)
    }

    /// Returns how many records are not finished, or wait behind one that is not.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.tracker.in_flight()
    }

    /// Returns the offset behind the longest run of finished records from the front.
    #[must_use]
    pub fn committable(&self) -> Option<Offset> {
        self.tracker.committable()
    }

    /// Steps over a record, unless the state knows it. The applied offset of every key is below `next`, and so are the last ones of keys
    /// that are gone: one comparison tells for all of them.
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
    use crate::decode::RejectionCode;
    use crate::pass_through::PassThrough;

    fn record(offset: i64) -> Record<'static> {
        let (topic, partition, offset) = ("agent.events", Partition(1), Offset(offset));
        Record { topic, partition, offset, timestamp_ms: None, key: None, value: None, headers: &[] }
    }

    fn rejection() -> Rejection {
        Rejection::new(RejectionCode::HeaderInvalid, "headers", "a header", "none")
    }

    type Passing = PartitionProcessor<PassThrough>;

    fn apply(processor: &mut Passing, offset: i64) -> AppliedBy<PassThrough> {
        processor.apply(&record(offset), &mut Default::default()).unwrap()
    }

    const DONE: AppliedBy<PassThrough> = Applied::Taken(Progress::Done(()));

    #[test]
    fn a_record_is_finished_when_all_that_was_published_for_it_is_acknowledged() {
        let mut processor = Passing::new(Partition(1), PassThrough::default());
        assert_eq!((processor.partition(), processor.next(), processor.committable()), (Partition(1), Offset(0), None));
        assert_eq!(apply(&mut processor, 3), DONE);
        assert_eq!((processor.next(), processor.committable()), (Offset(4), None), "it is not published yet");
        processor.published(Offset(3), 2).unwrap();
        processor.acknowledge(Offset(3)).unwrap();
        assert_eq!((processor.committable(), processor.in_flight()), (None, 1));
        processor.acknowledge(Offset(3)).unwrap();
        assert_eq!((processor.committable(), processor.in_flight()), (Some(Offset(4)), 0));
        assert_eq!(processor.acknowledge(Offset(3)), Err(TrackerError::NotOpen(Offset(3))));
    }

    #[test]
    fn what_no_reader_could_take_apart_is_published_and_acknowledged_like_the_rest() {
        let mut processor = Passing::new(Partition(1), PassThrough::default());
        assert_eq!(processor.reject(&record(0), rejection(), &mut Default::default()), Ok(DONE));
        processor.published(Offset(0), 1).unwrap();
        assert_eq!(processor.committable(), None);
        processor.acknowledge(Offset(0)).unwrap();
        assert_eq!(processor.committable(), Some(Offset(1)));
    }

    #[test]
    fn a_record_is_published_once_and_acknowledged_after_that() {
        let mut processor = Passing::new(Partition(1), PassThrough::default());
        apply(&mut processor, 0);
        assert_eq!(processor.acknowledge(Offset(0)), Err(TrackerError::NotOpen(Offset(0))));
        processor.published(Offset(0), 1).unwrap();
        assert_eq!(processor.published(Offset(0), 1), Err(TrackerError::NotUndecided(Offset(0))));
        processor.acknowledge(Offset(0)).unwrap();
        assert_eq!(processor.published(Offset(0), 1), Err(TrackerError::NotUndecided(Offset(0))), "it is finished");
    }

    #[test]
    fn what_the_state_knows_is_redelivered_and_there_is_nothing_to_acknowledge() {
        let mut processor = Passing::restored(Partition(1), PassThrough::default(), Offset(5));
        assert_eq!(apply(&mut processor, 3), Applied::Redelivered);
        assert_eq!(processor.reject(&record(4), rejection(), &mut Default::default()), Ok(Applied::Redelivered));
        assert_eq!(processor.published(Offset(4), 1), Err(TrackerError::NotUndecided(Offset(4))));
        assert_eq!((processor.next(), processor.committable(), processor.in_flight()), (Offset(5), None, 0));
        assert_eq!(processor.acknowledge(Offset(3)), Err(TrackerError::NotOpen(Offset(3))));
        assert_eq!(apply(&mut processor, 5), DONE);
        processor.published(Offset(5), 0).unwrap();
        assert_eq!((processor.next(), processor.committable()), (Offset(6), Some(Offset(6))));
    }

    /// Whatever the order in which a reader brings them: one that is below another was applied before it, or by whoever wrote the state.
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

    /// Whoever forgets a record commits nothing beyond it.
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
