//! The restore of a partition's state: it fences the earlier owner, reads the state to its end, and checks that it fits the committed
//! offset.

use std::time::Instant;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::kafka::PlainContext;
use tollgate_config::settings::KafkaSettings;
use tollgate_core::engine::checkpoint::{KeyedState, Restore, Restored, StateOwner};
use tollgate_core::event::record::{Offset, Partition};

use super::lost_transaction_ends::LostTransactionEnds;
use super::offset_commit::COMMIT_MARK;
use super::progress::Progress;
use super::readers::Readers;
use super::reading::{QUESTION_TIMEOUT, read_to_end};
use super::restore_clients::{Clients, RestoreParts};
use super::restore_error::{ASKING_FOR_END, ASKING_FOR_OFFSET, RestoreError};

/// The result of a restore.
#[derive(Debug)]
pub struct Takeover<K> {
    /// The state, if any was ever written.
    pub restored: Option<Restored<K>>,
    /// The first record to read, by the committed offset or the state.
    pub start: Option<Offset>,
    /// The first record to read if neither gives any.
    pub default_start: Offset,
    /// Where the partition of the input ended.
    pub end: Offset,
    /// How many records were read.
    pub records: u64,
    /// The size of the records that were read, in bytes.
    pub bytes: u64,
}

/// Takes a partition's state over. It calls `is_wanted` now and then, and returns `None` once the state is not wanted any more. After a
/// failure it can be called again with the same clients, and fences only if it has not done so.
pub(super) fn take_over<K: KeyedState>(
    parts: &RestoreParts<'_>,
    clients: &mut Clients,
    limits: K::Limits,
    is_wanted: impl Fn() -> bool,
) -> Result<Option<Takeover<K>>, RestoreError> {
    let RestoreParts { topics, partition, .. } = parts;
    // Its threads may be known on another partition still, so it does not begin empty.
    if let Some(count) = topics.partitions.filter(|_| !topics.covers(*partition)) {
        return Err(RestoreError::NewPartition { count, topic: topics.input.clone() });
    }
    let started = Instant::now();
    if !clients.fence(&is_wanted)? {
        return Ok(None);
    }
    let fence_seconds = started.elapsed().as_secs_f64();
    let mut marks = LostTransactionEnds { parts, clients };
    marks.abort_open()?;
    let mut taken = read::<K>(parts, marks.clients, limits, &is_wanted);
    if let Err(RestoreError::Behind { committed, found }) = taken {
        if marks.write_again::<K>(found, committed, &is_wanted)? {
            taken = read::<K>(parts, marks.clients, limits, &is_wanted);
        } else if !is_wanted() {
            return Ok(None);
        }
    }
    tracing::debug!(%partition, fence_seconds, seconds = started.elapsed().as_secs_f64(), "took the state over");
    taken
}

/// Reads the state, and compares it with the committed offset and the events.
fn read<K: KeyedState>(
    parts: &RestoreParts<'_>,
    clients: &Clients,
    limits: K::Limits,
    is_wanted: impl Fn() -> bool,
) -> Result<Option<Takeover<K>>, RestoreError> {
    let failed = |doing| move |error| RestoreError::Kafka { doing, error };
    let RestoreParts { kafka, topics, partition, .. } = parts;
    let Readers { reader, asker } = &*clients.readers;
    let mut restore = Restore::<K>::default();
    let mut progress = Progress::new(parts);
    let read = read_to_end(reader, &topics.state, *partition, |offset, end, key, value| {
        restore.take(offset, key, value);
        progress.step(offset, end, key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len), restore.entries());
        is_wanted()
    });
    let (records, bytes) = progress.finish();
    if !read? {
        return Ok(None);
    }
    let owner = topics.owner();
    let owner = StateOwner { name: &owner, partitions: topics.partitions };
    let restored = restore.finish(owner, limits).map_err(|(offset, error)| RestoreError::State { offset, error })?;
    let committed = committed(asker, &topics.input, *partition).map_err(failed(ASKING_FOR_OFFSET))?;
    let (low, end) = asker.fetch_watermarks(&topics.input, partition.0, QUESTION_TIMEOUT).map_err(failed(ASKING_FOR_END))?;
    let next = restored.as_ref().map(|restored| restored.next);
    let start = first_event(next, committed, Offset(end))?;
    let default_start = Offset(if starts_at_the_end(kafka) { end } else { low });
    if let Some(start) = start.filter(|start| start.0 < low) {
        tracing::error!(%partition, start = start.0, low, "events were deleted before they were decided: retention is shorter than the worker was away");
    }
    Ok(Some(Takeover { restored, start, default_start, end: Offset(end), records, bytes }))
}

/// Returns whether a new group starts at the end of the events.
fn starts_at_the_end(kafka: &KafkaSettings) -> bool {
    let reset = kafka.properties.get("auto.offset.reset");
    reset.is_some_and(|reset| ["latest", "largest", "end"].contains(&reset.to_ascii_lowercase().as_str()))
}

/// An offset that is committed, and whether it was committed with state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Committed {
    offset: Offset,
    is_ours: bool,
}

fn committed(asker: &BaseConsumer<PlainContext>, topic: &str, partition: Partition) -> KafkaResult<Option<Committed>> {
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition(topic, partition.0);
    let answered = asker.committed_offsets(list, QUESTION_TIMEOUT)?;
    let Some(element) = answered.find_partition(topic, partition.0) else { return Ok(None) };
    element.error()?;
    Ok(match element.offset() {
        KafkaOffset::Offset(offset) => Some(Committed { offset: Offset(offset), is_ours: element.metadata() == COMMIT_MARK }),
        _ => None,
    })
}

/// Returns where to start reading events, from the offset of the state, the committed offset and the end of the events.
///
/// An offset that we committed equals that of the state. An offset that an operator set counts: events that the state already knows are
/// then skipped, and a gap is what the operator wanted. Without a committed offset, the state's offset counts.
fn first_event(next: Option<Offset>, committed: Option<Committed>, end: Offset) -> Result<Option<Offset>, RestoreError> {
    if let Some(Committed { offset: committed, is_ours: true }) = committed
        && next < Some(committed)
    {
        return Err(RestoreError::Behind { committed, found: next });
    }
    if let Some(next) = next.filter(|next| *next > end) {
        return Err(RestoreError::BeyondEvents { next, end });
    }
    if let (Some(Committed { offset, is_ours }), Some(next)) = (committed, next)
        && offset != next
    {
        if is_ours {
            tracing::warn!(committed = %offset, state = %next, "the brokers have lost the commit of the offset of the state; what the state knows is skipped");
            return Ok(Some(offset));
        }
        tracing::warn!(committed = %offset, state = %next, "the group's offset was set by hand; what the state knows is skipped, what lies between is not decided");
    }
    Ok(committed.map(|committed| committed.offset).or(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(offset: i64) -> Option<Committed> {
        Some(Committed { offset: Offset(offset), is_ours: true })
    }

    fn by_hand(offset: i64) -> Option<Committed> {
        Some(Committed { offset: Offset(offset), is_ours: false })
    }

    #[test]
    fn events_are_read_from_where_the_state_is() {
        let end = Offset(100);
        assert_eq!(first_event(None, None, end).unwrap(), None);
        assert_eq!(first_event(Some(Offset(7)), ours(7), end).unwrap(), Some(Offset(7)));
        assert_eq!(first_event(Some(Offset(7)), None, end).unwrap(), Some(Offset(7)));
        assert_eq!(first_event(None, by_hand(50), end).unwrap(), Some(Offset(50)));
        assert_eq!(first_event(Some(Offset(7)), by_hand(3), end).unwrap(), Some(Offset(3)));
        assert_eq!(first_event(Some(Offset(7)), by_hand(9), end).unwrap(), Some(Offset(9)));
    }

    #[test]
    fn state_that_is_missing_is_not_taken_for_none() {
        let error = first_event(None, ours(7), Offset(100)).unwrap_err();
        assert_eq!(error.reason(), "mismatch");
        assert!(error.to_string().starts_with("offset 7 was committed with state, and the state topic ends without any: "), "{error}");
        let error = first_event(Some(Offset(5)), ours(7), Offset(100)).unwrap_err();
        assert!(error.to_string().contains("the state topic ends at 5: "), "{error}");
        let error = first_event(Some(Offset(7)), ours(7), Offset(6)).unwrap_err();
        assert!(error.to_string().starts_with("the state is as of offset 7 and the events end at 6: "), "{error}");
    }
}
