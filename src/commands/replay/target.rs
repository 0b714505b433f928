//! The topic that is written to, and what has to be right with it.

use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use tollgate_core::event::record::{Partition, partition_of};

use tollgate_config::settings::KafkaSettings;
use tollgate_worker::kafka::{topic_admin, topic_configs};

use super::super::UsageError;
use super::super::process;
use super::super::topics::Topics;

const CONFIG_TIMEOUT: Duration = Duration::from_secs(10);

/// The topic that is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) partitions: u32,
    /// Whether records keep the partition on which they were recorded.
    pub(super) is_as_recorded: bool,
}

/// Checks that a topic may be written to, whatever stands in it.
///
/// # Errors
/// It is the source, or a topic that workers write.
pub(super) fn check_name(kafka: &KafkaSettings, source: Option<&str>, to: &str) -> anyhow::Result<()> {
    if source == Some(to) {
        return Err(UsageError(
            "--to: found the source itself; name another topic, since a replay of a topic into itself has no end".to_owned(),
        )
        .into());
    }
    if let Some(topic) = kafka.topics.each().find(|topic| topic.name == to && topic.spec.key != "events") {
        let message = format!("--to: found {}, which workers read as their own; name a topic of events", topic.spec.path());
        return Err(UsageError(message).into());
    }
    Ok(())
}

impl Target {
    /// Finds the topic, and checks that it is empty unless `may_hold_records`.
    ///
    /// # Errors
    /// It is not there, or not empty, or the brokers do not answer.
    pub(super) fn find(kafka: &KafkaSettings, to: &str, is_as_recorded: bool, may_hold_records: bool) -> anyhow::Result<Self> {
        let topics = Topics::new(kafka)?;
        let topic = topics.named(to, "--to").map_err(|error| {
            let is_missing = error.to_string().starts_with("no such topic");
            if is_missing { anyhow!("{error}; `tollgate topics apply` creates the configured topics") } else { error }
        })?;
        if !may_hold_records {
            let mut records = 0;
            for partition in topic.all()? {
                let (begin, end) = topics.ends(topic, partition)?;
                records += end.0 - begin.0;
            }
            ensure!(
                records == 0,
                "--to: topic {to} holds {records} records already; name an empty topic, or add --yes to write behind them"
            );
        }
        Ok(Self { partitions: topic.partitions, is_as_recorded })
    }

    /// Checks that the target has every partition of the source.
    ///
    /// # Errors
    /// It has fewer, and records are to keep theirs.
    pub(super) fn check_partitions(&self, recorded: u32, to: &str) -> anyhow::Result<()> {
        if self.is_as_recorded && recorded > self.partitions {
            bail!(
                "--partition-by recorded: the records are of {recorded} partitions, and topic {to} has {}; use a topic with {recorded}, or --partition-by key",
                self.partitions
            );
        }
        Ok(())
    }

    /// Returns the partition of a record; `None` is any, for a record without a key.
    pub(super) fn partition(&self, recorded: Partition, key: Option<&[u8]>) -> Option<Partition> {
        if self.is_as_recorded { Some(recorded) } else { key.map(|key| partition_of(key, self.partitions)) }
    }
}

/// Says so if the topic does not keep the times of records, and returns how many bytes it takes at once. Of a topic whose settings may not
/// be read nothing is said, and `None` is returned.
pub(super) fn look_at_settings(kafka: &KafkaSettings, to: &str) -> Option<u64> {
    let asked = process::runtime().map(|runtime| {
        let admin = topic_admin(kafka).ok()?;
        runtime.block_on(topic_configs(&admin, &[to], CONFIG_TIMEOUT)).ok()?.pop().flatten()
    });
    let in_force = asked.ok().flatten()?.in_force;
    if in_force.get("message.timestamp.type").is_some_and(|kind| kind == "LogAppendTime") {
        say!("tollgate: topic {to} has message.timestamp.type=LogAppendTime: records get the time at which they are written");
    }
    in_force.get("max.message.bytes")?.parse().ok()
}
