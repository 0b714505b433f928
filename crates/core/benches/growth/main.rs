//! Measures what an event costs as work grows: with a thousand to a million live threads in one partition processor, and with ten to ten
//! thousand rules of every kind. More partitions need Kafka and are measured elsewhere.
//!
//! The sizes are timed in turn, so that a machine that gets slower gets slower for all; the ratio is the median of what each round came to
//! as a multiple of the same round's smallest size.
//!
//! `cargo bench -p tollgate-core --bench growth`, with `-- --json` for one JSON object. It needs about 2 GB of memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "a benchmark has no interface")]

mod rules;
mod threads;

use serde_json::{Value, json};
use tollgate_fixtures::measure::{is_json, median, median_ratio, print_json, rounded};

/// The most that an event may cost with the largest size, as a multiple of its cost with the smallest.
const RATIO_MAX: f64 = 1.3;
const SIZES: usize = 4;

/// The measured costs as one thing grew.
#[derive(Debug)]
pub struct Growth {
    what: String,
    /// Whether the target is about it; the other rows explain those of the target.
    is_target: bool,
    sizes: [usize; SIZES],
    /// Nanoseconds per event, for every size by round.
    times: [Vec<f64>; SIZES],
}

impl Growth {
    fn new(what: impl Into<String>, sizes: [usize; SIZES]) -> Self {
        Self { what: what.into(), is_target: true, sizes, times: [const { Vec::new() }; SIZES] }
    }

    /// Returns a row that no target is about.
    fn detail(what: impl Into<String>, sizes: [usize; SIZES]) -> Self {
        Self { is_target: false, ..Self::new(what, sizes) }
    }

    fn push(&mut self, size: usize, ns: f64) {
        self.times[size].push(ns);
    }

    fn ns(&self, size: usize) -> f64 {
        median(self.times[size].clone())
    }

    fn ratio(&self, size: usize) -> f64 {
        median_ratio(&self.times[size], &self.times[0])
    }

    fn print(&self) {
        print!("{:<42}", self.what);
        (0..SIZES).for_each(|size| print!(" {:>9} {:>8.0}", self.sizes[size], self.ns(size)));
        (1..SIZES).for_each(|size| print!(" {:>6.2}", self.ratio(size)));
        let is_missed = self.is_target && self.ratio(SIZES - 1) > RATIO_MAX;
        println!("{}", if is_missed { "  beyond the target" } else { "" });
    }

    fn json(&self) -> Value {
        let step = |size: usize| json!({"size": self.sizes[size], "ns": rounded(self.ns(size), 1), "ratio": rounded(self.ratio(size), 3)});
        let last = SIZES - 1;
        json!({
            "what": self.what, "from": self.sizes[0], "to": self.sizes[last], "ns_from": rounded(self.ns(0), 1),
            "ns_to": rounded(self.ns(last), 1), "ratio": rounded(self.ratio(last), 3), "is_target": self.is_target,
            "steps": (0..SIZES).map(step).collect::<Vec<_>>(),
        })
    }
}

fn main() {
    if threads::serve() {
        return;
    }
    let is_json = is_json();
    let mut rows = Vec::new();
    let mut show = |growth: &Growth| {
        if !is_json {
            growth.print();
        }
        rows.push(growth.json());
    };
    if !is_json {
        println!("{:<42} {:<75} ratios to the first", "an event, by", "size and ns per event");
    }
    rules::measure(&mut show);
    threads::measure(&mut show);
    if is_json {
        print_json("growth", rows);
    } else {
        println!("the target is {RATIO_MAX} from the smallest size to the largest; rows that say `alone` are details, not events");
    }
}
