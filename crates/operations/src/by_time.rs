//! The records of a topic between two times, in the order of their times across its partitions.

use std::collections::BTreeMap;

use anyhow::Context as _;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Message as _, Offset as KafkaOffset, TopicPartitionList};
use tollgate_core::event::record::{Offset, Partition, Record};

use tollgate_worker::kafka::PlainContext;

use crate::{BROKERS_TIMEOUT, Span, Step, Topic, TopicRecords, Topics, consumer};

const CLIENT_ID: &str = "tollgate-reader";

/// A range of times, in milliseconds since 1970. The times are those of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first time; `None` is the beginning of the topic.
    pub from_ms: Option<i64>,
    /// The time behind the last; `None` is the topic's end as it is now.
    pub until_ms: Option<i64>,
}

impl TimeRange {
    /// Shows each record of this range, until `show` returns `false`. `partition` is the only one to read; `None` reads all.
    ///
    /// # Errors
    /// The topic cannot be read.
    pub fn read(
        self,
        topics: &Topics<'_>,
        topic: Topic<'_>,
        partition: Option<Partition>,
        mut show: impl FnMut(&Record<'_>) -> bool,
    ) -> anyhow::Result<()> {
        let spans = self.spans(topics, topic, partition)?;
        let mut records = TopicRecords::open(topics.kafka(), CLIENT_ID, topic.name, &spans)?;
        let mut deleted = 0;
        loop {
            match records.step()? {
                Step::Record(record) => {
                    if !record.with_borrowed(|record| !self.has(record.timestamp_ms) || show(record)) {
                        break;
                    }
                }
                Step::Deleted { count, .. } => deleted += count,
                Step::Unreadable(..) | Step::Nothing => {}
                Step::End => break,
            }
        }
        if deleted > 0 {
            say!("tollgate: {deleted} offsets of {} were deleted by retention before they were read", topic.name);
        }
        Ok(())
    }

    /// Returns whether a time is in the range. A record without a time is.
    fn has(self, time_ms: Option<i64>) -> bool {
        time_ms.is_none_or(|time_ms| {
            self.from_ms.is_none_or(|from_ms| from_ms <= time_ms) && self.until_ms.is_none_or(|until_ms| time_ms < until_ms)
        })
    }

    /// Returns what there is to read. Where brokers look nothing up by time it is the whole topic.
    fn spans(self, topics: &Topics<'_>, topic: Topic<'_>, partition: Option<Partition>) -> anyhow::Result<Vec<Span>> {
        let asker = consumer(topics.kafka(), CLIENT_ID, 1)?;
        let find = |time_ms: Option<i64>| {
            anyhow::Ok(time_ms.map(|time_ms| offsets_by_time(time_ms, topics, topic, &asker)).transpose()?.flatten())
        };
        let (starts, ends) = (find(self.from_ms)?, find(self.until_ms)?);
        let mut spans = Vec::new();
        for partition in topic.all()?.into_iter().filter(|one| partition.is_none_or(|only| only == *one)) {
            let (low, high) = topics.ends(topic, partition)?;
            // A partition without a record of a time or later has all its records before that time.
            let place = |found: &Option<BTreeMap<i32, i64>>, otherwise: Offset| {
                found.as_ref().map_or(otherwise.0, |found| found.get(&partition.0).copied().unwrap_or(high.0))
            };
            spans.push(Span { partition: partition.0, next: place(&starts, low), end: Some(place(&ends, high)) });
        }
        Ok(spans)
    }
}

/// Returns the offsets of the first records of a time or later, by partition; partitions that have none are left out. `None` says that the
/// brokers look nothing up by time, as that of `tollgate dev` does not.
pub(crate) fn offsets_by_time(
    time_ms: i64,
    topics: &Topics<'_>,
    topic: Topic<'_>,
    consumer: &BaseConsumer<PlainContext>,
) -> anyhow::Result<Option<BTreeMap<i32, i64>>> {
    let mut list = TopicPartitionList::new();
    for partition in topic.all()? {
        list.add_partition_offset(topic.name, partition.0, KafkaOffset::Offset(time_ms))?;
    }
    let found = consumer.offsets_for_times(list, BROKERS_TIMEOUT);
    let found = found.with_context(|| format!("the offsets of {} by time are unknown", topic.name))?;
    let found: BTreeMap<_, _> = found
        .elements()
        .iter()
        .filter_map(|element| Some((element.partition(), element.offset().to_raw().filter(|offset| *offset >= 0)?)))
        .collect();
    Ok((!found.is_empty() || is_before(time_ms, topics, topic)?).then_some(found))
}

/// Returns whether the last record of each partition is before a time, so that brokers which find no record of that time or later are right.
fn is_before(time_ms: i64, topics: &Topics<'_>, topic: Topic<'_>) -> anyhow::Result<bool> {
    for partition in topic.all()? {
        let (low, high) = topics.ends(topic, partition)?;
        if low == high {
            continue;
        }
        let mut last_ms = None;
        topics.read_from(topic, partition, Offset(high.0 - 1), |message| {
            last_ms = message.timestamp().to_millis();
            false
        })?;
        if last_ms.is_some_and(|last_ms| last_ms >= time_ms) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_begins_at_its_first_time_and_ends_before_its_last() {
        let range = TimeRange { from_ms: Some(10), until_ms: Some(20) };
        assert_eq!([9, 10, 19, 20].map(|time_ms| range.has(Some(time_ms))), [false, true, true, false]);
        assert!(range.has(None) && TimeRange::default().has(Some(i64::MIN)));
    }
}
