//! Tests of the program and its library that need no Apache Kafka; `kafka` has the others. All modules are one program, which is linked
//! once.
//!
//! | modules | what they test |
//! |---|---|
//! | `eval`, `eval_formats`, `diff`, `diff_page`, `replay` | commands on events and captures |
//! | `abuse_commands`, `abuse_tests`, `loops`, `passport_command`, `policy_servers`, `policy_tests`, `state_command`, `completions` | the other commands |
//! | `hosts` | `tollgate hook` and the settings of agent hosts |
//! | `serve` | the HTTP server on the embedded broker |
//! | `config`, `schemas` | configuration as users write it; JSON Schemas and their printed copies |
//! | `terminal` | what commands show on a terminal |
//! | `brokers` | brokers that cannot be reached; a worker on the embedded broker |
//! | `traces` | collectors of traces over real sockets |
//! | `build_script`, `deploy` | the revision of a build; Dockerfile, composition, workflows, versions |
//! | `tidy` | house rules |
//! | `support` | nothing: it is what the others share |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panicking"
)]

mod abuse_commands;
mod abuse_tests;
mod brokers;
mod build_script;
mod completions;
mod config;
mod deploy;
mod diff;
mod diff_page;
mod eval;
mod eval_formats;
mod hosts;
mod loops;
mod passport_command;
mod policy_servers;
mod policy_tests;
mod replay;
mod schemas;
mod serve;
mod state_command;
mod support;
mod terminal;
mod tidy;
mod traces;
