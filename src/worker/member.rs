//! One group member: poll, decide, publish, commit, on one thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::consume::{
    Assignment, AssignmentParts, CommitGate, Committer, MemberContext, PublishFailure, consumer_config, own_headers, with_record,
};
use crate::decode::Partition;
use crate::health::MemberPhase;
use crate::publish::Publisher;

use super::WorkerParts;

/// How long to wait for a record when nothing is in flight.
const IDLE_POLL: Duration = Duration::from_millis(100);
/// How long to wait for one while acknowledgements are awaited.
const BUSY_POLL: Duration = Duration::from_millis(1);
/// How long to serve the producer at a time while too many publications wait.
const WAITING_POLL: Duration = Duration::from_millis(10);
/// How long to wait for them before the partitions are paused.
const PAUSE_AFTER: Duration = Duration::from_secs(10);
/// Records taken between two looks at everything else.
const RECORDS_PER_ROUND: usize = 256;
/// How often gauges are set and counts handed over.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// How a member comes to its partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// By the consumer group.
    Group,
    /// It takes all of them from the beginning: the embedded broker makes a group's first member wait three seconds.
    Alone,
}

/// Why a member could not go on. It starts over from the committed offsets.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// A client could not be made: a property is wrong.
    #[error("kafka.properties: {0}")]
    Client(KafkaError),
    /// The consumer is fenced or otherwise beyond repair.
    #[error("the consumer failed: {0}")]
    Consumer(KafkaError),
    /// A publication failed for good.
    #[error(transparent)]
    Publish(#[from] PublishFailure),
    /// The system gives no more threads.
    #[error("no thread to commit on: {0}")]
    Thread(std::io::Error),
    /// A fault of ours, or of a library; the panic itself stands in the log.
    #[error("the member panicked")]
    Panicked,
}

/// See the module.
#[derive(Debug)]
pub struct Member {
    number: usize,
    parts: WorkerParts,
}

impl Member {
    pub(super) fn new(number: usize, parts: WorkerParts) -> Self {
        Self { number, parts }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn parts(&self) -> &WorkerParts {
        &self.parts
    }

    /// Joins, works until told to stop, then drains, commits and leaves.
    ///
    /// # Errors
    /// [`MemberError`]; nothing is committed then that is not behind an acknowledged verdict.
    pub(super) fn run(&self) -> Result<(), MemberError> {
        let consumer = Arc::new(self.join()?);
        let committer = Committer::start(Arc::clone(&consumer)).map_err(MemberError::Thread)?;
        let mut round = Round { commit_due: Instant::now(), report_due: Instant::now(), intake: Intake::Open };
        while !self.parts.stop.is_given() {
            self.parts.health.beat(self.number);
            round.intake = self.judge_intake(&consumer, round.intake).map_err(MemberError::Consumer)?;
            let is_waiting = matches!(round.intake, Intake::Waiting { .. });
            if !is_waiting {
                self.take_records(&consumer)?;
            }
            consumer.context().assignment().settle(if is_waiting { WAITING_POLL } else { Duration::ZERO });
            self.check_failure(&consumer)?;
            self.commit_and_report(&consumer, &committer, &mut round);
        }
        self.leave(&consumer, committer)
    }

    fn join(&self) -> Result<BaseConsumer<MemberContext>, MemberError> {
        let parts = &self.parts;
        let publisher = Publisher::new(&parts.kafka, parts.topics.batch_bytes_max).map_err(MemberError::Client)?;
        let assignment = AssignmentParts {
            policy: Arc::clone(&parts.policy),
            kafka: Arc::clone(&parts.kafka),
            partitions: parts.topics.partitions,
            metrics: parts.metrics.clone(),
        };
        let context = MemberContext {
            member: self.number,
            assignment: Mutex::new(Assignment::new(assignment, publisher)),
            topic: parts.kafka.topics.events.clone(),
            drain_timeout: Duration::from_millis(parts.settings.drain_timeout_ms.into()),
            health: Arc::clone(&parts.health),
            metrics: parts.metrics.clone(),
            commits: CommitGate::default(),
            is_leaving: AtomicBool::new(false),
        };
        let instance_id = parts.settings.instance_id.as_ref().map(|id| format!("{id}-{}", self.number));
        let config = consumer_config(&parts.kafka, instance_id.as_deref());
        let consumer: BaseConsumer<MemberContext> = config.create_with_context(context).map_err(MemberError::Client)?;
        parts.health.set(self.number, MemberPhase::Starting, Vec::new());
        match parts.membership {
            Membership::Group => consumer.subscribe(&[&parts.kafka.topics.events]),
            Membership::Alone => self.assign_all(&consumer),
        }
        .map_err(MemberError::Consumer)?;
        Ok(consumer)
    }

    fn assign_all(&self, consumer: &BaseConsumer<MemberContext>) -> KafkaResult<()> {
        let partitions: Vec<_> = (0..self.parts.topics.partitions).filter_map(|number| i32::try_from(number).ok()).map(Partition).collect();
        let mut list = TopicPartitionList::new();
        for partition in &partitions {
            list.add_partition_offset(&self.parts.kafka.topics.events, partition.0, KafkaOffset::Beginning)?;
        }
        consumer.context().assigned(&partitions);
        consumer.assign(&list)
    }

    /// Takes up to a round of records; waits for the first one only.
    fn take_records(&self, consumer: &BaseConsumer<MemberContext>) -> Result<(), MemberError> {
        let is_busy = consumer.context().assignment().in_flight() > 0;
        let mut timeout = if is_busy { BUSY_POLL } else { IDLE_POLL };
        for _ in 0..RECORDS_PER_ROUND {
            match consumer.poll(timeout) {
                Some(Ok(message)) => take(consumer, &message),
                Some(Err(error)) => self.judge(error)?,
                None => break,
            }
            timeout = Duration::ZERO;
        }
        Ok(())
    }

    /// Tells errors that pass from those that do not.
    fn judge(&self, error: KafkaError) -> Result<(), MemberError> {
        match error {
            KafkaError::MessageConsumptionFatal(_) => Err(MemberError::Consumer(error)),
            KafkaError::PartitionEOF(_) => Ok(()),
            KafkaError::MessageConsumption(code) => {
                let is_down = matches!(code, RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::AllBrokersDown);
                if is_down {
                    tracing::debug!(member = self.number, %code, "the brokers cannot be reached");
                } else {
                    tracing::warn!(member = self.number, %code, "consumer");
                }
                Ok(())
            }
            other => {
                tracing::warn!(member = self.number, error = %other, "consumer");
                Ok(())
            }
        }
    }

    /// Decides whether records are taken while publications wait. Too many of them are waited for without touching the consumer, whose
    /// prefetched records would be thrown away by a pause; only if that takes long, partitions are paused, so that the consumer can be
    /// polled and the group does not take the member for dead.
    fn judge_intake(&self, consumer: &BaseConsumer<MemberContext>, intake: Intake) -> KafkaResult<Intake> {
        let limit = self.parts.settings.in_flight_max as usize;
        let in_flight = consumer.context().assignment().in_flight();
        match intake {
            Intake::Open if in_flight >= limit => {
                self.parts.metrics.backpressure.inc();
                Ok(Intake::Waiting { since: Instant::now() })
            }
            Intake::Waiting { .. } if in_flight < limit => Ok(Intake::Open),
            Intake::Waiting { since } if since.elapsed() > PAUSE_AFTER => {
                tracing::warn!(member = self.number, in_flight, "publications are not acknowledged; no records are taken until they are");
                consumer.pause(&consumer.assignment()?)?;
                Ok(Intake::Paused)
            }
            Intake::Paused if in_flight <= limit / 2 => {
                consumer.resume(&consumer.assignment()?)?;
                Ok(Intake::Open)
            }
            Intake::Paused => {
                // Partitions that were assigned meanwhile are not paused yet.
                consumer.pause(&consumer.assignment()?)?;
                Ok(Intake::Paused)
            }
            unchanged => Ok(unchanged),
        }
    }

    fn check_failure(&self, consumer: &BaseConsumer<MemberContext>) -> Result<(), MemberError> {
        let mut assignment = consumer.context().assignment();
        let Some(failure) = assignment.failure().cloned() else { return Ok(()) };
        assignment.report(&self.number.to_string());
        Err(failure.into())
    }

    fn commit_and_report(&self, consumer: &BaseConsumer<MemberContext>, committer: &Committer, round: &mut Round) {
        let now = Instant::now();
        if now >= round.commit_due {
            round.commit_due = now + Duration::from_millis(self.parts.settings.commit_interval_ms.into());
            committer.commit(consumer.context());
        }
        if now >= round.report_due {
            round.report_due = now + REPORT_INTERVAL;
            consumer.context().assignment().report(&self.number.to_string());
        }
    }

    /// Drains what is in flight and commits it, within the drain timeout; leaving the group happens when the consumer is dropped.
    fn leave(&self, consumer: &BaseConsumer<MemberContext>, committer: Committer) -> Result<(), MemberError> {
        let context = consumer.context();
        let deadline = Instant::now() + context.drain_timeout;
        context.show(MemberPhase::Draining);
        let held = context.assignment().partitions();
        if !context.assignment().drain(&held, context.drain_timeout) {
            tracing::warn!(member = self.number, "stopped with verdicts unacknowledged: their records will be decided again");
        }
        if !committer.finish(context, deadline.saturating_duration_since(Instant::now())) {
            tracing::warn!(member = self.number, "stopped with offsets uncommitted: their records will be decided again");
        }
        context.is_leaving.store(true, Ordering::Relaxed);
        context.assignment().report(&self.number.to_string());
        tracing::info!(member = self.number, "drained, leaving");
        self.check_failure(consumer)
    }
}

/// What the loop remembers from round to round.
#[derive(Debug)]
struct Round {
    commit_due: Instant,
    report_due: Instant,
    intake: Intake,
}

/// Whether records are taken.
#[derive(Debug, Clone, Copy)]
enum Intake {
    /// They are.
    Open,
    /// Too many publications wait.
    Waiting { since: Instant },
    /// They have waited for so long that the partitions are paused.
    Paused,
}

fn take(consumer: &BaseConsumer<MemberContext>, message: &BorrowedMessage<'_>) {
    let mut assignment = consumer.context().assignment();
    with_record(message, |record, rejection| assignment.apply(record, rejection, || own_headers(message)));
}
