//! The waiting publications of one partition: when they are handed over to librdkafka, and to which producer.
//!
//! An idempotent producer of librdkafka sends no more of a partition while five of its messages are not acknowledged. If their linger time
//! is over, it waits for acknowledgements in a busy loop: with a linger of zero that cost more CPU than deciding did. So publications wait
//! here instead. A few leave at once, by the low-latency producer. More of them leave together once everything before them is acknowledged,
//! by the batched producer, whose linger is just long enough to put them in one request.
//!
//! All publications of a partition that are in flight use one producer, so they stay in order.

use rdkafka::message::OwnedHeaders;

use super::{Delivery, ProducerKind, Producers, Publication};

/// How many messages of a partition librdkafka sends without waiting for acknowledgements.
const LOW_LATENCY_MAX: usize = 5;

/// Publications of one partition that wait, with a count of those in flight.
#[derive(Debug)]
pub(super) struct Batch {
    /// The keys and values of the publications that wait, one after the other.
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
    /// How many publications were handed over and are not acknowledged, and to which producer.
    handed_over: usize,
    producer: ProducerKind,
}

#[derive(Debug)]
struct Waiting {
    key_bytes: usize,
    value_bytes: usize,
    headers: OwnedHeaders,
    delivery: Delivery,
}

impl Default for Batch {
    fn default() -> Self {
        Self { bytes: Vec::new(), waiting: Vec::new(), handed_over: 0, producer: ProducerKind::LowLatency }
    }
}

impl Batch {
    /// Adds a publication.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8], headers: OwnedHeaders, delivery: Delivery) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.waiting.push(Waiting { key_bytes: key.len(), value_bytes: value.len(), headers, delivery });
    }

    /// Returns how many publications wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Notes that one publication is acknowledged, or given up.
    pub(super) fn acknowledge(&mut self) {
        self.handed_over = self.handed_over.saturating_sub(1);
    }

    /// Hands over what waits, if it may leave now.
    pub(super) fn send(&mut self, producers: &Producers, topic: &str) {
        let Some(kind) = producer_for(self.waiting.len(), self.handed_over, self.producer) else { return };
        self.producer = kind;
        self.handed_over += self.waiting.len();
        let mut rest = self.bytes.as_slice();
        let mut take = |bytes: usize| {
            let (taken, behind) = rest.split_at_checked(bytes).unwrap_or_default();
            rest = behind;
            taken
        };
        for Waiting { key_bytes, value_bytes, headers, delivery } in self.waiting.drain(..) {
            let (key, value) = (Some(take(key_bytes)), Some(take(value_bytes)));
            let partition = Some(delivery.partition.0);
            producers.send(kind, Publication { topic, partition, key, value, headers, delivery });
        }
        self.bytes.clear();
    }
}

/// Returns the producer for publications that wait behind others which went to `last`, or `None` while they have to wait.
fn producer_for(waiting: usize, handed_over: usize, last: ProducerKind) -> Option<ProducerKind> {
    match (waiting, handed_over) {
        (0, _) => None,
        (1..=LOW_LATENCY_MAX, 0) => Some(ProducerKind::LowLatency),
        (_, 0) => Some(ProducerKind::Batched),
        _ => (last == ProducerKind::LowLatency && waiting + handed_over <= LOW_LATENCY_MAX).then_some(ProducerKind::LowLatency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_leave_at_once_and_many_wait_for_those_before_them() {
        for (waiting, handed_over, last, expected) in [
            (0, 0, ProducerKind::LowLatency, None),
            (1, 0, ProducerKind::Batched, Some(ProducerKind::LowLatency)),
            (5, 0, ProducerKind::LowLatency, Some(ProducerKind::LowLatency)),
            (6, 0, ProducerKind::LowLatency, Some(ProducerKind::Batched)),
            (1, 4, ProducerKind::LowLatency, Some(ProducerKind::LowLatency)),
            (2, 4, ProducerKind::LowLatency, None),
            (1, 1, ProducerKind::Batched, None),
            (500, 1, ProducerKind::LowLatency, None),
        ] {
            assert_eq!(producer_for(waiting, handed_over, last), expected, "{waiting} behind {handed_over}");
        }
    }
}
