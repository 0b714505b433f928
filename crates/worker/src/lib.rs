//! The worker: Kafka in, Kafka out. `tollgate_core` decides and holds the state; it uses nothing of this crate. A record passes through these
//! modules from top to bottom, and back up once its verdict is acknowledged:
//!
//! | module | what it does |
//! |---|---|
//! | [`process`] | members on their threads, started over when they fail; the check of the topics before |
//! | [`member`] | one group member: polls, drives its partitions, pauses and resumes them |
//! | [`partition`] | one assigned partition: its processor, the phase of its state, restores and checkpoints |
//! | [`stages`] | what a stage publishes, requests and counts |
//! | [`outbox`] | publications on their way to Kafka, and their outcomes |
//! | [`kafka`] | clients' configuration, librdkafka's log, messages as records |
//!
//! [`peers`] has the workers of a group watch each other, so that a worker that died costs seconds.
//!
//! The other modules are [`control_feed`] (it reads the controls topic into the table that decisions use), [`policy_servers`] (requests over
//! HTTP within a deadline), [`traces`] (spans of verdicts), [`shadow`] (a policy on trial), [`metrics`], [`health`], [`threads`], [`logging`]
//! and [`admin`].

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic if nobody reads")]

pub mod admin;
pub mod control_feed;
pub mod health;
pub mod host_time;
pub mod kafka;
pub mod logging;
pub mod member;
pub mod metrics;
pub mod outbox;
pub mod partition;
mod peers;
pub mod policy_servers;
pub mod process;
pub mod shadow;
pub mod stages;
mod stop;
pub mod threads;
pub mod traces;

pub use stop::Stop;
