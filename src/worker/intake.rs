//! Whether records are taken: not while too many publications wait, and not of partitions whose state is not there.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::consume::{Flow, MemberContext};
use tollgate_core::record::{Offset, Partition};

/// How long to wait for publications before the partitions are paused.
const PAUSE_AFTER: Duration = Duration::from_secs(10);
/// How long librdkafka may take to take a position up.
const SEEK_TIMEOUT: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Intake {
    valve: Valve,
    /// Partitions whose state is there and whose records do not flow yet, with the first record to take.
    opening: Vec<(Partition, Offset)>,
}

/// Whether publications leave room for more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Valve {
    /// They do.
    #[default]
    Open,
    /// Too many of them wait.
    Waiting { since: Instant },
    /// They have waited for so long that the partitions are paused.
    Paused,
}

impl Intake {
    /// Whether the consumer is to be left alone until publications are acknowledged.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.valve, Valve::Waiting { .. })
    }

    /// Decides whether records are taken while publications wait; the answer is whether that has just begun. Too many of them are waited
    /// for without touching the consumer, whose prefetched records would be thrown away by a pause; only if that takes long, partitions
    /// are paused, so that the consumer can be polled and the group does not take the member for dead.
    pub(super) fn judge(&mut self, consumer: &BaseConsumer<MemberContext>, in_flight: usize, limit: usize) -> KafkaResult<bool> {
        let before = self.valve;
        self.valve = match before {
            Valve::Open if in_flight >= limit => Valve::Waiting { since: Instant::now() },
            Valve::Waiting { .. } if in_flight < limit => Valve::Open,
            Valve::Waiting { since } if since.elapsed() > PAUSE_AFTER => {
                tracing::warn!(in_flight, "publications are not acknowledged; no records are taken until they are");
                consumer.pause(&open_partitions(consumer)?)?;
                Valve::Paused
            }
            Valve::Paused if in_flight <= limit / 2 => {
                consumer.resume(&open_partitions(consumer)?)?;
                Valve::Open
            }
            unchanged => unchanged,
        };
        Ok(before == Valve::Open && self.is_waiting())
    }

    /// Lets the records of partitions flow whose state has come, and holds back those whose state is in doubt.
    pub(super) fn turn(&mut self, consumer: &BaseConsumer<MemberContext>, flows: Vec<Flow>) -> KafkaResult<()> {
        for flow in flows {
            match flow {
                Flow::Open(partition, start) => self.opening.push((partition, start)),
                Flow::Close(partition) => consumer.pause(&list(consumer, &[partition])?)?,
            }
        }
        for (partition, start) in std::mem::take(&mut self.opening) {
            if !consumer.context().assignment().is_restored(partition) {
                // It was taken away again.
                continue;
            }
            if let Err(error) = self.open(consumer, partition, start) {
                // librdkafka is still asking for the group's own offset.
                tracing::debug!(%partition, %error, "not to be positioned yet");
                self.opening.push((partition, start));
            }
        }
        Ok(())
    }

    fn open(&self, consumer: &BaseConsumer<MemberContext>, partition: Partition, start: Offset) -> KafkaResult<()> {
        let context = consumer.context();
        consumer.seek(&context.topic, partition.0, KafkaOffset::Offset(start.0), SEEK_TIMEOUT)?;
        if self.valve != Valve::Paused {
            consumer.resume(&list(consumer, &[partition])?)?;
        }
        context.assignment().opened(partition);
        context.show_partitions();
        Ok(())
    }
}

fn open_partitions(consumer: &BaseConsumer<MemberContext>) -> KafkaResult<TopicPartitionList> {
    let open = consumer.context().assignment().open();
    list(consumer, &open)
}

fn list(consumer: &BaseConsumer<MemberContext>, partitions: &[Partition]) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition(&consumer.context().topic, partition.0);
    }
    Ok(list)
}
