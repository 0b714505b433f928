//! Publishes events for the log, with the address of this server's replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _};
use tokio::sync::oneshot;

use tollgate_config::settings::KafkaSettings;
use tollgate_core::event::record::Partition;
use tollgate_json::digest::Fingerprint;
use tollgate_worker::Stop;
use tollgate_worker::kafka::{Callbacks, Context, Deliveries, Linger, make_producer, verdict_producer_config};
use tollgate_worker::threads::MustRun;

use crate::events::Prepared;
use crate::refusal::Refusal;
use crate::shared::{CLAIM_REFUSED, CLOCK_WRONG, Condition, Shared};
use crate::watched::Current;

/// How long an event may wait for its acknowledgement, in milliseconds. Its client has an answer long before.
const ACKNOWLEDGED_WITHIN_MS: &str = "10000";
/// The largest batch, in bytes. Events beyond it go alone.
const BATCH_BYTES_MAX: u64 = 100_000;
/// How long to wait for delivery reports at a time.
const POLL: Duration = Duration::from_millis(100);
/// How long a stop waits for events that are on their way.
const FLUSH_MAX: Duration = Duration::from_secs(5);
/// The key of a claim, which is no thread.
pub(crate) const CLAIM_KEY: &str = "tollgate.serve/claim";

/// Who wants to know what became of a record.
#[derive(Debug)]
pub enum Tag {
    /// The requests that wait for this verdict, if the event was not published.
    Verdict(Fingerprint),
    /// A request that waits for the acknowledgement alone.
    Acknowledged(oneshot::Sender<Result<(), Refusal>>),
    /// Nobody.
    Claim,
}

/// The W3C trace context of a request, which its events carry on.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The header `traceparent`.
    pub parent: Option<String>,
    /// The header `tracestate`.
    pub state: Option<String>,
}

type Producer = BaseProducer<Context<Reports>>;

/// The producer of a server.
pub struct Publisher {
    producer: Current<Producer>,
    config: ClientConfig,
    reports: Reports,
    kafka: Arc<KafkaSettings>,
    partition: Partition,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").field("partition", &self.partition).finish_non_exhaustive()
    }
}

impl Publisher {
    /// Makes the producer, and starts the thread that takes its delivery reports.
    ///
    /// # Errors
    /// A property is wrong, or the system gives no more threads.
    pub fn start(
        kafka: &Arc<KafkaSettings>,
        partition: Partition,
        shared: &Arc<Shared>,
        (must_run, stop): (MustRun, &Stop),
    ) -> anyhow::Result<(Self, JoinHandle<()>)> {
        // An event that no broker took gets 503 and no verdict, and its client asks again. So several requests may be in flight.
        let mut config = verdict_producer_config(kafka, BATCH_BYTES_MAX, Linger::None);
        // These are two names of a property, of which either could win.
        config.set("message.timeout.ms", ACKNOWLEDGED_WITHIN_MS).remove("delivery.timeout.ms").set("client.id", "tollgate-serve");
        let reports = Reports { shared: Arc::clone(shared), has_lost: Arc::default() };
        let producer = Current::new(make_producer(&config, Context(reports.clone()))?);
        let (polled, stop) = (producer.clone(), stop.clone());
        let thread = must_run.spawn(move || {
            while !stop.is_for_good() {
                polled.get().poll(POLL);
            }
            let _left = polled.get().flush(FLUSH_MAX);
        })?;
        Ok((Self { producer, config, reports, kafka: Arc::clone(kafka), partition }, thread))
    }

    /// Takes a new producer. Events that the old producer still has are refused, and may be sent again.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn renew(&self) -> Result<(), KafkaError> {
        // The delivery reports of the old producer come while it is dropped.
        self.producer.set(make_producer(&self.config, Context(self.reports.clone()))?);
        Ok(())
    }

    /// Returns whether an event was given up because no broker has taken it in time, since the last question.
    pub fn has_lost(&self) -> bool {
        self.reports.has_lost.swap(false, Ordering::Relaxed)
    }

    /// Hands an event over, without waiting.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if the event cannot be handed over now.
    pub fn publish(&self, event: &Prepared, trace: &Trace, tag: Tag) -> Result<(), Refusal> {
        let (partition, verdict) = (self.partition.0.to_be_bytes(), event.verdict.to_string());
        let mut headers = OwnedHeaders::new_with_capacity(6).insert(Header { key: "content-type", value: Some("application/json") });
        if matches!(tag, Tag::Verdict(_)) {
            headers = headers
                .insert(Header { key: "kafka_replyTopic", value: Some(&self.kafka.topics.replies) })
                .insert(Header { key: "kafka_replyPartition", value: Some(&partition[..]) })
                .insert(Header { key: "kafka_correlationId", value: Some(&verdict) });
        }
        for (key, value) in [("traceparent", &trace.parent), ("tracestate", &trace.state)] {
            if let Some(value) = value {
                headers = headers.insert(Header { key, value: Some(value) });
            }
        }
        let record = BaseRecord::with_opaque_to(&self.kafka.topics.events, Box::new(tag))
            .key(event.thread_id.as_str())
            .payload(event.value.as_slice())
            .headers(headers);
        self.producer.get().send(record).map_err(|(error, _)| not_published(&error))
    }

    /// Publishes a claim on the server's own partition.
    ///
    /// # Errors
    /// The producer takes no record.
    pub fn claim(&self, claim: &[u8]) -> Result<(), KafkaError> {
        let record = BaseRecord::with_opaque_to(&self.kafka.topics.replies, Box::new(Tag::Claim))
            .partition(self.partition.0)
            .key(CLAIM_KEY)
            .payload(claim);
        self.producer.get().send(record).map_err(|(error, _)| error)
    }
}

const CLOCK_REFUSED: &str = "the topic does not take the time of this server's clock (message.timestamp.after.max.ms, \
    message.timestamp.before.max.ms); set the clocks of server and brokers right";

/// What is said where brokers refuse a record of a batch of several, and their code does not say why.
const CLOCK_LIKELY: &str = "the brokers refused an event of a batch, most often because the topic does not take the time of this server's \
    clock (message.timestamp.after.max.ms, message.timestamp.before.max.ms); compare the clocks of server and brokers";

/// Returns what a code says of the server's clock, if it says anything.
fn clock_fault(code: Option<RDKafkaErrorCode>) -> Option<&'static str> {
    match code? {
        RDKafkaErrorCode::InvalidTimestamp => Some(CLOCK_REFUSED),
        RDKafkaErrorCode::InvalidRecord | RDKafkaErrorCode::InvalidDifferentRecord => Some(CLOCK_LIKELY),
        _ => None,
    }
}

/// How brokers call a record that is missing before another.
const NOT_TAKEN: KafkaError = KafkaError::MessageProduction(RDKafkaErrorCode::OutOfOrderSequenceNumber);

/// Returns the refusal of an event that did not reach the log.
fn not_published(error: &KafkaError) -> Refusal {
    let code = error.rdkafka_error_code();
    if matches!(code, Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::MessageBatchTooLarge)) {
        let message = "the event is larger than the events topic takes; send less, or raise the topic's max.message.bytes (the embedded broker \
            of `tollgate dev` takes 2.5 MiB)";
        return Refusal::new(axum::http::StatusCode::PAYLOAD_TOO_LARGE, "event_too_large", message);
    }
    if let Some(fault) = clock_fault(code) {
        return Refusal::unavailable(CLOCK_WRONG, fault);
    }
    Refusal::unavailable("not_published", format!("the event did not reach the events topic: {error}; try again"))
}

/// Takes delivery reports.
#[derive(Debug, Clone)]
pub struct Reports {
    shared: Arc<Shared>,
    has_lost: Arc<AtomicBool>,
}

impl Callbacks for Reports {}

impl Deliveries for Reports {
    type Tag = Box<Tag>;

    fn delivered(&self, result: &DeliveryResult<'_>, tag: Box<Tag>) {
        let outcome = match result {
            Ok(message) if message.offset() >= 0 => Ok(()),
            // librdkafka concludes it from the acknowledgement of a later record. The broker itself never took this record.
            Ok(_) => Err(&NOT_TAKEN),
            Err((error, _)) => Err(error),
        };
        let code = outcome.err().and_then(KafkaError::rdkafka_error_code);
        if code == Some(RDKafkaErrorCode::MessageTimedOut) {
            self.has_lost.store(true, Ordering::Relaxed);
        }
        if !matches!(*tag, Tag::Claim) {
            self.shared.set_warning("serve clock", clock_fault(code).map(str::to_owned));
        }
        match (*tag, outcome) {
            (Tag::Verdict(_), Ok(())) => {}
            (Tag::Claim, Ok(())) => self.shared.claim_written(),
            (Tag::Verdict(verdict), Err(error)) => self.shared.with_waits(|waits| waits.fail(verdict, &not_published(error))),
            (Tag::Acknowledged(sender), outcome) => {
                // The request may have gone.
                let _gone = sender.send(outcome.map_err(not_published));
            }
            (Tag::Claim, Err(error)) => {
                tracing::warn!(%error, "the server's claim on its partition of the replies topic was not written");
                // Where brokers are away, the reader of the replies says so. A producer that was renewed has purged what it had.
                let is_silence = matches!(
                    code,
                    Some(RDKafkaErrorCode::MessageTimedOut | RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::PurgeInflight)
                );
                if !is_silence {
                    let why = clock_fault(code)
                        .map_or_else(|| format!("the replies topic does not take this server's claim: {error}"), str::to_owned);
                    let code = if clock_fault(code).is_some() { CLOCK_WRONG } else { CLAIM_REFUSED };
                    self.shared.set(Condition::CutOff { code, why });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a batch of several records the brokers' own code does not say that it is the clock.
    #[test]
    fn a_clock_is_named_for_each_code_that_means_one() {
        let refusal = |code| not_published(&KafkaError::MessageProduction(code)).code;
        for code in [RDKafkaErrorCode::InvalidTimestamp, RDKafkaErrorCode::InvalidRecord, RDKafkaErrorCode::InvalidDifferentRecord] {
            assert_eq!(refusal(code), "clock_wrong", "{code:?}");
        }
        assert_eq!(refusal(RDKafkaErrorCode::MessageSizeTooLarge), "event_too_large");
        assert_eq!(refusal(RDKafkaErrorCode::NotEnoughReplicas), "not_published");
    }
}
