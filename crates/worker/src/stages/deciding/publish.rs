//! The publications that follow from a decided record: its verdict, the reply that was asked for, and its dead letter.

use std::sync::Arc;

use rdkafka::message::OwnedHeaders;
use tollgate_core::decide::deciding::VerdictBuffer;
use tollgate_core::event::record::Record;

use crate::metrics::Metrics;
use crate::outbox::{Destination, Publications, Role};
use tollgate_config::settings::KafkaSettings;

use super::headers::{ReplyAddress, reply_address, verdict_headers};

/// How many characters of a sender's text the log shows: as many as the name of a topic may have.
const SHOWN_CHARACTERS_MAX: usize = 249;

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

    /// Publishes the verdict on a record if there is one, and its dead letter if `dead_letter` holds headers for one.
    pub fn publish(
        &self,
        record: &Record<'_>,
        verdict: &VerdictBuffer,
        dead_letter: Option<OwnedHeaders>,
        event_time_ms: Option<i64>,
        publications: &mut Publications<'_>,
    ) {
        if let Some(headers) = dead_letter {
            let to = Destination { topic: &self.kafka.topics.dlq, partition: None, key: record.key, value: record.value };
            publications.send(Role::DeadLetter, to, headers, event_time_ms);
        }
        // A verdict that was read as an event is not answered: neither on the decisions topic nor by a reply.
        if verdict.json.is_empty() {
            return;
        }
        let key = (!verdict.thread_id.is_empty()).then_some(verdict.thread_id.as_bytes());
        let (value, headers) = (verdict.json.as_slice(), verdict_headers(record, &verdict.event_id));
        if let Some(ReplyAddress { topic, partition }) = self.allowed_reply(record, &verdict.event_id) {
            publications.send(Role::Reply, Destination { topic, partition, key, value: Some(value) }, headers.clone(), event_time_ms);
        }
        // Nobody could find the decision of an unknown thread.
        if let Some(key) = key {
            publications.push(key, value, headers, event_time_ms);
        }
    }

    fn allowed_reply<'r>(&self, record: &Record<'r>, event_id: &str) -> Option<ReplyAddress<'r>> {
        let reply = reply_address(record)?;
        if self.kafka.allows_reply_to(reply.topic) {
            return Some(reply);
        }
        self.metrics.replies.with_label_values(&["refused"]).inc();
        let (partition, offset) = (record.partition, record.offset);
        let (event_id, reply_topic) = (shown(event_id), shown(reply.topic));
        tracing::warn!(event_id, reply_topic, %partition, %offset, "an event asks for a reply on a topic that kafka.reply_topics does not allow");
        None
    }
}

/// Returns a text of a sender for the log: of bounded length, without control characters.
fn shown(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARACTERS_MAX).flat_map(char::escape_debug).collect();
    let is_whole = text.chars().nth(SHOWN_CHARACTERS_MAX).is_none();
    if is_whole { shown } else { format!("{shown}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sender_wrote_is_short_and_plain_in_the_log() {
        assert_eq!(shown("acme.replies-1_a"), "acme.replies-1_a");
        assert_eq!(shown("a\nb\u{1b}[31m\"\u{202e}x"), "a\\nb\\u{1b}[31m\\\"\\u{202e}x");
        assert_eq!(shown(&"é".repeat(SHOWN_CHARACTERS_MAX)), "é".repeat(SHOWN_CHARACTERS_MAX));
        assert_eq!(shown(&"é".repeat(100_000)), "é".repeat(SHOWN_CHARACTERS_MAX) + "…");
    }
}
