//! The first stage: a group member's consumer, its records as the core sees them, and the partitions that it holds.

mod asking;
mod assignment;
mod client;
mod context;
mod counts;
mod held;
mod keeping;
mod message;
mod pass_through;

pub use assignment::{Assignment, AssignmentParts, Failure};
pub use client::{consumer_config, heartbeat_interval};
pub use context::MemberContext;
pub use keeping::{Flow, WhoAmI};
pub use message::{own_headers, with_record};
pub use pass_through::Deciding;
