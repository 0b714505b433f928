//! Tests what is written from this package. How alerts fire on a real Prometheus is tested with the broker of `tests/kafka`.
//!
//! | module | what holds |
//! |---|---|
//! | `files` | what is written is up to date; alerts and sections of the runbook belong together |
//! | `layout` | the dashboard has what Grafana needs |
//! | `expressions` | what rules and panels ask for is in the list of metrics |
//! | `promtool` | the rules are well formed, and fire when they should |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod expressions;
mod files;
mod layout;
mod promtool;
mod support;
