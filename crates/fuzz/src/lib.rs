//! Fuzz targets for everything of Tollgate that reads bytes it did not write.
//!
//! A target is a function from bytes to nothing that panics where something does not hold. libFuzzer calls it (`targets/`), `./run` does
//! so for as long as you like and guided by coverage, and `cargo test` replays the corpus and mutates it for some seconds.
//!
//! | target | reads | and holds |
//! |---|---|---|
//! | [`json`] | a text | it is read as `serde_json` reads it, and its canonical forms are stable |
//! | [`decode`] | a record | it is an event or a rejection, always the same, and a rejection repeats nothing of it |
//! | [`shell`] | command rules and a command line | more rules never object to less, and no line takes long |
//! | [`checkpoint`] | records of the state topic | what is read is written again as it was, and compaction changes nothing |
//! | [`hosts`] | a request of an agent host | it is read alike twice, ids have their lengths, and no answer repeats anything of it |
//! | [`passport`] | a passport and a call | spelling does not matter, and nothing of the call's arguments is repeated |

#![allow(clippy::panic, reason = "a fuzz target fails by panicking")]

pub mod checkpoint;
pub mod decode;
mod head;
pub mod hosts;
pub mod json;
pub mod passport;
pub mod shell;

/// A word that stands for a secret: in the corpus it is part of texts that no answer may repeat, and our own texts do not hold it.
const SECRET: &str = "hunter2";

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: that of its program, its corpus (`corpus/<name>`) and its dictionary (`dictionaries/<name>.dict`).
    pub name: &'static str,
    /// Panics on an input for which something does not hold.
    pub check: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 6] = [
    Target { name: "json", check: json::check },
    Target { name: "decode", check: decode::check },
    Target { name: "shell", check: shell::check },
    Target { name: "checkpoint", check: checkpoint::check },
    Target { name: "hosts", check: hosts::check },
    Target { name: "passport", check: passport::check },
];
