//! The plan of a move as a table or as JSONL: one line a partition.

use std::io::{BufWriter, Write};

use serde_json::json;

use super::Job;
use super::placement::Placement;
use crate::commands::shared::{Column, OutputFormat, Screen, Table, bytes};

const COLUMNS: &[Column] = &[
    Column::number("partition"),
    Column::number("threads"),
    Column::number("leaving"),
    Column::number("arriving"),
    Column::number("then"),
    Column::number("size arriving"),
    Column::number("stops arriving"),
    Column::number("suppressed arriving"),
    Column::number("misplaced").wide(),
];

/// Writes the plan to stdout.
pub(super) fn write(placement: &Placement, format: OutputFormat, screen: Screen) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut table = Table::new(COLUMNS);
    for (partition, placed) in placement.partitions.iter().enumerate() {
        let (threads, leaving, arriving) = (placed.threads, placed.leaving, placed.arriving);
        let then = threads + arriving.threads - leaving.threads;
        if format == OutputFormat::Json {
            let line = json!({
                "partition": partition, "threads": threads, "threads_after": then, "misplaced": placed.misplaced,
                "leaving": {"threads": leaving.threads, "bytes": leaving.bytes, "stops": leaving.stops, "suppressions": leaving.suppressions},
                "arriving": {"threads": arriving.threads, "bytes": arriving.bytes, "stops": arriving.stops, "suppressions": arriving.suppressions},
            });
            writeln!(out, "{line}")?;
        } else {
            let numbers = [partition as u64, threads, leaving.threads, arriving.threads, then];
            let mut cells: Vec<_> = numbers.iter().map(u64::to_string).collect();
            cells.push(bytes(arriving.bytes));
            cells.extend([arriving.stops, arriving.suppressions, placed.misplaced].iter().map(u64::to_string));
            table.row(cells);
        }
    }
    if format == OutputFormat::Json {
        return Ok(out.flush()?);
    }
    table.write(&mut out, screen, format)?;
    Ok(out.flush()?)
}

/// Returns the sums of the plan as a sentence.
pub(super) fn summary(job: &Job<'_>, placement: &Placement, what: &str) -> String {
    let moving = placement.moving();
    let all: u64 = placement.partitions.iter().map(|partition| partition.threads).sum();
    let limit = job.settings.policy.limits.threads_per_partition_max as u64;
    let full = placement
        .partitions
        .iter()
        .filter(|partition| partition.threads + partition.arriving.threads - partition.leaving.threads > limit)
        .count();
    let full = if full > 0 { format!("; partitions beyond limits.threads_per_partition_max ({limit}): {full}") } else { String::new() };
    format!(
        "from {} to {} partitions: threads: {all}, {what}: {} ({}), of which hold a stop: {}, have suppressed calls: {}, misplaced: {}{full}",
        placement.rekey.from,
        placement.rekey.to,
        moving.threads,
        bytes(moving.bytes),
        moving.stops,
        moving.suppressions,
        placement.misplaced()
    )
}
