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
//! | [`policy`] | the decision configuration and its digest |
//! | [`settings`] | configuration text → validated settings |
//! | [`json`], [`digest`], [`partition`] | Python's JSON dialect, SHA-256, Kafka's key hash |

pub mod decode;
pub mod digest;
pub mod evaluate;
pub mod json;
pub mod lane;
pub mod partition;
pub mod policy;
pub mod settings;
pub mod thread;

#[cfg(feature = "io")]
pub mod config;
