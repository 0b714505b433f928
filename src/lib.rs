//! Tollgate: the gate that every tool call of a fleet of AI agents passes.

pub mod admin;
pub mod commands;
pub mod config;
pub mod consume;
pub mod control_feed;
pub mod health;
pub mod librdkafka;
pub mod metrics;
pub mod publish;
pub mod remote;
pub mod settings;
pub mod state;
pub mod topics;
pub mod worker;
