//! Tollgate's decisions as a library: it takes events and returns verdicts. It has no Kafka, no clock, no metrics and no runtime.
//!
//! | module | what it does |
//! |---|---|
//! | [`event`] | a Kafka record as plain data, and the event in it, or a rejection that says what to mend |
//! | [`engine`] | runs a stage on a partition: offset tracker, checkpoints, restore |
//! | [`decide`] | the stage that gives verdicts, and every part that has a say in them |
//! | [`redact`] | a record without its contents, on which every decision and signal is the same |
//! | [`settings`] | reading configuration sections |

pub mod codes;
pub mod decide;
pub mod engine;
pub mod event;
mod lists;
mod rare;
pub mod redact;
pub mod settings;

pub use decide::Gate;
