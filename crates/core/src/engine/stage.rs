//! The trait of a stage: the seam between a worker and what it does with records.
//!
//! A [`Stage`] does the work on the records of one partition: it turns them into outcomes, and holds the state for that under keys.
//! Everything around it is the same for every stage: the consumer, the offset tracker, checkpoints and restores, publications and their
//! acknowledgements.
//!
//! ```text
//! record ─▶ apply ─▶ Done(outcome) ──────────────────────▶ published, acknowledged, committable
//!              ├───▶ Asks(request) ─▶ answer ─▶ resume ──▶   "
//!              └───▶ Waits ─────────────────────▲ (behind one that asks)
//! ```
//!
//! [`Deciding`](crate::decide::deciding::Deciding) is the stage that gives verdicts.

use crate::engine::checkpoint::KeyedState;
use crate::event::decode::Rejection;
use crate::event::record::{Offset, OwnedRecord, Record};

/// The work on the records of one partition, and the state for it.
///
/// A stage is pure. The same records and responses in the same order give the same outcomes and the same state, however the records are cut
/// into batches and whichever response comes first.
pub trait Stage: Sized {
    /// The outcome of a record, for the worker to publish and count.
    type Outcome;
    /// A request that has to be answered elsewhere before a record can be decided; `Infallible` for a stage that never asks.
    type Request;
    /// The response to a request.
    type Response;
    /// The buffer that the bytes of an outcome are written to. It is reused from record to record.
    type Output: Default;
    /// The state of the stage.
    type State: KeyedState;

    /// Applies the next record of the partition. The bytes of its outcome, if it has any, are in `out`.
    fn apply(&mut self, record: &Record<'_>, out: &mut Self::Output) -> Progress<Self::Outcome, Self::Request>;

    /// Applies a record that its reader could not take apart, with the reason.
    fn reject(&mut self, record: &Record<'_>, rejection: Rejection, out: &mut Self::Output) -> Self::Outcome;

    /// Takes the response to the request that was made for the record at an offset. [`Stage::resume`] then resumes the record.
    fn answer(&mut self, offset: Offset, response: Self::Response);

    /// Resumes one waiting record, if any can be resumed. It is called until it returns `None`.
    fn resume(&mut self, out: &mut Self::Output) -> Option<Resumed<Self::Outcome, Self::Request>>;

    /// Returns how many records wait for responses, and their bytes.
    fn waiting(&self) -> Waiting;

    /// Returns the keys that have waiting records. Their state is not yet as of the last record.
    fn waiting_keys(&self) -> impl Iterator<Item = &str>;

    /// Returns the state.
    fn state(&self) -> &Self::State;

    /// Returns the state, for checkpoints to take the changes.
    fn state_mut(&mut self) -> &mut Self::State;

    /// Notes that the state is that of a checkpoint, which holds it as of `next`, the first record that is not in it.
    fn restored(&mut self, _next: Offset) {}

    /// Notes that a checkpoint is written that holds the state as of `next`, the first record that is not in it.
    fn checkpoint_written(&mut self, _next: Offset) {}
}

/// The result of applying a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress<O, Q> {
    /// The record is decided.
    Done(O),
    /// A request has to be answered first. The response is given under the record's offset.
    Asks(Q),
    /// Another record of its key has asked and must be decided first.
    Waits,
}

/// The result of resuming a record.
#[derive(Debug)]
pub enum Resumed<O, Q> {
    /// The record is decided.
    Done {
        /// The record.
        record: OwnedRecord,
        /// The outcome of the record.
        outcome: O,
        /// The record's key in the state.
        key: Box<str>,
        /// The offset of the next record of that key that waits.
        next: Option<Offset>,
    },
    /// Another request has to be answered first. The response is given under the record's offset.
    Asks(Offset, Q),
}

/// How much waits for responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How many records wait.
    pub records: usize,
    /// About how many bytes they take.
    pub bytes: usize,
}
