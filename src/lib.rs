//! The `tollgate` command line: [`commands`] holds a command each.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic if nobody reads")]

#[macro_use]
extern crate tollgate_operations;

pub mod commands;
