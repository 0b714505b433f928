//! What the partitions of a state topic say of themselves, read from their ends: a checkpoint writes its partition's own record last, so that
//! the state itself need not be read.

use std::collections::BTreeMap;
use std::time::Instant;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use tollgate_core::checkpoint::{OwnRecords, StateKey, read_partition, read_rekey};
use tollgate_core::record::{Offset, Partition};

use super::restore::{POLL, RestoreError, SILENCE_MAX};

/// Where to begin, one attempt after the other, for partitions whose own record was not found before.
const STARTS: [KafkaOffset; 3] = [KafkaOffset::OffsetTail(64), KafkaOffset::OffsetTail(4_096), KafkaOffset::Beginning];

/// The kind of entries, which are passed over whatever they are.
const NO_KIND: &str = "";

/// What was found in each partition, by its number.
type Found = BTreeMap<i32, OwnRecords>;

/// Returns the own records of each of these partitions, in their order.
///
/// # Errors
/// Returns [`RestoreError::Kafka`] or [`RestoreError::Silence`], and [`RestoreError::State`] for a record that cannot be read.
pub fn read_own_records<C: ConsumerContext>(
    reader: &BaseConsumer<C>,
    topic: &str,
    partitions: &[Partition],
) -> Result<Vec<OwnRecords>, RestoreError> {
    let mut found = Found::new();
    for start in STARTS {
        let missing: Vec<_> = partitions.iter().copied().filter(|partition| !found.contains_key(&partition.0)).collect();
        if missing.is_empty() {
            break;
        }
        let read = read_from(reader, topic, &missing, start, &mut found);
        // What is fetched for this assignment must not reach the next one.
        reader.unassign().map_err(failed)?;
        match read {
            // A partition begins behind this start, since its first records were deleted.
            Err(RestoreError::Kafka { error, .. })
                if start != KafkaOffset::Beginning && error.rdkafka_error_code() == Some(RDKafkaErrorCode::AutoOffsetReset) => {}
            read => read?,
        }
    }
    Ok(partitions.iter().map(|partition| found.remove(&partition.0).unwrap_or_default()).collect())
}

fn read_from<C: ConsumerContext>(
    reader: &BaseConsumer<C>,
    topic: &str,
    partitions: &[Partition],
    start: KafkaOffset,
    found: &mut Found,
) -> Result<(), RestoreError> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition_offset(topic, partition.0, start).map_err(failed)?;
    }
    reader.assign(&list).map_err(failed)?;
    let mut unfinished: Vec<Partition> = partitions.to_vec();
    let (mut last_at, mut last_error) = (Instant::now(), None);
    while !unfinished.is_empty() {
        match reader.poll(POLL) {
            Some(Ok(message)) => {
                last_at = Instant::now();
                let of_record = |error| RestoreError::State { offset: Some(Offset(message.offset())), error };
                let value = message.payload();
                match StateKey::read(message.key(), NO_KIND) {
                    Ok(StateKey::Partition) => {
                        found.entry(message.partition()).or_default().state = value.map(read_partition).transpose().map_err(of_record)?;
                    }
                    Ok(StateKey::Rekey) => {
                        found.entry(message.partition()).or_default().mark = value.map(read_rekey).transpose().map_err(of_record)?;
                    }
                    Ok(StateKey::Entry(_)) | Err(_) => {}
                }
            }
            Some(Err(KafkaError::PartitionEOF(ended))) => {
                last_at = Instant::now();
                unfinished.retain(|partition| partition.0 != ended);
            }
            Some(Err(error)) if is_final(&error) => return Err(failed(error)),
            // librdkafka recovers by itself.
            Some(Err(error)) => last_error = Some(error),
            None => {}
        }
        if last_at.elapsed() > SILENCE_MAX {
            return Err(last_error.map_or(RestoreError::Silence, failed));
        }
    }
    Ok(())
}

fn is_final(error: &KafkaError) -> bool {
    matches!(error.rdkafka_error_code(), Some(RDKafkaErrorCode::TopicAuthorizationFailed | RDKafkaErrorCode::AutoOffsetReset))
}

fn failed(error: KafkaError) -> RestoreError {
    RestoreError::Kafka { doing: "reading for how many partitions the state is keyed", error }
}
