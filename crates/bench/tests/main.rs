//! Tests the bench without Kafka. What needs a broker is tested in `tests/kafka`.
//!
//! | module | what holds |
//! |---|---|
//! | `baselines` | the baseline in Python decides what the gate decides |
//! | `traffic` | the traffic has the shares of decisions that it is asked for |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod baselines;
mod traffic;
