//! The shell's side of stages: what their outcomes publish, where their requests go, and what is counted.

pub mod deciding;
mod pass_through;

pub use pass_through::{PassingThrough, pass_through};

use std::sync::Arc;

use prometheus::local::LocalHistogramTimer;
use rdkafka::message::OwnedHeaders;
use tollgate_core::checkpoint::KeyedState;
use tollgate_core::record::{Offset, Partition, Record};
use tollgate_core::stage::Stage;

use crate::kafka::StageTopics;
use crate::outbox::{Delivery, Outbox, OutboxTopics, Reduce};

/// A stage as one member runs it: everything around the pure stage that touches the world.
///
/// A worker that runs another stage implements this, names the stage's topics, and has the same consumer, offset tracker, checkpoints,
/// restore and outbox.
pub trait StageRuntime: Send + 'static {
    /// The stage.
    type Stage: Stage<Output: Send, State: KeyedState<Limits: Send + Sync + 'static> + Send + 'static> + Send + 'static;

    /// Returns the stage of a partition, with the state that a checkpoint left, if it left any.
    fn stage(&self, state: Option<StateOf<Self>>) -> Self::Stage;

    /// Returns how much a partition may remember.
    fn limits(&self) -> LimitsOf<Self>;

    /// Counts a record that is done, publishes what follows from it, and returns how many acknowledgements it waits for.
    fn publish(&mut self, done: Done<'_, Self::Stage>, outbox: &mut Outbox) -> u32;

    /// Sends a request off and does not wait for it.
    fn ask(&mut self, request_id: RequestId, request: <Self::Stage as Stage>::Request);

    /// Returns a response that has come, or why there is none; `None` if none has come.
    fn response(&mut self) -> Option<(RequestId, <Self::Stage as Stage>::Response)>;

    /// Returns a running timer if the next record is to be timed.
    fn timer(&mut self) -> Option<LocalHistogramTimer> {
        None
    }

    /// Counts a publication that is acknowledged at a time, in milliseconds since the epoch.
    fn acknowledged(&mut self, _delivery: &Delivery, _now_ms: i64) {}

    /// Hands over what was counted since the last time.
    fn flush(&mut self) {}
}

/// A stage that a worker is to run: where it reads and writes, and how its members' runtimes are made.
pub struct StageSetup<R> {
    /// The group, its input and its state.
    pub topics: Arc<StageTopics>,
    /// Where publications go.
    pub output: OutboxTopics,
    /// What is published in place of what a topic does not take.
    pub reduce: Reduce,
    /// The version of what decides, as metrics show it.
    pub version: String,
    /// Returns the runtime of one more member.
    pub runtime: Box<dyn Fn() -> R + Send + Sync>,
}

impl<R> std::fmt::Debug for StageSetup<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageSetup").field("topics", &self.topics).field("version", &self.version).finish_non_exhaustive()
    }
}

/// What a stage runtime's stage remembers.
pub type StateOf<R> = <<R as StageRuntime>::Stage as Stage>::State;
/// How much it may remember.
pub type LimitsOf<R> = <StateOf<R> as KeyedState>::Limits;

/// A record that is done, and what it has become.
pub struct Done<'r, S: Stage> {
    /// The record.
    pub record: &'r Record<'r>,
    /// What it has become.
    pub outcome: S::Outcome,
    /// The bytes of that.
    pub output: &'r S::Output,
    /// Which assignment of the partition it is.
    pub generation: u64,
    /// Returns the record's own headers byte for byte, readable or not.
    pub own_headers: &'r dyn Fn() -> OwnedHeaders,
}

impl<S: Stage> std::fmt::Debug for Done<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Done").field("partition", &self.record.partition).field("offset", &self.record.offset).finish_non_exhaustive()
    }
}

/// Names a request: the record that it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId {
    /// The record's partition.
    pub partition: Partition,
    /// Which assignment of the partition it is.
    pub generation: u64,
    /// The record's offset.
    pub offset: Offset,
}
