//! The `tollgate` command line: [`commands`] holds a command each.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic if nobody reads")]

pub mod commands;
