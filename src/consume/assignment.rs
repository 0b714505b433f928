//! The partitions that a member holds: each a lane, all publishing through one producer.
//!
//! Records go in, publications go out, acknowledgements come back to the ledger of their lane, and what the ledgers call finished
//! may be committed.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::message::OwnedHeaders;
use rustc_hash::FxHashMap;

use crate::decode::{Offset, Partition, Record, Rejection};
use crate::lane::{Applied, Lane, LedgerError, VerdictBuffer};
use crate::metrics::Metrics;
use crate::partition::partition_of;
use crate::policy::Policy;
use crate::publish::{Delivery, Origin, Outbox, Publisher, Refusal, Role, dead_letter_headers};
use crate::settings::KafkaSettings;
use crate::thread::Departures;

use super::counts::Counts;

/// A publication failed for good, or a ledger was misused: the member must not commit, and starts over from what is committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishFailure {
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
}

/// What an assignment is made of.
#[derive(Debug, Clone)]
pub struct AssignmentParts {
    /// The policy in force.
    pub policy: Arc<Policy>,
    /// Topics and reply topics.
    pub kafka: Arc<KafkaSettings>,
    /// How many partitions the events topic has.
    pub partitions: u32,
    /// Where to count.
    pub metrics: Metrics,
}

struct Held {
    lane: Lane,
    epoch: u64,
    last_record_ms: Option<i64>,
    committed: Option<Offset>,
    counted: Departures,
}

/// See the module.
pub struct Assignment {
    parts: AssignmentParts,
    outbox: Outbox,
    held: FxHashMap<Partition, Held>,
    epochs: u64,
    out: VerdictBuffer,
    counts: Counts,
    failure: Option<PublishFailure>,
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
        Self { parts, outbox, held: FxHashMap::default(), epochs: 0, out: VerdictBuffer::default(), counts, failure: None }
    }

    /// Takes partitions on, each with an empty lane.
    pub fn take(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        for partition in partitions {
            self.epochs += 1;
            let lane = Lane::new(partition, &self.parts.policy);
            self.held.insert(
                partition,
                Held { lane, epoch: self.epochs, last_record_ms: None, committed: None, counted: Departures::default() },
            );
        }
    }

    /// Lets partitions go. Acknowledgements that still come for them belong to nobody.
    pub fn release(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        for partition in partitions {
            self.held.remove(&partition);
            let label = partition.to_string();
            for gauge in [
                &self.parts.metrics.lag_records,
                &self.parts.metrics.lag_seconds,
                &self.parts.metrics.live_threads,
                &self.parts.metrics.state_bytes,
            ] {
                // A gauge that was never set is not there to be removed, which is as well.
                let _absent = gauge.remove_label_values(&[&label]);
            }
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
    /// letter takes the record's own headers along. A record of a partition that is not held is left to whoever holds it.
    pub fn apply(&mut self, record: &Record<'_>, rejection: Option<Rejection>, own_headers: impl FnOnce() -> OwnedHeaders) {
        let Some(held) = self.held.get_mut(&record.partition) else { return };
        let parts = &self.parts;
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
        let epoch = held.epoch;
        let due = match applied {
            Applied::Redelivered => return,
            Applied::Boundary(event_type) => {
                self.counts.event(event_type);
                0
            }
            Applied::Verdict { event_type, decided, time_ms } => {
                self.counts.event(event_type);
                self.counts.verdict(&decided);
                self.outbox.publish(record, &self.out, None, Origin { epoch, event_time_ms: time_ms })
            }
            Applied::DeadLetter(rejection) => {
                self.counts.unreadable(rejection.code.as_str(), !self.out.thread_id.is_empty());
                tracing::warn!(topic = record.topic, partition = %record.partition, offset = %record.offset, code = rejection.code.as_str(), "{rejection}");
                let headers = dead_letter_headers(own_headers(), record.topic, record.partition, record.offset, &rejection);
                let origin = Origin { epoch, event_time_ms: record.timestamp_ms };
                self.outbox.publish(record, &self.out, Some(headers), origin)
            }
        };
        self.open(record.partition, record.offset, due);
    }

    fn open(&mut self, partition: Partition, offset: Offset, due: u32) {
        let Some(held) = self.held.get_mut(&partition) else { return };
        if let Err(error) = held.lane.ledger.open(offset, due) {
            self.fail(PublishFailure::Ledger { partition, error });
        }
    }

    /// Serves the producer for up to `timeout` and enters what became of publications into the ledgers.
    pub fn settle(&mut self, timeout: Duration) {
        let settled = self.outbox.settle(timeout);
        let now_ms = if settled.finished.is_empty() { 0 } else { now_ms() };
        for delivery in settled.finished {
            if let (Role::Verdict, Some(time_ms)) = (delivery.role, delivery.event_time_ms) {
                self.counts.acknowledged(now_ms.saturating_sub(time_ms));
            }
            self.finish(&delivery);
        }
        if let Some(refusal) = settled.refusal {
            self.fail(refusal.into());
        }
    }

    fn finish(&mut self, delivery: &Delivery) {
        let Some(held) = self.held.get_mut(&delivery.partition).filter(|held| held.epoch == delivery.epoch) else { return };
        if let Err(error) = held.lane.ledger.acknowledge(delivery.offset) {
            self.fail(PublishFailure::Ledger { partition: delivery.partition, error });
        }
    }

    fn fail(&mut self, failure: PublishFailure) {
        self.failure.get_or_insert(failure);
    }

    /// Why the member has to start over, if it has to.
    #[must_use]
    pub fn failure(&self) -> Option<&PublishFailure> {
        self.failure.as_ref()
    }

    /// How many publications are not acknowledged.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.outbox.in_flight()
    }

    /// Serves the producer until the records of these partitions are finished, a failure comes or the time is up; whether all are.
    pub fn drain(&mut self, partitions: &[Partition], timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            let is_done = partitions.iter().filter_map(|partition| self.held.get(partition)).all(|held| held.lane.ledger.in_flight() == 0);
            if is_done || self.failure.is_some() || Instant::now() >= deadline {
                return is_done;
            }
            self.settle(Duration::from_millis(5));
        }
    }

    /// What may be committed: for each partition the next offset to read, where that has moved. Nothing after a failure.
    #[must_use]
    pub fn committable(&self) -> Vec<(Partition, Offset)> {
        if self.failure.is_some() {
            return Vec::new();
        }
        self.held
            .iter()
            .filter_map(|(partition, held)| Some((*partition, held.lane.ledger.finished().filter(|next| Some(*next) > held.committed)?)))
            .collect()
    }

    /// Notes that an offset was committed.
    pub fn committed(&mut self, partition: Partition, offset: Offset) {
        if let Some(held) = self.held.get_mut(&partition) {
            held.committed = Some(offset);
        }
    }

    /// Hands counts over, and sets the gauges of the partitions.
    pub fn report(&mut self, member: &str) {
        self.counts.flush();
        let metrics = &self.parts.metrics;
        metrics.in_flight.with_label_values(&[member]).set(self.outbox.in_flight() as i64);
        metrics.assigned_partitions.with_label_values(&[member]).set(self.held.len() as i64);
        for (partition, held) in &mut self.held {
            let label = partition.to_string();
            metrics.live_threads.with_label_values(&[&label]).set(held.lane.threads.len() as i64);
            metrics.state_bytes.with_label_values(&[&label]).set(held.lane.threads.bytes() as i64);
            let now = held.lane.threads.departures();
            let before = std::mem::replace(&mut held.counted, now);
            for (reason, count) in [
                ("expired", now.expired - before.expired),
                ("evicted", now.evicted - before.evicted),
                ("refused", now.refused - before.refused),
            ] {
                if count > 0 {
                    metrics.departed_threads.with_label_values(&[reason]).inc_by(count);
                }
            }
        }
    }

    /// Sets the lag of a partition from the offset behind its last record, and where it would be read from if nothing has come yet.
    pub fn lag(&self, partition: Partition, end: Offset, start: Offset) {
        let Some(held) = self.held.get(&partition) else { return };
        let next = held.lane.ledger.last_opened().map_or(start, Offset::next);
        let records = (end.0 - next.0).max(0);
        let age_ms = held.last_record_ms.filter(|_| records > 0).map_or(0, |record_ms| (now_ms() - record_ms).max(0));
        let label = partition.to_string();
        self.parts.metrics.lag_records.with_label_values(&[&label]).set(records);
        self.parts.metrics.lag_seconds.with_label_values(&[&label]).set(age_ms / 1_000);
    }
}

fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
