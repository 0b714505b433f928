//! The last stage: verdicts to the decisions topic and to reply topics, dead letters to theirs.

mod batch;
mod client;
mod dead_letter;
mod delivery;
mod headers;
mod outbox;
mod publisher;
mod reduce;

pub(crate) use client::MESSAGE_BYTES_MAX;
pub use client::{Linger, producer_config, reply_producer_config};
pub use dead_letter::{REASON_HEADERS, dead_letter_headers};
pub use delivery::{Delivery, DeliveryOutcome, DeliveryQueue, Returned, Role};
pub use headers::{OWN_VERDICT_HEADERS, ReplyAddress, reply_address, verdict_headers};
pub use outbox::{Origin, Outbox, Refusal, Settled};
pub use publisher::{Door, Outgoing, Publisher};
