//! Events that offend against one of the rules: a denied call by a user who is seen for the first time.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use rdkafka::producer::{BaseProducer, BaseRecord};
use serde_json::json;

use super::client;
use super::settings::tool;
use tollgate_config::settings::KafkaSettings;

/// The tenant of the users who call.
pub(super) const TENANT: &str = "probes";

/// Sends calls of users of a tenant of their own. They have no number, so that they do not count as traffic.
pub(super) struct Callers {
    producer: BaseProducer,
    topic: String,
}

impl Callers {
    /// Returns a sender to this topic.
    pub(super) fn new(kafka: &KafkaSettings, topic: &str) -> Result<Self> {
        let mut config = client(kafka);
        config.set("enable.idempotence", "true").set("linger.ms", "0").set("partitioner", "murmur2_random");
        Ok(Self { producer: config.create().context("kafka.properties")?, topic: topic.to_owned() })
    }

    /// Sends the offence of a user: a call that the rule of this number waits for.
    pub(super) fn offend(&self, user: &str, event: &str, rule: usize, partition: Option<i32>) -> Result<()> {
        self.call(user, event, &tool(rule), partition)
    }

    /// Sends a call. Its arguments are nobody else's. Without a partition the user's thread has its own.
    pub(super) fn call(&self, user: &str, event: &str, tool: &str, partition: Option<i32>) -> Result<()> {
        let value = json!({"type": "tool_call", "thread_id": user, "event_id": event, "turn_id": user, "tool_call_id": event, "tool_name": tool,
            "tool_input": {"of": event}, "user_id": user, "tenant_id": TENANT, "agent_id": "probe"});
        let (value, record) = (value.to_string(), BaseRecord::to(&self.topic).key(user));
        let record = BaseRecord { partition, ..record.payload(&value) };
        self.producer.send(record).map_err(|(error, _)| anyhow!("an event cannot be sent to {}: {error}", self.topic))
    }

    /// Takes note of acknowledgements.
    pub(super) fn poll(&self) {
        self.producer.poll(Duration::ZERO);
    }
}
