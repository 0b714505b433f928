//! The restore of a partition's state: it fences the earlier owner, reads the state to its end, and checks that it fits the committed
//! offset.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::kafka::{PlainContext, Right, StageTopics, asker_config, is_forbidden, reader_config};
use crate::metrics::{Metrics, PartitionMetrics};
use crate::settings::KafkaSettings;
use tollgate_core::checkpoint::{KeyedState, Restore, Restored, StateError};
use tollgate_core::record::{Offset, Partition};

use super::transaction::{COMMIT_MARK, Transactions};

/// How long one request to the brokers may take.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for records at a time.
const POLL: Duration = Duration::from_millis(50);
/// How long to wait without any record before the restore is given up and started over.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

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
}

impl RestoreError {
    /// Returns the kind of failure, as a metric label.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Kafka { error, .. } if is_forbidden(error) => "forbidden",
            Self::Kafka { .. } | Self::Silence => "kafka",
            Self::State { .. } => "unreadable",
            Self::Behind { .. } | Self::BeyondEvents { .. } => "mismatch",
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
    /// How many records were read.
    pub records: u64,
    /// The size of the records that were read, in bytes.
    pub bytes: u64,
}

/// A takeover, with the clients that it was done with.
pub(super) struct TakenOver<K> {
    pub(super) takeover: Takeover<K>,
    pub(super) transactions: Transactions,
    /// The clients that read. Drop them when nobody waits any more, since librdkafka takes a tenth of a second for it.
    pub(super) readers: [BaseConsumer<PlainContext>; 2],
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

/// Takes a partition's state over. It calls `is_wanted` now and then, and returns `None` once the state is not wanted any more.
pub(super) fn take_over<K: KeyedState>(
    parts: &RestoreParts<'_>,
    limits: K::Limits,
    is_wanted: impl Fn() -> bool,
) -> Result<Option<TakenOver<K>>, RestoreError> {
    let failed = |doing| move |error| RestoreError::Kafka { doing, error };
    let RestoreParts { kafka, topics, partition, .. } = parts;
    // Both clients connect during the first request.
    let reader: BaseConsumer<PlainContext> =
        reader_config(kafka, &topics.group_id).create_with_context(PlainContext).map_err(failed("making the reader of the state"))?;
    let asker: BaseConsumer<PlainContext> = asker_config(kafka, &topics.group_id)
        .create_with_context(PlainContext)
        .map_err(failed("making the client that asks for offsets"))?;
    let transactions =
        Transactions::new(kafka, topics, *partition, parts.batch_bytes_max).map_err(failed("making the producer of the state"))?;
    let started = Instant::now();
    transactions.connect().map_err(failed("connecting to the brokers of the state"))?;
    // A member that no longer owns the partition must not fence the next owner.
    if !is_wanted() {
        return Ok(None);
    }
    transactions.fence().map_err(failed("taking the state over from its last owner"))?;
    let fence_seconds = started.elapsed().as_secs_f64();
    let mut restore = Restore::<K>::default();
    let mut progress = Progress::new(parts);
    let read = read_to_end(&reader, &topics.state, *partition, |offset, end, key, value| {
        restore.take(offset, key, value);
        progress.step(offset, end, key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len), restore.entries());
        is_wanted()
    });
    let (records, bytes) = progress.finish();
    if !read? {
        return Ok(None);
    }
    let restored = restore.finish(&topics.owner(), limits).map_err(|(offset, error)| RestoreError::State { offset, error })?;
    let committed = committed(&asker, &topics.input, *partition).map_err(failed(ASKING_FOR_OFFSET))?;
    let (low, end) = asker.fetch_watermarks(&topics.input, partition.0, QUESTION_TIMEOUT).map_err(failed(ASKING_FOR_END))?;
    tracing::debug!(%partition, fence_seconds, seconds = started.elapsed().as_secs_f64(), "took the state over");
    let next = restored.as_ref().map(|restored| restored.next);
    let start = first_event(next, committed, Offset(end))?;
    let default_start = Offset(if starts_at_the_end(kafka) { end } else { low });
    if let Some(start) = start.filter(|start| start.0 < low) {
        tracing::error!(%partition, start = start.0, low, "events were deleted before they were decided: retention is shorter than the worker was away");
    }
    Ok(Some(TakenOver { takeover: Takeover { restored, start, default_start, records, bytes }, transactions, readers: [reader, asker] }))
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
    let failed = |doing| move |error| RestoreError::Kafka { doing, error };
    reader.fetch_metadata(Some(topic), QUESTION_TIMEOUT).map_err(failed("asking for the topic"))?;
    let (_, end) = reader.fetch_watermarks(topic, partition.0, QUESTION_TIMEOUT).map_err(failed("asking where the partition ends"))?;
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(topic, partition.0, KafkaOffset::Beginning).map_err(failed("reading the partition"))?;
    reader.assign(&list).map_err(failed("reading the partition"))?;
    let (mut last_record_at, mut last_error) = (Instant::now(), None);
    loop {
        match reader.poll(POLL) {
            // A reader that reads several partitions in turn may still return records of an earlier one.
            Some(Ok(message)) if message.partition() != partition.0 => {}
            Some(Ok(message)) => {
                last_record_at = Instant::now();
                if !show(Offset(message.offset()), Offset(end), message.key(), message.payload()) {
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

/// The progress of a restore, for the log and the gauges.
struct Progress<'p> {
    parts: &'p RestoreParts<'p>,
    gauges: PartitionMetrics,
    started: Instant,
    reported: Instant,
    records: u64,
    bytes: u64,
}

impl<'p> Progress<'p> {
    fn new(parts: &'p RestoreParts<'p>) -> Self {
        Self {
            parts,
            gauges: parts.metrics.partition(parts.partition),
            started: Instant::now(),
            reported: Instant::now(),
            records: 0,
            bytes: 0,
        }
    }

    fn step(&mut self, offset: Offset, end: Offset, bytes: usize, entries: usize) {
        self.records += 1;
        self.bytes += bytes as u64;
        if self.reported.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        self.reported = Instant::now();
        let (done, left) = ((offset.0 + 1).max(1) as f64, (end.0 - offset.0 - 1).max(0));
        let seconds = self.started.elapsed().as_secs_f64();
        let eta_seconds = seconds * left as f64 / done;
        let Self { records, bytes, .. } = self;
        let partition = self.parts.partition;
        tracing::info!(%partition, records, bytes, entries, seconds, left, eta_seconds, "restoring");
        self.gauge(left, eta_seconds);
    }

    fn gauge(&self, left: i64, eta_seconds: f64) {
        self.gauges.restore_remaining_records.set(left);
        self.gauges.restore_eta_seconds.set(eta_seconds.ceil() as i64);
    }

    fn finish(self) -> (u64, u64) {
        self.gauge(0, 0.0);
        self.parts.metrics.restore_records.inc_by(self.records);
        self.parts.metrics.restore_bytes.inc_by(self.bytes);
        (self.records, self.bytes)
    }
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
