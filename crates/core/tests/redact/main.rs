//! Redaction: verdicts stay the same, equal things stay equal and different ones different, and nothing of the contents is left.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod contents;
mod leaks;
mod pair;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../testkit/src/traffic/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the benchmarks use the rest of it")]
mod traffic;
mod verdicts;
