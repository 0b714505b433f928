//! Tests what the program says of brokers that it cannot reach, and what a worker does on the embedded broker. They need no Apache Kafka.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod embedded;
mod process;
#[path = "../support/mod.rs"]
mod support;
mod unreachable;
