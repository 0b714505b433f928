//! One checkpoint, one transaction: the state's records and the group's offset, both or neither.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::kafka::{StageTopics, state_producer_config};
use crate::settings::KafkaSettings;
use tollgate_core::checkpoint::{Checkpoint, StateRecord};
use tollgate_core::record::Partition;

/// How long one step of a transaction may take before it is given up.
const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a step that may be repeated is.
const STEP_ATTEMPTS_MAX: u32 = 3;
/// How long to wait for an abort before what it throws away is taken note of.
const ABORT_POLL: Duration = Duration::from_millis(50);
/// How long to wait at a time for the producer to have news.
const WAIT: Duration = Duration::from_millis(1);

/// What stands beside an offset that was committed with state, so that a start without that state is noticed.
pub(super) const COMMIT_MARK: &str = "tollgate state";

/// A checkpoint to write, for a member of the group at its generation.
pub struct Job {
    /// What.
    pub checkpoint: Arc<Checkpoint>,
    /// For whom: the broker refuses a member that the group has moved on without.
    pub group: ConsumerGroupMetadata,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("next", &self.checkpoint.next).finish_non_exhaustive()
    }
}

/// What became of a checkpoint.
#[derive(Debug)]
pub enum Outcome {
    /// It is written, and its offset committed.
    Written,
    /// Nothing of it is. The next one may fare better.
    Refused(KafkaError),
    /// Nothing of it is, because the group has moved on: the member must hear from it before it can write.
    Outdated,
    /// Another member has taken the partition's state over. Nothing can be written any more by this producer.
    Fenced,
    /// Nothing can be written any more by this producer, and whether this one was is unknown: the state must be read again.
    Lost(KafkaError),
}

/// The writer of a partition's checkpoints.
pub(super) struct Transactions {
    producer: BaseProducer<Quiet>,
    topics: Arc<StageTopics>,
    partition: Partition,
}

impl Transactions {
    /// Returns a producer for a partition's state, not fenced in yet; it connects by itself.
    pub(super) fn new(kafka: &KafkaSettings, topics: &Arc<StageTopics>, partition: Partition, batch_bytes_max: u64) -> KafkaResult<Self> {
        let producer = state_producer_config(kafka, topics, partition, batch_bytes_max).create_with_context(Quiet)?;
        Ok(Self { producer, topics: Arc::clone(topics), partition })
    }

    /// Waits for a connection.
    pub(super) fn connect(&self) -> KafkaResult<()> {
        // librdkafka looks for a coordinator at once, and again half a second later if no broker but the bootstrap one was connected by
        // then. A question to the partition's leader connects one: 20 to 100 ms instead of 550.
        self.producer.client().fetch_watermarks(&self.topics.state, self.partition.0, STEP_TIMEOUT)?;
        Ok(())
    }

    /// Shuts every earlier owner of the partition's state out, and has what it left open aborted.
    pub(super) fn fence(&self) -> KafkaResult<()> {
        self.producer.init_transactions(STEP_TIMEOUT)
    }

    /// Writes a checkpoint.
    pub(super) fn write(&self, job: &Job) -> Outcome {
        let error = match self.try_write(job) {
            Ok(()) => match repeat(|| self.producer.commit_transaction(STEP_TIMEOUT)) {
                Ok(()) => return Outcome::Written,
                // It may have been committed all the same, unless the producer says that it must be aborted.
                Err(error) if !requires_abort(&error) => return self.lost(error),
                Err(error) => error,
            },
            Err(error) => error,
        };
        match self.abort() {
            Ok(()) if is_outdated(&error) => Outcome::Outdated,
            Ok(()) => Outcome::Refused(error),
            Err(_) => self.lost(error),
        }
    }

    /// Aborts the transaction. librdkafka waits until somebody has taken note of every record that it throws away, which is us.
    fn abort(&self) -> KafkaResult<()> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        loop {
            match self.producer.abort_transaction(ABORT_POLL) {
                Err(KafkaError::Transaction(error)) if error.is_retriable() && Instant::now() < deadline => self.wait(),
                done => return done,
            }
        }
    }

    /// What it means that nothing can be written any more. Whichever step failed, the producer knows whether it was fenced.
    fn lost(&self, error: KafkaError) -> Outcome {
        let fatal = self.producer.client().fatal_error().map(|(code, _)| code);
        let code = fatal.or(error.rdkafka_error_code());
        let is_fenced =
            matches!(code, Some(RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced | RDKafkaErrorCode::InvalidProducerEpoch));
        if is_fenced { Outcome::Fenced } else { Outcome::Lost(error) }
    }

    fn try_write(&self, job: &Job) -> KafkaResult<()> {
        self.producer.begin_transaction()?;
        for record in &job.checkpoint.records {
            self.send(record)?;
        }
        self.flush()?;
        let mut offsets = TopicPartitionList::with_capacity(1);
        let next = KafkaOffset::Offset(job.checkpoint.next.0);
        let mut element = offsets.add_partition(&self.topics.input, self.partition.0);
        element.set_offset(next)?;
        element.set_metadata(COMMIT_MARK);
        repeat(|| self.producer.send_offsets_to_transaction(&offsets, &job.group, STEP_TIMEOUT))
    }

    fn send(&self, record: &StateRecord) -> KafkaResult<()> {
        let topic = &self.topics.state;
        let mut unsent: BaseRecord<'_, str, [u8]> = BaseRecord::to(topic).partition(self.partition.0).key(&record.key);
        unsent.payload = record.value.as_deref();
        while let Err((error, refused)) = self.producer.send(unsent) {
            if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                return Err(error);
            }
            self.wait();
            unsent = refused;
        }
        Ok(())
    }

    /// Waits until the broker has everything. Committing would do that too, but rdkafka looks only ten times a second.
    fn flush(&self) -> KafkaResult<()> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        while self.producer.in_flight_count() > 0 {
            if Instant::now() >= deadline {
                return Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut));
            }
            self.wait();
        }
        Ok(())
    }

    /// Waits a little, and takes up what the producer has to report. rdkafka's own waiting would spin through a time as short as this one.
    fn wait(&self) {
        std::thread::sleep(WAIT);
        self.producer.poll(Duration::ZERO);
    }
}

/// Repeats a step while librdkafka says that it may be repeated; a step that timed out goes on where it was.
fn repeat(mut step: impl FnMut() -> KafkaResult<()>) -> KafkaResult<()> {
    let mut attempts = 1;
    loop {
        match step() {
            Err(KafkaError::Transaction(error)) if error.is_retriable() && attempts < STEP_ATTEMPTS_MAX => attempts += 1,
            done => return done,
        }
    }
}

fn requires_abort(error: &KafkaError) -> bool {
    matches!(error, KafkaError::Transaction(error) if error.txn_requires_abort())
}

/// Whether an error says that the group has moved on without the member, as far as it has told us who we are.
fn is_outdated(error: &KafkaError) -> bool {
    let KafkaError::Transaction(error) = error else { return false };
    matches!(error.code(), RDKafkaErrorCode::IllegalGeneration | RDKafkaErrorCode::UnknownMemberId | RDKafkaErrorCode::FencedInstanceId)
}

/// A producer whose failures show in the transaction.
#[derive(Debug, Clone, Copy)]
struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        // That a transaction fails is how partitions change hands, and what it means is said by whoever hears of it; that the brokers are
        // away is said by the member's own clients, once and not for every partition.
        crate::kafka::log(RDKafkaLogLevel::Debug, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "librdkafka", %error, reason, "state producer");
    }
}

impl ProducerContext for Quiet {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            tracing::debug!(%error, "a state record was not delivered");
        }
    }
}
