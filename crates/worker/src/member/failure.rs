//! Why a member starts over.

use tollgate_core::engine::processor::TrackerError;
use tollgate_core::event::record::Partition;

use crate::outbox::Refusal;

/// Why a member must not commit any more. It starts over from the committed offsets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The broker will not take a verdict or dead letter.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The offset tracker found a fault of ours.
    #[error("offsets of partition {partition}: {error}")]
    Offsets {
        /// The partition.
        partition: Partition,
        /// What the offset tracker found.
        error: TrackerError,
    },
    /// The system gives no more threads.
    #[error("no thread to keep the state of partition {partition}: {error}")]
    Thread {
        /// The partition.
        partition: Partition,
        /// What the system said.
        error: String,
    },
}
