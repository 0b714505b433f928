//! A publication that the broker refuses whatever its size.

use rdkafka::error::RDKafkaErrorCode;
use tollgate_core::event::record::Partition;

use super::Role;

/// The error of a publication that the broker refuses whatever its size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the broker refused a {} on topic {topic}: {code}{}", .role.as_str(), hint(*.code))]
pub struct Refusal {
    /// The role of the publication.
    pub role: Role,
    /// The topic that it was sent to.
    pub topic: String,
    /// Why the broker refused it.
    pub code: RDKafkaErrorCode,
    /// The partition of the record that the publication belongs to; `None` if several records wait for it.
    pub partition: Option<Partition>,
}

/// Returns what a code means for the operator where its own name does not say so; nothing for any other code.
pub fn hint(code: RDKafkaErrorCode) -> &'static str {
    match code {
        RDKafkaErrorCode::InvalidTimestamp => {
            "; the topic does not take the time of this worker's clock (message.timestamp.after.max.ms, message.timestamp.before.max.ms); \
             set the clocks of worker and brokers right"
        }
        // In a batch of several records the brokers' own code says no more.
        RDKafkaErrorCode::InvalidRecord | RDKafkaErrorCode::InvalidDifferentRecord => {
            "; most often the topic does not take the time of this worker's clock (message.timestamp.after.max.ms, \
             message.timestamp.before.max.ms), so compare the clocks of worker and brokers; a compacted topic takes no record without a key"
        }
        _ => "",
    }
}
