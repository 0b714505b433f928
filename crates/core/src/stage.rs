//! The seam between a worker and what it does with records.
//!
//! A [`Stage`] is one partition's share of that: it turns records into outcomes, and remembers what it needs for it under keys. Everything
//! around it is the same for every stage: the consumer, the offset tracker, checkpoints and restores, publications and their
//! acknowledgements.
//!
//! ```text
//! record ─▶ apply ─▶ Done(outcome) ──────────────────────▶ published, acknowledged, committable
//!              ├───▶ Asks(request) ─▶ answer ─▶ resume ──▶   "
//!              └───▶ Waits ─────────────────────▲ (behind one that asks)
//! ```
//!
//! [`Deciding`](crate::deciding::Deciding) is the stage that gives verdicts.

use crate::checkpoint::KeyedState;
use crate::decode::Rejection;
use crate::record::{Offset, OwnedRecord, Record};

/// What is done with the records of one partition, and the state that it is done from.
///
/// A stage is pure: the same records and responses in the same order give the same outcomes and the same state, however they are cut into
/// batches and whichever response comes first.
pub trait Stage: Sized {
    /// What a record becomes, for whoever publishes and counts it.
    type Outcome;
    /// What has to be asked elsewhere before a record can be decided; `Infallible` for a stage that never asks.
    type Request;
    /// What comes back.
    type Response;
    /// Where the bytes of an outcome are written, reused from record to record.
    type Output: Default;
    /// What is remembered.
    type State: KeyedState;

    /// Takes the next record of the partition; the bytes of its outcome, if it has any, are in `out`.
    fn apply(&mut self, record: &Record<'_>, out: &mut Self::Output) -> Progress<Self::Outcome, Self::Request>;

    /// Takes a record that its reader could not even take apart.
    fn reject(&mut self, record: &Record<'_>, rejection: Rejection, out: &mut Self::Output) -> Self::Outcome;

    /// Takes the response to the request that was made for the record at an offset; [`Stage::resume`] goes on with it.
    fn answer(&mut self, offset: Offset, response: Self::Response);

    /// Goes on with a record that waited, if there is one that can. It is called until there is none.
    fn resume(&mut self, out: &mut Self::Output) -> Option<Resumed<Self::Outcome, Self::Request>>;

    /// Returns what waits for responses.
    fn waiting(&self) -> Waiting;

    /// Returns the keys whose records wait: their state is not yet as of the last record.
    fn waiting_keys(&self) -> impl Iterator<Item = &str>;

    /// Returns what is remembered.
    fn state(&self) -> &Self::State;

    /// Returns what is remembered, for checkpoints to take what has changed.
    fn state_mut(&mut self) -> &mut Self::State;
}

/// How far a record has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress<O, Q> {
    /// It is decided.
    Done(O),
    /// It has to be asked about, under its offset.
    Asks(Q),
    /// Another record of its key has asked and goes first.
    Waits,
}

/// What has become of a record that waited.
#[derive(Debug)]
pub enum Resumed<O, Q> {
    /// It is decided.
    Done {
        /// The record.
        record: OwnedRecord,
        /// What it became.
        outcome: O,
        /// Its key in the state.
        key: Box<str>,
        /// The next record of that key that waits.
        next: Option<Offset>,
    },
    /// It has to be asked about again, under its offset.
    Asks(Offset, Q),
}

/// How much waits for responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Records.
    pub records: usize,
    /// Their bytes, about.
    pub bytes: usize,
}
