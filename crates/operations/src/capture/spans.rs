//! From where to where a topic is captured.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::{Context as _, bail, ensure};
use rdkafka::consumer::BaseConsumer;

use tollgate_recordings::Contents;
use tollgate_worker::host_time::now_ms;
use tollgate_worker::kafka::PlainContext;

use crate::by_time::offsets_by_time;
use crate::units::stamp;
use crate::{Span, Topic, Topics};

/// A bound of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The oldest record that is there.
    Beginning,
    /// The end as it is now.
    End,
    /// The first record of this time or later, in milliseconds since 1970.
    Time(i64),
    /// An offset of a partition.
    Offset(i32, i64),
}

/// One partition, or a range of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions(pub RangeInclusive<i32>);

impl CaptureRange<'_> {
    /// Returns whether a partition is asked for.
    fn takes(&self, partition: i32) -> bool {
        self.partitions.is_empty() || self.partitions.iter().any(|range| range.0.contains(&partition))
    }
}

/// What the user asked for.
#[derive(Debug)]
pub struct CaptureRange<'a> {
    /// Where to begin.
    pub from: &'a [Bound],
    /// Where to end.
    pub to: &'a [Bound],
    /// The partitions; none is all of them.
    pub partitions: &'a [Partitions],
    /// Whether to go on behind what is there now.
    pub follows: bool,
    /// The capture that is gone on with.
    pub behind: &'a Contents,
}

/// Returns what there is to read.
///
/// # Errors
/// A bound is none of this topic's, or the brokers do not answer.
pub(super) fn spans(
    asked: &CaptureRange<'_>,
    topics: &Topics<'_>,
    topic: Topic<'_>,
    consumer: &BaseConsumer<PlainContext>,
) -> anyhow::Result<Vec<Span>> {
    check(asked, topic)?;
    let (starts, ends) = (by_time(asked.from, topics, topic, consumer)?, by_time(asked.to, topics, topic, consumer)?);
    let mut spans = Vec::new();
    for partition in topic.all()?.into_iter().filter(|partition| asked.takes(partition.0)) {
        let number = partition.0;
        let (low, high) = topics.ends(topic, partition)?;
        let place = |option: &str, bounds: &[Bound], times: &BTreeMap<i32, i64>| -> anyhow::Result<Option<i64>> {
            let offset = bounds.iter().find_map(|bound| match bound {
                Bound::Offset(asked, offset) if *asked == number => Some(*offset),
                _ => None,
            });
            if let Some(offset) = offset {
                ensure!(
                    (low.0..=high.0).contains(&offset),
                    "{option} {number}@{offset}: partition {number} of {} has the offsets {low} to {high}; name one of them",
                    topic.name
                );
                return Ok(Some(offset));
            }
            Ok(match bounds.iter().find(|bound| !matches!(bound, Bound::Offset(..))) {
                Some(Bound::Beginning) => Some(low.0),
                Some(Bound::End) => Some(high.0),
                Some(Bound::Time(_)) => Some(times.get(&number).copied().unwrap_or(high.0)),
                Some(Bound::Offset(..)) | None => None,
            })
        };
        let begin = place("--from", asked.from, &starts)?.unwrap_or(low.0);
        let end = place("--to", asked.to, &ends)?.or_else(|| (!asked.follows).then_some(high.0));
        if let Some(end) = end.filter(|end| *end < begin) {
            bail!("--to: found offset {end} as the end of partition {number}, and {begin} as its beginning; name an end behind --from");
        }
        // What has gone by retention since is found when it is read.
        let next = asked.behind.last.get(&number).map_or(begin, |last| last + 1);
        if let Some(first) = asked.behind.first.get(&number).filter(|first| !asked.from.is_empty() && begin < **first) {
            say!(
                "tollgate: --resume: partition {number} of {} is in the file from offset {first} on, and --from is offset {begin}; what is \
                 before the file's beginning is not taken: capture it into another file",
                topic.name
            );
        }
        ensure!(
            !asked.behind.last.contains_key(&number) || next <= high.0,
            "--resume: the file goes to offset {} of partition {number}, and the topic to {high}: it was made anew; take another file",
            next - 1
        );
        spans.push(Span { partition: number, next, end });
    }
    Ok(spans)
}

fn check(asked: &CaptureRange<'_>, topic: Topic<'_>) -> anyhow::Result<()> {
    let has = |number: i32| u32::try_from(number).is_ok_and(|number| number < topic.partitions);
    let named = [("--from", asked.from), ("--to", asked.to)].into_iter().flat_map(|(option, bounds)| {
        bounds.iter().filter_map(move |bound| if let Bound::Offset(number, _) = bound { Some((option, *number)) } else { None })
    });
    let last = |partitions: &Partitions| ("--partitions", *partitions.0.end());
    for (option, number) in asked.partitions.iter().map(last).chain(named) {
        ensure!(has(number), "{option}: found partition {number}; topic {} has 0 to {}", topic.name, topic.partitions.saturating_sub(1));
        ensure!(asked.takes(number), "{option}: found a bound of partition {number}, which --partitions leaves out");
    }
    let time = |bounds: &[Bound]| bounds.iter().find_map(|bound| if let Bound::Time(time_ms) = bound { Some(*time_ms) } else { None });
    for (option, bounds) in [("--from", asked.from), ("--to", asked.to)] {
        let whole = bounds.iter().filter(|bound| !matches!(bound, Bound::Offset(..))).count();
        ensure!(whole <= 1, "{option}: found {whole} bounds of the whole topic; name one");
        if let Some(time_ms) = time(bounds).filter(|time_ms| *time_ms > now_ms()) {
            bail!(
                "{option}: found {}, a time that has not come; leave --to out and give --follow to go on until you stop it",
                stamp(time_ms)
            );
        }
    }
    if let (Some(from), Some(to)) = (time(asked.from), time(asked.to)) {
        ensure!(from < to, "--to: found a time that does not come behind --from");
    }
    Ok(())
}

/// Returns the offsets of the first records of a time, by partition; those that have none are left out.
fn by_time(
    bounds: &[Bound],
    topics: &Topics<'_>,
    topic: Topic<'_>,
    consumer: &BaseConsumer<PlainContext>,
) -> anyhow::Result<BTreeMap<i32, i64>> {
    let Some(time_ms) = bounds.iter().find_map(|bound| if let Bound::Time(time_ms) = bound { Some(*time_ms) } else { None }) else {
        return Ok(BTreeMap::new());
    };
    // An empty capture would say that nothing has happened.
    offsets_by_time(time_ms, topics, topic, consumer)?.context(
        "the brokers look up no offsets by time, as the broker of `tollgate dev` does not; name them: --from beginning, or PARTITION@OFFSET",
    )
}
