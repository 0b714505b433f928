//! Reads the server's own partition of the replies topic, and finds out whether replies arrive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde::Deserialize;

use tollgate_config::settings::KafkaSettings;
use tollgate_core::event::record::Partition;
use tollgate_json::digest::Fingerprint;
use tollgate_worker::Stop;
use tollgate_worker::kafka::{AssignsItself, Callbacks, Context, consumer_config, is_unreachable, make_consumer, statistics};

use crate::claim::{Claim, ClaimState, Claims, INTERVAL};
use crate::publisher::{CLAIM_KEY, Publisher};
use crate::shared::{Condition, Shared};
use crate::watch::{ReplyPartition, UNHEARD};

/// How long to wait for a reply at a time. A reply that comes ends the wait.
const POLL: Duration = Duration::from_millis(50);
/// How long claims may stay away before the reader makes a new consumer. After a leader was away, librdkafka may wait for the next one for ever.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The reader of replies.
pub struct Replies {
    /// Brokers and topics.
    pub kafka: Arc<KafkaSettings>,
    /// The partition that this server alone reads.
    pub partition: Partition,
    /// What requests share with the reader.
    pub shared: Arc<Shared>,
    /// Publishes the claims.
    pub publisher: Arc<Publisher>,
    /// The claims on the partition.
    pub claims: Claims,
    /// What the watch on topics has found of the partition.
    pub found: ReplyPartition,
    /// The sign to stop.
    pub stop: Stop,
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replies").field("partition", &self.partition).finish_non_exhaustive()
    }
}

/// The member of a verdict that says whose verdict it is.
#[derive(Debug, Deserialize)]
struct VerdictId<'a> {
    verdict_id: &'a str,
}

impl Replies {
    /// Returns the consumer of the partition.
    ///
    /// # Errors
    /// A property is wrong.
    pub fn consumer(
        kafka: &KafkaSettings,
        partition: Partition,
        shared: &Arc<Shared>,
    ) -> Result<BaseConsumer<Context<Contact>>, KafkaError> {
        let contact = Contact { topic: kafka.topics.replies.clone(), partition, shared: Arc::clone(shared) };
        make_consumer(&replies_config(kafka), Context(contact))
    }

    /// Reads replies until the sign to stop.
    ///
    /// # Errors
    /// Another server has the partition, or the consumer is beyond repair.
    pub fn run(mut self, mut consumer: BaseConsumer<Context<Contact>>) -> anyhow::Result<()> {
        // A new consumer goes on behind the last reply that was read: verdicts may have come while nobody read.
        let mut next = Offset::End;
        while self.find_partition(&consumer) {
            let mut places = TopicPartitionList::new();
            places.add_partition_offset(&self.kafka.topics.replies, self.partition.0, next)?;
            consumer.assign(&places)?;
            self.read(&consumer, &mut next)?;
            if !self.stop.is_for_good() {
                tracing::warn!(
                    "the server's own claims do not come back: reading the replies with a new consumer, and writing with a new producer"
                );
                consumer = Self::consumer(&self.kafka, self.partition, &self.shared)?;
                self.publisher.renew()?;
            }
        }
        Ok(())
    }

    /// Reads replies until the sign to stop, or until nothing has come back for too long. `next` is kept behind the last reply.
    fn read(&mut self, consumer: &BaseConsumer<Context<Contact>>, next: &mut Offset) -> anyhow::Result<()> {
        let (mut looked, mut claimed): (Option<Instant>, Option<Instant>) = (None, None);
        let mut heard = Instant::now();
        while !self.stop.is_for_good() && heard.elapsed() < SILENCE_MAX {
            // What is due now and then is not looked at for every reply.
            if looked.is_none_or(|at| at.elapsed() >= POLL) {
                looked = Some(Instant::now());
                self.shared.beat();
                // A server that drains leaves the partition to the next server, and reads what its own requests wait for.
                if self.shared.condition() == Condition::Draining {
                    heard = Instant::now();
                } else {
                    if claimed.is_none_or(|at| at.elapsed() >= INTERVAL) {
                        claimed = looked;
                        self.claim();
                    }
                    if self.look()? {
                        heard = Instant::now();
                        self.renew_after_loss()?;
                    }
                }
            }
            match consumer.poll(POLL) {
                None => {}
                Some(Ok(message)) => {
                    *next = Offset::Offset(message.offset().saturating_add(1));
                    self.take(message.key(), message.payload().unwrap_or_default());
                }
                // librdkafka connects again by itself.
                Some(Err(KafkaError::MessageConsumption(code))) if is_unreachable(code) => {}
                Some(Err(error)) => tracing::warn!(%error, "replies"),
            }
        }
        Ok(())
    }

    /// Takes a new producer where an event was lost: the leader of another partition may have been away.
    fn renew_after_loss(&self) -> Result<(), KafkaError> {
        if !self.publisher.has_lost() {
            return Ok(());
        }
        tracing::warn!("no broker has taken an event in time: writing with a new producer");
        self.publisher.renew()
    }

    /// Waits until the partition is there. Returns whether it is, which it is not if the sign to stop came first.
    fn find_partition(&self, consumer: &BaseConsumer<Context<Contact>>) -> bool {
        while !self.stop.is_for_good() {
            self.shared.beat();
            match &*self.found.get() {
                Some(Ok(())) => return true,
                Some(Err(cut_off)) => self.shared.set(cut_off.clone()),
                None => {}
            }
            // Errors of the connection are said while the client is polled.
            let _event = consumer.poll(POLL);
        }
        false
    }

    fn claim(&self) {
        let claim = serde_json::to_vec(self.claims.own()).unwrap_or_default();
        if let Err(error) = self.publisher.claim(&claim) {
            tracing::warn!(%error, "the server's claim on its partition of the replies topic was not written");
        }
    }

    fn take(&mut self, key: Option<&[u8]>, value: &[u8]) {
        if key == Some(CLAIM_KEY.as_bytes()) {
            if let Ok(claim) = serde_json::from_slice::<Claim>(value) {
                self.claims.read(claim, Instant::now());
            }
            return;
        }
        // Whoever names the topic in an event gets a verdict here. A verdict that nobody awaits is passed over.
        let id = serde_json::from_slice::<VerdictId<'_>>(value).ok().and_then(|verdict| Fingerprint::parse(verdict.verdict_id));
        if let Some(id) = id {
            self.shared.answer(id, &value.into());
        }
    }

    /// Acts on the claims. Returns whether the server's own claims come back.
    fn look(&mut self) -> anyhow::Result<bool> {
        let (topic, number) = (&self.kafka.topics.replies, self.partition.0);
        let state = self.claims.state(Instant::now());
        match &state {
            ClaimState::Looking => return Ok(false),
            ClaimState::Taken(host) => anyhow::bail!(
                "serve.partition: partition {number} of {topic} is read by another server already, on host {host}; give each server a partition \
                 of its own"
            ),
            ClaimState::Unheard => {
                if self.shared.condition() == Condition::Ready {
                    let why = format!(
                        "what this server writes to partition {number} of {topic} no longer comes back, so no verdict would; see whether the \
                         topic is there and its broker answers"
                    );
                    self.shared.set(Condition::CutOff { code: UNHEARD, why });
                }
                return Ok(false);
            }
            ClaimState::Own => self.shared.set_other_server(None),
            ClaimState::Shared(host) => self.shared.set_other_server(Some(format!(
                "partition {number} of {topic} is read by another server too, on host {host}; give each server a serve.partition of its own"
            ))),
        }
        if matches!(self.shared.condition(), Condition::Starting | Condition::CutOff { code: UNHEARD, .. }) {
            self.shared.set(Condition::Ready);
        }
        Ok(true)
    }
}

/// Returns the configuration of the consumer. It names the group and never joins it.
fn replies_config(kafka: &KafkaSettings) -> ClientConfig {
    let mut config = consumer_config(kafka, &kafka.group_id, None);
    config
        .set("client.id", "tollgate-serve")
        // In a topic that was made anew, nobody waits for replies that are there already.
        .set("auto.offset.reset", "latest")
        // A verdict never waits for others, whatever is configured for the events.
        .set("fetch.min.bytes", "1")
        .set("fetch.wait.max.ms", "500")
        .set("fetch.queue.backoff.ms", "5")
        // Half a second after the brokers have gone, requests are refused.
        .set("statistics.interval.ms", "500")
        .set("topic.metadata.refresh.fast.interval.ms", "20");
    config
}

/// The callbacks of the consumer: they say whether the leader of the partition can be reached.
#[derive(Debug)]
pub struct Contact {
    topic: String,
    partition: Partition,
    shared: Arc<Shared>,
}

impl Contact {
    /// Notes whether the broker that leads the partition can be reached.
    fn reaches(&self, is_up: bool) {
        match self.shared.condition() {
            // Whether replies arrive and the partition is the server's own is for the reader of claims to say.
            Condition::CutOff { code: "kafka_unreachable", .. } if is_up => self.shared.set(Condition::Starting),
            Condition::Ready if !is_up => {
                let why = format!("the broker that leads partition {} of {} cannot be reached", self.partition.0, self.topic);
                self.shared.set(Condition::CutOff { code: "kafka_unreachable", why });
            }
            _ => {}
        }
    }
}

impl Callbacks for Contact {
    fn statistics(&self, json: &[u8]) {
        let Some(statistics) = statistics(json) else { return };
        let partition = statistics.topics.get(&self.topic).and_then(|topic| topic.partitions.get(&self.partition.0));
        let Some(partition) = partition else { return };
        self.shared.metrics.serve_reply_lag.set(partition.consumer_lag.max(0));
        let is_up = statistics.brokers.values().any(|broker| broker.nodeid == partition.leader && broker.state == "UP");
        self.reaches(is_up);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) && self.shared.condition() == Condition::Ready {
            let why = "no broker can be reached".to_owned();
            self.shared.set(Condition::CutOff { code: "kafka_unreachable", why });
        }
        tracing::debug!(target: "librdkafka", %error, reason, "replies");
    }
}

impl AssignsItself for Contact {}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_worker::health::Health;
    use tollgate_worker::metrics::Metrics;

    use crate::waits::Waits;

    #[test]
    fn a_leader_that_is_back_makes_no_server_ready_by_itself() {
        let shared = Arc::new(Shared::new(Waits::new(1, 1), Partition(0), Arc::new(Health::default()), Metrics::new().unwrap()));
        let contact = Contact { topic: "replies".to_owned(), partition: Partition(0), shared: Arc::clone(&shared) };
        let after = |is_up| {
            contact.reaches(is_up);
            shared.condition()
        };
        shared.set(Condition::CutOff { code: "kafka_unreachable", why: "at the start".to_owned() });
        assert_eq!(after(true), Condition::Starting, "the server's own claim has not come back");
        shared.set(Condition::Ready);
        assert!(matches!(after(false), Condition::CutOff { code: "kafka_unreachable", .. }));
        assert_eq!(after(true), Condition::Starting);
    }

    #[test]
    fn what_is_configured_for_events_never_holds_up_a_reply() {
        let mut kafka = tollgate_config::load(None, []).unwrap().kafka;
        for key in ["fetch.min.bytes", "fetch.wait.max.ms", "fetch.queue.backoff.ms"] {
            kafka.properties.insert(key.to_owned(), "20000".to_owned());
        }
        let config = replies_config(&kafka);
        let values = ["fetch.min.bytes", "fetch.wait.max.ms", "fetch.queue.backoff.ms"].map(|key| config.get(key));
        assert_eq!(values, [Some("1"), Some("500"), Some("5")]);
    }
}
