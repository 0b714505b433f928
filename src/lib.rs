//! Tollgate: the gate that every tool call of a fleet of AI agents passes.
//!
//! This is the worker and the command line. What is decided, and from which state, is `tollgate_core`'s matter: pure, and without any of the
//! modules below. A record goes through them from top to bottom, and back up once its verdict is acknowledged:
//!
//! | module | what it does |
//! |---|---|
//! | [`worker`] | members on their threads, started over when they fail; what has to be true of the topics before |
//! | [`member`] | one group member: polls, drives its partitions, pauses and resumes them |
//! | [`partition`] | one assigned partition: its processor, the phase of its state, restores and checkpoints |
//! | [`stages`] | what a stage publishes, asks and counts |
//! | [`outbox`] | publications on their way to Kafka, and what becomes of them |
//! | [`kafka`] | clients' configuration, librdkafka's log, messages as records |
//!
//! Beside them stand [`topics`] (the table of all topics), [`control_feed`] (the controls topic → the table that decisions are under), [`policy_servers`] (asked over HTTP within a
//! deadline), [`metrics`], [`health`] and [`admin`], [`settings`] and [`config`] (file, environment and secret files → settings), and
//! [`commands`].

pub mod admin;
pub mod commands;
pub mod config;
pub mod control_feed;
pub mod health;
pub mod kafka;
pub mod member;
pub mod metrics;
pub mod outbox;
pub mod partition;
pub mod policy_servers;
pub mod settings;
pub mod stages;
mod stop;
pub mod topics;
pub mod worker;

pub use stop::Stop;
