//! What a replay did, as a table or as one JSON object, and what it would do.

use std::io::Write;

use tollgate_operations::replay::{Kind, Report, Verdicts};
use tollgate_recordings::replay::{Overview, Pace, Percentiles};

use crate::commands::shared::{bytes, count, seconds, stamp};

/// Writes the report.
pub(super) fn write_report(report: &Report, out: &mut impl Write, is_json: bool) -> std::io::Result<()> {
    if is_json {
        return writeln!(out, "{}", serde_json::to_string(report)?);
    }
    let Report { records, sent, acknowledged, refused, faults, .. } = report;
    writeln!(out, "{} → {}{}", report.source, report.target, if report.is_interrupted { ", interrupted" } else { "" })?;
    writeln!(out, "records     {records} of the source, {sent} sent, {acknowledged} acknowledged, {refused} refused, {faults} faults")?;
    let (rate, time) = (count(report.acknowledged_per_second), seconds(report.seconds));
    writeln!(out, "rate        {rate}/s for {time}, {}", bytes(report.bytes))?;
    match &report.late_ms {
        Some(late) => writeln!(out, "late by     {}", shown(late))?,
        None => writeln!(out, "late by     - (as fast as possible)")?,
    }
    if report.backwards + report.timeless > 0 {
        writeln!(out, "times       {} earlier than one before them, {} without a time: sent at once", report.backwards, report.timeless)?;
    }
    let Some(verdicts) = &report.verdicts else { return Ok(()) };
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
