//! The beat of a worker. It stands in the metadata of the group's offsets on the state topic: each partition names its owner, and the first
//! partition of a worker has its newest moment. Any member may commit there with the rights that a worker has anyway.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use tollgate_core::event::record::Partition;

use crate::kafka::StageTopics;

/// What a worker says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Beat {
    /// When, in milliseconds since 1970. Only that it changes matters.
    pub(super) moment_ms: i64,
    /// How many members the worker has.
    pub(super) members: usize,
    /// The name of the worker.
    pub(super) worker: String,
}

impl Beat {
    fn text(&self) -> String {
        format!("{} {} {}", self.moment_ms, self.members, self.worker)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let (moment_ms, members) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { moment_ms, members, worker: parts.next()?.to_owned() })
    }

    /// Returns the instance id of each member.
    pub(super) fn instance_ids(&self) -> impl Iterator<Item = String> {
        (0..self.members).map(|number| instance_id(&self.worker, number))
    }
}

/// Returns the instance id of a member of a worker.
pub(crate) fn instance_id(worker: &str, member: usize) -> String {
    format!("{worker}-{member}")
}

/// The last beat on each partition that has one, in the order of the partitions.
#[derive(Debug, Default)]
pub(super) struct Beats(pub(super) Vec<(Partition, Beat)>);

impl Beats {
    /// Reads the beats from the group's coordinator.
    pub(super) fn read<C: ConsumerContext>(client: &BaseConsumer<C>, topics: &StageTopics, timeout: Duration) -> KafkaResult<Self> {
        let mut list = TopicPartitionList::new();
        for number in 0..topics.partitions.unwrap_or(0) {
            list.add_partition(&topics.state, i32::try_from(number).unwrap_or(i32::MAX));
        }
        let committed = client.committed_offsets(list, timeout)?;
        let beat = |element: &rdkafka::topic_partition_list::TopicPartitionListElem<'_>| {
            Some((Partition(element.partition()), Beat::parse(element.metadata())?))
        };
        Ok(Self(committed.elements().iter().filter_map(beat).collect()))
    }

    /// Returns the offsets to commit for a beat of the worker that holds these partitions: the first one, and all that name another owner.
    pub(super) fn offsets_to_commit(
        &self,
        topics: &StageTopics,
        beat: &Beat,
        held: impl Iterator<Item = Partition>,
    ) -> KafkaResult<TopicPartitionList> {
        let (mut list, text) = (TopicPartitionList::new(), beat.text());
        let is_ours = |partition: Partition| self.0.iter().any(|(at, beat_there)| *at == partition && beat_there.worker == beat.worker);
        for (index, partition) in held.enumerate() {
            if index == 0 || !is_ours(partition) {
                let mut element = list.add_partition(&topics.state, partition.0);
                // No reader of the state begins at the group's offset.
                element.set_offset(KafkaOffset::Offset(0))?;
                element.set_metadata(&text);
            }
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_read_as_it_was_written() {
        let beat = Beat { moment_ms: 1_795_343_809_768, members: 2, worker: "pod a-1".to_owned() };
        assert_eq!(Beat::parse(&beat.text()), Some(beat.clone()));
        assert_eq!(beat.instance_ids().collect::<Vec<_>>(), ["pod a-1-0", "pod a-1-1"]);
        for other in ["", "checkpoint", "1 2", "x 2 pod"] {
            assert_eq!(Beat::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_worker_writes_its_first_partition_and_those_that_name_another() {
        let topics =
            StageTopics { stage: None, group_id: "g".to_owned(), input: "e".to_owned(), state: "s".to_owned(), partitions: Some(8) };
        let beat = |worker: &str| Beat { moment_ms: 7, members: 1, worker: worker.to_owned() };
        let beats = Beats(vec![(Partition(1), beat("a")), (Partition(2), beat("a")), (Partition(3), beat("b"))]);
        let list = beats.offsets_to_commit(&topics, &beat("a"), [1, 2, 3, 4].into_iter().map(Partition)).unwrap();
        let written: Vec<_> = list.elements().iter().map(|element| (element.partition(), element.metadata().to_owned())).collect();
        assert_eq!(written, [1, 3, 4].map(|partition| (partition, "7 1 a".to_owned())));
    }
}
