//! The consumer of the controls topic: its configuration, with the reason for every setting, and what is derived from its statistics.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::statistics::Partition;

use crate::kafka::{AssignsItself, Callbacks, consumer_config, is_forbidden, statistics, warn_of};
use crate::metrics::Metrics;
use tollgate_config::settings::KafkaSettings;

/// Returns the configuration of the feed's consumer. It names the group but never joins it.
#[must_use]
pub(super) fn feed_config(kafka: &KafkaSettings) -> ClientConfig {
    let mut config = consumer_config(kafka, &kafka.group_id, None);
    config
        // A broker answers a fetch as soon as there is data, whatever is configured for the events: the kill switch never waits for a batch.
        .set("fetch.min.bytes", "1")
        // At this limit an idle broker answers ten times a second, so that silence means that the broker is away.
        .set("fetch.wait.max.ms", "100")
        // A queue that was full is filled again at once.
        .set("fetch.queue.backoff.ms", "5")
        .set("client.id", "tollgate-controls")
        // A control is not in force before it is committed.
        .set("isolation.level", "read_committed")
        // The whole topic counts. A topic that was recreated is also read from its beginning.
        .set("auto.offset.reset", "earliest")
        // The end of a partition shows that the table has caught up.
        .set("enable.partition.eof", "true")
        // Members wait for the table, and changes must arrive at once: after a lost connection the topic should be found again without
        // delay.
        .set("topic.metadata.refresh.fast.interval.ms", "20")
        .set("queued.max.messages.kbytes", "16384")
        .set("statistics.interval.ms", "1000");
    // A follower may not have the newest controls yet.
    config.remove("client.rack");
    config
}

/// The callbacks of the feed's consumer. They measure how far behind the table is, and how long the brokers have been silent.
pub(super) struct FeedCallbacks {
    topic: String,
    metrics: Metrics,
    /// When the leaders of all partitions last answered.
    last_contact: Mutex<Instant>,
    /// Up to where each partition is committed, if everything in front of that has been handed out.
    settled: Mutex<BTreeMap<i32, i64>>,
}

impl FeedCallbacks {
    pub(super) fn new(topic: &str, metrics: Metrics, last_contact: Instant) -> Self {
        Self { topic: topic.to_owned(), metrics, last_contact: Mutex::new(last_contact), settled: Mutex::default() }
    }

    /// Returns when the leaders of all partitions last answered.
    pub(super) fn last_contact(&self) -> Instant {
        *self.last_contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the offsets up to which partitions are committed and handed out, as far as that is news.
    pub(super) fn take_settled(&self) -> BTreeMap<i32, i64> {
        std::mem::take(&mut *self.settled.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Callbacks for FeedCallbacks {
    fn statistics(&self, json: &[u8]) {
        let Some(statistics) = statistics(json) else { return };
        let Some(topic) = statistics.topics.get(&self.topic) else { return };
        let partitions: Vec<&Partition> = topic.partitions.values().filter(|partition| partition.partition >= 0).collect();
        self.metrics.controls_lag_records.set(partitions.iter().map(|partition| lag(partition)).sum());
        let settled = partitions.iter().filter(|partition| partition.ls_offset >= 0 && reached(partition) >= partition.ls_offset);
        let settled = settled.map(|partition| (partition.partition, partition.ls_offset));
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).extend(settled);
        let silence = |partition: &&Partition| {
            let leader = statistics.brokers.values().find(|broker| broker.nodeid == partition.leader && broker.state == "UP")?;
            u64::try_from(leader.rxidle).ok().map(Duration::from_micros)
        };
        let silences: Option<Vec<Duration>> = partitions.iter().map(silence).collect();
        let longest = silences.and_then(|silences| silences.into_iter().max());
        let mut last_contact = self.last_contact.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = longest.and_then(|silence| Instant::now().checked_sub(silence)) {
            *last_contact = at.max(*last_contact);
        }
        self.metrics.controls_stale_seconds.set(i64::try_from(last_contact.elapsed().as_secs()).unwrap_or(i64::MAX));
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The end of a partition is reported as an error too, and a right that is wanting is reported once.
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::PartitionEOF) && !is_forbidden(&error) {
            warn_of("consumer of controls", &error, reason);
        }
    }
}

impl AssignsItself for FeedCallbacks {}

/// Returns how many records are known and not applied, those among them that an open transaction hides. The last offsets of a partition may
/// hold no records, so the end counts as reached once it was seen.
fn lag(partition: &Partition) -> i64 {
    (partition.hi_offset.max(partition.ls_offset) - reached(partition)).max(0)
}

/// Returns the offset up to which everything that can be read has been handed out.
fn reached(partition: &Partition) -> i64 {
    partition.app_offset.max(partition.eof_offset).max(partition.lo_offset).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_for_events_never_holds_up_a_control() {
        let mut kafka = tollgate_config::load(None, []).unwrap().kafka;
        for (key, value) in [("fetch.min.bytes", "100000"), ("fetch.wait.max.ms", "20000"), ("fetch.queue.backoff.ms", "20000")] {
            kafka.properties.insert(key.to_owned(), value.into());
        }
        let config = feed_config(&kafka);
        let values = ["fetch.min.bytes", "fetch.wait.max.ms", "fetch.queue.backoff.ms"].map(|key| config.get(key));
        assert_eq!(values, [Some("1"), Some("100"), Some("5")]);
    }
}
