//! Signals: what deciding saw of a subject, as countable facts. They are hashes and codes, so that they can leave the partition that saw
//! them.
//!
//! A user's threads lie on all partitions, and no partition knows how often the user was stopped. So deciding writes a signal for each
//! subject of an event, on the partition of the signals topic that the subject hashes to. The abuse stage counts them there.
//!
//! ```text
//! event ─▶ deciding ─▶ point: one fact (a denial)      ─┐
//!                 └──▶ volume: an amount (tokens)       ─┼─▶ batch of one signals partition ─▶ abuse stage
//!    partition's time ▶ clock                            ─┘
//! ```

mod batch;
mod event;
mod interest;
mod key;
mod kind;
mod point;
mod read;
mod usage;

pub use batch::Batch;
pub use event::{EventSignals, Fact, Subjects, TIME_OFF_MS_MAX, counted_time};
pub use interest::{Interest, KeyKinds};
pub use key::{KeyKind, SubjectKey, SubjectPartitions};
pub use kind::{PointKind, SignalKind, VolumeKind};
pub use point::{Dimension, Point, TEXT_BYTES_MAX, Volume, dimension_text};
pub use read::{Clock, Request, SignalRejection, Signals, read};
pub(crate) use usage::is_usage_member;
pub use usage::{TOKENS_MAX, tokens_of};

/// The version of the format that is written.
pub const VERSION: u64 = 1;
