//! Micro-benchmarks of the decision core, part by part, and of whole events.
//!
//! They say where time goes. To compare whole events between machines or over time, use `decision` and `instructions`. Every part is
//! measured through the interface that the rest of the core uses. Where that is wider than the part, the name says so.
//!
//! `cargo bench -p tollgate-core --bench micro`, with `-- loops` for the groups whose name holds that
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "a benchmark has no interface")]

mod deciding;
mod reading;
mod responses;
mod whole;

use std::time::Duration;

use criterion::Criterion;

fn main() {
    // The runs are short, since there are many: other programs on the machine disturb long ones as much.
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(50)
        .configure_from_args();
    reading::decode(&mut criterion);
    reading::canonical(&mut criterion);
    reading::classification(&mut criterion);
    deciding::loops(&mut criterion);
    responses::safety(&mut criterion);
    deciding::passports(&mut criterion);
    whole::verdicts(&mut criterion);
    whole::events(&mut criterion);
    criterion.final_summary();
}
