//! What a source holds: read before a file is sent, and all that `--dry-run` does.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::io::Write;

use anyhow::{bail, ensure};
use rustc_hash::{FxHashSet, FxHasher};
use serde::Serialize;

use super::super::output::{bytes, count, seconds, stamp};
use super::pace::{Pace, Schedule};
use super::rewrite::Rewriter;
use super::run::report_fault;
use super::source::{Item, Source};

/// One record of so many may have an earlier time than one before it.
const BACKWARDS_SHARE: u64 = 100;

/// What a source holds.
#[derive(Debug, Default, Serialize)]
pub(super) struct Overview {
    pub(super) records: u64,
    /// Bytes of values.
    pub(super) bytes: u64,
    pub(super) faults: u64,
    /// How many partitions records are on.
    pub(super) partitions: usize,
    /// How many threads there are, where that was counted.
    pub(super) threads: Option<usize>,
    /// The earliest time of a record in milliseconds since the epoch, and the latest.
    pub(super) first_ms: Option<i64>,
    pub(super) last_ms: Option<i64>,
    /// Records with an earlier time than one before them.
    pub(super) backwards: u64,
    /// Records without a time.
    pub(super) timeless: u64,
    /// The highest number of a partition and one.
    #[serde(skip)]
    pub(super) partitions_needed: u32,
    /// Whether any record can be read as an event.
    #[serde(skip)]
    has_events: bool,
}

impl Overview {
    /// Reads a source to its end. With `is_thorough` threads are counted and faults reported.
    ///
    /// # Errors
    /// The source holds records of several topics, or cannot be read.
    pub(super) fn of(source: &mut Source, rewriter: &Rewriter, is_thorough: bool) -> anyhow::Result<Self> {
        let (mut overview, mut schedule) = (Self::default(), Schedule::new(Pace::Recorded(1.0)));
        let (mut partitions, mut threads) = (BTreeSet::new(), FxHashSet::default());
        loop {
            let record = match source.next()? {
                Item::End => break,
                Item::Nothing => continue,
                Item::Fault(place, fault) => {
                    overview.faults += 1;
                    if is_thorough {
                        report_fault(source, place, &fault);
                    }
                    continue;
                }
                Item::Record(_, record) => record,
            };
            overview.records += 1;
            record.with_borrowed(|record| {
                overview.bytes += record.value.map_or(0, |value| value.len() as u64);
                partitions.insert(record.partition);
                schedule.due(record.timestamp_ms, false);
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

    /// Checks that it can be replayed at this pace. `topic` is the one that was asked for.
    ///
    /// # Errors
    /// Nothing in it is an event, or nothing is of this topic, or no record has a time though times set the pace.
    pub(super) fn check(&self, pace: Pace, topic: Option<&str>) -> anyhow::Result<()> {
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
        if matches!(pace, Pace::Recorded(_)) && self.backwards > self.records / BACKWARDS_SHARE {
            say!(
                "tollgate: SOURCE: {} of its {} records have earlier times than one before them, and are sent at once: this is not the recorded pace. \
                 It seems to hold one partition after the other; `tollgate capture` writes all of them in the order of their times",
                self.backwards,
                self.records
            );
        }
        Ok(())
    }

    /// Prints what would be sent.
    pub(super) fn write(&self, out: &mut impl Write, pace: Pace, copies: u64, to: &str) -> std::io::Result<()> {
        let sends = self.records.saturating_mul(copies);
        writeln!(out, "would send  {sends} records to {to}: {} of the source in {copies} copies, {}", self.records, bytes(self.bytes))?;
        let threads = self.threads.map_or_else(|| "-".to_owned(), |threads| threads.to_string());
        writeln!(out, "partitions  {}\nthreads     {threads}", self.partitions)?;
        let span = self.first_ms.zip(self.last_ms).map(|(first, last)| ((last - first) as f64 / 1_000.0, first, last));
        if let Some((span, first, last)) = span {
            writeln!(out, "recorded    {} to {}, {}", stamp(first), stamp(last), seconds(span))?;
        }
        let takes = match (pace, span) {
            (Pace::Max, _) | (Pace::Recorded(_), None) => None,
            (Pace::Rate(rate), _) => Some(sends as f64 / rate),
            (Pace::Recorded(speed), Some((span, ..))) => Some(span / speed),
        };
        match takes.filter(|takes| *takes > 0.0) {
            Some(takes) => writeln!(out, "rate        {}/s, for {}", count(sends as f64 / takes), seconds(takes))?,
            None => writeln!(out, "rate        as fast as possible")?,
        }
        writeln!(out, "faults      {}; {} earlier than one before them, {} without a time", self.faults, self.backwards, self.timeless)
    }
}
