//! Helps the benchmarks to measure and report: alternating rounds, medians, and `--json`.

use std::time::Instant;

use serde_json::{Value, json};

/// Returns the nanoseconds per event that `run` takes.
pub fn time_per_event(events: usize, run: impl FnOnce()) -> f64 {
    let started = Instant::now();
    run();
    started.elapsed().as_nanos() as f64 / events as f64
}

/// Returns the middle value; other programs on the machine make single rounds slower, but not the median of many.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the median of what each round came to as a multiple of the same round's other value: a machine that gets slower gets slower for
/// both.
pub fn median_ratio(values: &[f64], others: &[f64]) -> f64 {
    median(values.iter().zip(others).map(|(value, other)| value / other).collect())
}

/// Returns whether the results are asked for as one JSON object (`cargo bench … -- --json`).
pub fn is_json() -> bool {
    std::env::args().any(|argument| argument == "--json")
}

/// Prints the results as one JSON object, and nothing else.
pub fn print_json(name: &str, rows: Vec<Value>) {
    println!("{}", json!({ name: rows }));
}

/// Returns a value as precise as it is worth writing down.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}
