//! Tollgate: the gate that every tool call of a fleet of AI agents passes.
//!
//! The modules stand in the order in which data flows. The first group is the decision core: pure, without Kafka, clock, metrics or
//! runtime, and `cargo check --lib --no-default-features` holds it to that.
//!
//! | module | what it does |
//! |---|---|
//! | [`decode`] | record → event, or a rejection that says what to mend |
//! | [`lane`] | one partition: its threads and the ledger of finished offsets |
//! | [`thread`] | what a thread remembers, in bounded memory |
//! | [`evaluate`] | thread and event → verdict: safety detectors, guardrail providers, loop controllers |
//! | [`controls`] | what operators have switched for the whole fleet: passports, suspended subjects |
//! | [`passport`] | Open Agent Passports: what an agent may do |
//! | [`checkpoint`] | the state of a partition as records of a compacted topic, and back |
//! | [`bash`] | command line → what it would execute, and whether command rules allow it |
//! | [`policy`] | the decision configuration and its digest |
//! | [`settings`] | configuration text → validated settings |
//! | [`json`], [`digest`], [`partition`] | Python's JSON dialect, SHA-256, Kafka's key hash |
//!
//! The second group is the shell, behind the `io` feature:
//!
//! | module | what it does |
//! |---|---|
//! | `consume` | a group member's consumer and the partitions that it holds |
//! | `control_feed` | the controls topic → the table of [`controls`] |
//! | `state` | checkpoints into the state topic, and restores from it |
//! | `publish` | verdicts, replies and dead letters on their way out |
//! | `remote` | policy servers, asked over HTTP within a deadline |
//! | `worker` | members on their threads, started over when they fail |
//! | `admin`, `metrics`, `health` | `/metrics`, `/livez`, `/readyz` |
//! | `bench` | load, and what a worker makes of it |
//! | `config` | file, environment and secret files → [`settings`] |
//! | `commands` | the command line |

pub mod bash;
pub mod checkpoint;
mod codes;
pub mod controls;
pub mod decode;
pub mod digest;
pub mod evaluate;
pub mod json;
pub mod lane;
pub mod partition;
pub mod passport;
pub mod policy;
pub mod settings;
pub mod thread;

#[cfg(feature = "io")]
pub mod admin;
#[cfg(feature = "io")]
pub mod bench;
#[cfg(feature = "io")]
pub mod commands;
#[cfg(feature = "io")]
pub mod config;
#[cfg(feature = "io")]
pub mod consume;
#[cfg(feature = "io")]
pub mod control_feed;
#[cfg(feature = "io")]
pub mod health;
#[cfg(feature = "io")]
pub mod librdkafka;
#[cfg(feature = "io")]
pub mod metrics;
#[cfg(feature = "io")]
pub mod publish;
#[cfg(feature = "io")]
pub mod remote;
#[cfg(feature = "io")]
pub mod state;
#[cfg(feature = "io")]
pub mod worker;
