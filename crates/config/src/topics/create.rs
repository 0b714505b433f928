//! The creation of topics with the settings of the cluster, as `dev` and the benchmarks do it.

use super::{Cleanup, PartitionRule, Topic};

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The description of a topic that is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic<'n> {
    /// The topic's name.
    pub name: &'n str,
    /// How many partitions the topic gets.
    pub partitions: u32,
    /// The topic's settings that differ from the cluster's defaults.
    pub settings: Vec<(&'static str, String)>,
}

/// Returns how to create topics. Those whose number of partitions matters get `partitions`.
pub fn to_create<'n>(topics: impl IntoIterator<Item = Topic<'n>>, partitions: u32) -> Vec<NewTopic<'n>> {
    topics.into_iter().map(|topic| NewTopic::of(topic, partitions)).collect()
}

impl<'n> NewTopic<'n> {
    /// Returns how to create a topic if the others have this many partitions.
    #[must_use]
    pub fn of(topic: Topic<'n>, partitions: u32) -> Self {
        let is_one = matches!(topic.spec.partitions, PartitionRule::One);
        let settings = match topic.spec.cleanup {
            Cleanup::Compact { segment_bytes, .. } => {
                let segment = segment_bytes.map(|bytes| ("segment.bytes", bytes.to_string()));
                [("cleanup.policy", "compact".to_owned())].into_iter().chain(segment).collect()
            }
            Cleanup::Delete { days: Some(days) } => vec![("retention.ms", (u64::from(days) * DAY_MS).to_string())],
            Cleanup::Delete { days: None } => Vec::new(),
        };
        Self { name: topic.name, partitions: if is_one { 1 } else { partitions }, settings }
    }
}
