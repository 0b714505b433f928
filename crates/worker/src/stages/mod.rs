//! Stages in a worker: what their outcomes publish, where their requests are sent, and what is counted.

pub mod abuse;
pub mod deciding;
mod pass_through;

pub use pass_through::{PassingThrough, pass_through};

use std::sync::Arc;
use std::time::Instant;

use prometheus::local::LocalHistogramTimer;
use rdkafka::message::OwnedHeaders;
use tollgate_core::engine::checkpoint::KeyedState;
use tollgate_core::engine::stage::Stage;
use tollgate_core::event::record::{Offset, Partition, Record};

use crate::kafka::StageTopics;
use crate::outbox::{Delivery, LatePublications, OutboxTopics, Publications, Reduce};

/// A stage as one member runs it: the pure stage with its publications, requests and metrics.
///
/// A worker for another stage implements this trait and names the stage's topics. It gets the same consumer, offset tracker, checkpoints,
/// restore and outbox.
pub trait StageRuntime: Send + 'static {
    /// The pure stage.
    type Stage: Stage<Output: Send, State: KeyedState<Limits: Send + Sync + 'static> + Send + 'static> + Send + 'static;

    /// Returns the stage of a partition that was taken over, with the state of its last checkpoint if there is any.
    fn stage(&self, partition: Partition, state: Option<StateOf<Self>>) -> Self::Stage;

    /// Notes that a partition is at work from now on. `new_end` is where the partition ended when it was taken over without any state; `None`
    /// where there was some, and where state is held in memory only.
    fn partition_started(&mut self, _partition: Partition, _new_end: Option<Offset>) {}

    /// Notes that the state of a partition is lost: [`StageRuntime::partition_started`] follows once it is read again.
    fn state_lost(&mut self, _partition: Partition) {}

    /// Notes that a partition was given up.
    fn partition_revoked(&mut self, _partition: Partition) {}

    /// Returns the limits of the state of a partition.
    fn limits(&self) -> LimitsOf<Self>;

    /// Does what goes on beside a partition's records. It is called now and then between rounds of them, while the partition is at work.
    fn beside_records(&mut self, _partition: Partition, _stage: &mut Self::Stage) {}

    /// Notes that a record is taken. It is then asked about, waits, is finished, or nothing follows because it was known already.
    fn taken(&mut self, _record: &Record<'_>) {}

    /// Notes that the record that was taken last waits behind another one of its key.
    fn waits(&mut self) {}

    /// Counts a finished record, and publishes what follows from it. The record is finished when all of that is acknowledged.
    fn publish(&mut self, done: Done<'_, Self::Stage>, publications: &mut Publications<'_>);

    /// Sends a request, without waiting for its response.
    fn ask(&mut self, request_id: RequestId, request: <Self::Stage as Stage>::Request);

    /// Returns a response that has come, or the error in its place; `None` if none has come.
    fn response(&mut self) -> Option<(RequestId, <Self::Stage as Stage>::Response)>;

    /// Returns whether the outcome shows that the record's key is the id of a thread. Only such a key may be logged: a producer that keys its
    /// records wrongly may key them by a user's id.
    fn is_keyed_by_thread(&self, _outcome: &<Self::Stage as Stage>::Outcome) -> bool {
        false
    }

    /// Returns a running timer if the next record is to be timed, else `None`.
    fn timer(&mut self) -> Option<LocalHistogramTimer> {
        None
    }

    /// Counts an acknowledged publication, with the time of the acknowledgement in milliseconds since the epoch.
    fn acknowledged(&mut self, _delivery: &Delivery, _now_ms: i64) {}

    /// Publishes what follows from no single record, or later than its record. It is called after each round of records, of
    /// acknowledgements and of responses, also while partitions are drained.
    fn between_rounds(&mut self, _late: &mut LatePublications<'_>) {}

    /// Returns how many finished records wait for a publication that is still to be made.
    fn held(&self) -> usize {
        0
    }

    /// Does what is due once a second. `now` is a time of this process.
    fn tick(&mut self, _now: Instant) {}

    /// Notes how many records of a partition are known of and not taken.
    fn lag(&mut self, _partition: Partition, _records: i64) {}

    /// Hands over what was counted since the last call.
    fn flush(&mut self) {}
}

/// The setup of a stage in a worker: its topics, and how the runtimes of its members are made.
pub struct StageSetup<R> {
    /// The stage's group, its input topic and its state topic.
    pub topics: Arc<StageTopics>,
    /// The topics that it publishes to.
    pub output: OutboxTopics,
    /// Makes the smaller form of what a topic does not take.
    pub reduce: Reduce,
    /// The version of the stage, as metrics show it.
    pub version: String,
    /// Makes the runtime of one more member.
    pub runtime: Box<dyn Fn() -> R + Send + Sync>,
}

impl<R> std::fmt::Debug for StageSetup<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageSetup").field("topics", &self.topics).field("version", &self.version).finish_non_exhaustive()
    }
}

/// The state of a stage runtime's stage.
pub type StateOf<R> = <<R as StageRuntime>::Stage as Stage>::State;
/// The limits of that state.
pub type LimitsOf<R> = <StateOf<R> as KeyedState>::Limits;

/// A finished record, with its outcome.
pub struct Done<'r, S: Stage> {
    /// The record.
    pub record: &'r Record<'r>,
    /// The outcome.
    pub outcome: S::Outcome,
    /// The bytes of the outcome.
    pub output: &'r S::Output,
    /// Returns the record's own headers byte for byte, readable or not.
    pub own_headers: &'r dyn Fn() -> OwnedHeaders,
}

impl<S: Stage> std::fmt::Debug for Done<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Done").field("partition", &self.record.partition).field("offset", &self.record.offset).finish_non_exhaustive()
    }
}

/// Identifies a request by the record that it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId {
    /// The record's partition.
    pub partition: Partition,
    /// The generation of the partition's assignment.
    pub generation: u64,
    /// The record's offset.
    pub offset: Offset,
}
