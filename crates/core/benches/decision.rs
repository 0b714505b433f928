//! Measures what a decision costs without Kafka, per event: nanoseconds, the ratio to `serde_json` reading the same bytes into a `Value`,
//! and allocations.
//!
//! The whole path of an event is measured: record → event → thread → verdict as bytes. Gate and parser are timed in turn, so that a machine
//! that gets slower gets slower for both: quote the ratio. Allocations are counted in a pass of their own, by an allocator that reads one
//! thread-local flag when it does not count; growing a list in place counts as one.
//!
//! `cargo bench -p tollgate-core --bench decision`, with `-- --json` for one JSON object
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "a benchmark has no interface")]

use std::alloc::System;
use std::hint::black_box;

use mockalloc::Mockalloc;
use serde_json::{Value, json};
use tollgate_fixtures::events::rows::{ROWS, Row};
use tollgate_fixtures::measure::{is_json, median, median_ratio, print_json, rounded, time_per_event};

#[global_allocator]
static ALLOCATOR: Mockalloc<System> = Mockalloc(System);

const ROUNDS: usize = 101;
/// The nanoseconds that the first row may cost.
const TARGET_NS: f64 = 2_000.0;
const TARGET_ALLOCATIONS: f64 = 5.0;

/// The measured cost of a row, per event.
struct Cost {
    gate_ns: f64,
    parse_ns: f64,
    over_parse: f64,
    allocations: f64,
    allocated_bytes: f64,
}

fn main() {
    let is_json = is_json();
    if !is_json {
        println!(
            "{:<34} {:>6} {:>9} {:>9} {:>11} {:>12} {:>9}",
            "events", "bytes", "gate ns", "parse ns", "gate/parse", "allocations", "bytes"
        );
    }
    let (mut rows, mut target) = (Vec::new(), None);
    for make in ROWS {
        let row = make();
        row.check();
        let cost = measure(&row);
        if !is_json {
            print(&row, &cost);
        }
        rows.push(json!({
            "name": row.name, "bytes": row.bytes(), "ns": rounded(cost.gate_ns, 1), "allocations": rounded(cost.allocations, 2),
            "allocated_bytes": rounded(cost.allocated_bytes, 1), "over_serde_json": rounded(cost.over_parse, 3),
        }));
        target.get_or_insert(cost);
    }
    match target {
        Some(cost) if !is_json => {
            let is_met = |is_met| if is_met { "met" } else { "MISSED" };
            println!("the target of {TARGET_NS} ns for the first row is {}", is_met(cost.gate_ns <= TARGET_NS));
            println!("the target of {TARGET_ALLOCATIONS} allocations for it is {}", is_met(cost.allocations <= TARGET_ALLOCATIONS));
        }
        _ => print_json("decision", rows),
    }
}

fn print(row: &Row, cost: &Cost) {
    let Cost { gate_ns, parse_ns, over_parse, allocations, allocated_bytes } = cost;
    println!(
        "{:<34} {:>6} {gate_ns:>9.0} {parse_ns:>9.0} {over_parse:>11.2} {allocations:>12.2} {allocated_bytes:>9.0}",
        row.name,
        row.bytes()
    );
}

fn measure(row: &Row) -> Cost {
    let events = row.measured.len() as f64;
    let (mut gate, mut parse) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if round % 2 == 0 {
            gate.push(decide(row));
            parse.push(read(row));
        } else {
            parse.push(read(row));
            gate.push(decide(row));
        }
    }
    let mut feed = row.prepare();
    let counted = mockalloc::record_allocs(|| feed.apply_all(&row.measured));
    Cost {
        over_parse: median_ratio(&gate, &parse),
        gate_ns: median(gate),
        parse_ns: median(parse),
        allocations: counted.num_allocs() as f64 / events,
        allocated_bytes: counted.mem_allocated() as f64 / events,
    }
}

fn decide(row: &Row) -> f64 {
    let mut feed = row.prepare();
    time_per_event(row.measured.len(), || feed.apply_all(&row.measured))
}

fn read(row: &Row) -> f64 {
    time_per_event(row.measured.len(), || row.measured.iter().for_each(|event| drop(black_box(serde_json::from_str::<Value>(event)))))
}
