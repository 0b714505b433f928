//! Tollgate's decisions as a library: it takes events and returns verdicts. It has no Kafka, no clock, no metrics and no runtime.

pub mod checkpoint;
pub mod codes;
pub mod controls;
pub mod deciding;
pub mod decode;
pub mod evaluate;
mod gate;
pub mod guardrail;
pub mod lists;
pub mod loops;
pub mod pass_through;
pub mod policy;
pub mod processor;
pub mod record;
pub mod redact;
pub mod ruling;
pub mod safety;
pub mod settings;
pub mod shadow;
pub mod signal;
pub mod stage;
pub mod thread;
pub mod wire;

pub use gate::Gate;
