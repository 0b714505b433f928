//! The verdicts of one partition on their way: when they are handed over to librdkafka, and by which door.
//!
//! An idempotent producer of librdkafka sends nothing more of a partition while five of its messages are not acknowledged, and where their
//! time to linger is over it waits for that by spinning: at a linger of nothing this cost more CPU than deciding did. So verdicts wait here
//! instead. As long as there are few, they leave at once, by a producer that does not linger. More than that go together when everything
//! before them is acknowledged, by one that lingers for long enough to make one request of them.
//!
//! What a partition has on its way went by one door, so its verdicts stay in order.

use rdkafka::message::OwnedHeaders;

use super::{Delivery, Door, Outgoing, Publisher};

/// So many of a partition's messages librdkafka sends without waiting for acknowledgements.
const PROMPT_MAX: usize = 5;

/// See the module.
#[derive(Debug)]
pub(super) struct Batch {
    /// Keys and values of those that wait, one after the other.
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
    /// How many were handed over and are not acknowledged, and by which door they went.
    handed_over: usize,
    door: Door,
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
        Self { bytes: Vec::new(), waiting: Vec::new(), handed_over: 0, door: Door::Prompt }
    }
}

impl Batch {
    /// Takes a verdict in.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8], headers: OwnedHeaders, delivery: Delivery) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.waiting.push(Waiting { key_bytes: key.len(), value_bytes: value.len(), headers, delivery });
    }

    /// How many verdicts wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Notes that one is acknowledged, or given up.
    pub(super) fn acknowledge(&mut self) {
        self.handed_over = self.handed_over.saturating_sub(1);
    }

    /// Hands over what waits, if it is time.
    pub(super) fn send(&mut self, publisher: &Publisher, topic: &str) {
        let Some(door) = door(self.waiting.len(), self.handed_over, self.door) else { return };
        self.door = door;
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
            publisher.send(Outgoing { door, topic, partition, key, value, headers, delivery });
        }
        self.bytes.clear();
    }
}

/// By which door verdicts may leave that wait behind others which left by `last`; `None` while they have to wait.
fn door(waiting: usize, handed_over: usize, last: Door) -> Option<Door> {
    match (waiting, handed_over) {
        (0, _) => None,
        (1..=PROMPT_MAX, 0) => Some(Door::Prompt),
        (_, 0) => Some(Door::Bulk),
        _ => (last == Door::Prompt && waiting + handed_over <= PROMPT_MAX).then_some(Door::Prompt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_leave_at_once_and_many_wait_for_those_before_them() {
        for (waiting, handed_over, last, expected) in [
            (0, 0, Door::Prompt, None),
            (1, 0, Door::Bulk, Some(Door::Prompt)),
            (5, 0, Door::Prompt, Some(Door::Prompt)),
            (6, 0, Door::Prompt, Some(Door::Bulk)),
            (1, 4, Door::Prompt, Some(Door::Prompt)),
            (2, 4, Door::Prompt, None),
            (1, 1, Door::Bulk, None),
            (500, 1, Door::Prompt, None),
        ] {
            assert_eq!(door(waiting, handed_over, last), expected, "{waiting} behind {handed_over}");
        }
    }
}
