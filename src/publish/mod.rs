//! The last stage: verdicts to the decisions topic and to reply topics, dead letters to theirs.

mod client;
mod dead_letter;
mod delivery;
mod headers;
mod publisher;

pub use client::producer_config;
pub use dead_letter::dead_letter_headers;
pub use delivery::{Delivery, DeliveryOutcome, DeliveryQueue, Role};
pub use headers::{ReplyAddress, reply_address, verdict_headers};
pub use publisher::{Outgoing, Publisher};
