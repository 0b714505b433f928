//! Reading a partition to its end.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use tollgate_core::event::record::{Offset, Partition};

use super::restore_error::{RestoreError, SILENCE_MAX};

/// How long one request to the brokers may take. It is then made anew, to whoever has the answer by then.
pub(super) const QUESTION_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait for records at a time.
pub(super) const POLL: Duration = Duration::from_millis(50);

/// Reads a partition of a compacted topic from its beginning to its end, and calls `show` with the offset of each record and that end. It
/// stops when `show` returns `false`, and returns whether it has read everything.
///
/// # Errors
/// Returns [`RestoreError::Kafka`] or [`RestoreError::Silence`].
pub fn read_to_end<C: ConsumerContext>(
    reader: &BaseConsumer<C>,
    topic: &str,
    partition: Partition,
    mut show: impl FnMut(Offset, Offset, Option<&[u8]>, Option<&[u8]>) -> bool,
) -> Result<bool, RestoreError> {
    let end = ends(reader, topic, partition)?.1;
    read_messages(reader, topic, partition, KafkaOffset::Beginning, |message| {
        show(Offset(message.offset()), end, message.key(), message.payload())
    })
}

/// Returns where a partition begins and ends.
///
/// # Errors
/// The brokers do not answer.
pub fn ends<C: ConsumerContext>(reader: &BaseConsumer<C>, topic: &str, partition: Partition) -> Result<(Offset, Offset), RestoreError> {
    let failed = |doing| move |error| RestoreError::Kafka { doing, error };
    reader.fetch_metadata(Some(topic), QUESTION_TIMEOUT).map_err(failed("asking for the topic"))?;
    let (begin, end) = reader.fetch_watermarks(topic, partition.0, QUESTION_TIMEOUT).map_err(failed("asking where the partition ends"))?;
    Ok((Offset(begin), Offset(end)))
}

/// Reads a partition from an offset to its end, or until `show` returns `false`, and returns whether the end was reached. The offset must be
/// one that the partition has.
///
/// # Errors
/// The brokers do not answer, or fall silent.
pub fn read_messages<C: ConsumerContext>(
    reader: &BaseConsumer<C>,
    topic: &str,
    partition: Partition,
    begin: KafkaOffset,
    mut show: impl FnMut(&BorrowedMessage<'_>) -> bool,
) -> Result<bool, RestoreError> {
    let failed = |doing| move |error| RestoreError::Kafka { doing, error };
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(topic, partition.0, begin).map_err(failed("reading the partition"))?;
    reader.assign(&list).map_err(failed("reading the partition"))?;
    let (mut last_record_at, mut last_error) = (Instant::now(), None);
    loop {
        match reader.poll(POLL) {
            // A reader that reads several partitions in turn may still return records of an earlier one.
            Some(Ok(message)) if message.partition() != partition.0 => {}
            Some(Ok(message)) => {
                last_record_at = Instant::now();
                if !show(&message) {
                    return Ok(false);
                }
            }
            Some(Err(KafkaError::PartitionEOF(ended))) if ended == partition.0 => return Ok(true),
            Some(Err(error)) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::TopicAuthorizationFailed) => {
                return Err(failed("reading the partition")(error));
            }
            // librdkafka recovers by itself.
            Some(Err(error)) => last_error = Some(error),
            None => {}
        }
        if last_record_at.elapsed() > SILENCE_MAX {
            return Err(last_error.map_or(RestoreError::Silence, failed("reading the partition")));
        }
    }
}
