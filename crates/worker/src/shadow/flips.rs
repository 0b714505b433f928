//! Flips as records of their topic: published at best effort, by a producer that nothing else waits for.

use std::time::Duration;

use anyhow::Context as _;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer};
use serde_json::json;
use tollgate_core::decide::shadow::{Decision, Flip};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_json::digest::Digest;

use super::Trial;
use crate::kafka::{Callbacks, Context, Deliveries, Linger, make_producer, producer_config};
use crate::metrics::Metrics;

/// How long a flip may wait for the brokers before it is given up.
const MESSAGE_TIMEOUT_MS: &str = "60000";
/// The largest batch, in bytes. A flip is a few hundred.
const BATCH_BYTES_MAX: u64 = 500_000;
/// How many flips may wait for the brokers.
const QUEUE_MAX: &str = "20000";
/// How long the last flips may take when the member ends.
const FINISH: Duration = Duration::from_secs(2);

/// Where the record of a flip stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'t> {
    pub(super) partition: Partition,
    pub(super) offset: Offset,
    pub(super) thread_id: &'t str,
}

/// Publishes flips.
pub(super) struct FlipPublisher {
    producer: BaseProducer<Context<Failures>>,
    metrics: Metrics,
    topic: String,
    events: String,
    versions: [String; 2],
}

impl FlipPublisher {
    pub(super) fn new(trial: &Trial) -> anyhow::Result<Self> {
        let mut config = producer_config(&trial.kafka, BATCH_BYTES_MAX, Linger::Moment);
        config.remove("delivery.timeout.ms");
        config.set("message.timeout.ms", MESSAGE_TIMEOUT_MS).set("queue.buffering.max.messages", QUEUE_MAX);
        let context = Context(Failures { metrics: trial.metrics.clone() });
        let producer = make_producer(&config, context).context("no producer for the verdicts that differ")?;
        let topics = &trial.kafka.topics;
        let versions = [trial.ours.clone(), trial.policy.version().to_owned()];
        Ok(Self { producer, metrics: trial.metrics.clone(), topic: topics.shadow.clone(), events: topics.events.clone(), versions })
    }

    /// Hands a flip to the producer. If that has no room, the flip is counted as failed.
    pub(super) fn publish(&self, flip: &Flip, place: Place<'_>) {
        let value = self.value(flip, place).to_string();
        let record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&self.topic).key(place.thread_id.as_bytes()).payload(value.as_bytes());
        if let Err((error, _)) = self.producer.send(record) {
            self.metrics.shadow_publish_failures.with_label_values(&[&reason(&error)]).inc();
        }
    }

    fn value(&self, Flip { verdict_id, event_type, tool, agent_id, from, to }: &Flip, place: Place<'_>) -> serde_json::Value {
        let said = |said: &Decision| json!({"action": said.action.as_str(), "code": said.code, "decided_by": said.decided_by.as_str()});
        let [ours, theirs] = &self.versions;
        json!({
            "verdict_id": verdict_id.to_string(),
            "thread_hash": Digest::of(place.thread_id.as_bytes()).to_string(),
            "type": event_type.as_str(),
            "tool_name": tool,
            "agent_id": agent_id,
            "from": said(from),
            "to": said(to),
            "policy_version": ours,
            "shadow_policy_version": theirs,
            "topic": self.events,
            "partition": place.partition.0,
            "offset": place.offset.0,
        })
    }

    /// Takes the delivery reports.
    pub(super) fn serve(&self) {
        self.producer.poll(Duration::ZERO);
    }

    /// Waits a moment for what is on its way.
    pub(super) fn finish(&self) {
        if self.producer.flush(FINISH).is_err() {
            tracing::warn!(topic = self.topic, "verdicts that differ were not all published before the member ended");
        }
    }
}

fn reason(error: &KafkaError) -> String {
    error.rdkafka_error_code().map_or_else(|| "unknown".to_owned(), |code| format!("{code:?}"))
}

/// Counts flips that could not be published.
struct Failures {
    metrics: Metrics,
}

impl Callbacks for Failures {}

impl Deliveries for Failures {
    type Tag = ();

    fn delivered(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.metrics.shadow_publish_failures.with_label_values(&[&reason(error)]).inc();
        }
    }
}
