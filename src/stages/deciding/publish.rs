//! The publications that follow from a decided record: its verdict, the reply that was asked for, and its dead letter.

use std::sync::Arc;

use rdkafka::message::OwnedHeaders;
use tollgate_core::deciding::VerdictBuffer;
use tollgate_core::record::Record;

use crate::metrics::Metrics;
use crate::outbox::{Delivery, Outbox, Publication, Role};
use crate::settings::KafkaSettings;

use super::headers::{ReplyAddress, reply_address, verdict_headers};

/// Publishes verdicts, replies and dead letters.
#[derive(Debug, Clone)]
pub struct VerdictPublisher {
    kafka: Arc<KafkaSettings>,
    metrics: Metrics,
}

impl VerdictPublisher {
    /// Returns a publisher to the topics that these settings name.
    #[must_use]
    pub fn new(kafka: Arc<KafkaSettings>, metrics: Metrics) -> Self {
        Self { kafka, metrics }
    }

    /// Publishes the verdict on a record, and its dead letter if `dead_letter` holds headers for one. Returns how many acknowledgements the
    /// record waits for. What goes to the decisions topic leaves with [`Outbox::flush`].
    pub fn publish(
        &self,
        record: &Record<'_>,
        verdict: &VerdictBuffer,
        dead_letter: Option<OwnedHeaders>,
        generation: u64,
        event_time_ms: Option<i64>,
        outbox: &mut Outbox,
    ) -> u32 {
        let delivery =
            |role| Delivery { partition: record.partition, generation, offset: record.offset, role, event_time_ms, reductions: 0 };
        let mut due = 0;
        if let Some(headers) = dead_letter {
            due += 1;
            let (topic, delivery) = (self.kafka.topics.dlq.as_str(), delivery(Role::DeadLetter));
            outbox.send(Publication { topic, partition: None, key: record.key, value: record.value, headers, delivery });
        }
        let key = (!verdict.thread_id.is_empty()).then_some(verdict.thread_id.as_bytes());
        let (value, headers) = (verdict.json.as_slice(), verdict_headers(record, &verdict.event_id));
        if let Some(ReplyAddress { topic, partition }) = self.allowed_reply(record) {
            due += 1;
            let (headers, delivery) = (headers.clone(), delivery(Role::Reply));
            outbox.send(Publication { topic, partition, key, value: Some(value), headers, delivery });
        }
        // Nobody could find the decision of an unknown thread.
        if let Some(key) = key {
            due += 1;
            outbox.push(key, value, headers, delivery(Role::Verdict));
        }
        due
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
}
