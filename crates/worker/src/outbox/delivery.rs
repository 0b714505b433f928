//! Deliveries: which record a publication belongs to, and the outcome that its producer reports.

use std::sync::{Arc, Mutex, PoisonError};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedHeaders, Message, OwnedHeaders};
use rdkafka::producer::DeliveryResult;

use crate::kafka::{Callbacks, Deliveries, warn_of};
use tollgate_core::event::record::{Offset, Partition};

/// What a publication is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A verdict on the decisions topic.
    Verdict,
    /// A copy of the verdict on the topic that the event asked for.
    Reply,
    /// A record that could not be read.
    DeadLetter,
    /// What several records have in common, for another stage to count.
    Signals,
    /// An alert.
    Alert,
    /// A control.
    Control,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 6] = [Self::Verdict, Self::Reply, Self::DeadLetter, Self::Signals, Self::Alert, Self::Control];

    /// Returns the role as a metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Reply => "reply",
            Self::DeadLetter => "dead_letter",
            Self::Signals => "signals",
            Self::Alert => "alert",
            Self::Control => "control",
        }
    }
}

/// Which record a publication belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The record's partition.
    pub partition: Partition,
    /// The generation of the partition's assignment. An acknowledgement for an earlier one is ignored.
    pub generation: u64,
    /// The record's offset.
    pub offset: Offset,
    /// What was published.
    pub role: Role,
    /// The event's time in milliseconds since the epoch, for the latency of verdicts.
    pub event_time_ms: Option<i64>,
    /// How often the publication was made smaller.
    pub reductions: u8,
    /// The number of a publication that several records wait for, or none at all. It then belongs to no single record, and partition,
    /// generation and offset say nothing.
    pub shared: Option<u64>,
}

/// A record that waits for the acknowledgement of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// The record's partition.
    pub partition: Partition,
    /// The generation of the partition's assignment.
    pub generation: u64,
    /// The record's offset.
    pub offset: Offset,
}

impl Waiter {
    /// Returns the delivery of a publication that this record waits for.
    pub(super) fn delivery(self, role: Role, event_time_ms: Option<i64>) -> Delivery {
        let Self { partition, generation, offset } = self;
        Delivery { partition, generation, offset, role, event_time_ms, reductions: 0, shared: None }
    }
}

/// The outcome of a publication.
#[derive(Debug, Clone)]
pub enum DeliveryOutcome {
    /// The broker has acknowledged it.
    Acknowledged,
    /// It is too large for its topic. It comes back, so that something smaller can take its place.
    TooLarge(Box<Returned>),
    /// The broker refused it.
    Failed {
        /// Why.
        code: RDKafkaErrorCode,
        /// The topic that it was sent to.
        topic: String,
    },
}

impl DeliveryOutcome {
    pub(super) fn failed(code: RDKafkaErrorCode, topic: &str) -> Self {
        Self::Failed { code, topic: topic.to_owned() }
    }
}

/// A record that was too large and came back.
#[derive(Debug, Clone)]
pub struct Returned {
    /// The topic that it was sent to.
    pub topic: String,
    /// The partition that it was sent to, if that was set.
    pub partition: Option<i32>,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Its headers.
    pub headers: OwnedHeaders,
}

/// The smaller form of a record that came back.
#[derive(Debug)]
pub struct Reduced {
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Its headers.
    pub headers: OwnedHeaders,
}

/// The queue of delivery reports: the producers' callbacks fill it, and the member empties it.
#[derive(Debug, Clone, Default)]
pub struct DeliveryQueue(Arc<Mutex<Vec<(Delivery, DeliveryOutcome)>>>);

impl DeliveryQueue {
    pub(super) fn push(&self, delivery: Delivery, outcome: DeliveryOutcome) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((delivery, outcome));
    }

    /// Returns how many reports are in the queue.
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Takes all reports out of the queue, which goes on with the memory of `reports`: those in it are dropped.
    pub fn take_into(&self, reports: &mut Vec<(Delivery, DeliveryOutcome)>) {
        reports.clear();
        std::mem::swap(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), reports);
    }
}

/// Returns whether a record failed because of its size.
pub(super) fn is_too_large(code: Option<RDKafkaErrorCode>) -> bool {
    matches!(code, Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize))
}

impl Callbacks for DeliveryQueue {
    fn error(&self, error: KafkaError, reason: &str) {
        warn_of("producer", &error, reason);
    }
}

impl Deliveries for DeliveryQueue {
    type Tag = Box<Delivery>;

    fn delivered(&self, result: &DeliveryResult<'_>, delivery: Box<Delivery>) {
        let outcome = match result {
            Ok(message) if message.offset() >= 0 => DeliveryOutcome::Acknowledged,
            // librdkafka concludes it from the acknowledgement of a later record. The broker itself never took this one: see
            // `crate::kafka::producer_config`. This is how brokers call a record that is missing before another.
            Ok(message) => DeliveryOutcome::failed(RDKafkaErrorCode::OutOfOrderSequenceNumber, message.topic()),
            Err((error, message)) if is_too_large(error.rdkafka_error_code()) => DeliveryOutcome::TooLarge(Box::new(Returned {
                topic: message.topic().to_owned(),
                partition: Some(message.partition()).filter(|partition| *partition >= 0),
                key: message.key().map(<[u8]>::to_vec),
                value: message.payload().map(<[u8]>::to_vec),
                headers: message.headers().map_or_else(OwnedHeaders::new, BorrowedHeaders::detach),
            })),
            Err((error, message)) => DeliveryOutcome::failed(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail), message.topic()),
        };
        self.push(*delivery, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::Role;
    use crate::metrics::{Values, values};

    #[test]
    fn roles_are_labels_that_the_list_of_metrics_knows() {
        let roles = Role::ALL.map(Role::as_str);
        assert_eq!(values("tollgate_publish_failures_total", "role"), Values::Closed(roles.to_vec()));
    }
}
