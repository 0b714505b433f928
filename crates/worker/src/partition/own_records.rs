//! What the partitions of a state topic say of themselves, read from their ends: a checkpoint writes its partition's own record last, so that
//! the state itself need not be read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use tollgate_core::engine::checkpoint::{OwnRecords, StateError, StateKey, read_partition, read_rekey};
use tollgate_core::event::record::{Offset, Partition};

use super::reading::POLL;
use super::restore_error::{RestoreError, SILENCE_MAX};

/// Where to begin, one attempt after the other, for partitions whose own record was not found before.
const STARTS: [KafkaOffset; 3] = [KafkaOffset::OffsetTail(64), KafkaOffset::OffsetTail(4_096), KafkaOffset::Beginning];

/// The kind of entries, which are passed over whatever they are.
const NO_KIND: &str = "";

/// What was found in each partition, by its number.
type Found = BTreeMap<i32, OwnRecords>;

/// One reading of some partitions, from a start to their ends.
#[derive(Debug, Default)]
struct Reading {
    seen: Found,
    /// The partitions whose end has not come.
    unfinished: BTreeSet<i32>,
}

impl Reading {
    fn of(partitions: &[Partition]) -> Self {
        Self { seen: Found::new(), unfinished: partitions.iter().map(|partition| partition.0).collect() }
    }

    fn take(&mut self, partition: i32, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<(), StateError> {
        match StateKey::read(key, NO_KIND) {
            Ok(StateKey::Partition) => self.seen.entry(partition).or_default().state = value.map(read_partition).transpose()?,
            Ok(StateKey::Rekey) => self.seen.entry(partition).or_default().mark = value.map(read_rekey).transpose()?,
            Ok(StateKey::Entry(_)) | Err(_) => {}
        }
        Ok(())
    }

    fn end(&mut self, partition: i32) {
        self.unfinished.remove(&partition);
    }

    /// Returns what holds for whole partitions. What was read of others may be old. A start after the beginning may lie between a
    /// partition's own record and the mark that was written behind it, so the mark alone does not tell that there is no such record.
    fn whole(mut self, start: KafkaOffset) -> Found {
        let is_whole = start == KafkaOffset::Beginning;
        self.seen.retain(|partition, own| !self.unfinished.contains(partition) && (is_whole || own.state.is_some()));
        self.seen
    }
}

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
        let mut reading = Reading::of(&missing);
        let read = read_from(reader, topic, &missing, start, &mut reading);
        // What is fetched for this assignment must not reach the next one.
        reader.unassign().map_err(failed)?;
        match read {
            // A partition begins behind this start, since its first records were deleted.
            Err(RestoreError::Kafka { error, .. })
                if start != KafkaOffset::Beginning && error.rdkafka_error_code() == Some(RDKafkaErrorCode::AutoOffsetReset) => {}
            read => read?,
        }
        found.extend(reading.whole(start));
    }
    Ok(partitions.iter().map(|partition| found.remove(&partition.0).unwrap_or_default()).collect())
}

fn read_from<C: ConsumerContext>(
    reader: &BaseConsumer<C>,
    topic: &str,
    partitions: &[Partition],
    start: KafkaOffset,
    reading: &mut Reading,
) -> Result<(), RestoreError> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition_offset(topic, partition.0, start).map_err(failed)?;
    }
    reader.assign(&list).map_err(failed)?;
    let (mut last_at, mut last_error) = (Instant::now(), None);
    while !reading.unfinished.is_empty() {
        match reader.poll(POLL) {
            Some(Ok(message)) => {
                last_at = Instant::now();
                let of_record = |error| RestoreError::State { offset: Some(Offset(message.offset())), error };
                reading.take(message.partition(), message.key(), message.payload()).map_err(of_record)?;
            }
            Some(Err(KafkaError::PartitionEOF(ended))) => {
                last_at = Instant::now();
                reading.end(ended);
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

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::engine::checkpoint::{PartitionState, RekeyMark, StateRecord};

    const MARK: RekeyMark = RekeyMark { from: 1, to: 2, sum: None };

    /// Returns what a reading from an offset finds in partition 0, whose records have gaps where transactions end.
    fn found(records: &[Option<StateRecord>], from: usize, start: KafkaOffset) -> Option<OwnRecords> {
        let mut reading = Reading::of(&[Partition(0)]);
        for StateRecord { key, value } in records[from..].iter().flatten() {
            reading.take(0, Some(key.as_bytes()), value.as_deref()).unwrap();
        }
        reading.end(0);
        reading.whole(start).remove(&0)
    }

    #[test]
    fn a_start_between_the_own_record_and_its_mark_is_not_believed() {
        let state = PartitionState { partitions: Some(1), ..PartitionState::default() };
        // The preparation of a move, its end, 61 threads, and their end.
        let mut records = vec![Some(StateRecord::partition(&state)), Some(StateRecord::rekey(Some(&MARK))), None];
        records.extend((0..61).map(|number| Some(StateRecord { key: format!("thread/{number}"), value: Some(vec![1]) })));
        records.push(None);
        let [tail, more, _] = STARTS;
        let KafkaOffset::OffsetTail(count) = tail else { panic!("the first start is near the end") };
        let from = records.len() - count as usize;
        assert_eq!(from, 1, "the mark is the first record of the tail");
        assert_eq!(found(&records, from, tail), None);
        let whole = Some(OwnRecords { state: Some(state), mark: Some(MARK) });
        assert_eq!(found(&records, 0, more), whole);
        assert_eq!(found(&records, 0, KafkaOffset::Beginning), whole);
    }

    #[test]
    fn a_partition_without_an_own_record_is_known_from_its_beginning() {
        let records = [Some(StateRecord::rekey(Some(&MARK))), None];
        let marked = Some(OwnRecords { state: None, mark: Some(MARK) });
        assert_eq!((found(&records, 0, STARTS[0]), found(&records, 0, KafkaOffset::Beginning)), (None, marked));
    }

    #[test]
    fn a_partition_that_was_not_read_to_its_end_is_not_believed() {
        let mut reading = Reading::of(&[Partition(0), Partition(1)]);
        let StateRecord { key, value } = StateRecord::partition(&PartitionState::default());
        for partition in [0, 1] {
            reading.take(partition, Some(key.as_bytes()), value.as_deref()).unwrap();
        }
        reading.end(1);
        assert_eq!(reading.whole(STARTS[0]).into_keys().collect::<Vec<_>>(), [1]);
    }
}
