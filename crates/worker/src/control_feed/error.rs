//! Why the feed of controls starts over.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::kafka::Right;
use tollgate_config::settings::KafkaSettings;

/// Why the feed had to start over. It continues at the offsets that it had reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum FeedError {
    /// A client could not be made: a property is wrong.
    #[error("kafka.properties: {0}")]
    Client(KafkaError),
    /// The consumer is beyond repair, or could not be set up.
    #[error("the consumer failed: {0}")]
    Consumer(#[from] KafkaError),
    /// The topic does not exist any more.
    #[error("no such topic: {0}")]
    Missing(String),
    /// Our code or a library panicked; the panic itself is in the log.
    #[error("the feed panicked")]
    Panicked,
}

impl FeedError {
    /// Returns whether the topic is gone. A topic of the same name has other records at the same offsets.
    pub(super) fn is_missing(&self) -> bool {
        let code = match self {
            Self::Consumer(error) => error.rdkafka_error_code(),
            Self::Missing(_) => return true,
            Self::Client(_) | Self::Panicked => None,
        };
        matches!(
            code,
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownPartition)
        )
    }

    /// Returns the right whose want is the failure, if it is one.
    pub(super) fn right_wanted(&self, kafka: &KafkaSettings) -> Option<Right> {
        let Self::Consumer(error) = self else { return None };
        Right::refused_by(error.rdkafka_error_code(), &kafka.group_id, || Right::read(&kafka.topics.controls))
    }
}
