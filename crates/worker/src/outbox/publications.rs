//! What follows from one record: its publications, counted as they leave.

use rdkafka::message::OwnedHeaders;
use tollgate_core::event::record::{Offset, Partition};

use super::{Delivery, Outbox, Publication, Role, Waiter};

/// The publications of one record. It waits for the acknowledgement of each.
#[derive(Debug)]
pub struct Publications<'o> {
    outbox: &'o mut Outbox,
    partition: Partition,
    offset: Offset,
    generation: u64,
    unacknowledged: u32,
}

impl<'o> Publications<'o> {
    pub(super) fn new(outbox: &'o mut Outbox, partition: Partition, offset: Offset, generation: u64) -> Self {
        Self { outbox, partition, offset, generation, unacknowledged: 0 }
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

    /// Has the record wait for publications that are made later, with [`LatePublications`].
    pub fn await_later(&mut self, count: u32) {
        self.unacknowledged += count;
    }

    /// Returns the record, as late publications name it.
    #[must_use]
    pub fn waiter(&self) -> Waiter {
        Waiter { partition: self.partition, generation: self.generation, offset: self.offset }
    }

    /// Returns how many acknowledgements the record waits for.
    #[must_use]
    pub fn unacknowledged(&self) -> u32 {
        self.unacknowledged
    }

    fn delivery(&mut self, role: Role, event_time_ms: Option<i64>) -> Delivery {
        self.unacknowledged += 1;
        self.waiter().delivery(role, event_time_ms)
    }
}

/// What a stage publishes later than with a record: for several records at once, for an earlier one, or for none.
#[derive(Debug)]
pub struct LatePublications<'o>(pub(super) &'o mut Outbox);

impl LatePublications<'_> {
    /// Publishes something that an earlier record waits for: one of those that it counted with [`Publications::await_later`].
    pub fn send(&mut self, role: Role, to: Destination<'_>, waiter: Waiter) {
        let Destination { topic, partition, key, value } = to;
        let delivery = waiter.delivery(role, None);
        self.0.send(Publication { topic, partition, key, value, headers: OwnedHeaders::new(), delivery });
    }

    /// Publishes something that these records wait for, each of which counted it with [`Publications::await_later`]. Its acknowledgement is
    /// one of each. There may be none.
    pub fn send_shared(&mut self, role: Role, to: Destination<'_>, waiters: Vec<Waiter>) {
        self.0.send_shared(role, to, waiters);
    }

    /// Returns whether no shared publication waits for its acknowledgement.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.shared.is_empty()
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
