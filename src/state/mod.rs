//! The state topic: where checkpoints go, and where the state of a partition comes from.
//!
//! ```text
//! assigned ─▶ keeper: fence ─▶ read the state partition to its end ─▶ the lane decides
//!                     ▲                                                  │ checkpoint, behind acknowledged verdicts
//!                     └── lost ◀── one transaction: state and offset ◀───┘
//! ```
//!
//! Every partition that a member holds has a keeper: a thread with a transactional producer of its own, whose transactional id is the
//! partition's. Whoever takes a partition over initialises that id first, and from then on nothing of an earlier owner's can be committed
//! any more, frozen or not: neither its state nor its offset. What it left open is aborted, so that nobody waits for its timeout. Verdicts
//! are not part of the transaction. A zombie can publish some, which does no harm: they are the new owner's, byte for byte.

mod client;
mod keeper;
mod restore;
mod transaction;

pub use client::{reader_config, transactional_id};
pub use keeper::{Keeper, KeeperParts, KeeperReport, Report};
pub use restore::{RestoreError, Takeover, read_to_end};
pub use transaction::Job;
