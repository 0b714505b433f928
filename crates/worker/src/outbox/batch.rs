//! The waiting publications of one partition: when they are handed over to librdkafka, and to which producer.
//!
//! Nothing of a partition is handed over before all that went ahead is acknowledged. So a broker that has just come to lead the partition
//! cannot refuse one publication and take the next ([`crate::kafka::producer_config`] has the reason). And librdkafka does not have to wait
//! for acknowledgements itself: an idempotent producer sends no more of a partition while five of its messages are not acknowledged, and
//! waits in a busy loop if their linger time is over, which cost more CPU than deciding did.
//!
//! One publication leaves at once, by the low-latency producer. Several leave together, by the batched producer, whose linger is just long
//! enough to put them in one request.

use rdkafka::message::OwnedHeaders;

use super::{Delivery, ProducerKind, Producers, Publication};

/// Publications of one partition that wait, with a count of those in flight.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The keys and values of the publications that wait, one after the other.
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
    /// How many publications were handed over and are not acknowledged.
    handed_over: usize,
}

#[derive(Debug)]
struct Waiting {
    key_bytes: usize,
    value_bytes: usize,
    headers: OwnedHeaders,
    delivery: Delivery,
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
        let Some(kind) = producer_for(self.waiting.len(), self.handed_over) else { return };
        self.handed_over = self.waiting.len();
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

/// Returns the producer for publications that wait, or `None` while they have to.
fn producer_for(waiting: usize, handed_over: usize) -> Option<ProducerKind> {
    match (waiting, handed_over) {
        (0, _) | (_, 1..) => None,
        (1, 0) => Some(ProducerKind::LowLatency),
        (_, 0) => Some(ProducerKind::Batched),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leaves_at_once_and_all_wait_for_those_before_them() {
        for (waiting, handed_over, expected) in [
            (0, 0, None),
            (1, 0, Some(ProducerKind::LowLatency)),
            (2, 0, Some(ProducerKind::Batched)),
            (500, 0, Some(ProducerKind::Batched)),
            (0, 1, None),
            (1, 1, None),
            (500, 1, None),
            (1, 500, None),
        ] {
            assert_eq!(producer_for(waiting, handed_over), expected, "{waiting} behind {handed_over}");
        }
    }
}
