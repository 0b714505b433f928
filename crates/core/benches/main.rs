//! The benchmarks of the core alone, without Kafka.
//!
//! `cargo bench -p tollgate-core -- decision` runs one benchmark, and `cargo bench -p tollgate-core -- help` lists all of them. `--json`
//! prints one JSON object in place of a table.
//!
//! The allocator of the program counts allocations where a benchmark asks for it. Elsewhere it reads one thread-local flag.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "a benchmark has no interface")]

mod costliest;
mod decision;
mod extremes;
mod growth;
mod instructions;
mod memory;
mod signals;

use std::alloc::System;

use clap::{Parser, Subcommand};
use mockalloc::Mockalloc;
use tollgate_fixtures::measure::Table;

#[global_allocator]
static ALLOCATOR: Mockalloc<System> = Mockalloc(System);

/// The benchmarks of the core alone
#[derive(Parser)]
#[command(bin_name = "cargo bench -p tollgate-core --", max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    benchmark: Benchmark,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
    /// Cargo passes this option to every benchmark
    #[arg(long = "bench", global = true, hide = true)]
    _bench: bool,
}

#[derive(Subcommand)]
enum Benchmark {
    /// A whole event, from its bytes to the verdict's: time, allocations, and the ratio to serde_json
    Decision,
    /// The events of `decision` in instructions, by valgrind's callgrind
    Instructions {
        /// Run so many events of this row, in place of all rows
        #[arg(long, num_args = 2, hide = true)]
        run: Option<Vec<usize>>,
    },
    /// The cost of an event as threads and rules grow; it needs about 2 GB of memory
    Growth {
        /// Serve the process that measures a fleet of so many threads
        #[arg(long, hide = true)]
        fleet: Option<usize>,
    },
    /// Bytes per live thread, and its checkpoint; it needs about 4 GB of memory
    Memory {
        /// Measure the kind of this number alone
        #[arg(long, hide = true)]
        kind: Option<usize>,
    },
    /// Deciding with signals and a thousand suspended users, over deciding without
    Signals,
    /// The costliest events of 8 MiB against ordinary ones
    Extremes {
        /// Measure only the events whose name holds this word
        word: Option<String>,
    },
    /// The costliest calls that a search finds, against ordinary calls of their size
    Costliest {
        /// How many calls to try for each size of each tool
        #[arg(long, default_value_t = 2_000)]
        tries: usize,
    },
}

fn main() {
    let Cli { benchmark, json, .. } = Cli::parse();
    match benchmark {
        Benchmark::Decision => decision::measure(Table::new("decision", json)),
        Benchmark::Instructions { run: Some(run) } => instructions::run(run[0], run[1]),
        Benchmark::Instructions { run: None } => instructions::measure(Table::new("instructions", json)),
        Benchmark::Growth { fleet: Some(threads) } => growth::threads::serve(threads),
        Benchmark::Growth { fleet: None } => growth::measure(Table::new("growth", json)),
        Benchmark::Memory { kind: Some(kind) } => memory::measure_kind(kind),
        Benchmark::Memory { kind: None } => memory::measure(Table::new("memory", json)),
        Benchmark::Signals => signals::measure(Table::new("signals", json)),
        Benchmark::Costliest { tries } => costliest::measure(Table::new("costliest", json), tries),
        Benchmark::Extremes { word } => extremes::measure(Table::new("extremes", json), word.as_deref()),
    }
}
