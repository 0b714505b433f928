//! One group member: on one thread, it polls records and drives its partitions.
//!
//! ```text
//! poll ─▶ record ─▶ its partition ─▶ outcome ─▶ outbox ─▶ acknowledged ─▶ committable ─▶ checkpoint
//!   ▲                                                                                      │
//!   └── pause, resume (flow control) ◀───────────────────────────── restored, lost ◀───────┘
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | `assignment` | the partitions, the stage that runs on them, and the outbox that they share |
//! | `state` | what the checkpoint writers report, when they write, and how partitions are drained |
//! | `checkpointing` | what the writers of checkpoints share |
//! | `failure` | why a member starts over |
//! | `flow_control` | which partitions are paused |
//! | `misplaced` | warns of records on other partitions than their keys hash to |
//! | `callbacks` | assignment, revocation and statistics, inside the member's own poll |
//! | `error` | why a member starts over |
//! | `loss` | a member that has lost its partitions and does not come back |
//! | `turns` | how long costly events of a partition are decided before the others have their turn |

mod assignment;
mod callbacks;
mod checkpointing;
mod error;
mod failure;
mod flow_control;
mod loss;
mod misplaced;
mod refused;
mod state;
mod turns;

pub use error::MemberError;
pub use failure::Failure;
pub use misplaced::MisplacedRecords;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message as _};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use tollgate_core::event::record::Partition;

use crate::health::{Health, MemberId, MemberPartitions, MemberPhase};
use crate::kafka::{
    Closing, Context, GroupConsumer, Right, StageTopics, StaticMember, consumer_config, heartbeat_interval, own_headers, with_record,
};
use crate::metrics::{MemberMetrics, Metrics};
use crate::outbox::{Outbox, Producers, Refusal};
use crate::peers::{Committers, instance_id};
use crate::stages::{StageRuntime, StageSetup};
use crate::stop::Stop;
use tollgate_config::settings::{KafkaSettings, WorkerSettings};

use assignment::Assignment;
use callbacks::{MemberCallbacks, MemberContext};
use checkpointing::Checkpointing;
use flow_control::FlowControl;
use loss::Loss;
use refused::Refused;
use turns::Turns;

/// How long to wait for a record when nothing is in flight.
const IDLE_POLL: Duration = Duration::from_millis(100);
/// How long to wait for a record while acknowledgements are awaited.
const BUSY_POLL: Duration = Duration::from_millis(1);
/// How long to serve the producer at a time while too many publications wait.
const WAITING_POLL: Duration = Duration::from_millis(10);
/// How long to wait for a record while a checkpoint writer may report a restored state.
const RESTORING_POLL: Duration = Duration::from_millis(5);
/// How often the checkpoint writers are served, and what goes on beside the records.
const CHECKPOINT_POLL: Duration = Duration::from_millis(10);
/// How many records are taken at most before everything else is served.
const RECORDS_PER_ROUND: usize = 256;
/// How often gauges are set and local counts are handed over.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// How a member gets its partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// The consumer group assigns them.
    Group,
    /// It takes all of them from the beginning. On the embedded broker a group's first member would have to wait for three seconds.
    Alone,
}

/// What every member of a worker shares.
#[derive(Debug, Clone)]
pub struct MemberParts {
    /// Brokers and their properties.
    pub kafka: Arc<KafkaSettings>,
    /// The stage's group, its input topic and its state topic.
    pub topics: Arc<StageTopics>,
    /// The settings of the members.
    pub settings: WorkerSettings,
    /// How members get their partitions.
    pub membership: Membership,
    /// How many partitions the input topic has.
    pub partition_count: u32,
    /// The largest batch that every topic takes that we publish to, in bytes.
    pub batch_bytes_max: u64,
    /// The largest batch that the state topic takes, in bytes.
    pub state_batch_bytes_max: u64,
    /// The interval between checkpoints; `None` holds the state in memory only.
    pub checkpoint_interval: Option<Duration>,
    /// The metrics to count in.
    pub metrics: Metrics,
    /// The misplaced records of the process.
    pub misplaced: Arc<MisplacedRecords>,
    /// The health report that shows the members.
    pub health: Arc<Health>,
    /// The name of the worker, to which its members add their numbers as instance ids; `None` where the group knows them without names.
    pub worker: Option<String>,
    /// The members in whose name the worker's beat is written.
    pub committers: Committers,
    /// The sign to stop.
    pub stop: Stop,
}

impl MemberParts {
    /// Returns how often a member sends the group a heartbeat.
    fn heartbeat_interval(&self) -> Duration {
        heartbeat_interval(&self.kafka)
    }
}

/// A group member, with its number in the process.
#[derive(Debug)]
pub struct Member<R> {
    id: MemberId,
    parts: MemberParts,
    stage: Arc<StageSetup<R>>,
    refused: Refused,
    /// Keeps the member's metric series while it starts over: they are dropped with their last holder.
    _series: MemberMetrics,
}

impl<R: StageRuntime> Member<R> {
    /// Returns a member that has not joined yet.
    #[must_use]
    pub fn new(number: usize, parts: MemberParts, stage: Arc<StageSetup<R>>) -> Self {
        let (series, id) = (parts.metrics.member(number), MemberId { stage: parts.topics.stage, number });
        Self { id, parts, stage, refused: Refused::default(), _series: series }
    }

    /// Returns the member's stage and number.
    #[must_use]
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// Returns what the member shares with the others.
    #[must_use]
    pub fn parts(&self) -> &MemberParts {
        &self.parts
    }

    /// Joins and works until the sign to stop, then drains, has the state written and leaves.
    ///
    /// # Errors
    /// Returns [`MemberError`]. Then too, nothing is committed without an acknowledged verdict.
    pub fn run(&self) -> Result<(), MemberError> {
        let joined = self.join()?;
        let consumer = &*joined.consumer;
        let committing = Arc::clone(&joined.consumer);
        let _committing = self.parts.committers.add(self.id.number, move |list| committing.commit(list, CommitMode::Async));
        let limit = self.parts.settings.in_flight_max as usize;
        let mut flow = FlowControl::default();
        let beat_interval = self.parts.heartbeat_interval();
        let (mut beat_due, mut checkpoint_due, mut report_due) = (Instant::now(), Instant::now(), Instant::now());
        while !self.parts.stop.is_given() {
            self.parts.health.beat(self.id);
            fail::fail_point!("member");
            let in_flight = self.load(consumer);
            if flow.update(consumer, in_flight, limit).map_err(MemberError::Consumer)? {
                self.parts.metrics.backpressure.inc();
            }
            if !flow.is_waiting() {
                self.take_records(consumer, in_flight, &mut flow)?;
            }
            consumer.context().assignment().settle(if flow.is_waiting() { WAITING_POLL } else { Duration::ZERO });
            self.check_failure(consumer)?;
            let now = Instant::now();
            consumer.context().loss.check(now, self.parts.health.is_cut_off(self.id.stage))?;
            if now >= beat_due {
                beat_due = now + beat_interval;
                // librdkafka's main thread sends heartbeats and learns of rebalances from their answers. It may check only once a second
                // whether one is due, unless it gets a request.
                let _asked = consumer.group_metadata();
            }
            if now >= checkpoint_due {
                checkpoint_due = now + CHECKPOINT_POLL;
                consumer.context().assignment().beside_records();
                consumer.context().assignment().checkpoint(&|| consumer.group_metadata());
                let changes = consumer.context().assignment().take_writer_reports();
                flow.apply(consumer, changes).map_err(MemberError::Consumer)?;
            }
            if now >= report_due {
                report_due = now + REPORT_INTERVAL;
                self.report_mended(consumer);
                consumer.context().assignment().tick(now);
                consumer.context().assignment().report();
                if self.parts.health.is_cut_off(self.id.stage) {
                    consumer.context().assignment().hide_lag();
                }
                consumer.context().show_partitions();
            }
        }
        self.leave(consumer)
    }

    /// Reports what the brokers refused and do now. What the member has got by now shows it.
    fn report_mended(&self, consumer: &BaseConsumer<MemberContext<R>>) {
        let (health, topics) = (&self.parts.health, &self.parts.topics);
        if !health.has_problems() {
            return;
        }
        let assignment = consumer.context().assignment();
        if assignment.has_joined() {
            Right::group(&topics.group_id).report_granted(health);
        }
        if assignment.has_taken_records() {
            Right::read(&topics.input).report_granted(health);
        }
        for role in assignment.acknowledged_roles() {
            Right::write(self.stage.output.of(role)).report_granted(health);
            Right::idempotent_write().report_granted(health);
        }
        let has_moved = |partition| assignment.has_joined() && !assignment.partitions().contains(&partition);
        let is_over = |refusal: &Refusal| {
            assignment.acknowledged_roles().any(|role| role == refusal.role) || refusal.partition.is_some_and(has_moved)
        };
        self.refused.check(is_over, self.id, health);
    }

    /// Returns how many publications and events are in flight. If waiting events hold too many bytes, it returns at least the limit.
    fn load(&self, consumer: &BaseConsumer<MemberContext<R>>) -> usize {
        let (assignment, settings) = (consumer.context().assignment(), &self.parts.settings);
        let is_full = assignment.waiting_bytes() >= settings.waiting_bytes_max as usize;
        let in_flight = assignment.in_flight();
        if is_full { in_flight.max(settings.in_flight_max as usize) } else { in_flight }
    }

    fn join(&self) -> Result<GroupConsumer<MemberContext<R>>, MemberError> {
        let parts = &self.parts;
        let producers = Producers::new(&parts.kafka, parts.batch_bytes_max).map_err(MemberError::Client)?;
        let outbox = Outbox::new(producers, self.stage.output.clone(), Arc::clone(&self.stage.reduce), parts.metrics.clone());
        let runtime = (self.stage.runtime)();
        let checkpointing = Checkpointing::new(parts, runtime.limits());
        let assignment = Assignment::new(runtime, outbox, checkpointing, parts, parts.metrics.member(self.id.number));
        let context = Context(MemberCallbacks {
            member: self.id,
            assignment: Mutex::new(assignment),
            topic: parts.topics.input.clone(),
            drain_timeout: Duration::from_millis(parts.settings.drain_timeout_ms.into()),
            health: Arc::clone(&parts.health),
            metrics: parts.metrics.clone(),
            is_leaving: AtomicBool::new(false),
            closing: Closing::default(),
            loss: Loss::default(),
        });
        let instance_id = parts.worker.as_ref().map(|worker| instance_id(worker, self.id.number));
        let config = consumer_config(&parts.kafka, &parts.topics.group_id, instance_id.as_deref());
        let consumer = Arc::new(config.create_with_context(context).map_err(MemberError::Client)?);
        let leaving = instance_id.filter(|_| parts.settings.instance_id.is_none());
        let joined = GroupConsumer::new(consumer, leaving.map(|id| StaticMember::new(&parts.topics.group_id, id)));
        let consumer: &BaseConsumer<MemberContext<R>> = &joined.consumer;
        parts.health.set(self.id, MemberPhase::Starting, MemberPartitions::default());
        match parts.membership {
            Membership::Group => consumer.subscribe(&[&parts.topics.input]),
            Membership::Alone => self.assign_all(consumer),
        }
        .map_err(MemberError::Consumer)?;
        Ok(joined)
    }

    fn assign_all(&self, consumer: &BaseConsumer<MemberContext<R>>) -> KafkaResult<()> {
        let partitions: Vec<_> = (0..self.parts.partition_count).filter_map(|number| i32::try_from(number).ok()).map(Partition).collect();
        let mut list = TopicPartitionList::new();
        for partition in &partitions {
            list.add_partition_offset(&self.parts.topics.input, partition.0, KafkaOffset::Beginning)?;
        }
        consumer.context().assigned(&partitions);
        consumer.assign(&list)
    }

    /// Takes up to one round of records, and waits only for the first one. A partition whose events are costly lets the others go first.
    fn take_records(&self, consumer: &BaseConsumer<MemberContext<R>>, in_flight: usize, flow: &mut FlowControl) -> Result<(), MemberError> {
        let mut timeout = match in_flight {
            0 if consumer.context().assignment().is_restoring() => RESTORING_POLL,
            0 => IDLE_POLL,
            _ => BUSY_POLL,
        };
        let mut turns = Turns::default();
        for _ in 0..RECORDS_PER_ROUND {
            match consumer.poll(timeout) {
                Some(Ok(message)) => {
                    turns.begin();
                    take(consumer, &message);
                    let partition = Partition(message.partition());
                    if turns.is_over(partition, message.payload_len()) {
                        self.parts.metrics.partition_yields.inc();
                        flow.pause_until_release(consumer, partition).map_err(MemberError::Consumer)?;
                    }
                }
                Some(Err(error)) => self.check_error(consumer, error)?,
                None => break,
            }
            timeout = Duration::ZERO;
        }
        flow.release_held(consumer).map_err(MemberError::Consumer)
    }

    /// Returns an error that does not pass by itself, and logs the others.
    fn check_error(&self, consumer: &BaseConsumer<MemberContext<R>>, error: KafkaError) -> Result<(), MemberError> {
        match error {
            KafkaError::MessageConsumptionFatal(RDKafkaErrorCode::FencedInstanceId) => {
                Err(MemberError::Fenced(self.parts.settings.instance_id.clone()))
            }
            KafkaError::MessageConsumptionFatal(_) => Err(MemberError::Consumer(error)),
            KafkaError::PartitionEOF(_) => Ok(()),
            KafkaError::MessageConsumption(code) => {
                let is_down = matches!(code, RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::AllBrokersDown);
                if is_down {
                    tracing::debug!(member = %self.id, %code, "the brokers cannot be reached");
                } else if let Some(right) = self.right_refused(Some(code)) {
                    consumer.context().assignment().note_refusal();
                    right.report_refused(&self.parts.health, &self.parts.kafka);
                } else {
                    tracing::warn!(member = %self.id, %code, "consumer");
                }
                Ok(())
            }
            other => {
                tracing::warn!(member = %self.id, error = %other, "consumer");
                Ok(())
            }
        }
    }

    fn right_refused(&self, code: Option<RDKafkaErrorCode>) -> Option<Right> {
        Right::refused_by(code, &self.parts.topics.group_id, || Right::read(&self.parts.topics.input))
    }

    /// Returns the right whose want made the member fail, if it was one.
    #[must_use]
    pub fn right_wanted(&self, error: &MemberError) -> Option<Right> {
        match error {
            MemberError::Publish(Failure::Refused(refusal)) => {
                Right::refused_by(Some(refusal.code), &self.parts.topics.group_id, || Right::write(&refusal.topic))
            }
            MemberError::Consumer(error) => self.right_refused(error.rdkafka_error_code()),
            _ => None,
        }
    }

    fn check_failure(&self, consumer: &BaseConsumer<MemberContext<R>>) -> Result<(), MemberError> {
        let mut assignment = consumer.context().assignment();
        let Some(failure) = assignment.failure().cloned() else { return Ok(()) };
        assignment.report();
        let error = MemberError::from(failure);
        // A right that is wanting is named with its grant.
        if let (MemberError::Publish(Failure::Refused(refusal)), None) = (&error, self.right_wanted(&error)) {
            self.refused.report(refusal, self.id, &self.parts.health);
        }
        Err(error)
    }

    /// Drains what is in flight and has the state written, within the drain timeout. The member leaves the group when its consumer is
    /// dropped.
    fn leave(&self, consumer: &BaseConsumer<MemberContext<R>>) -> Result<(), MemberError> {
        let context = consumer.context();
        context.show(MemberPhase::Draining);
        let held = context.assignment().partitions();
        let is_drained = context.assignment().drain(&held, &|| consumer.group_metadata(), context.drain_timeout);
        if is_drained {
            tracing::info!(member = %self.id, "drained, leaving");
        } else {
            // State that is not written is made again from the same records; verdicts are missing until then.
            if context.assignment().misses_verdicts() {
                self.parts.health.threads().undrained(&self.id.thread());
            }
            tracing::warn!(member = %self.id, "leaving with verdicts unacknowledged or state unwritten: their records will be decided again");
        }
        context.is_leaving.store(true, Ordering::Relaxed);
        context.assignment().report();
        self.check_failure(consumer)
    }
}

fn take<R: StageRuntime>(consumer: &BaseConsumer<MemberContext<R>>, message: &BorrowedMessage<'_>) {
    fail::fail_point!("record");
    let mut assignment = consumer.context().assignment();
    with_record(message, |record, rejection| assignment.apply(record, rejection, &|| own_headers(message)));
}
