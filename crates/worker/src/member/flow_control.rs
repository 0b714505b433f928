//! Flow control: it pauses and resumes partitions. All partitions are held back while too many publications wait, a single partition while
//! its state is not restored, or until the end of a round in which it has had its turn.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use tollgate_core::event::record::{Offset, Partition};

use crate::stages::StageRuntime;

use super::callbacks::MemberContext;
use super::checkpointing::FlowChange;

/// How long publications may wait before the partitions are paused.
const PAUSE_AFTER: Duration = Duration::from_secs(10);
/// How long librdkafka may take to change to a position.
const SEEK_TIMEOUT: Duration = Duration::from_secs(1);

/// The flow control of one member.
#[derive(Debug, Default)]
pub(super) struct FlowControl {
    backpressure: Backpressure,
    /// Partitions whose state is restored and whose records do not flow yet, with the first record to take.
    resuming: Vec<(Partition, Offset)>,
    /// Partitions that have had their turn in this round.
    held: Vec<Partition>,
}

/// Whether more records can be taken, by how many publications wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Backpressure {
    /// More records can be taken.
    #[default]
    None,
    /// Too many publications wait.
    Waiting { since: Instant },
    /// Too many publications have waited for so long that the partitions are paused.
    Paused,
}

impl FlowControl {
    /// Returns whether the consumer is not to be polled until publications are acknowledged.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.backpressure, Backpressure::Waiting { .. })
    }

    /// Decides whether records are taken, and returns whether taking has just ended. While too many publications wait, the consumer is not
    /// touched at first: a pause would throw its prefetched records away. If that takes long, the partitions are paused and the consumer is
    /// polled, so that the group does not remove the member.
    pub(super) fn update<R: StageRuntime>(
        &mut self,
        consumer: &BaseConsumer<MemberContext<R>>,
        in_flight: usize,
        limit: usize,
    ) -> KafkaResult<bool> {
        let before = self.backpressure;
        self.backpressure = match before {
            Backpressure::None if in_flight >= limit => Backpressure::Waiting { since: Instant::now() },
            Backpressure::Waiting { .. } if in_flight < limit => Backpressure::None,
            Backpressure::Waiting { since } if since.elapsed() > PAUSE_AFTER => {
                tracing::warn!(in_flight, "publications are not acknowledged; no records are taken until they are");
                consumer.pause(&running(consumer)?)?;
                Backpressure::Paused
            }
            Backpressure::Paused if in_flight <= limit / 2 => {
                consumer.resume(&running(consumer)?)?;
                Backpressure::None
            }
            unchanged => unchanged,
        };
        Ok(before == Backpressure::None && self.is_waiting())
    }

    /// Holds a partition back until [`FlowControl::release_held`], so that records of the other partitions come. librdkafka throws away what it
    /// has fetched of the partition, and fetches it again.
    pub(super) fn pause_until_release<R: StageRuntime>(
        &mut self,
        consumer: &BaseConsumer<MemberContext<R>>,
        partition: Partition,
    ) -> KafkaResult<()> {
        self.held.push(partition);
        consumer.pause(&list(consumer, &[partition])?)
    }

    /// Lets the records of held partitions flow again, where those are not revoked meanwhile.
    pub(super) fn release_held<R: StageRuntime>(&mut self, consumer: &BaseConsumer<MemberContext<R>>) -> KafkaResult<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let mut held = consumer.context().assignment().running();
        held.retain(|partition| self.held.contains(partition));
        self.held.clear();
        consumer.resume(&list(consumer, &held)?)
    }

    /// Resumes partitions whose state is restored, and pauses those whose state is lost.
    pub(super) fn apply<R: StageRuntime>(
        &mut self,
        consumer: &BaseConsumer<MemberContext<R>>,
        changes: Vec<FlowChange>,
    ) -> KafkaResult<()> {
        for change in changes {
            match change {
                FlowChange::Resume(partition, start) => self.resuming.push((partition, start)),
                FlowChange::Pause(partition) => consumer.pause(&list(consumer, &[partition])?)?,
            }
        }
        for (partition, start) in std::mem::take(&mut self.resuming) {
            if !consumer.context().assignment().is_ready(partition) {
                // The partition was revoked meanwhile.
                continue;
            }
            if let Err(error) = self.resume(consumer, partition, start) {
                // librdkafka is still asking for the group's committed offset.
                tracing::debug!(%partition, %error, "not to be positioned yet");
                self.resuming.push((partition, start));
            }
        }
        Ok(())
    }

    fn resume<R: StageRuntime>(&self, consumer: &BaseConsumer<MemberContext<R>>, partition: Partition, start: Offset) -> KafkaResult<()> {
        let context = consumer.context();
        consumer.seek(&context.topic, partition.0, KafkaOffset::Offset(start.0), SEEK_TIMEOUT)?;
        if self.backpressure != Backpressure::Paused {
            consumer.resume(&list(consumer, &[partition])?)?;
        }
        context.assignment().resumed(partition);
        context.show_partitions();
        Ok(())
    }
}

fn running<R: StageRuntime>(consumer: &BaseConsumer<MemberContext<R>>) -> KafkaResult<TopicPartitionList> {
    let running = consumer.context().assignment().running();
    list(consumer, &running)
}

fn list<R: StageRuntime>(consumer: &BaseConsumer<MemberContext<R>>, partitions: &[Partition]) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition(&consumer.context().topic, partition.0);
    }
    Ok(list)
}
