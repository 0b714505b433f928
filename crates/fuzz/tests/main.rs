//! Tests the fuzz targets.
//!
//! | module | what holds |
//! |---|---|
//! | `corpus` | every input of the corpus holds, and each target has its files |
//! | `short_run` | each target holds for some seconds of fuzzing. It is built once more for that, with instruments |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod corpus;
mod short_run;
