//! Produces records: every one is acknowledged before a test goes on.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{Header, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext};

use super::{Cluster, Outgoing, POLL_INTERVAL, Position};

/// How long records may take. A broker that restarts is away for long on a busy machine.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(120);

impl Cluster {
    /// Produces records in order and waits until all are acknowledged; returns where each of them is.
    ///
    /// # Errors
    /// A record is refused, or not acknowledged in time.
    pub fn produce(&self, topic: &str, records: &[Outgoing]) -> Result<Vec<Position>> {
        let acknowledged: Vec<Acknowledgement> = records.iter().map(|record| send(&self.producer, topic, record)).collect::<Result<_>>()?;
        self.producer.flush(FLUSH_TIME_MAX)?;
        acknowledged.iter().map(|position| Ok(position.get().context("a record was never acknowledged")?.clone()?)).collect()
    }
}

type Acknowledgement = Arc<OnceLock<KafkaResult<Position>>>;

/// Stores each delivery report where the sender of the record looks for it.
pub(super) struct Acknowledgements;

impl ClientContext for Acknowledgements {}

impl ProducerContext for Acknowledgements {
    type DeliveryOpaque = Acknowledgement;

    fn delivery(&self, result: &DeliveryResult<'_>, acknowledgement: Acknowledgement) {
        let position = match result {
            Ok(message) => Ok(Position { partition: message.partition(), offset: message.offset() }),
            Err((error, _)) => Err(error.clone()),
        };
        acknowledgement.set(position).expect("a record is reported once");
    }
}

fn send(producer: &BaseProducer<Acknowledgements>, topic: &str, record: &Outgoing) -> Result<Acknowledgement> {
    let acknowledgement = Acknowledgement::default();
    let headers =
        record.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: value.as_ref() }));
    let mut unsent: BaseRecord<'_, [u8], [u8], Acknowledgement> = BaseRecord::with_opaque_to(topic, Arc::clone(&acknowledgement));
    unsent.key = record.key.as_deref();
    unsent.payload = record.value.as_deref();
    unsent.partition = record.partition;
    unsent.timestamp = record.timestamp;
    unsent.headers = (!record.headers.is_empty()).then_some(headers);
    while let Err((error, refused)) = producer.send(unsent) {
        ensure!(error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull), error);
        producer.poll(POLL_INTERVAL);
        unsent = refused;
    }
    Ok(acknowledgement)
}
