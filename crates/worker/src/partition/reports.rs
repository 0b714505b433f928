//! What checkpoint writers report to their member.

use tollgate_core::event::record::{Offset, Partition};

use super::restore::Takeover;
use super::restore_error::RestoreError;

/// A report of a checkpoint writer, with the partition that it is about.
#[derive(Debug)]
pub struct WriterReport<K> {
    /// The partition.
    pub partition: Partition,
    /// The generation of the partition's assignment.
    pub generation: u64,
    /// The report.
    pub report: Report<K>,
}

/// What has become of a state or a checkpoint.
#[derive(Debug)]
pub enum Report<K> {
    /// The state is restored.
    Restored(Box<Takeover<K>>),
    /// The state could not be restored, and is tried again.
    RestoreFailed(RestoreError),
    /// A checkpoint is written.
    Written,
    /// A checkpoint was refused.
    Refused,
    /// A checkpoint was refused because of a rebalance: the member must learn of it from its group before another can be written.
    Outdated,
    /// The writer has ended, because another member has taken the state over.
    Fenced,
    /// The writer has ended: the outcome of its last checkpoint is unknown, or it panicked.
    Lost,
}

impl<K> Report<K> {
    /// Returns where the input ended that was taken over without any state, if the report says that there was none.
    #[must_use]
    pub fn new_end(&self) -> Option<Offset> {
        match self {
            Self::Restored(takeover) if takeover.restored.is_none() => Some(takeover.end),
            _ => None,
        }
    }
}
