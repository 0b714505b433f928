//! Why a partition's state could not be restored.

use std::time::Duration;

use rdkafka::error::KafkaError;

use tollgate_core::engine::checkpoint::StateError;
use tollgate_core::event::record::Offset;

use crate::kafka::{Right, StageTopics, is_forbidden};

/// How long a restore waits without any record before it fails with [`RestoreError::Silence`] and starts again.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(5);
/// The steps of a restore that are about the events and not about the state.
pub(super) const ASKING_FOR_OFFSET: &str = "asking for the committed offset";
pub(super) const ASKING_FOR_END: &str = "asking where the events end";

/// Why a partition's state could not be restored. The restore is tried again; until then the partition waits.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A request to Kafka failed.
    #[error("{doing}: {error}")]
    Kafka {
        /// What was being done.
        doing: &'static str,
        /// The error that came.
        error: KafkaError,
    },
    /// No record came for too long.
    #[error("reading the partition: nothing came for {} s", SILENCE_MAX.as_secs())]
    Silence,
    /// A record of the topic is not state that we can read.
    #[error("{}{error}", offset.map(|offset| format!("state record at offset {offset}: ")).unwrap_or_default())]
    State {
        /// The offset of the record, if it is one record.
        offset: Option<Offset>,
        /// What is wrong.
        error: StateError,
    },
    /// The committed offset was committed with state that is not there.
    #[error(
        "offset {committed} was committed with state, and the state topic ends {}: the topic was recreated or has lost records; bring it back, or stop the group, recreate the topic and delete the group's committed offsets, to decide all retained events again",
        found.map_or("without any".to_owned(), |found| format!("at {found}"))
    )]
    Behind {
        /// The committed offset.
        committed: Offset,
        /// The offset of the state.
        found: Option<Offset>,
    },
    /// Another member has taken the state over meanwhile.
    #[error("another member has taken the state over meanwhile")]
    Fenced,
    /// A transaction is open in the state that this partition's producer cannot end, so that what follows cannot be read.
    #[error(
        "the state from offset {from} to {end} belongs to a transaction that has not ended, and that the partition's own producer cannot end: if it stays, find it with `kafka-transactions.sh find-hanging` and end it with `kafka-transactions.sh abort`"
    )]
    Open {
        /// The first offset of the state that cannot be read.
        from: Offset,
        /// The end of the state.
        end: Offset,
    },
    /// The state is ahead of the events: they were recreated or truncated.
    #[error(
        "the state is as of offset {next} and the events end at {end}: the events topic was recreated or truncated; recreate the state topic too, and delete the group's committed offsets"
    )]
    BeyondEvents {
        /// The offset of the state.
        next: Offset,
        /// The end of the events.
        end: Offset,
    },
    /// The partition is not one of those that the state is keyed for.
    #[error(
        "it is not among the first {count} partitions, for which the state is keyed: {topic} has been given more. Stop all workers of the group, run `tollgate state rekey`, and start them again"
    )]
    NewPartition {
        /// How many partitions the state is keyed for.
        count: u32,
        /// The topic of the events.
        topic: String,
    },
}

impl RestoreError {
    /// Returns the kind of failure, as a metric label.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Kafka { error, .. } if is_forbidden(error) => "forbidden",
            Self::Kafka { .. } | Self::Silence | Self::Fenced => "kafka",
            Self::State { error: StateError::OtherPartitions { .. } | StateError::Rekeying { .. }, .. } => "mismatch",
            Self::State { .. } => "unreadable",
            Self::Behind { .. } | Self::Open { .. } | Self::BeyondEvents { .. } | Self::NewPartition { .. } => "mismatch",
        }
    }

    /// Returns the right whose want is the failure, if it is one.
    pub(super) fn right_wanted(&self, topics: &StageTopics) -> Option<Right> {
        let Self::Kafka { doing, error } = self else { return None };
        let topic = if [ASKING_FOR_OFFSET, ASKING_FOR_END].contains(doing) { &topics.input } else { &topics.state };
        Right::refused_by(error.rdkafka_error_code(), &topics.group_id, || Right::read(topic))
    }
}
