//! What an open transaction on the controls topic hides: read all the same, so that what restricts counts at once.
//!
//! The feed waits for commits, and a broker shows it nothing behind the first record of a transaction that is open. A second consumer reads on
//! from there without waiting. It knows which records are hidden and since when, for people to see, until the feed has come past them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};

use super::client::feed_config;
use super::starts;
use crate::host_time::now_ms;
use crate::kafka::{PlainContext, is_unreachable, make_consumer};
use tollgate_config::settings::KafkaSettings;
use tollgate_core::decide::controls::Controls;
use tollgate_core::event::record::{Offset, Partition};

/// How long to look for what has come. Without a wait a poll takes one event, and log lines of the client are events too.
const SERVE: Duration = Duration::from_millis(2);

/// The hidden records of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    /// The first of them.
    first: i64,
    /// When it was written, in milliseconds since the epoch.
    since_ms: i64,
    /// The last of them.
    last: i64,
}

/// The oldest record that is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hidden {
    pub partition: i32,
    pub offset: i64,
    pub since_ms: i64,
}

/// The consumer that waits for no commit.
pub(super) struct HiddenReader {
    consumer: BaseConsumer<PlainContext>,
    /// Partitions that it has not read to their end yet.
    unread: BTreeSet<i32>,
    hidden: BTreeMap<i32, Range>,
}

impl HiddenReader {
    /// Starts to read each of so many partitions from the offset that the feed has come to; from its beginning where the feed has found nothing.
    pub(super) fn start(kafka: &KafkaSettings, topic: &str, count: i32, next: &BTreeMap<i32, i64>) -> Result<Self, KafkaError> {
        let mut config = feed_config(kafka);
        config.set("client.id", "tollgate-controls-hidden").set("isolation.level", "read_uncommitted").remove("statistics.interval.ms");
        let consumer: BaseConsumer<PlainContext> = make_consumer(&config, PlainContext::default())?;
        consumer.assign(&starts(topic, count, next)?)?;
        Ok(Self { consumer, unread: (0..count).collect(), hidden: BTreeMap::new() })
    }

    /// Takes what has come, hardly waiting. Records of which `next` says that the feed has come past them are not hidden. Returns whether a
    /// record has come that restricts.
    pub(super) fn serve(&mut self, controls: &Controls, next: &BTreeMap<i32, i64>) -> Result<bool, KafkaError> {
        let mut restricts = false;
        loop {
            match self.consumer.poll(SERVE) {
                None => return Ok(restricts),
                Some(Ok(message)) => {
                    if next.get(&message.partition()).is_none_or(|next| message.offset() >= *next) {
                        restricts |= take(&mut self.hidden, controls, &message);
                    }
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => drop(self.unread.remove(&partition)),
                Some(Err(KafkaError::MessageConsumption(code))) if is_unreachable(code) => {}
                Some(Err(error)) => return Err(error),
            }
        }
    }

    /// Forgets what stands in front of an offset: the feed has come past it.
    pub(super) fn settle(&mut self, controls: &Controls, partition: i32, next: i64) {
        controls.settle(Partition(partition), Offset(next));
        let Some(range) = self.hidden.get_mut(&partition).filter(|range| range.first < next) else { return };
        if range.last < next {
            self.hidden.remove(&partition);
        } else {
            (range.first, range.since_ms) = (next, now_ms());
        }
    }

    /// Returns the offset of a partition in front of which every restriction counts. `next` is how far the feed has come.
    pub(super) fn read(&self, partition: i32, next: &BTreeMap<i32, i64>) -> i64 {
        let hidden = self.hidden.get(&partition).map_or(0, |range| range.last + 1);
        hidden.max(next.get(&partition).copied().unwrap_or_default())
    }

    /// Returns whether it has read every partition to its end once.
    pub(super) fn has_reached_end(&self) -> bool {
        self.unread.is_empty()
    }

    /// Returns the oldest record that is hidden.
    pub(super) fn oldest(&self) -> Option<Hidden> {
        let hidden = |(partition, range): (&i32, &Range)| Hidden { partition: *partition, offset: range.first, since_ms: range.since_ms };
        self.hidden.iter().map(hidden).min_by_key(|hidden| hidden.since_ms)
    }
}

/// Notes a record as hidden, and lets it count if it restricts.
fn take(hidden: &mut BTreeMap<i32, Range>, controls: &Controls, message: &BorrowedMessage<'_>) -> bool {
    let (partition, offset) = (message.partition(), message.offset());
    let since_ms = message.timestamp().to_millis().unwrap_or_else(now_ms);
    hidden.entry(partition).and_modify(|range| range.last = offset).or_insert(Range { first: offset, since_ms, last: offset });
    // One that cannot be read is counted and logged once it is committed.
    controls.apply_early(message.key(), message.payload(), (Partition(partition), Offset(offset)))
}
