//! Reads topics, a partition at a time, and tells how far the group has come.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};

use tollgate_testkit::{Cluster, Deployment, Record};

const READ_TIME_MAX: Duration = Duration::from_secs(240);
const REQUEST_TIME_MAX: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Reads partitions, one after the other, in no group. A consumer takes half a second to find its broker, so there is one for all.
pub(super) struct Reader(BaseConsumer);

impl Reader {
    pub(super) fn new(cluster: &Cluster) -> Result<Self> {
        let consumer = cluster
            .client()
            // librdkafka wants a group even of clients that never join it.
            .set("group.id", "none")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", "read_committed")
            .set("fetch.wait.max.ms", "20")
            .create()?;
        Ok(Self(consumer))
    }

    /// Reads every record of a partition but for those of aborted transactions, in order.
    pub(super) fn read(&self, topic: &str, partition: i32) -> Result<Vec<Record>> {
        let mut partitions = TopicPartitionList::new();
        partitions.add_partition_offset(topic, partition, Offset::Beginning)?;
        self.0.assign(&partitions)?;
        let (mut records, mut last_error) = (Vec::new(), None);
        let mut deadline = Instant::now() + READ_TIME_MAX;
        loop {
            ensure!(Instant::now() < deadline, "reading {topic}/{partition} takes too long (last error: {last_error:?})");
            match self.0.poll(POLL_INTERVAL) {
                Some(Ok(message)) => {
                    records.push(Record::from(&message));
                    deadline = Instant::now() + READ_TIME_MAX;
                }
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(records),
                Some(Err(error)) => last_error = Some(error),
                None => {}
            }
        }
    }
}

/// Asks what the group has committed, without being a member.
pub(super) struct Committed {
    consumer: BaseConsumer,
    asked: TopicPartitionList,
}

impl Committed {
    pub(super) fn of(cluster: &Cluster, deployment: &Deployment) -> Result<Self> {
        let consumer = cluster.client().set("group.id", &deployment.group).set("isolation.level", "read_uncommitted").create()?;
        let mut asked = TopicPartitionList::new();
        (0..super::PARTITIONS).for_each(|partition| _ = asked.add_partition(&deployment.events, partition));
        Ok(Self { consumer, asked })
    }

    /// Returns how many records lie between what is committed and where the partitions end.
    pub(super) fn lag(&self, ends: &BTreeMap<i32, i64>) -> Result<u64> {
        let committed = self.consumer.committed_offsets(self.asked.clone(), REQUEST_TIME_MAX)?;
        let lags = committed.elements().into_iter().map(|element| {
            let next = if let Offset::Offset(offset) = element.offset() { offset } else { 0 };
            ends.get(&element.partition()).map_or(0, |end| end - next)
        });
        Ok(u64::try_from(lags.map(|lag| lag.max(0)).sum::<i64>())?)
    }
}
