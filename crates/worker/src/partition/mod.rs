//! One partition that a member holds, with its processor and the phase of its state.
//!
//! ```text
//! assigned ─▶ restoring ─▶ ready ─▶ running ─▶ draining ─▶ revoked
//!                 ▲           │        │           │
//!                 └── lost ◀──┴────────┴───────────┘
//! ```
//!
//! Every partition has a checkpoint writer: a thread with its own transactional producer, whose transactional id is the partition's. A
//! member that takes a partition over initialises that id first. From then on no earlier owner can commit anything, neither state nor
//! offset, even if its checkpoint was already frozen. What an earlier owner left open is aborted, so that nobody waits for its timeout.
//! Publications are not part of the transaction. A fenced member can still publish some, which does no harm: they are the same bytes as the
//! new owner's.
//!
//! | module | what it does |
//! |---|---|
//! | `phase` | the phases and what leads from one to the next, without I/O |
//! | `writer` | the thread that takes the state over, and then writes checkpoints |
//! | `retry` | trying again what fails, and an end when nobody wants it any more |
//! | `reports` | what checkpoint writers report |
//! | `restore` | fences the last owner, reads the state to its end, and checks that it fits the committed offset |
//! | `restore_clients` | the Kafka clients of a takeover |
//! | `readers` | the readers among them, which takeovers share |
//! | `restore_error` | why a restore failed |
//! | `reading` | reading a partition to its end |
//! | `lost_transaction_ends` | what to do where the brokers have lost the mark that ends a transaction |
//! | `own_records` | for how many partitions the state of all partitions is keyed |
//! | `progress` | how far a restore has come |
//! | `state_producer` | what writing state in transactions has in common, here and in `state rekey` |
//! | `transaction` | one checkpoint: state and offset, both or neither |
//! | `offset_commit` | the step of it that librdkafka may hang in |

mod lost_transaction_ends;
mod offset_commit;
mod own_records;
mod phase;
mod progress;
mod readers;
mod reading;
mod reports;
mod restore;
mod restore_clients;
mod restore_error;
mod retry;
mod state_producer;
mod transaction;
mod writer;

pub use offset_commit::Job;
pub use own_records::read_own_records;
pub use phase::{ActivePartition, Effect, Phase, Retry};
pub use readers::SharedReaders;
pub use reading::{ends, read_messages, read_to_end};
pub use reports::{Report, WriterReport};
pub use restore::Takeover;
pub use restore_error::RestoreError;
pub use retry::{Failures, Owner, Wanted};
pub use state_producer::{flush_state, is_fenced, last_code, repeat_step, send_state};
pub use writer::{CheckpointWriter, WriterParts};

use std::time::{Duration, Instant};

use rdkafka::consumer::ConsumerGroupMetadata;
use tollgate_core::engine::checkpoint::{KeyedState, Restored, StateOwner};
use tollgate_core::engine::processor::{AppliedBy, PartitionProcessor, ResumedBy, TrackerError};
use tollgate_core::engine::stage::{Stage, Waiting};
use tollgate_core::event::decode::Rejection;
use tollgate_core::event::record::{Departures, Offset, Partition, Record};

use crate::metrics::{Metrics, PartitionMetrics};

/// Returns the member's current metadata in its group, or `None` if the consumer has none.
pub type GroupMetadata<'c> = &'c dyn Fn() -> Option<ConsumerGroupMetadata>;

/// How long to leave a lost state alone before it is read again.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    /// The pause after another member has taken the state over.
    pub fenced: Duration,
    /// The pause if it is uncertain what was written.
    pub lost: Duration,
}

/// The phase of a partition whose processor runs a stage.
pub type PartitionPhase<S> = Phase<CheckpointWriter, PartitionProcessor<S>>;

/// One partition of a member.
pub struct AssignedPartition<S: Stage> {
    partition: Partition,
    /// The generation of this assignment of the partition. What belongs to an earlier one is ignored.
    generation: u64,
    phase: PartitionPhase<S>,
    /// The time of the last record.
    last_record_ms: Option<i64>,
    /// The departures from the state that are counted already.
    counted: Departures,
    /// The partition's metric series, which are removed with it.
    gauges: PartitionMetrics,
}

impl<S: Stage> std::fmt::Debug for AssignedPartition<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AssignedPartition")
            .field("partition", &self.partition)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

impl<S: Stage> AssignedPartition<S> {
    /// Returns a partition in a phase, of which no record has come yet.
    #[must_use]
    pub fn new(partition: Partition, generation: u64, phase: PartitionPhase<S>, metrics: &Metrics) -> Self {
        let gauges = metrics.partition(partition);
        Self { partition, generation, phase, last_record_ms: None, counted: Departures::default(), gauges }
    }

    /// Returns the generation of this assignment of the partition.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the stage while the partition is at work, for what goes on beside its records.
    pub fn stage_mut(&mut self) -> Option<&mut S> {
        self.phase.active_mut().map(|work| work.processor.stage_mut())
    }

    /// Returns the phase.
    #[must_use]
    pub fn phase(&self) -> &PartitionPhase<S> {
        &self.phase
    }

    /// Takes a record, with the rejection if its headers cannot be read. Returns `None` if records are not taken in this phase.
    ///
    /// # Errors
    /// Returns [`TrackerError`] if it comes out of order: nothing may be committed after that.
    pub fn apply(
        &mut self,
        record: &Record<'_>,
        rejection: Option<Rejection>,
        out: &mut S::Output,
    ) -> Result<Option<AppliedBy<S>>, TrackerError> {
        let Some(work) = self.phase.running_mut() else { return Ok(None) };
        self.last_record_ms = record.timestamp_ms;
        match rejection {
            None => work.processor.apply(record, out).map(Some),
            Some(rejection) => work.processor.reject(record, rejection, out).map(Some),
        }
    }

    /// Records how many acknowledgements a finished record waits for.
    ///
    /// # Errors
    /// Returns [`TrackerError`] if the record was not just applied or resumed.
    pub fn published(&mut self, offset: Offset, due: u32) -> Result<(), TrackerError> {
        self.phase.active_mut().map_or(Ok(()), |work| work.processor.published(offset, due))
    }

    /// Records one acknowledgement.
    ///
    /// # Errors
    /// Returns [`TrackerError`] if that record waits for none.
    pub fn acknowledge(&mut self, offset: Offset) -> Result<(), TrackerError> {
        self.phase.active_mut().map_or(Ok(()), |work| work.processor.acknowledge(offset))
    }

    /// Takes the response to the request that was made for the record at an offset.
    pub fn answer(&mut self, offset: Offset, response: S::Response) {
        if let Some(work) = self.phase.active_mut() {
            work.processor.answer(offset, response);
        }
    }

    /// Returns the next record that waited and can go on, with what it has become; `None` if there is none.
    pub fn resume(&mut self, out: &mut S::Output) -> Option<ResumedBy<S>> {
        self.phase.active_mut()?.processor.resume(out)
    }

    /// Returns how many records wait for responses, and their bytes.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        self.phase.active().map_or_else(Waiting::default, |work| work.processor.stage().waiting())
    }

    /// Sets the lag and returns it, in records. `end` is the offset behind the partition's last record, `start` the one to read from if no
    /// record has come yet.
    pub fn show_lag(&self, end: Offset, start: Offset, now_ms: i64) -> i64 {
        // librdkafka does not know offsets that are committed in transactions; the processor does.
        let next = self.phase.active().map_or(start, |work| work.processor.next().max(start));
        let records = (end.0 - next.0).max(0);
        let age_ms = self.last_record_ms.filter(|_| records > 0).map_or(0, |record_ms| (now_ms - record_ms).max(0));
        self.gauges.lag_records.set(records);
        self.gauges.lag_seconds.set(age_ms / 1_000);
        records
    }

    /// Shows no lag: it is unknown.
    pub fn hide_lag(&mut self) {
        self.gauges.lag_records.hide();
        self.gauges.lag_seconds.hide();
    }

    /// Takes a report of the checkpoint writer, and returns what has to be done because of it. `stage` makes a stage, with the restored
    /// state if there is any.
    pub fn take_report(&mut self, report: Report<S::State>, pauses: Pauses, stage: impl FnOnce(Option<S::State>) -> S) -> Effect {
        let now = Instant::now();
        match report {
            Report::Restored(takeover) => {
                let Takeover { restored, start, default_start, .. } = *takeover;
                let processor = match restored {
                    Some(Restored { next, state }) => PartitionProcessor::restored(self.partition, stage(Some(state)), next),
                    None => PartitionProcessor::new(self.partition, stage(None)),
                };
                self.phase.restored(processor, start, default_start)
            }
            Report::RestoreFailed(error) => {
                let partition = self.partition;
                // It is no fault of the state if Kafka is away, and the clients log it; state that does not fit needs somebody to look.
                match error.reason() {
                    "kafka" => tracing::warn!(%partition, %error, "the state could not be read; trying again"),
                    // The checkpoint writer has reported it, once for all partitions.
                    "forbidden" => tracing::debug!(%partition, %error, "the state could not be read for want of a right; trying again"),
                    _ => tracing::error!(%partition, %error, "the state could not be read, and its events are not decided until it can be"),
                }
                self.phase.restore_failed()
            }
            Report::Written => {
                self.end_checkpoint(PartitionProcessor::checkpoint_written);
                self.phase.checkpoint_written()
            }
            Report::Refused => {
                self.end_checkpoint(PartitionProcessor::checkpoint_refused);
                Effect::None
            }
            Report::Outdated => {
                self.end_checkpoint(PartitionProcessor::checkpoint_refused);
                self.phase.outdated()
            }
            // Whoever fenced us is the owner now, and the group is about to say so. If it does not, the other member was late and not we.
            Report::Fenced => self.phase.lose(now, pauses.fenced),
            Report::Lost => self.phase.lose(now, pauses.lost),
        }
    }

    fn end_checkpoint(&mut self, end: impl FnOnce(&mut PartitionProcessor<S>)) {
        if let Some(work) = self.phase.active_mut() {
            end(&mut work.processor);
        }
    }

    /// Begins a new generation, because the state is lost. What is still on its way for the one before is ignored.
    pub fn begin_generation(&mut self, generation: u64) {
        (self.generation, self.counted) = (generation, Departures::default());
    }

    /// Returns whether a lost state is to be read again now.
    #[must_use]
    pub fn is_restore_due(&self) -> bool {
        self.phase.is_restore_due(Instant::now())
    }

    /// Starts to read a lost state again, with this writer.
    pub fn restore_with(&mut self, writer: CheckpointWriter) {
        self.phase.restore_with(writer);
    }

    /// Notes that the consumer has resumed the partition. The first checkpoint is due after `delay`.
    pub fn resumed(&mut self, delay: Duration) {
        self.phase.resumed(Instant::now() + delay);
    }

    /// Starts to drain: no more records are taken, and the state is written as soon as possible.
    pub fn drain(&mut self) {
        self.phase.drain();
    }

    /// Freezes a checkpoint if one is due, and has the frozen one written if all its records are acknowledged.
    pub fn checkpoint(&mut self, interval: Duration, owner: StateOwner<'_>, group_metadata: GroupMetadata<'_>) {
        let Some(work) = self.phase.active_mut().filter(|work| work.writer().is_some()) else { return };
        if !work.processor.is_checkpointing() && work.is_checkpoint_due(Instant::now(), interval) {
            work.processor.freeze(owner);
        }
        let Some(checkpoint) = work.processor.take_checkpoint() else { return };
        match (group_metadata(), work.writer()) {
            (Some(group), Some(writer)) => writer.write(Job { checkpoint, group }),
            _ => work.processor.checkpoint_refused(),
        }
    }

    /// Returns whether everything that was applied is acknowledged and, if there is a checkpoint writer, written.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.undone() == (0, false)
    }

    /// Returns what the partition has yet to do before it is drained: publications without an acknowledgement, and whether its state is still
    /// to be written.
    #[must_use]
    pub fn undone(&self) -> (usize, bool) {
        self.phase.active().map_or((0, false), |work| {
            (work.processor.in_flight(), work.writer().is_some() && (work.processor.is_behind() || work.processor.is_checkpointing()))
        })
    }

    /// Sets the partition's gauges, and counts the threads that have left its state.
    pub fn report(&mut self, metrics: &Metrics) {
        let Some(state) = self.phase.active().map(|work| work.processor.stage().state()) else { return };
        self.gauges.live_threads.set(i64::try_from(state.len()).unwrap_or(i64::MAX));
        self.gauges.state_bytes.set(i64::try_from(state.bytes()).unwrap_or(i64::MAX));
        let now = state.departures();
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
