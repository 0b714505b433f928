//! `tollgate state rekey`: moves the state of threads to the partitions of their new hash, after the events topic was given more.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use tollgate_config::settings::Settings;
use tollgate_operations::rekey::{Misplaced, Moved, Options, Placement, Rekeyed, Tally, rekey};

use crate::commands::shared::{Column, OutputArgs, Screen, Table, bytes, number};

#[derive(Debug, Args)]
pub(crate) struct RekeyArgs {
    /// Move the state; without it, only say what would be moved
    #[arg(long)]
    execute: bool,
    /// How many partitions the state is keyed for, if it does not say so because an older tollgate wrote it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    from: Option<u32>,
    /// What to do with threads on a partition that their id never hashed to, because their producer uses another partitioner
    #[arg(long, value_name = "WHAT", value_enum)]
    misplaced: Option<Misplaced>,
    /// Where two partitions know one thread, keep what has the later event and drop the other
    #[arg(long)]
    keep_newest: bool,
    /// Move the state though events of before the change are not decided: they will be decided without it
    #[arg(long)]
    accept_lag: bool,
    /// How many threads a transaction moves at most
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn execute(args: &RekeyArgs, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    let RekeyArgs { execute, from, misplaced, keep_newest, accept_lag, batch, output } = *args;
    let options = Options { execute, from, misplaced, keep_newest, accept_lag, batch };
    let limit = settings.policy.limits.threads_per_partition_max as u64;
    match rekey(settings, &options)? {
        Rekeyed::Fits(topic, partitions) => {
            say!("nothing to do: {topic} is keyed for {partitions} partitions, as many as there are");
            Ok(ExitCode::SUCCESS)
        }
        Rekeyed::Planned(placement, obstacles) => {
            output.print(screen, lines(&placement), |_| table(&placement))?;
            say!("{}", summary(limit, &placement, "to move"));
            obstacles.iter().for_each(|obstacle| say!("--execute would be refused: {obstacle}"));
            say!("nothing was changed; --execute moves the state");
            Ok(if obstacles.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Rekeyed::Moved(Moved { placement, moved, seconds, threads }) => {
            output.print(screen, lines(&placement), |_| table(&placement))?;
            let rate = moved as f64 / seconds.max(0.001);
            say!("{}", summary(limit, &placement, "moved"));
            say!(
                "moved in {seconds:.1} s ({rate:.0} threads/s); all {threads} threads are there, byte for byte, and the workers can start"
            );
            Ok(ExitCode::SUCCESS)
        }
    }
}

const COLUMNS: &[Column] = &[
    number("partition"),
    number("threads"),
    number("leaving"),
    number("arriving"),
    number("then"),
    number("size arriving"),
    number("stops arriving"),
    number("suppressed arriving"),
    number("misplaced").wide(),
];

/// Returns the plan as JSON, a line a partition.
fn lines(placement: &Placement) -> impl Iterator<Item = Value> {
    let sums = |Tally { threads, bytes, stops, suppressions }: Tally| json!({"threads": threads, "bytes": bytes, "stops": stops, "suppressions": suppressions});
    placement.partitions.iter().enumerate().map(move |(partition, placed)| {
        let then = placed.threads + placed.arriving.threads - placed.leaving.threads;
        json!({"partition": partition, "threads": placed.threads, "threads_after": then, "misplaced": placed.misplaced,
            "leaving": sums(placed.leaving), "arriving": sums(placed.arriving)})
    })
}

fn table(placement: &Placement) -> Table {
    let mut table = Table::new(COLUMNS);
    for (partition, placed) in placement.partitions.iter().enumerate() {
        let (threads, leaving, arriving) = (placed.threads, placed.leaving, placed.arriving);
        let then = threads + arriving.threads - leaving.threads;
        let mut cells: Vec<_> = [partition as u64, threads, leaving.threads, arriving.threads, then].iter().map(u64::to_string).collect();
        cells.push(bytes(arriving.bytes));
        cells.extend([arriving.stops, arriving.suppressions, placed.misplaced].iter().map(u64::to_string));
        table.row(cells);
    }
    table
}

/// Returns the sums of the plan as a sentence. `limit` is how many threads a partition may have.
fn summary(limit: u64, placement: &Placement, what: &str) -> String {
    let moving = placement.moving();
    let all: u64 = placement.partitions.iter().map(|partition| partition.threads).sum();
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
