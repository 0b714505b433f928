//! What follows from a decided record: its verdict, the reply that was asked for, its dead letter. And what becomes of them.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::OwnedHeaders;
use rustc_hash::FxHashMap;

use crate::metrics::Metrics;
use crate::settings::KafkaSettings;
use tollgate_core::processor::VerdictBuffer;
use tollgate_core::record::{Partition, Record};

use super::batch::Batch;
use super::reduce::{Reduced, reduce};
use super::{Delivery, DeliveryOutcome, Door, Outgoing, Publisher, ReplyAddress, Returned, Role, reply_address, verdict_headers};

/// The broker will not take a verdict or dead letter at all, whatever its size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the broker refused a {role} on topic {topic}: {code}")]
pub struct Refusal {
    /// What it was.
    pub role: &'static str,
    /// Where it should have gone.
    pub topic: String,
    /// Why it did not.
    pub code: RDKafkaErrorCode,
}

/// See the module.
#[derive(Debug)]
pub struct Outbox {
    publisher: Publisher,
    /// The verdicts of each partition that go to the decisions topic.
    batches: FxHashMap<Partition, Batch>,
    kafka: Arc<KafkaSettings>,
    metrics: Metrics,
    policy_version: String,
}

/// Which record's publications these are.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Which assignment of the partition it is.
    pub epoch: u64,
    /// The event's time in milliseconds since the epoch.
    pub event_time_ms: Option<i64>,
}

/// What became of publications since the last look.
#[derive(Debug, Default)]
pub struct Settled {
    /// Those that their records need not wait for any longer.
    pub finished: Vec<Delivery>,
    /// The first that the broker will not take.
    pub refusal: Option<Refusal>,
}

impl Outbox {
    /// An outbox over a publisher.
    #[must_use]
    pub fn new(publisher: Publisher, kafka: Arc<KafkaSettings>, metrics: Metrics, policy_version: String) -> Self {
        Self { publisher, batches: FxHashMap::default(), kafka, metrics, policy_version }
    }

    /// Publishes the verdict on a record to whom it concerns, and its dead letter if it has one (`dead_letter` holds its headers); the
    /// answer is how many acknowledgements the record waits for. What goes to the decisions topic is sent with [`Outbox::send`].
    pub fn publish(&mut self, record: &Record<'_>, verdict: &VerdictBuffer, dead_letter: Option<OwnedHeaders>, origin: Origin) -> u32 {
        let Origin { epoch, event_time_ms } = origin;
        let delivery = |role| Delivery { partition: record.partition, epoch, offset: record.offset, role, event_time_ms, reductions: 0 };
        let mut due = 0;
        if let Some(headers) = dead_letter {
            due += 1;
            let (door, topic, delivery) = (Door::of(Role::DeadLetter), self.kafka.topics.dlq.as_str(), delivery(Role::DeadLetter));
            self.publisher.send(Outgoing { door, topic, partition: None, key: record.key, value: record.value, headers, delivery });
        }
        let key = (!verdict.thread_id.is_empty()).then_some(verdict.thread_id.as_bytes());
        let (value, headers) = (verdict.json.as_slice(), verdict_headers(record, &verdict.event_id));
        if let Some(ReplyAddress { topic, partition }) = self.allowed_reply(record) {
            due += 1;
            let (door, headers, delivery) = (Door::of(Role::Reply), headers.clone(), delivery(Role::Reply));
            self.publisher.send(Outgoing { door, topic, partition, key, value: Some(value), headers, delivery });
        }
        // Nobody reads the decisions of a thread that could not be told.
        if let Some(key) = key {
            due += 1;
            self.batches.entry(record.partition).or_default().push(key, value, headers, delivery(Role::Verdict));
        }
        due
    }

    /// Hands verdicts over to librdkafka, as far as it would send them. It is called when a round of records is decided: verdicts wait for
    /// other decisions then, and for acknowledgements, but not for time to pass.
    pub fn send(&mut self) {
        self.batches.values_mut().for_each(|batch| batch.send(&self.publisher, &self.kafka.topics.decisions));
    }

    fn allowed_reply<'r>(&self, record: &Record<'r>) -> Option<ReplyAddress<'r>> {
        let reply = reply_address(record)?;
        if self.kafka.allows_reply_to(reply.topic) {
            return Some(reply);
        }
        self.metrics.replies.with_label_values(&["refused"]).inc();
        let (partition, offset) = (record.partition, record.offset);
        tracing::warn!(%partition, %offset, "an event asks for a reply on a topic that kafka.reply_topics does not allow");
        None
    }

    /// Serves the producer for up to `timeout` and says what became of publications since the last time. What is too large for its
    /// topic is published smaller, and its record goes on waiting.
    pub fn settle(&mut self, timeout: Duration) -> Settled {
        let mut settled = Settled::default();
        for (delivery, outcome) in self.publisher.poll(timeout) {
            match outcome {
                DeliveryOutcome::Acknowledged => {
                    if delivery.role == Role::Reply {
                        self.metrics.replies.with_label_values(&["published"]).inc();
                    }
                    settled.finished.push(delivery);
                }
                DeliveryOutcome::TooLarge(returned) => settled.finished.extend(self.publish_smaller(delivery, *returned)),
                DeliveryOutcome::Failed(code) => self.refused(delivery, code, &mut settled),
            }
        }
        for delivery in settled.finished.iter().filter(|delivery| delivery.role == Role::Verdict) {
            if let Some(batch) = self.batches.get_mut(&delivery.partition) {
                batch.acknowledge();
            }
        }
        settled
    }

    /// Publishes something smaller in place of what its topic does not take; what cannot be made smaller is given up and counted, since
    /// a record that nobody takes would hold its partition up for ever.
    fn publish_smaller(&self, delivery: Delivery, returned: Returned) -> Option<Delivery> {
        self.count_failure(&delivery, RDKafkaErrorCode::MessageSizeTooLarge);
        let Some(Reduced { key, value, headers }) = reduce(&delivery, &returned, &self.policy_version) else {
            let (partition, offset, role) = (delivery.partition, delivery.offset, delivery.role.as_str());
            tracing::error!(%partition, %offset, role, topic = returned.topic, "too large for its topic in any form, and given up");
            return Some(delivery);
        };
        if delivery.role == Role::DeadLetter && delivery.reductions == 0 {
            self.metrics.dead_letters_without_value.inc();
        }
        let delivery = Delivery { reductions: delivery.reductions + 1, ..delivery };
        let (topic, partition) = (returned.topic.as_str(), returned.partition);
        let door = Door::of(delivery.role);
        self.publisher.send(Outgoing { door, topic, partition, key: key.as_deref(), value: value.as_deref(), headers, delivery });
        None
    }

    fn refused(&self, delivery: Delivery, code: RDKafkaErrorCode, settled: &mut Settled) {
        // The producer is going away and takes what it holds with it; the records are read again.
        if matches!(code, RDKafkaErrorCode::PurgeInflight | RDKafkaErrorCode::PurgeQueue) {
            return;
        }
        self.count_failure(&delivery, code);
        let topics = &self.kafka.topics;
        let topic = match delivery.role {
            // A reply topic is its sender's word; the verdict stands on the decisions topic all the same.
            Role::Reply => {
                self.metrics.replies.with_label_values(&["failed"]).inc();
                let (partition, offset) = (delivery.partition, delivery.offset);
                tracing::warn!(%partition, %offset, %code, "a reply could not be published");
                return settled.finished.push(delivery);
            }
            Role::Verdict => topics.decisions.clone(),
            Role::DeadLetter => topics.dlq.clone(),
        };
        settled.refusal.get_or_insert(Refusal { role: delivery.role.as_str(), topic, code });
    }

    fn count_failure(&self, delivery: &Delivery, code: RDKafkaErrorCode) {
        self.metrics.publish_failures.with_label_values(&[delivery.role.as_str(), &code.to_string()]).inc();
    }

    /// How many publications are not acknowledged.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.publisher.in_flight() + self.batches.values().map(Batch::waiting).sum::<usize>()
    }
}
