//! Which dead letters are meant, and the reading of them from the topic.

use std::collections::BTreeMap;

use anyhow::ensure;
use clap::Args;
use rdkafka::message::BorrowedMessage;
use tollgate_core::event::record::{Offset, Partition};

use super::letter::Letter;
use crate::commands::shared::read_since;
use tollgate_operations::{Topic, Topics};

/// The options that say which dead letters are meant.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Only letters with this reason; may be given several times
    #[arg(long = "reason", value_name = "CODE")]
    reasons: Vec<String>,
    /// Only letters published since then: a duration such as 10m or 2h, or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    since: Option<i64>,
    /// Only letters published before then
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    until: Option<i64>,
    /// Only letters whose record was on this partition of its topic; may be given several times
    #[arg(long = "partition", value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    partitions: Vec<i32>,
    /// Begin at this offset of a partition of the dead-letter topic, such as 0@120; may be given for several partitions
    #[arg(long = "from", value_name = "PARTITION@OFFSET", value_parser = read_place)]
    from: Vec<(u32, i64)>,
}

fn read_place(text: &str) -> Result<(u32, i64), String> {
    let place = text.split_once('@').and_then(|(partition, offset)| Some((partition.parse().ok()?, offset.parse().ok()?)));
    place.filter(|(_, offset)| *offset >= 0).ok_or_else(|| "it is no place; write partition and offset, such as 0@120".to_owned())
}

/// A part of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) partition: Partition,
    pub(super) begin: Offset,
    /// The offset behind the last.
    pub(super) end: Offset,
}

/// What was read besides the letters that were meant.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passed {
    /// Letters that were not meant.
    pub(super) others: u64,
    /// Records that are no dead letters.
    pub(super) strangers: u64,
}

impl FilterArgs {
    /// Returns what there is to read: every partition from where it is to begin to where it ends now.
    pub(super) fn spans(&self, topics: &Topics<'_>, topic: Topic<'_>) -> anyhow::Result<Vec<Span>> {
        let from: BTreeMap<u32, i64> = self.from.iter().copied().collect();
        for partition in from.keys() {
            ensure!(*partition < topic.partitions, "--from {partition}@…: topic {} has {} partitions", topic.name, topic.partitions);
        }
        let span = |partition: Partition| {
            let (begin, end) = topics.ends(topic, partition)?;
            let asked = u32::try_from(partition.0).ok().and_then(|partition| from.get(&partition)).copied();
            let begin = Offset(asked.unwrap_or(begin.0).clamp(begin.0, end.0.max(begin.0)));
            Ok(Span { partition, begin, end })
        };
        topic.all()?.into_iter().map(span).collect()
    }

    /// Reads a span, and shows each letter that is meant, until `show` returns `false`.
    pub(super) fn read(
        &self,
        topics: &Topics<'_>,
        topic: Topic<'_>,
        span: Span,
        mut show: impl FnMut(&BorrowedMessage<'_>, Letter) -> bool,
    ) -> anyhow::Result<Passed> {
        let mut passed = Passed::default();
        if span.begin >= span.end {
            return Ok(passed);
        }
        topics.read_from(topic, span.partition, span.begin, |message| {
            use rdkafka::Message as _;
            if message.offset() >= span.end.0 {
                return false;
            }
            match Letter::read(message) {
                None => passed.strangers += 1,
                Some(letter) if !self.means(&letter) => passed.others += 1,
                Some(letter) => return show(message, letter),
            }
            message.offset() + 1 < span.end.0
        })?;
        Ok(passed)
    }

    fn means(&self, letter: &Letter) -> bool {
        let is_among = |asked: &[i32], found: Option<i32>| asked.is_empty() || found.is_some_and(|found| asked.contains(&found));
        (self.reasons.is_empty() || self.reasons.contains(&letter.reason))
            && is_among(&self.partitions, letter.source_partition)
            && self.since.is_none_or(|since| letter.timestamp_ms.is_some_and(|time| time >= since))
            && self.until.is_none_or(|until| letter.timestamp_ms.is_some_and(|time| time < until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_partition_and_an_offset() {
        assert_eq!(read_place("3@120"), Ok((3, 120)));
        for text in ["", "3", "3:120", "@1", "1@", "-1@2", "1@-2", "a@b"] {
            assert!(read_place(text).unwrap_err().contains("such as 0@120"), "{text}");
        }
    }
}
