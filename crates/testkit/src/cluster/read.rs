//! Reads topics from their beginning, in no group.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;

use super::{Cluster, POLL_INTERVAL, REQUEST_TIME_MAX, Record, all_partitions, partition_count};
use crate::wait::TIME_MAX;

impl Cluster {
    /// Reads a topic from its beginning to where it ends now, in order within each partition. Aborted records are left out.
    ///
    /// # Errors
    /// There is no such topic, or nothing more of it comes in time.
    pub fn read_all(&self, topic: &str) -> Result<Vec<Record>> {
        let reader = Reader::new(self, topic)?;
        let (mut records, mut ended) = (Vec::new(), BTreeSet::new());
        while ended.len() < reader.partition_count {
            match reader.next(Instant::now() + REQUEST_TIME_MAX)? {
                Read::Record(record) => records.push(record),
                Read::End { partition } => _ = ended.insert(partition),
            }
        }
        Ok(records)
    }

    /// Reads a topic from its beginning until `enough` is true of all that was read.
    ///
    /// # Errors
    /// There is no such topic, or that takes longer than [`TIME_MAX`].
    pub fn read_until(&self, topic: &str, enough: impl Fn(&[Record]) -> bool) -> Result<Vec<Record>> {
        let reader = Reader::new(self, topic)?;
        let mut records = Vec::new();
        let deadline = Instant::now() + TIME_MAX;
        while !enough(&records) {
            match reader.next(deadline).with_context(|| format!("{} records of {topic} are not enough", records.len()))? {
                Read::Record(record) => records.push(record),
                Read::End { .. } => {}
            }
        }
        Ok(records)
    }
}

enum Read {
    Record(Record),
    /// The partition has no more for now.
    End {
        partition: i32,
    },
}

/// Reads all partitions of a topic from the beginning, in no group.
struct Reader {
    consumer: BaseConsumer,
    partition_count: usize,
}

impl Reader {
    fn new(cluster: &Cluster, topic: &str) -> Result<Self> {
        // librdkafka wants a group even of clients that never join it.
        let consumer: BaseConsumer = cluster
            .client()
            .set("group.id", "none")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("fetch.wait.max.ms", "100")
            .create()?;
        let partitions = all_partitions(topic, partition_count(consumer.client(), topic)?)?;
        consumer.assign(&partitions)?;
        Ok(Self { consumer, partition_count: partitions.count() })
    }

    /// Reads the next record or the end of a partition. Errors are waited out: librdkafka reports a broker that is down and goes on trying.
    fn next(&self, deadline: Instant) -> Result<Read> {
        let mut last_error = None;
        loop {
            ensure!(Instant::now() < deadline, "it takes too long (last error: {last_error:?})");
            match self.consumer.poll(POLL_INTERVAL) {
                Some(Ok(message)) => return Ok(Read::Record(Record::from(&message))),
                Some(Err(KafkaError::PartitionEOF(partition))) => return Ok(Read::End { partition }),
                Some(Err(error)) => last_error = Some(error),
                None => {}
            }
        }
    }
}
