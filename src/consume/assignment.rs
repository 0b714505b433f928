//! The partitions that a member holds: each a lane, all publishing through one producer.
//!
//! Records go in, publications go out, acknowledgements come back to the ledger of their lane, and what the ledgers call finished
//! may be committed.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Header, OwnedHeaders};
use rustc_hash::FxHashMap;

use crate::decode::{EventType, Offset, Partition, Record, Rejection, RejectionCode, Told};
use crate::evaluate::verdict;
use crate::lane::{Applied, Lane, LedgerError, VerdictBuffer};
use crate::metrics::Metrics;
use crate::partition::partition_of;
use crate::policy::Policy;
use crate::publish::{
    Delivery, DeliveryOutcome, Outgoing, Publisher, ReplyAddress, Role, dead_letter_headers, reply_address, verdict_headers,
};
use crate::settings::KafkaSettings;
use crate::thread::Departures;

use super::counts::Counts;

/// A publication failed for good, or a ledger was misused: the member must not commit, and starts over from what is committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishFailure {
    /// The broker will not take a verdict or dead letter.
    #[error("the broker refused a {role} on topic {topic}: {code}")]
    Refused {
        /// What it was.
        role: &'static str,
        /// Where it should have gone.
        topic: String,
        /// Why it did not.
        code: RDKafkaErrorCode,
    },
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
    counted: Departures,
}

/// See the module.
pub struct Assignment {
    parts: AssignmentParts,
    publisher: Publisher,
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
        Self { parts, publisher, held: FxHashMap::default(), epochs: 0, out: VerdictBuffer::default(), counts, failure: None }
    }

    /// Takes partitions on, each with an empty lane.
    pub fn take(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        for partition in partitions {
            self.epochs += 1;
            let lane = Lane::new(partition, &self.parts.policy);
            self.held.insert(partition, Held { lane, epoch: self.epochs, last_record_ms: None, counted: Departures::default() });
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
            Applied::Boundary(event_type) => {
                self.counts.event(event_type);
                0
            }
            Applied::Verdict { event_type, decided, time_ms } => {
                self.counts.event(event_type);
                self.counts.verdict(&decided);
                self.publish(record, epoch, time_ms, None)
            }
            Applied::DeadLetter(rejection) => {
                self.counts.unreadable(rejection.code.as_str());
                tracing::warn!(topic = record.topic, partition = %record.partition, offset = %record.offset, code = rejection.code.as_str(), "{rejection}");
                let headers = dead_letter_headers(own_headers(), record.topic, record.partition, record.offset, &rejection);
                self.publish(record, epoch, record.timestamp_ms, Some(headers))
            }
        };
        self.open(record.partition, record.offset, due);
    }

    /// Publishes the verdict in the buffer to whom it concerns, behind the dead letter if there is one; the answer is how many
    /// acknowledgements the record waits for.
    fn publish(&mut self, record: &Record<'_>, epoch: u64, event_time_ms: Option<i64>, dead_letter: Option<OwnedHeaders>) -> u32 {
        let delivery = |role| Delivery { partition: record.partition, epoch, offset: record.offset, role, event_time_ms };
        let kafka = Arc::clone(&self.parts.kafka);
        let mut due = 0;
        if let Some(headers) = dead_letter {
            due += 1;
            self.send(Outgoing {
                topic: &kafka.topics.dlq,
                partition: None,
                key: record.key,
                value: record.value,
                headers,
                delivery: delivery(Role::DeadLetter),
            });
        }
        let out = std::mem::take(&mut self.out);
        let key = (!out.thread_id.is_empty()).then_some(out.thread_id.as_bytes());
        let headers = verdict_headers(record, &out.event_id);
        if let Some(reply) = self.allowed_reply(record) {
            due += 1;
            let (topic, partition, headers) = (reply.topic, reply.partition, headers.clone());
            self.send(Outgoing { topic, partition, key, value: Some(&out.json), headers, delivery: delivery(Role::Reply) });
        }
        // Nobody reads the decisions of a thread that could not be told.
        if key.is_some() {
            due += 1;
            let partition = Some(record.partition.0);
            let (topic, delivery) = (kafka.topics.decisions.as_str(), delivery(Role::Verdict));
            self.send(Outgoing { topic, partition, key, value: Some(&out.json), headers, delivery });
        }
        self.out = out;
        due
    }

    fn allowed_reply<'r>(&self, record: &Record<'r>) -> Option<ReplyAddress<'r>> {
        let reply = reply_address(record)?;
        if self.parts.kafka.allows_reply_to(reply.topic) {
            return Some(reply);
        }
        self.parts.metrics.replies.with_label_values(&["refused"]).inc();
        tracing::warn!(partition = %record.partition, offset = %record.offset, "an event asks for a reply on a topic that kafka.reply_topics does not allow");
        None
    }

    fn send(&mut self, outgoing: Outgoing<'_>) {
        if let Some((delivery, outcome)) = self.publisher.send(outgoing) {
            // The ledger is not open yet for this record, so what became of it is settled with everything else.
            self.publisher.remember(delivery, outcome);
        }
    }

    fn open(&mut self, partition: Partition, offset: Offset, due: u32) {
        let Some(held) = self.held.get_mut(&partition) else { return };
        if let Err(error) = held.lane.ledger.open(offset, due) {
            self.fail(PublishFailure::Ledger { partition, error });
        }
    }

    /// Serves the producer for up to `timeout` and enters what became of publications into the ledgers.
    pub fn settle(&mut self, timeout: Duration) {
        let outcomes = self.publisher.poll(timeout);
        let now_ms = if outcomes.is_empty() { 0 } else { now_ms() };
        for (delivery, outcome) in outcomes {
            match outcome {
                DeliveryOutcome::Acknowledged => self.acknowledged(&delivery, now_ms),
                DeliveryOutcome::TooLarge { key, value } => self.replace(&delivery, &key, &value),
                DeliveryOutcome::Failed(code) => self.refused(&delivery, code),
            }
        }
    }

    fn acknowledged(&mut self, delivery: &Delivery, now_ms: i64) {
        match delivery.role {
            Role::Verdict => {
                if let Some(time_ms) = delivery.event_time_ms {
                    self.counts.acknowledged(now_ms.saturating_sub(time_ms));
                }
            }
            Role::Reply => self.parts.metrics.replies.with_label_values(&["published"]).inc(),
            Role::DeadLetter => {}
        }
        self.finish(delivery);
    }

    fn finish(&mut self, delivery: &Delivery) {
        let Some(held) = self.held.get_mut(&delivery.partition).filter(|held| held.epoch == delivery.epoch) else { return };
        if let Err(error) = held.lane.ledger.acknowledge(delivery.offset) {
            self.fail(PublishFailure::Ledger { partition: delivery.partition, error });
        }
    }

    fn refused(&mut self, delivery: &Delivery, code: RDKafkaErrorCode) {
        // The producer is going away and takes what it holds with it; the records are read again.
        if matches!(code, RDKafkaErrorCode::PurgeInflight | RDKafkaErrorCode::PurgeQueue) {
            return;
        }
        let role = delivery.role.as_str();
        self.parts.metrics.publish_failures.with_label_values(&[role, &code.to_string()]).inc();
        let topics = &self.parts.kafka.topics;
        let topic = match delivery.role {
            // A reply topic is its sender's word; the verdict stands on the decisions topic all the same.
            Role::Reply => {
                self.parts.metrics.replies.with_label_values(&["failed"]).inc();
                tracing::warn!(partition = %delivery.partition, offset = %delivery.offset, %code, "a reply could not be published");
                return self.finish(delivery);
            }
            Role::Verdict => topics.decisions.clone(),
            Role::DeadLetter => topics.dlq.clone(),
        };
        self.fail(PublishFailure::Refused { role, topic, code });
    }

    /// Publishes something smaller in place of what the broker finds too large: a dead letter without its value, whose headers say
    /// where the value stands, or a short closed verdict.
    fn replace(&mut self, delivery: &Delivery, key: &[u8], value: &[u8]) {
        self.parts.metrics.publish_failures.with_label_values(&[delivery.role.as_str(), "message size too large"]).inc();
        let (topics, is_current) =
            (self.parts.kafka.topics.clone(), self.held.get(&delivery.partition).is_some_and(|held| held.epoch == delivery.epoch));
        if !is_current {
            return;
        }
        let rejection = Rejection::new(
            RejectionCode::VerdictTooLarge,
            "value",
            format!("{} bytes, more than the topic takes", value.len()),
            "raise max.message.bytes of the topic to that of the events topic",
        );
        match delivery.role {
            Role::DeadLetter if !value.is_empty() => {
                self.parts.metrics.dead_letters_without_value.inc();
                let headers = dead_letter_headers(OwnedHeaders::new(), &topics.events, delivery.partition, delivery.offset, &rejection)
                    .insert(Header { key: "tollgate.value.omitted", value: Some("true") });
                self.send(Outgoing { topic: &topics.dlq, partition: None, key: Some(key), value: None, headers, delivery: *delivery });
            }
            Role::Verdict if value.len() > SHORT_VERDICT_BYTES => {
                let told = told_by_verdict(value);
                let event_id = told.event_id.clone().unwrap_or_default();
                let mut json = Vec::new();
                verdict::write_invalid(&rejection.told(told), &event_id, self.parts.policy.version(), &mut json);
                let headers = OwnedHeaders::new()
                    .insert(Header { key: "event_id", value: Some(&event_id) })
                    .insert(Header { key: "content-type", value: Some("application/json") });
                let partition = Some(delivery.partition.0);
                self.send(Outgoing {
                    topic: &topics.decisions,
                    partition,
                    key: Some(key),
                    value: Some(&json),
                    headers,
                    delivery: *delivery,
                });
            }
            _ => self.refused(delivery, RDKafkaErrorCode::MessageSizeTooLarge),
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
        self.publisher.in_flight()
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
        self.held.iter().filter_map(|(partition, held)| Some((*partition, held.lane.ledger.committable()?))).collect()
    }

    /// Notes that an offset was committed.
    pub fn committed(&mut self, partition: Partition, offset: Offset) {
        if let Some(held) = self.held.get_mut(&partition) {
            held.lane.ledger.committed(offset);
        }
    }

    /// Hands counts over, and sets the gauges of the partitions.
    pub fn report(&mut self, member: &str) {
        self.counts.flush();
        let metrics = &self.parts.metrics;
        metrics.in_flight.with_label_values(&[member]).set(self.publisher.in_flight() as i64);
        metrics.assigned_partitions.with_label_values(&[member]).set(self.held.len() as i64);
        for (partition, held) in &mut self.held {
            let label = partition.to_string();
            metrics.live_threads.with_label_values(&[&label]).set(held.lane.threads.len() as i64);
            metrics.state_bytes.with_label_values(&[&label]).set(held.lane.threads.bytes() as i64);
            let (now, before) = (held.lane.threads.departures(), std::mem::replace(&mut held.counted, held.lane.threads.departures()));
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

    /// Sets the lag of a partition from the offset behind its last record.
    pub fn lag(&self, partition: Partition, end: Offset) {
        let Some(held) = self.held.get(&partition) else { return };
        let Some(last) = held.lane.ledger.last_opened() else { return };
        let records = (end.0 - last.next().0).max(0);
        let age_ms = held.last_record_ms.filter(|_| records > 0).map_or(0, |record_ms| (now_ms() - record_ms).max(0));
        let label = partition.to_string();
        self.parts.metrics.lag_records.with_label_values(&[&label]).set(records);
        self.parts.metrics.lag_seconds.with_label_values(&[&label]).set(age_ms / 1_000);
    }
}

/// A verdict this short is not worth replacing: the topic takes nothing.
const SHORT_VERDICT_BYTES: usize = 4 * 1024;

/// What a verdict says of its event.
fn told_by_verdict(verdict: &[u8]) -> Told {
    let value: serde_json::Value = serde_json::from_slice(verdict).unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
    Told {
        thread_id: text("thread_id"),
        event_id: text("event_id"),
        event_type: text("type").as_deref().and_then(EventType::from_name),
        turn_id: text("turn_id"),
        tool_call_id: text("tool_call_id"),
        tool_name: text("tool_name"),
    }
}

fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
