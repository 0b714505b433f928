//! What a replay did, as a table or as one JSON object.

use std::io::Write;

use serde::Serialize;
use tollgate_recordings::replay::{Awaiting, Overview, Pace, Percentiles};

use crate::commands::shared::{bytes, count, seconds, stamp};

/// What a replay did.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) source: String,
    pub(super) target: String,
    /// Records that were taken from the source, in all rounds.
    pub(super) records: u64,
    /// Records that were handed over, copies included.
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    /// Records that the target refused.
    pub(super) refused: u64,
    /// Lines or offsets without a record that could be sent.
    pub(super) faults: u64,
    /// Bytes of the values that were sent.
    pub(super) bytes: u64,
    /// From when the first record was due until the last acknowledgement.
    pub(super) seconds: f64,
    pub(super) acknowledged_per_second: f64,
    /// How long after they were due records were handed over, in milliseconds; nothing is due at `--rate max`.
    pub(super) late_ms: Option<Percentiles>,
    /// Records with an earlier time than one before them, which were sent at once.
    pub(super) backwards: u64,
    /// Records without a time, which were sent with the one before them.
    pub(super) timeless: u64,
    pub(super) is_interrupted: bool,
    pub(super) verdicts: Option<Verdicts>,
}

/// The verdicts that were awaited.
#[derive(Debug, Serialize)]
pub(super) struct Verdicts {
    pub(super) answered: u64,
    pub(super) unanswered: u64,
    pub(super) duplicates: u64,
    /// From when events were due to their verdicts, in milliseconds.
    pub(super) latency_ms: Percentiles,
    pub(super) by: Vec<Kind>,
    pub(super) digest: String,
}

/// The verdicts of one action and code.
#[derive(Debug, Serialize)]
pub(super) struct Kind {
    action: String,
    code: String,
    count: u64,
}

impl Verdicts {
    /// Returns the results so far.
    pub(super) fn of(awaiting: &Awaiting) -> Self {
        let kind = |((action, code), count): (&(String, String), &u64)| Kind { action: action.clone(), code: code.clone(), count: *count };
        let mut by: Vec<_> = awaiting.verdicts.iter().map(kind).collect();
        by.sort_by_key(|kind| std::cmp::Reverse(kind.count));
        Self {
            answered: awaiting.answered,
            unanswered: awaiting.unanswered(),
            duplicates: awaiting.duplicates,
            latency_ms: awaiting.latency.percentiles(),
            by,
            digest: awaiting.distinct.digest().to_string(),
        }
    }
}

impl Report {
    /// Writes the report.
    pub(super) fn write(&self, out: &mut impl Write, is_json: bool) -> std::io::Result<()> {
        if is_json {
            return writeln!(out, "{}", serde_json::to_string(self)?);
        }
        let Self { records, sent, acknowledged, refused, faults, .. } = self;
        writeln!(out, "{} → {}{}", self.source, self.target, if self.is_interrupted { ", interrupted" } else { "" })?;
        writeln!(out, "records     {records} of the source, {sent} sent, {acknowledged} acknowledged, {refused} refused, {faults} faults")?;
        let (rate, time) = (count(self.acknowledged_per_second), seconds(self.seconds));
        writeln!(out, "rate        {rate}/s for {time}, {}", bytes(self.bytes))?;
        match &self.late_ms {
            Some(late) => writeln!(out, "late by     {}", shown(late))?,
            None => writeln!(out, "late by     - (as fast as possible)")?,
        }
        if self.backwards + self.timeless > 0 {
            writeln!(out, "times       {} earlier than one before them, {} without a time: sent at once", self.backwards, self.timeless)?;
        }
        let Some(verdicts) = &self.verdicts else { return Ok(()) };
        let Verdicts { answered, unanswered, duplicates, .. } = verdicts;
        writeln!(out, "verdicts    {answered} answered, {unanswered} unanswered, {duplicates} more than once")?;
        if *answered == 0 {
            return writeln!(out, "latency     -, since nothing was answered");
        }
        writeln!(out, "latency     {}, from when each event was due", shown(&verdicts.latency_ms))?;
        for Kind { action, code, count } in &verdicts.by {
            writeln!(out, "            {count:>9}  {action:<8} {code}")?;
        }
        writeln!(out, "digest      {}", verdicts.digest)
    }
}

fn shown(times: &Percentiles) -> String {
    let [p50, p99, p999, max] = [times.p50, times.p99, times.p999, times.max].map(|ms| seconds(ms / 1_000.0));
    format!("p50 {p50}, p99 {p99}, p99.9 {p999}, max {max}")
}

/// Prints what would be sent.
pub(super) fn write_overview(overview: &Overview, out: &mut impl Write, pace: Pace, copies: u64, to: &str) -> std::io::Result<()> {
    let sends = overview.records.saturating_mul(copies);
    writeln!(out, "would send  {sends} records to {to}: {} of the source in {copies} copies, {}", overview.records, bytes(overview.bytes))?;
    let threads = overview.threads.map_or_else(|| "-".to_owned(), |threads| threads.to_string());
    writeln!(out, "partitions  {}\nthreads     {threads}", overview.partitions)?;
    let span = overview.first_ms.zip(overview.last_ms).map(|(first, last)| ((last - first) as f64 / 1_000.0, first, last));
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
    writeln!(
        out,
        "faults      {}; {} earlier than one before them, {} without a time",
        overview.faults, overview.backwards, overview.timeless
    )
}
