//! Measures what an event costs as work grows: with a thousand to a million live threads in one partition processor, and with ten to ten
//! thousand rules of every kind. More partitions need Kafka and are measured elsewhere.
//!
//! The sizes are timed in turn, so that a machine that gets slower gets slower for all; the ratio is the median of what each round came to
//! as a multiple of the same round's smallest size.
//!
//! Rows that say `alone` explain the rows of whole events, and no target is about them.

mod rules;
pub mod threads;

use serde_json::json;
use tollgate_fixtures::measure::{Table, median, median_ratio, rounded};

/// The most that an event may cost with the largest size, as a multiple of its cost with the smallest.
const RATIO_MAX: f64 = 1.3;
/// The smallest size and the largest.
const SIZES: usize = 2;

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

    /// Adds the row to the table, and returns whether the target is met.
    fn show(&self, table: &mut Table) -> bool {
        let [ns_from, ns_to] = self.times.each_ref().map(|times| rounded(median(times.clone()), 1));
        let ratio = median_ratio(&self.times[1], &self.times[0]);
        table.row([
            ("what", json!(self.what)),
            ("from", json!(self.sizes[0])),
            ("to", json!(self.sizes[1])),
            ("ns_from", json!(ns_from)),
            ("ns_to", json!(ns_to)),
            ("ratio", json!(rounded(ratio, 3))),
            ("is_target", json!(self.is_target)),
        ]);
        !self.is_target || ratio <= RATIO_MAX
    }
}

pub fn measure(mut table: Table) {
    let mut is_met = true;
    let mut show = |growth: &Growth| is_met &= growth.show(&mut table);
    rules::measure(&mut show);
    threads::measure(&mut show);
    table.end_with_target(&format!("{RATIO_MAX} times as much with the largest size"), is_met);
}
