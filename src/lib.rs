//! Tollgate: the gate that every tool call of a fleet of AI agents passes.
//!
//! This crate is the worker and the command line. `tollgate_core` decides and holds the state; it is pure and uses none of the modules
//! below. A record passes through them from top to bottom, and back up once its verdict is acknowledged:
//!
//! | module | what it does |
//! |---|---|
//! | [`worker`] | members on their threads, started over when they fail; the check of the topics before |
//! | [`member`] | one group member: polls, drives its partitions, pauses and resumes them |
//! | [`partition`] | one assigned partition: its processor, the phase of its state, restores and checkpoints |
//! | [`stages`] | what a stage publishes, requests and counts |
//! | [`outbox`] | publications on their way to Kafka, and their outcomes |
//! | [`kafka`] | clients' configuration, librdkafka's log, messages as records |
//!
//! The other modules are [`topics`] (the table of all topics), [`control_feed`] (it reads the controls topic into the table that decisions
//! use), [`policy_servers`] (requests over HTTP within a deadline), [`traces`] (spans of verdicts), [`metrics`], [`health`], [`threads`],
//! [`logging`] and [`admin`], `capture` (records in files, decided on without Kafka), [`settings`] and [`config`] (they turn file, environment and secret files into settings), and [`commands`].

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic if nobody reads")]

pub mod admin;
mod capture;
pub mod commands;
pub mod config;
pub mod control_feed;
pub mod health;
pub mod host_time;
pub mod kafka;
pub mod logging;
pub mod member;
pub mod metrics;
pub mod outbox;
pub mod partition;
pub mod policy_servers;
pub mod settings;
pub mod shadow;
pub mod stages;
mod stop;
pub mod threads;
pub mod topics;
pub mod traces;
pub mod worker;

pub use stop::Stop;
