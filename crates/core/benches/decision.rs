//! Measures what a decision costs without Kafka, per event: nanoseconds, the ratio to `serde_json` reading the same bytes into a `Value`,
//! and allocations.
//!
//! The whole path of an event is measured: record → event → thread → verdict as bytes. Gate and parser are timed in turn, so that a machine
//! that gets slower gets slower for both: quote the ratio. Allocations are counted in a pass of their own; growing a list in place counts
//! as one.

use std::hint::black_box;

use serde_json::{Value, json};
use tollgate_fixtures::events::rows::{ROWS, Row};
use tollgate_fixtures::measure::{Table, in_turns, median, median_ratio, rounded, time_per_event};

const ROUNDS: usize = 101;
/// The nanoseconds that the first row may cost.
const TARGET_NS: f64 = 2_000.0;
const TARGET_ALLOCATIONS: f64 = 0.0;

pub fn measure(mut table: Table) {
    let mut is_met = None;
    for make in ROWS {
        let row = make();
        row.check();
        let events = row.measured.len() as f64;
        let [gate, parse] = in_turns(ROUNDS, [&|| decide(&row), &|| read(&row)]);
        let mut feed = row.prepare();
        let counted = mockalloc::record_allocs(|| feed.apply_all(&row.measured));
        let (over_parse, ns, allocations) = (median_ratio(&gate, &parse), median(gate), counted.num_allocs() as f64 / events);
        table.row([
            ("name", json!(row.name)),
            ("bytes", json!(row.bytes())),
            ("ns", json!(rounded(ns, 1))),
            ("parse_ns", json!(rounded(median(parse), 1))),
            ("over_serde_json", json!(rounded(over_parse, 3))),
            ("allocations", json!(rounded(allocations, 2))),
            ("allocated_bytes", json!(rounded(counted.mem_allocated() as f64 / events, 1))),
        ]);
        is_met.get_or_insert(ns <= TARGET_NS && allocations <= TARGET_ALLOCATIONS);
    }
    table.end_with_target(&format!("{TARGET_NS} ns and {TARGET_ALLOCATIONS} allocations for the first row"), is_met == Some(true));
}

fn decide(row: &Row) -> f64 {
    let mut feed = row.prepare();
    time_per_event(row.measured.len(), || feed.apply_all(&row.measured))
}

fn read(row: &Row) -> f64 {
    time_per_event(row.measured.len(), || row.measured.iter().for_each(|event| drop(black_box(serde_json::from_str::<Value>(event)))))
}
