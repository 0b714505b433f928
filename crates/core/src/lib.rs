//! Tollgate's decisions as a library: events in, verdicts out. No Kafka, no clock, no metrics, no runtime.

pub mod checkpoint;
mod codes;
pub mod controls;
pub mod deciding;
pub mod decode;
pub mod digest;
pub mod evaluate;
mod gate;
pub mod guardrail;
pub mod json;
mod lists;
pub mod loops;
pub mod pass_through;
pub mod passport;
pub mod policy;
pub mod processor;
pub mod record;
pub mod ruling;
pub mod safety;
pub mod settings;
pub mod stage;
pub mod thread;
mod wire;

pub use gate::Gate;
