//! What follows from one record: its publications, counted as they leave.

use rdkafka::message::OwnedHeaders;
use tollgate_core::record::{Offset, Partition};

use super::{Delivery, Outbox, Publication, Role};

/// The publications of one record. It waits for the acknowledgement of each.
#[derive(Debug)]
pub struct Publications<'o> {
    outbox: &'o mut Outbox,
    partition: Partition,
    offset: Offset,
    generation: u64,
    due: u32,
}

impl<'o> Publications<'o> {
    pub(super) fn new(outbox: &'o mut Outbox, partition: Partition, offset: Offset, generation: u64) -> Self {
        Self { outbox, partition, offset, generation, due: 0 }
    }

    /// Publishes something at once, on a topic and a partition of it; `None` lets the key decide. `event_time_ms` is the event's time in
    /// milliseconds since the epoch, for latencies.
    pub fn send(&mut self, role: Role, to: Destination<'_>, headers: OwnedHeaders, event_time_ms: Option<i64>) {
        let delivery = self.delivery(role, event_time_ms);
        let Destination { topic, partition, key, value } = to;
        self.outbox.send(Publication { topic, partition, key, value, headers, delivery });
    }

    /// Publishes the stage's own output, on the record's partition of the output topic and behind that of earlier records.
    pub fn push(&mut self, key: &[u8], value: &[u8], headers: OwnedHeaders, event_time_ms: Option<i64>) {
        let delivery = self.delivery(Role::Verdict, event_time_ms);
        self.outbox.push(key, value, headers, delivery);
    }

    /// Returns how many acknowledgements the record waits for.
    #[must_use]
    pub fn due(&self) -> u32 {
        self.due
    }

    fn delivery(&mut self, role: Role, event_time_ms: Option<i64>) -> Delivery {
        self.due += 1;
        let Self { partition, offset, generation, .. } = *self;
        Delivery { partition, generation, offset, role, event_time_ms, reductions: 0 }
    }
}

/// Where a publication goes, and what it holds.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition; `None` lets the key decide.
    pub partition: Option<i32>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
}
