//! The partitions that a member holds: each a lane and the keeper of its state, all publishing through one producer.
//!
//! Records go in, questions to policy servers and publications go out, answers and acknowledgements come back to their lane, and what the
//! ledgers call finished may be written down and committed.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rdkafka::message::OwnedHeaders;
use rustc_hash::FxHashMap;

use crate::metrics::{MemberMetrics, Metrics};
use crate::publish::{Delivery, Origin, Outbox, Publisher, Refusal, Role, dead_letter_headers};
use crate::remote::Remotes;
use crate::settings::KafkaSettings;
use crate::state::{Keeper, KeeperParts, KeeperReport};
use tollgate_core::decode::Rejection;
use tollgate_core::policy::Policy;
use tollgate_core::processor::{Applied, Lane, Ledger, LedgerError, VerdictBuffer};
use tollgate_core::record::partition_of;
use tollgate_core::record::{Offset, Partition, Record};

use super::asking::{Questions, Ticket};
use super::counts::Counts;
use super::held::{Held, Phase};
use super::keeping::Flow;
use super::pass_through::Deciding;

/// Why a member must not commit any more, and starts over from what is committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The broker will not take a verdict or dead letter.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A fault of ours.
    #[error("ledger of partition {partition}: {error}")]
    Ledger {
        /// The partition.
        partition: Partition,
        /// What was wrong.
        error: LedgerError,
    },
    /// The system gives no more threads.
    #[error("no thread to keep the state of partition {partition}: {error}")]
    Thread {
        /// The partition.
        partition: Partition,
        /// What the system said.
        error: String,
    },
}

/// What an assignment is made of.
#[derive(Debug, Clone)]
pub struct AssignmentParts {
    /// The policy in force.
    pub policy: Arc<Policy>,
    /// Whether it is asked.
    pub deciding: Deciding,
    /// Topics and reply topics.
    pub kafka: Arc<KafkaSettings>,
    /// How many partitions the events topic has.
    pub partitions: u32,
    /// The largest batch that the state topic takes, in bytes.
    pub state_batch_bytes_max: u64,
    /// How often state is written down; `None` keeps it in memory alone.
    pub checkpoint_interval: Option<Duration>,
    /// How long to wait for word from the group after another member has taken a partition's state.
    pub fenced_pause: Duration,
    /// Whom to ask.
    pub remotes: Remotes,
    /// Where to count.
    pub metrics: Metrics,
}

/// See the module.
pub struct Assignment {
    pub(super) parts: AssignmentParts,
    pub(super) outbox: Outbox,
    pub(super) held: FxHashMap<Partition, Held>,
    epochs: u64,
    keepers: KeeperParts,
    pub(super) reports: Receiver<KeeperReport>,
    /// What the consumer has still to do for partitions whose state came or went.
    pub(super) flows: Vec<Flow>,
    /// Partitions that are being given up.
    pub(super) finishing: Vec<Partition>,
    /// Whose state it is that is written.
    pub(super) owner: String,
    pub(super) out: VerdictBuffer,
    pub(super) counts: Counts,
    pub(super) questions: Questions,
    pub(super) failure: Option<Failure>,
    /// The member's gauges, once they have been shown.
    gauges: Option<MemberMetrics>,
}

impl std::fmt::Debug for Assignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assignment").field("partitions", &self.held.len()).finish_non_exhaustive()
    }
}

impl Assignment {
    /// An assignment of no partitions yet.
    #[must_use]
    pub fn new(parts: AssignmentParts, publisher: Publisher) -> Self {
        let counts = Counts::new(&parts.metrics);
        let version = parts.policy.version().to_owned();
        let outbox = Outbox::new(publisher, Arc::clone(&parts.kafka), parts.metrics.clone(), version);
        let (sender, reports) = channel();
        let (kafka, limits, metrics) = (Arc::clone(&parts.kafka), parts.policy.store_limits(), parts.metrics.clone());
        let owner = parts.kafka.state_owner();
        let keepers = KeeperParts { kafka, limits, batch_bytes_max: parts.state_batch_bytes_max, metrics, reports: sender };
        let (held, out) = (FxHashMap::default(), VerdictBuffer::default());
        Self {
            parts,
            outbox,
            held,
            epochs: 0,
            keepers,
            reports,
            flows: Vec::new(),
            finishing: Vec::new(),
            owner,
            out,
            counts,
            questions: Questions::default(),
            failure: None,
            gauges: None,
        }
    }

    /// Takes partitions on. Where state is written down, their records wait until it is read.
    pub fn take(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        partitions.into_iter().for_each(|partition| self.hold(partition, Duration::ZERO));
    }

    /// Takes a partition on with an empty lane, and has its state read after a pause.
    pub(super) fn hold(&mut self, partition: Partition, delay: Duration) {
        self.epochs += 1;
        let lane = Lane::new(partition, &self.parts.policy);
        let gauges = self.parts.metrics.partition(partition);
        let held = match self.parts.checkpoint_interval {
            None => Held::new(lane, self.epochs, Phase::Open, None, gauges),
            Some(_) => match Keeper::start(self.keepers.clone(), partition, self.epochs, delay) {
                Ok(keeper) => Held::new(lane, self.epochs, Phase::Restoring, Some(keeper), gauges),
                Err(error) => return self.fail(Failure::Thread { partition, error: error.to_string() }),
            },
        };
        self.held.insert(partition, held);
    }

    /// Lets partitions go. Acknowledgements that still come for them belong to nobody.
    pub fn release(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        for partition in partitions {
            self.held.remove(&partition);
        }
    }

    /// The partitions held.
    #[must_use]
    pub fn partitions(&self) -> Vec<Partition> {
        let mut partitions: Vec<_> = self.held.keys().copied().collect();
        partitions.sort();
        partitions
    }

    /// Decides on a record and publishes what follows from it; one that comes with a rejection could not even be taken apart. A dead
    /// letter takes the record's own headers along. A record of a partition that is not held, or whose state is not there, is left to
    /// whoever has it: it comes again.
    pub fn apply(&mut self, record: &Record<'_>, rejection: Option<Rejection>, own_headers: impl FnOnce() -> OwnedHeaders) {
        let Some(held) = self.held.get_mut(&record.partition).filter(|held| held.phase == Phase::Open) else { return };
        let parts = &self.parts;
        if parts.deciding == Deciding::PassThrough {
            return self.pass_through(record);
        }
        let timer = self.counts.timer();
        let applied = match rejection {
            None => held.lane.apply(&parts.policy, record, &mut self.out),
            Some(rejection) => held.lane.reject(&parts.policy, record, rejection, &mut self.out),
        };
        if let Some(timer) = timer {
            timer.observe_duration();
        }
        held.last_record_ms = record.timestamp_ms;
        if record.key.is_some_and(|key| partition_of(key, parts.partitions) != record.partition) {
            parts.metrics.misplaced_records.inc();
        }
        let (partition, epoch, offset) = (record.partition, held.epoch, record.offset);
        match applied {
            Applied::Redelivered => parts.metrics.redelivered_records.inc(),
            Applied::Waits => self.enter(partition, |ledger| ledger.open_undecided(offset)),
            Applied::Asks(question) => {
                self.enter(partition, |ledger| ledger.open_undecided(offset));
                self.ask(Ticket { partition, epoch, offset }, question);
            }
            decided => {
                let due = self.publish(record, decided, epoch, own_headers);
                self.enter(partition, |ledger| ledger.open(offset, due));
            }
        }
    }

    /// Counts a decided record and publishes what follows from it; the answer is how many acknowledgements it waits for.
    pub(super) fn publish(&mut self, record: &Record<'_>, applied: Applied, epoch: u64, own_headers: impl FnOnce() -> OwnedHeaders) -> u32 {
        match applied {
            Applied::Redelivered | Applied::Waits | Applied::Asks(_) => 0,
            Applied::Boundary(event_type) => {
                self.counts.event(event_type);
                0
            }
            Applied::Verdict { event_type, decided, time_ms } => {
                self.counts.event(event_type);
                self.counts.verdict(&decided, self.parts.policy.guardrails());
                self.outbox.publish(record, &self.out, None, Origin { epoch, event_time_ms: time_ms })
            }
            Applied::DeadLetter(rejection) => {
                self.counts.unreadable(rejection.code.as_str(), !self.out.thread_id.is_empty());
                tracing::warn!(topic = record.topic, partition = %record.partition, offset = %record.offset, code = rejection.code.as_str(), "{rejection}");
                let headers = dead_letter_headers(own_headers(), record.topic, record.partition, record.offset, &rejection);
                let origin = Origin { epoch, event_time_ms: record.timestamp_ms };
                self.outbox.publish(record, &self.out, Some(headers), origin)
            }
        }
    }

    /// Makes an entry in the ledger of a partition.
    pub(super) fn enter(&mut self, partition: Partition, enter: impl FnOnce(&mut Ledger) -> Result<(), LedgerError>) {
        let Some(held) = self.held.get_mut(&partition) else { return };
        if let Err(error) = enter(&mut held.lane.ledger) {
            self.fail(Failure::Ledger { partition, error });
        }
    }

    /// Sends what was published since the last time, waits for up to `timeout` until something becomes of publications, enters that into the
    /// ledgers and goes on with what was answered.
    pub fn settle(&mut self, timeout: Duration) {
        self.outbox.send();
        let settled = self.outbox.settle(timeout);
        let now_ms = if settled.finished.is_empty() { 0 } else { now_ms() };
        for delivery in settled.finished {
            if let (Role::Verdict, Some(time_ms)) = (delivery.role, delivery.event_time_ms) {
                self.counts.acknowledged(now_ms.saturating_sub(time_ms));
            }
            self.acknowledge(&delivery);
        }
        if let Some(refusal) = settled.refusal {
            self.fail(refusal.into());
        }
        self.hear_answers();
        self.outbox.send();
    }

    fn acknowledge(&mut self, delivery: &Delivery) {
        if self.held.get(&delivery.partition).is_some_and(|held| held.epoch == delivery.epoch) {
            self.enter(delivery.partition, |ledger| ledger.acknowledge(delivery.offset));
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Why the member has to start over, if it has to.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// How many publications are not acknowledged, and events not answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.outbox.in_flight() + self.held.values().map(|held| held.lane.waiting_records()).sum::<usize>()
    }

    /// Bytes of the events that wait for an answer, or behind one that does.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.held.values().map(|held| held.lane.waiting_bytes()).sum()
    }

    /// Hands counts over, and sets the gauges of the partitions.
    pub fn report(&mut self, member: &str) {
        self.counts.flush();
        let waiting: usize = self.held.values().map(|held| held.lane.waiting_records()).sum();
        let unrestored = self.held.values().filter(|held| held.phase != Phase::Open).count();
        let (metrics, waiting_bytes) = (&self.parts.metrics, self.waiting_bytes());
        let gauges = self.gauges.get_or_insert_with(|| metrics.member(member));
        gauges.in_flight.set(self.outbox.in_flight() as i64);
        gauges.waiting_events.set(waiting as i64);
        gauges.waiting_bytes.set(waiting_bytes as i64);
        gauges.assigned_partitions.set(self.held.len() as i64);
        gauges.unrestored_partitions.set(unrestored as i64);
        for held in self.held.values_mut() {
            held.report(metrics);
        }
    }

    /// Sets the lag of a partition from the offset behind its last record, and where it would be read from if nothing has come yet.
    pub fn lag(&self, partition: Partition, end: Offset, start: Offset) {
        let Some(held) = self.held.get(&partition) else { return };
        // librdkafka hears nothing of offsets that are committed in transactions; the state knows them.
        let next = held.lane.next().max(start);
        let records = (end.0 - next.0).max(0);
        let age_ms = held.last_record_ms.filter(|_| records > 0).map_or(0, |record_ms| (now_ms() - record_ms).max(0));
        held.gauges.lag_records.set(records);
        held.gauges.lag_seconds.set(age_ms / 1_000);
    }
}

fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
