//! Transactions that write checkpoints: the records of the state and the group's offset are committed together or not at all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, DeliveryResult, Producer};

use crate::kafka::{Callbacks, Context, Deliveries, StageTopics, make_producer, state_producer_config};
use tollgate_config::settings::KafkaSettings;
use tollgate_core::engine::checkpoint::StateRecord;
use tollgate_core::event::record::Partition;

use super::offset_commit::{Job, OffsetCommit};
use super::state_producer::{STEP_TIMEOUT, flush_state, is_fenced, last_code, repeat_step, send_state, wait};

/// How long a takeover waits for a leader, and then for the coordinator, before it says so and tries again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const FENCE_TIMEOUT: Duration = Duration::from_secs(5);
/// From when on a step is logged as slow.
const SLOW: Duration = Duration::from_secs(2);
/// How long to wait for an abort before the reports of the discarded records are taken.
const ABORT_POLL: Duration = Duration::from_millis(50);

/// The outcome of a checkpoint.
#[derive(Debug)]
pub enum Outcome {
    /// The state is written, and the offset committed.
    Written,
    /// Nothing is written. The next checkpoint may succeed.
    Refused(KafkaError),
    /// Nothing is written, because of a rebalance: the member must learn of it from the group before it can write.
    Outdated,
    /// Nothing is written, because librdkafka hangs. This producer can write nothing any more; the next one aborts what it left open.
    Hung,
    /// Another member has taken the state over. This producer can write nothing any more.
    Fenced,
    /// This producer can write nothing any more, and it is unknown whether this checkpoint was written: the state must be read again.
    Lost(KafkaError),
}

/// The transactional producer of a partition's checkpoints.
pub(super) struct Transactions {
    producer: Arc<BaseProducer<Context<DebugLog>>>,
    offset_commit: OffsetCommit,
    topics: Arc<StageTopics>,
    partition: Partition,
}

impl Transactions {
    /// Returns a producer for a partition's state. It has not fenced anybody yet, and connects by itself.
    pub(super) fn new(kafka: &KafkaSettings, topics: &Arc<StageTopics>, partition: Partition, batch_bytes_max: u64) -> KafkaResult<Self> {
        let producer = Arc::new(make_producer(&state_producer_config(kafka, topics, partition, batch_bytes_max), Context(DebugLog))?);
        let offset_commit = OffsetCommit::start(Arc::clone(&producer), &topics.input, partition)?;
        Ok(Self { producer, offset_commit, topics: Arc::clone(topics), partition })
    }

    /// Waits until the producer is connected.
    pub(super) fn connect(&self) -> KafkaResult<()> {
        // librdkafka looks for a coordinator at once, and the next time half a second later if only the bootstrap broker was connected by
        // then. A request to the partition's leader connects another one: 20 to 100 ms instead of 550.
        self.producer.client().fetch_watermarks(&self.topics.state, self.partition.0, CONNECT_TIMEOUT)?;
        Ok(())
    }

    /// Fences every earlier owner of the partition's state, and aborts what it left open.
    pub(super) fn fence(&self) -> KafkaResult<()> {
        self.producer.init_transactions(FENCE_TIMEOUT)
    }

    /// Writes records of the state without an offset, in a transaction that is committed or aborted.
    pub(super) fn write_alone(&self, records: &[StateRecord], is_committed: bool) -> KafkaResult<()> {
        self.producer.begin_transaction()?;
        for record in records {
            send_state(&self.producer, &self.topics.state, self.partition, record)?;
        }
        flush_state(&self.producer, STEP_TIMEOUT)?;
        if is_committed { repeat_step(|| self.producer.commit_transaction(STEP_TIMEOUT)) } else { self.abort() }
    }

    /// Returns whether a step failed because another member has taken the state over.
    pub(super) fn is_fenced(&self, error: &KafkaError) -> bool {
        is_fenced(last_code(&self.producer, error))
    }

    /// Returns whether the producer can do nothing any more.
    pub(super) fn has_failed(&self) -> bool {
        self.producer.client().fatal_error().is_some()
    }

    /// Writes a checkpoint, and returns its outcome.
    pub(super) fn write(&self, job: &Arc<Job>) -> Outcome {
        let error = match self.try_write(job) {
            Ok(false) => return Outcome::Hung,
            Ok(true) => match self.step("committing", || repeat_step(|| self.producer.commit_transaction(STEP_TIMEOUT))) {
                Ok(()) => return Outcome::Written,
                // It may have been committed all the same, unless the producer requires an abort.
                Err(error) if !requires_abort(&error) => return self.lost(error),
                Err(error) => error,
            },
            Err(error) => error,
        };
        match self.step("aborting", || self.abort()) {
            Ok(()) if is_outdated(&error) => Outcome::Outdated,
            Ok(()) => Outcome::Refused(error),
            Err(_) => self.lost(error),
        }
    }

    /// Aborts the transaction. librdkafka waits until the reports of all discarded records are taken, which this does.
    fn abort(&self) -> KafkaResult<()> {
        let started = Instant::now();
        loop {
            match self.producer.abort_transaction(ABORT_POLL) {
                Err(KafkaError::Transaction(error)) if error.is_retriable() && started.elapsed() < STEP_TIMEOUT => {
                    wait(&self.producer, started)
                }
                done => return done,
            }
        }
    }

    /// Returns the outcome when nothing can be written any more. Whichever step failed, the producer knows whether it was fenced.
    fn lost(&self, error: KafkaError) -> Outcome {
        if self.is_fenced(&error) { Outcome::Fenced } else { Outcome::Lost(error) }
    }

    /// Does everything but the commit. Returns `false` if librdkafka hangs.
    fn try_write(&self, job: &Arc<Job>) -> KafkaResult<bool> {
        self.producer.begin_transaction()?;
        for record in &job.checkpoint.records {
            send_state(&self.producer, &self.topics.state, self.partition, record)?;
        }
        self.step("writing the records", || flush_state(&self.producer, STEP_TIMEOUT))?;
        let mut is_added = false;
        self.step("adding the offset", || {
            let answer = self.offset_commit.take(job);
            is_added = answer.is_some();
            answer.unwrap_or(Ok(()))
        })?;
        Ok(is_added)
    }

    /// Takes one step of a transaction, and logs it if it takes long: what the brokers were slow at is otherwise not to be seen.
    fn step(&self, doing: &'static str, step: impl FnOnce() -> KafkaResult<()>) -> KafkaResult<()> {
        let started = Instant::now();
        let done = step();
        let took = started.elapsed();
        if took >= SLOW {
            let (partition, seconds) = (self.partition, took.as_secs_f64());
            tracing::info!(%partition, doing, seconds, is_done = done.is_ok(), "a step of a checkpoint took long");
        }
        done
    }

    /// Serves the producer while there is nothing to write, so that it gets new tokens before it needs them.
    pub(super) fn serve(&self) {
        self.producer.poll(Duration::ZERO);
    }
}

fn requires_abort(error: &KafkaError) -> bool {
    matches!(error, KafkaError::Transaction(error) if error.txn_requires_abort())
}

/// Returns whether an error means that the group has rebalanced since the member last learned of it.
fn is_outdated(error: &KafkaError) -> bool {
    let KafkaError::Transaction(error) = error else { return false };
    matches!(error.code(), RDKafkaErrorCode::IllegalGeneration | RDKafkaErrorCode::UnknownMemberId | RDKafkaErrorCode::FencedInstanceId)
}

/// The callbacks of a producer whose failures the transaction returns anyway: they are logged at debug level only.
#[derive(Debug, Clone, Copy)]
struct DebugLog;

impl Callbacks for DebugLog {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        // Failed transactions are usual when partitions change hands, and the caller logs what they mean. The member's own clients log that
        // the brokers are away, once and not for every partition.
        crate::kafka::log(RDKafkaLogLevel::Debug, facility, message);
    }
}

impl Deliveries for DebugLog {
    type Tag = ();

    fn delivered(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            tracing::debug!(%error, "a state record was not delivered");
        }
    }
}
