//! The outbox: it publishes records to Kafka and reports the outcome of each publication.
//!
//! ```text
//! push ─▶ batch of its partition ─flush─▶ low-latency or batched producer ─┐
//! send ────────────────────────────────▶ producer by role ────────────────┼─▶ broker ─▶ settle: acknowledged, smaller, refused
//! send_shared ─▶ who waits for it ──────▶ producer by role ────────────────┘                     └─▶ once for each record that waits
//! ```

mod batch;
mod delivery;
mod producers;
mod publications;
mod refusal;
mod shared;
#[cfg(test)]
mod tests;

pub use delivery::{Delivery, DeliveryOutcome, DeliveryQueue, Reduced, Returned, Role, Waiter};
pub use producers::{ProducerKind, Producers, Publication};
pub use publications::{Destination, LatePublications, Publications};
pub use refusal::{Refusal, hint};

use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::OwnedHeaders;
use rustc_hash::FxHashMap;
use tollgate_core::event::record::{Partition, Record};

use crate::metrics::Metrics;

use batch::Batch;
use shared::Shared;

/// The topics that a stage publishes to.
#[derive(Debug, Clone)]
pub struct OutboxTopics {
    /// The topic of the stage's output. Each output goes to the partition of the record that it is about.
    pub output: String,
    /// The topic of records that could not be read.
    pub dead_letters: String,
    /// The topics of other roles.
    pub others: Vec<(Role, String)>,
}

impl OutboxTopics {
    /// Returns the topic of a role. Replies go to topics that events name; they have none.
    #[must_use]
    pub fn of(&self, role: Role) -> &str {
        match role {
            Role::Verdict => &self.output,
            Role::DeadLetter => &self.dead_letters,
            other => self.others.iter().find(|(role, _)| *role == other).map_or("", |(_, topic)| topic),
        }
    }
}

/// Returns something smaller to publish in place of what its topic does not take, or `None` if there is nothing left to leave out.
pub type Reduce = Arc<dyn Fn(&Delivery, &Returned) -> Option<Reduced> + Send + Sync>;

/// The publications of one member.
pub struct Outbox {
    producers: Producers,
    /// Waiting publications to the output topic, by partition.
    batches: FxHashMap<Partition, Batch>,
    topics: OutboxTopics,
    reduce: Reduce,
    /// Who waits for shared publications.
    shared: Shared,
    /// The reports of one round, whose memory the next round takes.
    reports: Vec<(Delivery, DeliveryOutcome)>,
    metrics: Metrics,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("topics", &self.topics).finish_non_exhaustive()
    }
}

/// The outcomes of publications since the last call.
#[derive(Debug, Default)]
pub struct Settled {
    /// Publications that are acknowledged or given up.
    pub finished: Vec<Delivery>,
    /// The first publication that the broker refused.
    pub refusal: Option<Refusal>,
}

impl Outbox {
    /// Returns an outbox over a member's producers.
    #[must_use]
    pub fn new(producers: Producers, topics: OutboxTopics, reduce: Reduce, metrics: Metrics) -> Self {
        Self { producers, batches: FxHashMap::default(), topics, reduce, shared: Shared::default(), reports: Vec::new(), metrics }
    }

    /// Returns where to publish what follows from no single record, or from one later.
    pub fn late(&mut self) -> LatePublications<'_> {
        LatePublications(self)
    }

    /// Hands a publication over that these records wait for.
    fn send_shared(&mut self, role: Role, to: Destination<'_>, waiters: Vec<Waiter>) {
        let Destination { topic, partition, key, value } = to;
        let delivery = self.shared.begin(role, waiters);
        self.send(Publication { topic, partition, key, value, headers: OwnedHeaders::new(), delivery });
    }

    /// Returns where to publish what follows from a record of an assignment of its partition.
    pub fn for_record<'o>(&'o mut self, record: &Record<'_>, generation: u64) -> Publications<'o> {
        Publications::new(self, record.partition, record.offset, generation)
    }

    /// Hands a publication over to the producer of its role.
    pub fn send(&self, publication: Publication<'_>) {
        self.producers.send(ProducerKind::of(publication.delivery.role), publication);
    }

    /// Adds a publication to the output topic. It leaves with [`Outbox::flush`], in order within its partition.
    pub fn push(&mut self, key: &[u8], value: &[u8], headers: OwnedHeaders, delivery: Delivery) {
        self.batches.entry(delivery.partition).or_default().push(key, value, headers, delivery);
    }

    /// Hands waiting publications over to librdkafka, as far as it would send them. Call it after each round of records: publications wait
    /// for the others of their round and for acknowledgements, but never for time to pass.
    pub fn flush(&mut self) {
        self.batches.values_mut().for_each(|batch| batch.send(&self.producers, &self.topics.output));
    }

    /// Serves the producers for up to `timeout`, and puts the outcomes of publications since the last time into `settled`, in place of what
    /// is there. What is too large for its topic is published smaller, and its record keeps waiting.
    pub fn settle(&mut self, timeout: Duration, settled: &mut Settled) {
        settled.finished.clear();
        settled.refusal = None;
        let mut reports = std::mem::take(&mut self.reports);
        self.producers.poll(timeout, &mut reports);
        for (delivery, outcome) in reports.drain(..) {
            match outcome {
                DeliveryOutcome::Acknowledged => {
                    if delivery.role == Role::Reply {
                        self.metrics.replies.with_label_values(&["published"]).inc();
                    }
                    self.shared.end(delivery, &mut settled.finished);
                }
                DeliveryOutcome::TooLarge(returned) => {
                    if let Some(given_up) = self.publish_smaller(delivery, *returned) {
                        self.shared.end(given_up, &mut settled.finished);
                    }
                }
                DeliveryOutcome::Failed { code, topic } => self.refused(delivery, code, topic, settled),
            }
        }
        for delivery in settled.finished.iter().filter(|delivery| delivery.role == Role::Verdict) {
            if let Some(batch) = self.batches.get_mut(&delivery.partition) {
                batch.acknowledge();
            }
        }
        self.reports = reports;
    }

    /// Publishes something smaller in place of what its topic does not take. What cannot be made smaller is given up and counted, since
    /// otherwise it would block its partition for ever.
    fn publish_smaller(&self, delivery: Delivery, returned: Returned) -> Option<Delivery> {
        self.count_failure(&delivery, RDKafkaErrorCode::MessageSizeTooLarge);
        let Some(Reduced { key, value, headers }) = (self.reduce)(&delivery, &returned) else {
            let (partition, offset, role) = (delivery.partition, delivery.offset, delivery.role.as_str());
            tracing::error!(%partition, %offset, role, topic = returned.topic, "too large for its topic in any form, and given up");
            return Some(delivery);
        };
        if delivery.role == Role::DeadLetter && delivery.reductions == 0 {
            self.metrics.dead_letters_without_value.inc();
        }
        let delivery = Delivery { reductions: delivery.reductions + 1, ..delivery };
        let (topic, partition) = (returned.topic.as_str(), returned.partition);
        self.send(Publication { topic, partition, key: key.as_deref(), value: value.as_deref(), headers, delivery });
        None
    }

    fn refused(&self, delivery: Delivery, code: RDKafkaErrorCode, topic: String, settled: &mut Settled) {
        // A producer that has failed for good knows why.
        let code = if code == RDKafkaErrorCode::Fatal { self.producers.fatal_error().unwrap_or(code) } else { code };
        // The producer is being dropped and discards what it holds; the records are read again.
        if matches!(code, RDKafkaErrorCode::PurgeInflight | RDKafkaErrorCode::PurgeQueue) {
            return;
        }
        self.count_failure(&delivery, code);
        // The sender chose the reply topic, and the verdict is on the output topic all the same.
        if delivery.role == Role::Reply {
            self.metrics.replies.with_label_values(&["failed"]).inc();
            let (partition, offset) = (delivery.partition, delivery.offset);
            tracing::warn!(%partition, %offset, topic = %topic.escape_debug(), %code, "a reply could not be published");
            return settled.finished.push(delivery);
        }
        let partition = delivery.shared.is_none().then_some(delivery.partition);
        settled.refusal.get_or_insert(Refusal { role: delivery.role, topic, code, partition });
    }

    fn count_failure(&self, delivery: &Delivery, code: RDKafkaErrorCode) {
        self.metrics.publish_failures.with_label_values(&[delivery.role.as_str(), &code.to_string()]).inc();
    }

    /// Returns how many publications are not acknowledged.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.producers.in_flight() + self.batches.values().map(Batch::waiting).sum::<usize>()
    }
}
