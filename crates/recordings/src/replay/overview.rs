//! What a source holds: read before a file is sent.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, BuildHasherDefault};

use anyhow::{bail, ensure};
use rustc_hash::{FxHashSet, FxHasher};
use serde::Serialize;

use super::pace::{Pace, Schedule};
use super::rewrite::Rewriter;
use super::source::{FaultReport, Item, Source};

/// One record of so many may have an earlier time than one before it.
const BACKWARDS_SHARE: u64 = 100;

/// What a source holds.
#[derive(Debug, Default, Serialize)]
pub struct Overview {
    /// How many records there are.
    pub records: u64,
    /// Bytes of values.
    pub bytes: u64,
    /// How many lines or offsets hold no record that could be sent.
    pub faults: u64,
    /// How many partitions records are on.
    pub partitions: usize,
    /// How many threads there are, where that was counted.
    pub threads: Option<usize>,
    /// The earliest time of a record, in milliseconds since the epoch.
    pub first_ms: Option<i64>,
    /// The latest time of a record, in milliseconds since the epoch.
    pub last_ms: Option<i64>,
    /// Records with an earlier time than one before them.
    pub backwards: u64,
    /// Records without a time.
    pub timeless: u64,
    /// The highest number of a partition and one.
    #[serde(skip)]
    pub partitions_needed: u32,
    /// Whether any record can be read as an event.
    #[serde(skip)]
    has_events: bool,
}

impl Overview {
    /// Reads a source to its end. With `report`, faults are reported and threads counted.
    ///
    /// # Errors
    /// The source holds records of several topics, or cannot be read.
    pub fn of(source: &mut dyn Source, rewriter: &Rewriter, mut report: Option<FaultReport<'_>>) -> anyhow::Result<Self> {
        let is_thorough = report.is_some();
        let (mut overview, mut schedule) = (Self::default(), Schedule::new(Pace::Recorded(1.0)));
        let (mut partitions, mut threads) = (BTreeSet::new(), FxHashSet::default());
        loop {
            let record = match source.next()? {
                Item::End => break,
                Item::Nothing => continue,
                Item::Fault(place, fault) => {
                    overview.faults += 1;
                    if let Some(report) = &mut report {
                        report(&source.fault(place, &fault));
                    }
                    continue;
                }
                Item::Record(_, record) => record,
            };
            overview.records += 1;
            record.with_borrowed(|record| {
                overview.bytes += record.value.map_or(0, |value| value.len() as u64);
                partitions.insert(record.partition);
                schedule.next_send(record.timestamp_ms, false);
                overview.first_ms = overview.first_ms.into_iter().chain(record.timestamp_ms).min();
                overview.last_ms = overview.last_ms.max(record.timestamp_ms);
                if is_thorough || !overview.has_events {
                    let facts = rewriter.facts(record);
                    overview.has_events |= facts.is_event();
                    let hasher = BuildHasherDefault::<FxHasher>::default();
                    threads.extend(facts.thread.map(|thread| hasher.hash_one(thread)));
                }
            });
        }
        (overview.backwards, overview.timeless) = (schedule.backwards, schedule.timeless);
        overview.partitions = partitions.len();
        overview.partitions_needed = partitions.last().map_or(0, |last| u32::try_from(last.0 + 1).unwrap_or_default());
        overview.threads = is_thorough.then_some(threads.len());
        Ok(overview)
    }

    /// Checks that the source can be replayed at this pace, and returns a warning if its times are not in order. `topic` is the topic that
    /// was asked for.
    ///
    /// # Errors
    /// Nothing in it is an event, or nothing is of this topic, or no record has a time though times set the pace.
    pub fn check(&self, pace: Pace, topic: Option<&str>) -> anyhow::Result<Option<String>> {
        if let Some(topic) = topic.filter(|_| self.records == 0 && self.faults == 0) {
            bail!("--topic {topic}: found no record of it in SOURCE; leave --topic out to see what is there");
        }
        let lines = self.records + self.faults;
        ensure!(
            self.has_events || lines == 0,
            "SOURCE: none of its {lines} lines holds an event; it seems to be another program's file: name a capture, or what `tollgate eval` reads"
        );
        let is_timed = self.timeless < self.records || self.records == 0;
        ensure!(
            is_timed || !matches!(pace, Pace::Recorded(_)),
            "SOURCE: its records have no times, so they have no spacing; say how fast with --rate, such as --rate 500/s or --rate max"
        );
        // A few such records are usual: producers' clocks differ.
        let is_disordered = matches!(pace, Pace::Recorded(_)) && self.backwards > self.records / BACKWARDS_SHARE;
        Ok(is_disordered.then(|| {
            format!(
                "SOURCE: {} of its {} records have earlier times than one before them, and are sent at once: this is not the recorded pace. \
                 It seems to hold one partition after the other; `tollgate capture` writes all of them in the order of their times",
                self.backwards, self.records
            )
        }))
    }
}
