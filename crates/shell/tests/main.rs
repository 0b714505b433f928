//! Tests the reading of command lines, and rules over commands.
//!
//! | module | what holds |
//! |---|---|
//! | `commands` | each line of the corpus gets its answer; hostile lines come to an end |
//! | `attacks` | no known way around a list is open |
//! | `ordinary` | ordinary lines of agents are decided by rule |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod attacks;
mod commands;
mod ordinary;
