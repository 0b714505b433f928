//! Differential fuzzers: what the rules allow is done by those who would do it, and has to be what the rules took it for.
//!
//! | program | makes | and compares with |
//! |---|---|---|
//! | `commands` | command lines | bash, dash, zsh and busybox sh, in a jail full of traps: no program may run and no file be written that is not allowed |
//! | `urls` | URLs | the parsers of curl, Python, Node and Rust: they have to find the scheme and the host that the rules judged |
//! | `paths` | paths, working directories and lists | the kernel, in a jail: the place that is reached has to be allowed and not blocked |
//!
//! All take `--seconds N` and `--seed N`, print the seed, and end with a failure and the smallest example that they could find. One seed
//! makes the same cases again, as far as the time goes.

pub mod commands;
pub mod minimise;
pub mod options;
pub mod paths;
pub mod peer;
pub mod question;
pub mod random;
pub mod urls;

/// An error of a fuzzer, which is no finding: a peer is missing or died, or the machine does not allow a jail.
pub type Fault = Box<dyn std::error::Error>;
