//! Tests the rules of the gate through whole events and verdicts: scripts of events, each with what its verdict must hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod bytes;
mod calls;
mod controls;
mod counting;
mod resets;
mod safety;
mod signals;
mod signals_once;
mod stories;
#[path = "../support/mod.rs"]
mod support;
mod turns;
mod waiting;
