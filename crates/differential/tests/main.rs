//! Runs the fuzzers that do what the rules allow, for some seconds each.
//!
//! | module | what holds |
//! |---|---|
//! | `commands` | the jail sees what it has to see; command lines that are allowed do no harm |
//! | `urls_and_paths` | URLs and paths that are allowed lead where other parsers and the kernel say |
//!
//! Tests run side by side. That is right because each run is a process of its own, which changes namespaces, limits and root only of itself
//! and of its children.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod commands;
mod urls_and_paths;
