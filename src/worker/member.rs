//! One group member: poll, decide, publish, have state written down, on one thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::consume::{Assignment, AssignmentParts, Failure, MemberContext, consumer_config, heartbeat_interval, own_headers, with_record};
use crate::health::{MemberPartitions, MemberPhase};
use crate::publish::Publisher;
use tollgate_core::record::Partition;

use super::WorkerParts;
use super::intake::Intake;

/// How long to wait for a record when nothing is in flight.
const IDLE_POLL: Duration = Duration::from_millis(100);
/// How long to wait for one while acknowledgements are awaited.
const BUSY_POLL: Duration = Duration::from_millis(1);
/// How long to serve the producer at a time while too many publications wait.
const WAITING_POLL: Duration = Duration::from_millis(10);
/// How long to wait for a record while a keeper may report that a partition's state is here.
const RESTORING_POLL: Duration = Duration::from_millis(5);
/// How often keepers are looked after.
const KEEP_INTERVAL: Duration = Duration::from_millis(10);
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
    /// A publication failed for good, or something else that forbids to commit.
    #[error(transparent)]
    Publish(#[from] Failure),
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

    /// Joins, works until told to stop, then drains, has the state written and leaves.
    ///
    /// # Errors
    /// [`MemberError`]; nothing is committed then that is not behind an acknowledged verdict.
    pub(super) fn run(&self) -> Result<(), MemberError> {
        let consumer = self.join()?;
        let limit = self.parts.settings.in_flight_max as usize;
        let mut intake = Intake::default();
        let beat_interval = heartbeat_interval(&self.parts.kafka);
        let (mut beat_due, mut keep_due, mut report_due) = (Instant::now(), Instant::now(), Instant::now());
        while !self.parts.stop.is_given() {
            self.parts.health.beat(self.number);
            let in_flight = self.load(&consumer);
            if intake.judge(&consumer, in_flight, limit).map_err(MemberError::Consumer)? {
                self.parts.metrics.backpressure.inc();
            }
            if !intake.is_waiting() {
                self.take_records(&consumer, in_flight)?;
            }
            consumer.context().assignment().settle(if intake.is_waiting() { WAITING_POLL } else { Duration::ZERO });
            self.check_failure(&consumer)?;
            let now = Instant::now();
            if now >= beat_due {
                beat_due = now + beat_interval;
                // librdkafka's main thread, which sends heartbeats and hears of rebalances with the answers, looks once a second at worst
                // whether one is due, unless somebody asks it something.
                let _asked = consumer.group_metadata();
            }
            if now >= keep_due {
                keep_due = now + KEEP_INTERVAL;
                consumer.context().assignment().keep(&|| consumer.group_metadata());
                let flows = consumer.context().assignment().hear_keepers();
                intake.turn(&consumer, flows).map_err(MemberError::Consumer)?;
            }
            if now >= report_due {
                report_due = now + REPORT_INTERVAL;
                consumer.context().assignment().report(&self.number.to_string());
                consumer.context().show_partitions();
            }
        }
        self.leave(&consumer)
    }

    /// How many publications and events are in flight; as many as may be, if those that wait hold too many bytes.
    fn load(&self, consumer: &BaseConsumer<MemberContext>) -> usize {
        let (assignment, settings) = (consumer.context().assignment(), &self.parts.settings);
        let is_full = assignment.waiting_bytes() >= settings.waiting_bytes_max as usize;
        let in_flight = assignment.in_flight();
        if is_full { in_flight.max(settings.in_flight_max as usize) } else { in_flight }
    }

    fn join(&self) -> Result<BaseConsumer<MemberContext>, MemberError> {
        let parts = &self.parts;
        let publisher = Publisher::new(&parts.kafka, parts.topics.batch_bytes_max).map_err(MemberError::Client)?;
        let assignment = AssignmentParts {
            policy: Arc::clone(&parts.policy),
            deciding: parts.deciding,
            kafka: Arc::clone(&parts.kafka),
            partitions: parts.topics.partitions,
            state_batch_bytes_max: parts.topics.state_batch_bytes_max,
            checkpoint_interval: match parts.membership {
                Membership::Group => Some(Duration::from_millis(parts.settings.checkpoint_interval_ms.into())),
                Membership::Alone => None,
            },
            // The group tells a member that it has lost a partition with the answer to its next heartbeat.
            fenced_pause: heartbeat_interval(&parts.kafka) * 2,
            remotes: parts.remotes.clone(),
            metrics: parts.metrics.clone(),
        };
        let context = MemberContext {
            member: self.number,
            assignment: Mutex::new(Assignment::new(assignment, publisher)),
            topic: parts.kafka.topics.events.clone(),
            drain_timeout: Duration::from_millis(parts.settings.drain_timeout_ms.into()),
            health: Arc::clone(&parts.health),
            metrics: parts.metrics.clone(),
            is_leaving: AtomicBool::new(false),
        };
        let instance_id = parts.settings.instance_id.as_ref().map(|id| format!("{id}-{}", self.number));
        let config = consumer_config(&parts.kafka, instance_id.as_deref());
        let consumer: BaseConsumer<MemberContext> = config.create_with_context(context).map_err(MemberError::Client)?;
        parts.health.set(self.number, MemberPhase::Starting, MemberPartitions::default());
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
    fn take_records(&self, consumer: &BaseConsumer<MemberContext>, in_flight: usize) -> Result<(), MemberError> {
        let mut timeout = match in_flight {
            0 if consumer.context().assignment().is_restoring() => RESTORING_POLL,
            0 => IDLE_POLL,
            _ => BUSY_POLL,
        };
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

    fn check_failure(&self, consumer: &BaseConsumer<MemberContext>) -> Result<(), MemberError> {
        let mut assignment = consumer.context().assignment();
        let Some(failure) = assignment.failure().cloned() else { return Ok(()) };
        assignment.report(&self.number.to_string());
        Err(failure.into())
    }

    /// Drains what is in flight and has the state written, within the drain timeout; leaving the group happens when the consumer is
    /// dropped.
    fn leave(&self, consumer: &BaseConsumer<MemberContext>) -> Result<(), MemberError> {
        let context = consumer.context();
        context.show(MemberPhase::Draining);
        let held = context.assignment().partitions();
        if !context.assignment().finish(&held, &|| consumer.group_metadata(), context.drain_timeout) {
            tracing::warn!(
                member = self.number,
                "stopped with verdicts unacknowledged or state unwritten: their records will be decided again"
            );
        }
        context.is_leaving.store(true, Ordering::Relaxed);
        context.assignment().report(&self.number.to_string());
        tracing::info!(member = self.number, "drained, leaving");
        self.check_failure(consumer)
    }
}

fn take(consumer: &BaseConsumer<MemberContext>, message: &BorrowedMessage<'_>) {
    let mut assignment = consumer.context().assignment();
    with_record(message, |record, rejection| assignment.apply(record, rejection, || own_headers(message)));
}
