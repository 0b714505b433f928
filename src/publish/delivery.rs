//! What became of a publication.

use std::sync::{Arc, Mutex, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{DeliveryResult, ProducerContext};

use crate::decode::{Offset, Partition};

/// What a publication is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A verdict on the decisions topic.
    Verdict,
    /// The same verdict on the topic that the event asked for.
    Reply,
    /// An unreadable record.
    DeadLetter,
}

impl Role {
    /// The role as a label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Reply => "reply",
            Self::DeadLetter => "dead_letter",
        }
    }
}

/// Which record a publication belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The record's partition.
    pub partition: Partition,
    /// Which assignment of the partition it was: an acknowledgement that comes after a revocation belongs to nobody.
    pub epoch: u64,
    /// The record's offset.
    pub offset: Offset,
    /// What was published.
    pub role: Role,
    /// The event's time in milliseconds since the epoch, for the latency of verdicts.
    pub event_time_ms: Option<i64>,
}

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The broker has it.
    Acknowledged,
    /// The broker finds it too large. Key and value come back, since something smaller takes its place.
    TooLarge {
        /// The record's key.
        key: Vec<u8>,
        /// The record's value.
        value: Vec<u8>,
    },
    /// The broker will not have it.
    Failed(RDKafkaErrorCode),
}

/// Where the producer's callbacks leave what they learn, until the member takes it up.
#[derive(Debug, Clone, Default)]
pub struct DeliveryQueue(Arc<Mutex<Vec<(Delivery, DeliveryOutcome)>>>);

impl DeliveryQueue {
    pub(super) fn push(&self, delivery: Delivery, outcome: DeliveryOutcome) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((delivery, outcome));
    }

    /// Everything that was left since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<(Delivery, DeliveryOutcome)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for DeliveryQueue {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        crate::librdkafka::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(target: "librdkafka", %error, reason, "producer");
    }
}

impl ProducerContext for DeliveryQueue {
    type DeliveryOpaque = Box<Delivery>;

    fn delivery(&self, result: &DeliveryResult<'_>, delivery: Box<Delivery>) {
        let outcome = match result {
            Ok(_) => DeliveryOutcome::Acknowledged,
            Err((error, message)) => match error.rdkafka_error_code() {
                Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize) => DeliveryOutcome::TooLarge {
                    key: message.key().unwrap_or_default().to_vec(),
                    value: message.payload().unwrap_or_default().to_vec(),
                },
                code => DeliveryOutcome::Failed(code.unwrap_or(RDKafkaErrorCode::Fail)),
            },
        };
        self.push(*delivery, outcome);
    }
}
