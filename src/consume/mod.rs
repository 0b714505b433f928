//! The first stage: a group member's consumer, its records as the core sees them, and the partitions that it holds.

mod assignment;
mod client;
mod committer;
mod context;
mod counts;
mod message;

pub use assignment::{Assignment, AssignmentParts, PublishFailure};
pub use client::consumer_config;
pub use committer::{CommitGate, Committer};
pub use context::MemberContext;
pub use message::{own_headers, with_record};
