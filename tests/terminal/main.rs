//! Tests of what commands show on a terminal: they run in a pseudo-terminal of a fixed size, and the screen is compared with a snapshot.
//!
//! `TOLLGATE_UPDATE_FIXTURES=1 cargo test --test terminal` writes the snapshots in `snapshots` anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panicking"
)]

mod broker;
mod dev;
mod lists;
mod run;
#[path = "../support/mod.rs"]
mod support;
mod tap;
mod terminal;
mod top;
