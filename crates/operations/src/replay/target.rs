//! The topic that is written to, and what has to be right with it.

use anyhow::{anyhow, bail, ensure};
use tollgate_core::event::record::{Partition, partition_of};

use tollgate_config::settings::KafkaSettings;
use tollgate_worker::kafka::{topic_admin, topic_configs};

use crate::units::stamp;
use crate::{BROKERS_TIMEOUT, Topics};

/// The topic that is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// How many partitions the topic has.
    pub partitions: u32,
    /// Whether records keep the partition on which they were recorded.
    pub is_as_recorded: bool,
}

impl Target {
    /// Finds the topic, and checks that it is empty unless `may_hold_records`.
    ///
    /// # Errors
    /// It is not there, or not empty, or the brokers do not answer.
    pub fn find(kafka: &KafkaSettings, to: &str, is_as_recorded: bool, may_hold_records: bool) -> anyhow::Result<Self> {
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
    pub fn check_partitions(&self, recorded: u32, to: &str) -> anyhow::Result<()> {
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

/// What the target's settings mean for records. Of a topic whose settings may not be read nothing is known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TargetSettings {
    /// How many bytes the topic takes at once.
    pub bytes_max: Option<u64>,
    /// How old a record may be that is written, in milliseconds.
    refused_behind_ms: Option<i64>,
    /// How old a record may become until it is deleted, in milliseconds.
    deleted_behind_ms: Option<i64>,
}

impl TargetSettings {
    /// Asks for the settings, and says so if the topic does not keep the times of records.
    pub fn ask(kafka: &KafkaSettings, to: &str) -> Self {
        let asked = crate::runtime().map(|runtime| {
            let admin = topic_admin(kafka).ok()?;
            runtime.block_on(topic_configs(&admin, &[to], BROKERS_TIMEOUT)).ok()?.pop().flatten()
        });
        let Some(config) = asked.ok().flatten() else { return Self::default() };
        let number = |key: &str| config.in_force.get(key)?.parse::<i64>().ok();
        let bytes_max = number("max.message.bytes").and_then(|bytes| u64::try_from(bytes).ok());
        if config.in_force.get("message.timestamp.type").is_some_and(|kind| kind == "LogAppendTime") {
            say!("tollgate: topic {to} has message.timestamp.type=LogAppendTime: records get the time at which they are written");
            return Self { bytes_max, ..Self::default() };
        }
        let deletes = config.in_force.get("cleanup.policy").is_some_and(|policy| policy.contains("delete"));
        Self {
            bytes_max,
            refused_behind_ms: number("message.timestamp.before.max.ms"),
            deleted_behind_ms: number("retention.ms").filter(|ms| deletes && *ms >= 0),
        }
    }

    /// Says so if records from a time on would be refused or soon be deleted for their age. Times are in milliseconds since the epoch.
    pub(super) fn say_if_old(&self, to: &str, time_ms: i64, now_ms: i64) {
        let is_passed = |bound_ms: &i64| now_ms.saturating_sub(time_ms) > *bound_ms;
        let refused = self.refused_behind_ms.filter(is_passed).map(|bound_ms| ("refuses", "message.timestamp.before.max.ms", bound_ms));
        let deleted = self.deleted_behind_ms.filter(is_passed).map(|bound_ms| ("soon deletes", "retention.ms", bound_ms));
        if let Some((does, key, bound_ms)) = refused.or(deleted) {
            let (bound, first) = (stamp(now_ms.saturating_sub(bound_ms)), stamp(time_ms));
            say!(
                "tollgate: topic {to} {does} records from before {bound} ({key}), and the first is of {first}; --shift-time moves times to now"
            );
        }
    }
}
