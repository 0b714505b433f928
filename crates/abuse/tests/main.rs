//! Tests the abuse stage through its public interface: signals in; alerts, controls and state out.
//!
//! | module | what holds |
//! |---|---|
//! | `stage` | the stage counts exactly, and suspends and tells what its rules say |
//! | `rules`, `rules_refused` | the reading and the refusing of rules |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod rules;
mod rules_refused;
mod stage;
