//! The restore of a partition's state: it fences the earlier owner, reads the state to its end, and checks that it fits the committed
//! offset.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::kafka::{PlainContext, Right, StageTopics, asker_config, is_forbidden, make_consumer, reader_config};
use crate::metrics::Metrics;
use crate::settings::KafkaSettings;
use tollgate_core::checkpoint::{KeyedState, Restore, Restored, StateError, StateOwner};
use tollgate_core::record::{Offset, Partition};

use super::progress::Progress;
use super::transaction::{COMMIT_MARK, Transactions};

/// How long one request to the brokers may take. It is then made anew, to whoever has the answer by then.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait for records at a time.
pub(super) const POLL: Duration = Duration::from_millis(50);
/// How long to wait without any record before the restore is given up and started over.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The steps of a restore that are about the events and not about the state.
const ASKING_FOR_OFFSET: &str = "asking for the committed offset";
const ASKING_FOR_END: &str = "asking where the events end";

/// Why a partition's state could not be restored. The restore is tried again; until then the partition waits.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A request to Kafka failed.
    #[error("{doing}: {error}")]
    Kafka {
        /// What was being done.
        doing: &'static str,
        /// The error that came.
        error: KafkaError,
    },
    /// No record came for too long.
    #[error("reading the partition: nothing came for {} s", SILENCE_MAX.as_secs())]
    Silence,
    /// A record of the topic is not state that we can read.
    #[error("{}{error}", offset.map(|offset| format!("state record at offset {offset}: ")).unwrap_or_default())]
    State {
        /// The offset of the record, if it is one record.
        offset: Option<Offset>,
        /// What is wrong.
        error: StateError,
    },
    /// The committed offset was committed with state that is not there.
    #[error(
        "offset {committed} was committed with state, and the state topic ends {}: the topic was recreated or has lost records; bring it back, or stop the group, recreate the topic and delete the group's committed offsets, to decide all retained events again",
        found.map_or("without any".to_owned(), |found| format!("at {found}"))
    )]
    Behind {
        /// The committed offset.
        committed: Offset,
        /// The offset of the state.
        found: Option<Offset>,
    },
    /// The state is ahead of the events: they were recreated or truncated.
    #[error(
        "the state is as of offset {next} and the events end at {end}: the events topic was recreated or truncated; recreate the state topic too, and delete the group's committed offsets"
    )]
    BeyondEvents {
        /// The offset of the state.
        next: Offset,
        /// The end of the events.
        end: Offset,
    },
    /// The partition is not one of those that the state is keyed for.
    #[error(
        "it is not among the first {count} partitions, for which the state is keyed: {topic} has been given more. Stop all workers of the group, run `tollgate state rekey`, and start them again"
    )]
    NewPartition {
        /// How many partitions the state is keyed for.
        count: u32,
        /// The topic of the events.
        topic: String,
    },
}

impl RestoreError {
    /// Returns the kind of failure, as a metric label.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Kafka { error, .. } if is_forbidden(error) => "forbidden",
            Self::Kafka { .. } | Self::Silence => "kafka",
            Self::State { error: StateError::OtherPartitions { .. } | StateError::Rekeying { .. }, .. } => "mismatch",
            Self::State { .. } => "unreadable",
            Self::Behind { .. } | Self::BeyondEvents { .. } | Self::NewPartition { .. } => "mismatch",
        }
    }

    /// Returns the right whose want is the failure, if it is one.
    pub(super) fn right_wanted(&self, topics: &StageTopics) -> Option<Right> {
        let Self::Kafka { doing, error } = self else { return None };
        let topic = if [ASKING_FOR_OFFSET, ASKING_FOR_END].contains(doing) { &topics.input } else { &topics.state };
        Right::refused_by(error.rdkafka_error_code(), &topics.group_id, || Right::read(topic))
    }
}

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

/// What a restore works with.
#[derive(Debug, Clone)]
pub(super) struct RestoreParts<'p> {
    pub(super) kafka: &'p KafkaSettings,
    pub(super) topics: &'p Arc<StageTopics>,
    pub(super) partition: Partition,
    pub(super) batch_bytes_max: u64,
    pub(super) metrics: &'p Metrics,
}

/// The clients of a takeover. They outlive a failed attempt, because connections and coordinators that were found need not be found again.
pub(super) struct Clients {
    transactions: Transactions,
    reader: BaseConsumer<PlainContext>,
    asker: BaseConsumer<PlainContext>,
    /// Whether the earlier owners are fenced already.
    has_fenced: bool,
}

impl Clients {
    /// Makes the clients. They connect by themselves.
    pub(super) fn new(parts: &RestoreParts<'_>) -> Result<Self, RestoreError> {
        let RestoreParts { kafka, topics, partition, batch_bytes_max, .. } = parts;
        let failed = |doing| move |error| RestoreError::Kafka { doing, error };
        let reader = make_consumer(&reader_config(kafka, &topics.group_id), PlainContext);
        let asker = make_consumer(&asker_config(kafka, &topics.group_id), PlainContext);
        let transactions = Transactions::new(kafka, topics, *partition, *batch_bytes_max);
        Ok(Self {
            transactions: transactions.map_err(failed("making the producer of the state"))?,
            reader: reader.map_err(failed("making the reader of the state"))?,
            asker: asker.map_err(failed("making the client that asks for offsets"))?,
            has_fenced: false,
        })
    }

    /// Returns the producer of checkpoints. The others end, for which librdkafka takes a tenth of a second: nobody should wait any more.
    pub(super) fn into_transactions(self) -> Transactions {
        self.transactions
    }

    /// Serves the clients, which nobody polls between two attempts. The request for a token comes before everything else; if the first token
    /// could not be got, librdkafka asks again ten seconds later, and without an answer it would connect to nothing.
    pub(super) fn serve(&self) {
        self.transactions.serve();
        // The next attempt reads from the beginning, so a record that comes now is not missed.
        let _event = self.reader.poll(Duration::ZERO);
        let _event = self.asker.poll(Duration::ZERO);
    }

    /// Returns whether another attempt can be made with these clients.
    pub(super) fn are_usable(&self) -> bool {
        !self.transactions.has_failed()
    }
}

/// Takes a partition's state over. It calls `is_wanted` now and then, and returns `None` once the state is not wanted any more. After a
/// failure it can be called again with the same clients, and fences only if it has not done so.
pub(super) fn take_over<K: KeyedState>(
    parts: &RestoreParts<'_>,
    clients: &mut Clients,
    limits: K::Limits,
    is_wanted: impl Fn() -> bool,
) -> Result<Option<Takeover<K>>, RestoreError> {
    let failed = |doing| move |error| RestoreError::Kafka { doing, error };
    let RestoreParts { kafka, topics, partition, .. } = parts;
    // Its threads may be known on another partition still, so it does not begin empty.
    if let Some(count) = topics.partitions.filter(|_| !topics.covers(*partition)) {
        return Err(RestoreError::NewPartition { count, topic: topics.input.clone() });
    }
    let started = Instant::now();
    if !clients.has_fenced {
        clients.transactions.connect().map_err(failed("connecting to the brokers of the state"))?;
        // A member that no longer owns the partition must not fence the next owner.
        if !is_wanted() {
            return Ok(None);
        }
        clients.transactions.fence().map_err(failed("taking the state over from its last owner"))?;
        clients.has_fenced = true;
    }
    let fence_seconds = started.elapsed().as_secs_f64();
    let Clients { reader, asker, .. } = clients;
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
    let read_seconds = started.elapsed().as_secs_f64();
    let committed = committed(asker, &topics.input, *partition).map_err(failed(ASKING_FOR_OFFSET))?;
    let (low, end) = asker.fetch_watermarks(&topics.input, partition.0, QUESTION_TIMEOUT).map_err(failed(ASKING_FOR_END))?;
    tracing::debug!(%partition, fence_seconds, read_seconds, seconds = started.elapsed().as_secs_f64(), "took the state over");
    let next = restored.as_ref().map(|restored| restored.next);
    let start = first_event(next, committed, Offset(end))?;
    let default_start = Offset(if starts_at_the_end(kafka) { end } else { low });
    if let Some(start) = start.filter(|start| start.0 < low) {
        tracing::error!(%partition, start = start.0, low, "events were deleted before they were decided: retention is shorter than the worker was away");
    }
    Ok(Some(Takeover { restored, start, default_start, end: Offset(end), records, bytes }))
}

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
    if let (Some(Committed { offset, .. }), Some(next)) = (committed, next)
        && offset != next
    {
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
