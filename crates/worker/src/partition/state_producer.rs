//! What writing state in transactions has in common, whoever writes it: a partition's checkpoints, or `state rekey`.

use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use tollgate_core::engine::checkpoint::StateRecord;
use tollgate_core::event::record::Partition;

/// How long one step of a transaction may take before it is given up.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(15);

/// How long to wait at a time for reports of a producer, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// How often a step that may be repeated is tried.
const STEP_ATTEMPTS_MAX: u32 = 3;

/// Sends a record of state, once the producer's queue has room for it.
///
/// # Errors
/// librdkafka does not take the record.
pub fn send_state<C: ProducerContext<DeliveryOpaque = ()>>(
    producer: &BaseProducer<C>,
    topic: &str,
    partition: Partition,
    record: &StateRecord,
) -> KafkaResult<()> {
    let started = Instant::now();
    let mut unsent: BaseRecord<'_, str, [u8]> = BaseRecord::to(topic).partition(partition.0).key(&record.key);
    unsent.payload = record.value.as_deref();
    while let Err((error, refused)) = producer.send(unsent) {
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
            return Err(error);
        }
        wait(producer, started);
        unsent = refused;
    }
    Ok(())
}

/// Waits until the brokers have everything. A commit would wait for it too, but rdkafka checks only ten times a second.
///
/// # Errors
/// The time is up.
pub fn flush_state<C: ProducerContext>(producer: &BaseProducer<C>, timeout: Duration) -> KafkaResult<()> {
    let started = Instant::now();
    while producer.in_flight_count() > 0 {
        if started.elapsed() >= timeout {
            return Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut));
        }
        wait(producer, started);
    }
    Ok(())
}

/// Waits a little, and takes the producer's reports. rdkafka's own waiting would be a busy loop for a time this short. Who has waited since long
/// ago waits longer: on a machine at its limit, the writers of many partitions would otherwise spend its time by looking.
pub(super) fn wait<C: ProducerContext>(producer: &BaseProducer<C>, started: Instant) {
    std::thread::sleep((started.elapsed() / 8).clamp(WAITS.0, WAITS.1));
    producer.poll(Duration::ZERO);
}

/// Repeats a step of a transaction while librdkafka allows it. A step that timed out continues where it was.
///
/// # Errors
/// That of the last attempt.
pub fn repeat_step(mut step: impl FnMut() -> KafkaResult<()>) -> KafkaResult<()> {
    let mut attempts = 1;
    loop {
        match step() {
            Err(KafkaError::Transaction(error)) if error.is_retriable() && attempts < STEP_ATTEMPTS_MAX => attempts += 1,
            done => return done,
        }
    }
}

/// Returns the error that a producer has ended with, or else that of its last step.
#[must_use]
pub fn last_code<C: ProducerContext>(producer: &BaseProducer<C>, error: &KafkaError) -> Option<RDKafkaErrorCode> {
    producer.client().fatal_error().map(|(code, _)| code).or(error.rdkafka_error_code())
}

/// Returns whether an error means that another producer of the same transactional id has begun.
#[must_use]
pub fn is_fenced(code: Option<RDKafkaErrorCode>) -> bool {
    matches!(code, Some(RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced | RDKafkaErrorCode::InvalidProducerEpoch))
}
