//! The partitions that a member holds, the stage that runs on them, and the one outbox that they all publish through.
//!
//! Records go in; requests and publications go out. Responses and acknowledgements come back to their partition, and then a checkpoint can
//! commit the offset.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::message::OwnedHeaders;
use rustc_hash::FxHashMap;
use tollgate_core::engine::processor::{Applied, TrackerError};
use tollgate_core::engine::stage::{Progress, Resumed, Stage};
use tollgate_core::event::decode::Rejection;
use tollgate_core::event::record::{Offset, Partition, Record};

use crate::health::MemberPartitions;
use crate::host_time::now_ms;
use crate::kafka::headers_of;
use crate::metrics::{MemberMetrics, Metrics};
use crate::outbox::{Delivery, Outbox, Role, Settled};
use crate::partition::AssignedPartition;
use crate::stages::{Done, RequestId, StageRuntime};

use super::checkpointing::{Checkpointing, FlowChange};
use super::failure::Failure;
use super::{MemberParts, MisplacedRecords};

/// The partitions of one member.
pub struct Assignment<R: StageRuntime> {
    pub(super) runtime: R,
    pub(super) partitions: FxHashMap<Partition, AssignedPartition<R::Stage>>,
    outbox: Outbox,
    /// The buffer for what a record becomes, reused from record to record.
    output: <R::Stage as Stage>::Output,
    /// What one round of acknowledgements came to, whose memory the next round takes.
    settled: Settled,
    pub(super) checkpointing: Checkpointing<<R::Stage as Stage>::State>,
    /// How many partitions the input topic has.
    partition_count: u32,
    metrics: Metrics,
    misplaced: Arc<MisplacedRecords>,
    gauges: MemberMetrics,
    failure: Option<Failure>,
    /// Whether the group has assigned partitions since it last refused a right.
    has_joined: bool,
    /// Whether any record was taken since a right was last refused.
    has_taken_records: bool,
    /// Which roles have had a publication acknowledged, in the order of [`Role::ALL`].
    acknowledged_roles: [bool; Role::ALL.len()],
}

impl<R: StageRuntime> std::fmt::Debug for Assignment<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assignment").field("partitions", &self.partitions).finish_non_exhaustive()
    }
}

impl<R: StageRuntime> Assignment<R> {
    /// Returns an assignment of no partitions yet.
    pub(super) fn new(
        runtime: R,
        outbox: Outbox,
        checkpointing: Checkpointing<<R::Stage as Stage>::State>,
        parts: &MemberParts,
        gauges: MemberMetrics,
    ) -> Self {
        Self {
            runtime,
            partitions: FxHashMap::default(),
            outbox,
            output: <R::Stage as Stage>::Output::default(),
            settled: Settled::default(),
            checkpointing,
            partition_count: parts.partition_count,
            metrics: parts.metrics.clone(),
            misplaced: Arc::clone(&parts.misplaced),
            gauges,
            failure: None,
            has_joined: false,
            has_taken_records: false,
            acknowledged_roles: [false; Role::ALL.len()],
        }
    }

    /// Takes on partitions. Where state is written to a topic, their records wait until the state is read.
    pub fn take(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        self.has_joined = true;
        for partition in partitions {
            match self.checkpointing.assigned(partition, || self.runtime.stage(partition, None), &self.metrics) {
                Ok(assigned) => {
                    if assigned.phase().is_at_work() {
                        self.runtime.partition_started(partition, None);
                    }
                    self.partitions.insert(partition, assigned);
                }
                Err(failure) => self.fail(failure),
            }
        }
    }

    /// Gives partitions up. Acknowledgements that still come for them are ignored.
    pub fn release(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        for partition in partitions {
            self.partitions.remove(&partition);
            self.checkpointing.released(partition);
            self.runtime.partition_revoked(partition);
        }
    }

    /// Returns the partitions held, in order.
    #[must_use]
    pub fn partitions(&self) -> Vec<Partition> {
        self.partitions_that(|_| true)
    }

    fn partitions_that(&self, is_one: impl Fn(&AssignedPartition<R::Stage>) -> bool) -> Vec<Partition> {
        let mut partitions: Vec<_> = self.partitions.iter().filter(|(_, assigned)| is_one(assigned)).map(|(number, _)| *number).collect();
        partitions.sort();
        partitions
    }

    /// Returns the partitions whose records are taken.
    #[must_use]
    pub fn running(&self) -> Vec<Partition> {
        self.partitions_that(|assigned| assigned.phase().is_running())
    }

    /// Returns all partitions, grouped by the condition of their state.
    #[must_use]
    pub fn member_partitions(&self) -> MemberPartitions {
        MemberPartitions {
            held: self.partitions(),
            restoring: self.partitions_that(|assigned| !assigned.phase().is_at_work() && !assigned.phase().has_failed()),
            failed: self.partitions_that(|assigned| assigned.phase().has_failed()),
        }
    }

    /// Returns whether any partition waits for its state.
    #[must_use]
    pub fn is_restoring(&self) -> bool {
        self.partitions.values().any(|assigned| !assigned.phase().is_at_work())
    }

    /// Notes that the brokers have refused a right: what was allowed before says nothing any more.
    pub fn note_refusal(&mut self) {
        (self.has_joined, self.has_taken_records) = (false, false);
    }

    /// Returns whether the group has assigned partitions since it last refused a right.
    #[must_use]
    pub fn has_joined(&self) -> bool {
        self.has_joined
    }

    /// Returns whether any record was taken since a right was last refused.
    #[must_use]
    pub fn has_taken_records(&self) -> bool {
        self.has_taken_records
    }

    /// Returns the roles of which a publication was acknowledged, replies left out.
    pub fn acknowledged_roles(&self) -> impl Iterator<Item = Role> {
        let acknowledged = Role::ALL.into_iter().zip(self.acknowledged_roles).filter(|(_, is_acknowledged)| *is_acknowledged);
        acknowledged.map(|(role, _)| role).filter(|role| *role != Role::Reply)
    }

    /// Returns whether a partition's state is restored and its records do not flow yet.
    #[must_use]
    pub fn is_ready(&self, partition: Partition) -> bool {
        self.partitions.get(&partition).is_some_and(|assigned| assigned.phase().is_ready())
    }

    /// Takes a record and publishes what follows from it. A rejection comes with a record whose headers cannot be read. A record of a
    /// partition that is not held, or whose state is not restored, is ignored: its owner reads it again.
    pub fn apply(&mut self, record: &Record<'_>, rejection: Option<Rejection>, own_headers: &dyn Fn() -> OwnedHeaders) {
        let Some(assigned) = self.partitions.get_mut(&record.partition).filter(|assigned| assigned.phase().is_running()) else { return };
        self.has_taken_records = true;
        self.runtime.taken(record);
        let timer = self.runtime.timer();
        let applied = assigned.apply(record, rejection, &mut self.output);
        if let Some(timer) = timer {
            timer.observe_duration();
        }
        let is_keyed_by_thread = match &applied {
            Ok(Some(Applied::Taken(Progress::Done(outcome)))) => self.runtime.is_keyed_by_thread(outcome),
            _ => false,
        };
        if self.misplaced.take(record, self.partition_count, is_keyed_by_thread) {
            self.metrics.misplaced_records.inc();
        }
        let (partition, generation, offset) = (record.partition, assigned.generation(), record.offset);
        match applied {
            Ok(None) => {}
            Ok(Some(Applied::Redelivered)) => self.metrics.redelivered_records.inc(),
            Ok(Some(Applied::Taken(Progress::Waits))) => self.runtime.waits(),
            Ok(Some(Applied::Taken(Progress::Asks(request)))) => self.runtime.ask(RequestId { partition, generation, offset }, request),
            Ok(Some(Applied::Taken(Progress::Done(outcome)))) => {
                let mut publications = self.outbox.for_record(record, generation);
                self.runtime.publish(Done { record, outcome, output: &self.output, own_headers }, &mut publications);
                let due = publications.unacknowledged();
                self.track(partition, |assigned| assigned.published(offset, due));
            }
            Err(error) => self.fail(Failure::Offsets { partition, error }),
        }
    }

    /// Sends waiting publications, waits for up to `timeout` for news of them, passes acknowledgements on to their partitions, and takes
    /// the responses that have come.
    pub fn settle(&mut self, timeout: Duration) {
        self.runtime.between_rounds(&mut self.outbox.late());
        self.outbox.flush();
        let mut settled = std::mem::take(&mut self.settled);
        self.outbox.settle(timeout, &mut settled);
        let now_ms = if settled.finished.is_empty() { 0 } else { now_ms() };
        for delivery in &settled.finished {
            self.runtime.acknowledged(delivery, now_ms);
            self.acknowledge(delivery);
        }
        if let Some(refusal) = settled.refusal.take() {
            self.fail(refusal.into());
        }
        self.settled = settled;
        while let Some((request_id, response)) = self.runtime.response() {
            self.answer(request_id, response);
        }
        self.runtime.between_rounds(&mut self.outbox.late());
        self.outbox.flush();
    }

    fn acknowledge(&mut self, delivery: &Delivery) {
        if let Some(is_acknowledged) = self.acknowledged_roles.get_mut(delivery.role as usize) {
            *is_acknowledged = true;
        }
        if self.partitions.get(&delivery.partition).is_some_and(|assigned| assigned.generation() == delivery.generation) {
            self.track(delivery.partition, |assigned| assigned.acknowledge(delivery.offset));
        }
    }

    /// Takes a response, and finishes the records that can be decided with it. A response for a partition that has been given up is
    /// ignored.
    fn answer(&mut self, request_id: RequestId, response: <R::Stage as Stage>::Response) {
        let RequestId { partition, generation, offset } = request_id;
        let Some(assigned) = self.partitions.get_mut(&partition).filter(|assigned| assigned.generation() == generation) else { return };
        assigned.answer(offset, response);
        while let Some(resumed) = self.partitions.get_mut(&partition).and_then(|assigned| assigned.resume(&mut self.output)) {
            match resumed {
                Resumed::Asks(offset, request) => self.runtime.ask(RequestId { partition, generation, offset }, request),
                Resumed::Done { record, outcome, .. } => record.with_borrowed(|record| {
                    let own_headers = || headers_of(record);
                    let mut publications = self.outbox.for_record(record, generation);
                    self.runtime.publish(Done { record, outcome, output: &self.output, own_headers: &own_headers }, &mut publications);
                    let due = publications.unacknowledged();
                    self.track(partition, |assigned| assigned.published(record.offset, due));
                }),
            }
        }
    }

    /// Records something in a partition's offset tracker. An error of the tracker is a fault of ours: nothing is committed after it.
    fn track(&mut self, partition: Partition, note: impl FnOnce(&mut AssignedPartition<R::Stage>) -> Result<(), TrackerError>) {
        let Some(assigned) = self.partitions.get_mut(&partition) else { return };
        if let Err(error) = note(assigned) {
            self.fail(Failure::Offsets { partition, error });
        }
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Returns why the member has to start over, or `None` if it need not.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns whether verdicts of its own are not acknowledged, or were refused.
    pub fn misses_verdicts(&self) -> bool {
        self.in_flight() > 0 || self.failure().is_some()
    }

    /// Returns how many publications are not acknowledged, plus how many records wait for responses or for what is still to be published.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.outbox.in_flight() + self.waiting_records() + self.runtime.held()
    }

    fn waiting_records(&self) -> usize {
        self.partitions.values().map(|assigned| assigned.waiting().records).sum()
    }

    /// Returns the bytes of the records that wait for a response, or behind one that does.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.partitions.values().map(|assigned| assigned.waiting().bytes).sum()
    }

    /// Notes that the records of a partition flow from now on.
    pub fn resumed(&mut self, partition: Partition) {
        let delay = self.checkpointing.first_delay(partition, self.partitions.len());
        if let Some(assigned) = self.partitions.get_mut(&partition) {
            assigned.resumed(delay);
        }
    }

    /// Takes the reports of the checkpoint writers, and returns what the consumer has to do because of them.
    pub fn take_writer_reports(&mut self) -> Vec<FlowChange> {
        self.take_reports();
        self.restore_lost();
        self.checkpointing.take_flow_changes()
    }

    /// Has the stage do what goes on beside the records of its partitions.
    pub fn beside_records(&mut self) {
        for (partition, assigned) in &mut self.partitions {
            assigned.stage_mut().into_iter().for_each(|stage| self.runtime.beside_records(*partition, stage));
        }
    }

    /// Has the stage do what is due once a second.
    pub fn tick(&mut self, now: Instant) {
        self.runtime.tick(now);
    }

    /// Hands over the local counts, and sets the gauges of the member and of its partitions.
    pub fn report(&mut self) {
        self.runtime.flush();
        let gauge = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.gauges.in_flight.set(gauge(self.outbox.in_flight()));
        self.gauges.waiting_events.set(gauge(self.waiting_records()));
        self.gauges.waiting_bytes.set(gauge(self.waiting_bytes()));
        self.gauges.assigned_partitions.set(gauge(self.partitions.len()));
        let unrestored = self.partitions.values().filter(|assigned| !assigned.phase().is_at_work()).count();
        self.gauges.unrestored_partitions.set(gauge(unrestored));
        self.partitions.values_mut().for_each(|assigned| assigned.report(&self.metrics));
    }

    /// Shows no lag of any partition: it is unknown.
    pub fn hide_lag(&mut self) {
        self.partitions.values_mut().for_each(AssignedPartition::hide_lag);
    }

    /// Sets the lag of a partition. `end` is the offset behind its last record, `start` the one to read from if no record has come yet.
    pub fn lag(&mut self, partition: Partition, end: Offset, start: Offset) {
        if let Some(assigned) = self.partitions.get(&partition) {
            let records = assigned.show_lag(end, start, now_ms());
            self.runtime.lag(partition, records);
        }
    }
}
