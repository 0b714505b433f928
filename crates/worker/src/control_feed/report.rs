//! What a worker says of itself in the controls topic, so that a command can tell whether its switch reaches every worker: the fingerprints
//! of the keys under which the worker looks subjects up, whether it reads passports, the event partitions that it decides on, and how far it has
//! applied the controls.
//!
//! A report is a note, which switches nothing. The feed hands it to a producer and never waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _};
use serde::{Deserialize, Serialize};

use super::FeedParts;
use crate::host_time::now_ms;
use crate::kafka::{Callbacks, Context, Deliveries, Linger, Right, make_producer, producer_config};
use tollgate_config::settings::KafkaSettings;
use tollgate_json::time::rfc_3339;

/// How long to wait between two reports. Changes in between share the second report.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait after a report that the brokers did not take, and how long they may take.
const FAILED_PAUSE: Duration = Duration::from_secs(10);
/// How long a worker that stops may take to take its report back.
const LAST_TIMEOUT: Duration = Duration::from_secs(1);
/// The largest batch, in bytes. A report is a batch of its own.
const BATCH_BYTES_MAX: u64 = 100_000;

/// A worker's report. Its record's key is `worker/<group>/<worker>`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "worker")]
pub struct WorkerReport {
    /// The consumer group whose events the worker decides on.
    pub group: String,
    /// The worker's name: see [`worker_name`].
    pub worker: String,
    /// The fingerprints of its subject keys, in their order; empty without a key.
    pub subject_keys: Vec<String>,
    /// The partitions of the events topic that it holds.
    pub partitions: Vec<i32>,
    /// For each partition of the controls topic, the offset behind the last record whose restriction counts in this worker.
    pub read: Vec<i64>,
    /// Whether one of its guardrail providers reads passports. Where none does, passports are without effect.
    #[serde(default)]
    pub reads_passports: bool,
    /// When the worker wrote this, as RFC 3339.
    pub at: String,
}

impl WorkerReport {
    /// Returns the key of the report's record.
    #[must_use]
    pub fn key(&self) -> String {
        format!("worker/{}/{}", self.group, self.worker)
    }
}

/// Returns the name of a worker: its instance id, or else a name that nobody had before, with its host and process id for people. Of letters,
/// digits, dots, dashes and underscores, as Kafka wants the names of members.
#[must_use]
pub fn worker_name(instance_id: Option<&str>) -> String {
    let own = || {
        let host = host_name().replace(|letter: char| !(letter.is_ascii_alphanumeric() || "._-".contains(letter)), "-");
        format!("{host}-{:08x}-{}", fastrand::u32(..), std::process::id())
    };
    instance_id.map_or_else(own, str::to_owned)
}

/// Returns the name of this host; `host` if the system does not tell it.
#[must_use]
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "host".to_owned())
}

/// Publishes the reports of a feed.
pub(super) struct Reporter {
    producer: BaseProducer<Context<Outcome>>,
    outcome: Outcome,
    /// The partitions that the last report named.
    partitions: Vec<i32>,
    is_due: bool,
    /// Before when no report is sent; `None` before the first.
    pause_until: Option<Instant>,
}

/// What became of the last report: nothing yet, or one of these.
#[derive(Debug, Clone)]
struct Outcome {
    kafka: Arc<KafkaSettings>,
    state: Arc<AtomicU8>,
    was_refused: Arc<AtomicBool>,
}

const SETTLED: u8 = 0;
const PENDING: u8 = 1;
const FAILED: u8 = 2;

impl Callbacks for Outcome {}

impl Deliveries for Outcome {
    type Tag = ();

    fn delivered(&self, result: &DeliveryResult<'_>, (): ()) {
        let Err((error, record)) = result else { return self.state.store(SETTLED, Ordering::Release) };
        self.state.store(FAILED, Ordering::Release);
        let right = Right::refused_by(error.rdkafka_error_code(), &self.kafka.group_id, || Right::write(record.topic()));
        let reason = right.map_or_else(|| error.to_string(), |right| right.refusal(&self.kafka));
        if !self.was_refused.swap(true, Ordering::AcqRel) {
            tracing::warn!("commands that write controls cannot see this worker: {reason}");
        }
    }
}

impl Reporter {
    pub(super) fn new(kafka: &Arc<KafkaSettings>) -> Result<Self, KafkaError> {
        let outcome = Outcome { kafka: Arc::clone(kafka), state: Arc::default(), was_refused: Arc::default() };
        let mut config = producer_config(kafka, BATCH_BYTES_MAX, Linger::None);
        config
            .remove("delivery.timeout.ms")
            .set("message.timeout.ms", FAILED_PAUSE.as_millis().to_string())
            // There is one report at a time, and the same report twice says the same. So it needs no right but that to the topic.
            .set("enable.idempotence", "false")
            .set("client.id", "tollgate-controls");
        let producer = make_producer(&config, Context(outcome.clone()))?;
        Ok(Self { producer, outcome, partitions: Vec::new(), is_due: false, pause_until: None })
    }

    /// Notes that a control was applied that somebody may wait for.
    pub(super) fn set_due(&mut self) {
        self.is_due = true;
    }

    /// Sends a report if there is news, and does not wait for it. `read` returns how far each partition of the controls topic is applied.
    pub(super) fn serve(&mut self, parts: &FeedParts, read: impl FnOnce() -> Vec<i64>) {
        self.producer.poll(Duration::ZERO);
        let now = Instant::now();
        if self.outcome.state.compare_exchange(FAILED, SETTLED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            (self.is_due, self.pause_until) = (true, Some(now + FAILED_PAUSE));
        }
        let partitions: Vec<i32> = parts.health.held(None).into_iter().map(|(_, partition)| partition.0).collect();
        let is_due = self.is_due || partitions != self.partitions;
        let is_free = self.outcome.state.load(Ordering::Acquire) == SETTLED && self.pause_until.is_none_or(|until| now >= until);
        if !is_due || !is_free {
            return;
        }
        let report = WorkerReport {
            group: parts.kafka.group_id.clone(),
            worker: parts.worker.clone(),
            subject_keys: parts.controls.key_fingerprints(),
            partitions: partitions.clone(),
            read: read(),
            reads_passports: parts.reads_passports,
            at: rfc_3339(now_ms()).unwrap_or_default(),
        };
        (self.partitions, self.is_due, self.pause_until) = (partitions, false, Some(now + REPORT_INTERVAL));
        let value = serde_json::to_vec(&report).unwrap_or_default();
        self.send(parts, &report.key(), Some(&value));
    }

    /// Takes the report back, because the worker stops.
    pub(super) fn take_back(&mut self, parts: &FeedParts) {
        if self.pause_until.is_some() {
            let report = WorkerReport { group: parts.kafka.group_id.clone(), worker: parts.worker.clone(), ..WorkerReport::default() };
            self.send(parts, &report.key(), None);
            // A command that finds the report of a worker that is gone names it.
            let _late = self.producer.flush(LAST_TIMEOUT);
        }
    }

    fn send(&self, parts: &FeedParts, key: &str, value: Option<&[u8]>) {
        let mut record = BaseRecord::<str, [u8]>::to(&parts.kafka.topics.controls).key(key);
        record.payload = value;
        self.outcome.state.store(PENDING, Ordering::Release);
        if self.producer.send(record).is_err() {
            self.outcome.state.store(FAILED, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_without_an_instance_id_has_a_name_of_its_own_that_kafka_takes() {
        assert_eq!(worker_name(Some("gate-1")), "gate-1");
        let names = [worker_name(None), worker_name(None)];
        assert_ne!(names[0], names[1], "a process that starts anew under the same number is another worker");
        let pid = format!("-{}", std::process::id());
        for name in names {
            assert!(name.ends_with(&pid) && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter)), "{name}");
        }
    }
}
