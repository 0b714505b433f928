//! Rights that the brokers refuse: each is said once, with the command that grants it.

use std::borrow::Cow;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::health::Health;
use tollgate_config::settings::KafkaSettings;

use super::principal::principal;

/// What a right is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A topic.
    Topic(String),
    /// A consumer group.
    Group(String),
    /// All transactional ids with this prefix.
    TransactionalIds(String),
    /// The cluster.
    Cluster,
}

/// A right that a worker or a command needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// What it is about.
    pub resource: Resource,
    /// The operations, as `kafka-acls.sh` names them. Reading and writing a topic include describing it.
    pub operations: &'static [&'static str],
}

impl Right {
    /// Returns the right to read a topic.
    #[must_use]
    pub fn read(topic: &str) -> Self {
        Self { resource: Resource::Topic(topic.to_owned()), operations: &["Read"] }
    }

    /// Returns the right to write to a topic.
    #[must_use]
    pub fn write(topic: &str) -> Self {
        Self { resource: Resource::Topic(topic.to_owned()), operations: &["Write"] }
    }

    /// Returns the right to see how a topic is configured.
    #[must_use]
    pub fn describe_configs(topic: &str) -> Self {
        Self { resource: Resource::Topic(topic.to_owned()), operations: &["DescribeConfigs"] }
    }

    /// Returns the right to see a topic and how it is configured.
    #[must_use]
    pub fn look_at(topic: &str) -> Self {
        Self { resource: Resource::Topic(topic.to_owned()), operations: &["Describe", "DescribeConfigs"] }
    }

    /// Returns the right to create a topic.
    #[must_use]
    pub fn create(topic: &str) -> Self {
        Self { resource: Resource::Topic(topic.to_owned()), operations: &["Create"] }
    }

    /// Returns the right to give a topic more partitions.
    #[must_use]
    pub fn alter(topic: &str) -> Self {
        Self { resource: Resource::Topic(topic.to_owned()), operations: &["Alter"] }
    }

    /// Returns the right to change how a topic is configured.
    #[must_use]
    pub fn alter_configs(topic: &str) -> Self {
        Self { resource: Resource::Topic(topic.to_owned()), operations: &["AlterConfigs"] }
    }

    /// Returns the right to be in a group.
    #[must_use]
    pub fn group(group_id: &str) -> Self {
        Self { resource: Resource::Group(group_id.to_owned()), operations: &["Read"] }
    }

    /// Returns the right to the transactional ids of a group.
    #[must_use]
    pub fn transactional_ids(group_id: &str) -> Self {
        Self { resource: Resource::TransactionalIds(format!("{group_id}/")), operations: &["Write", "Describe"] }
    }

    /// Returns the right to produce idempotently, which old brokers want to be granted apart from that to write.
    #[must_use]
    pub fn idempotent_write() -> Self {
        Self { resource: Resource::Cluster, operations: &["IdempotentWrite"] }
    }

    /// Returns the right whose want is this error, if it is one. `topic` is the right that is wanting if the error is about a topic.
    #[must_use]
    pub fn refused_by(code: Option<RDKafkaErrorCode>, group_id: &str, topic: impl FnOnce() -> Self) -> Option<Self> {
        match code? {
            RDKafkaErrorCode::TopicAuthorizationFailed => Some(topic()),
            RDKafkaErrorCode::GroupAuthorizationFailed => Some(Self::group(group_id)),
            RDKafkaErrorCode::TransactionalIdAuthorizationFailed => Some(Self::transactional_ids(group_id)),
            RDKafkaErrorCode::ClusterAuthorizationFailed => Some(Self::idempotent_write()),
            _ => None,
        }
    }

    /// Returns the sentence that says that this right is wanting, with the command that grants it.
    #[must_use]
    pub fn refusal(&self, kafka: &KafkaSettings) -> String {
        let (principal, operations) = (principal(kafka), self.operations.join(" and "));
        format!("{principal} lacks the right to {operations} on {}; grant it: {}", self.resource, self.grant(kafka, &principal))
    }

    fn grant(&self, kafka: &KafkaSettings, principal: &str) -> String {
        let operations: String = self.operations.iter().map(|operation| format!(" --operation {operation}")).collect();
        let resource = match &self.resource {
            Resource::Topic(topic) => format!("--topic {}", quoted(topic)),
            Resource::Group(group) => format!("--group {}", quoted(group)),
            Resource::TransactionalIds(prefix) => format!("--transactional-id {} --resource-pattern-type prefixed", quoted(prefix)),
            Resource::Cluster => "--cluster".to_owned(),
        };
        let brokers = kafka.shown_brokers();
        format!("kafka-acls.sh --bootstrap-server {brokers} --add --allow-principal {}{operations} {resource}", quoted(principal))
    }

    /// Reports that this right was refused: logs it once, and lets the health report show it until it is granted.
    pub fn report_refused(&self, health: &Health, kafka: &KafkaSettings) {
        let refusal = self.refusal(kafka);
        if health.set_problem(&self.key(), Some(refusal.clone())) {
            tracing::error!("{refusal}");
        }
    }

    /// Reports that this right is there. It is said only if it was refused before.
    pub fn report_granted(&self, health: &Health) {
        if health.has_problems() && health.set_problem(&self.key(), None) {
            tracing::info!("the right to {} on {} is there now", self.operations.join(" and "), self.resource);
        }
    }

    fn key(&self) -> String {
        format!("{} on {}", self.operations.join(" and "), self.resource)
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Topic(topic) => write!(f, "topic {topic}"),
            Self::Group(group) => write!(f, "group {group}"),
            Self::TransactionalIds(prefix) => write!(f, "transactional ids that begin with {prefix}"),
            Self::Cluster => f.write_str("the cluster"),
        }
    }
}

/// Returns whether an error is the want of a right.
#[must_use]
pub fn is_forbidden(error: &KafkaError) -> bool {
    Right::refused_by(error.rdkafka_error_code(), "", || Right::read("")).is_some()
}

/// Returns a word as a shell takes it, whatever stands in it.
#[must_use]
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=@+%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")).into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::settings::{defaults, parse};

    fn kafka(properties: &str) -> KafkaSettings {
        let user = parse(&format!("kafka: {{brokers: 'b:1', properties: {{{properties}}}}}")).unwrap();
        tollgate_config::settings::Settings::read(&user, &defaults().unwrap()).unwrap().kafka
    }

    #[test]
    fn a_refusal_names_principal_operation_and_resource_and_grants_it() {
        let sasl = kafka("security.protocol: sasl_plaintext, sasl.mechanism: PLAIN, sasl.username: 'it''s me'");
        let add = "kafka-acls.sh --bootstrap-server b:1 --add --allow-principal";
        for (right, lacks, grants) in [
            (Right::write("agent.decisions"), "Write on topic agent.decisions", "Write --topic agent.decisions"),
            (Right::group("g"), "Read on group g", "Read --group g"),
            (
                Right::transactional_ids("g"),
                "Write and Describe on transactional ids that begin with g/",
                "Write --operation Describe --transactional-id g/ --resource-pattern-type prefixed",
            ),
            (Right::idempotent_write(), "IdempotentWrite on the cluster", "IdempotentWrite --cluster"),
        ] {
            let grants = format!(r"{add} 'User:it'\''s me' --operation {grants}");
            assert_eq!(right.refusal(&sasl), format!("User:it's me lacks the right to {lacks}; grant it: {grants}"));
        }
        assert!(Right::read("t").refusal(&kafka("")).starts_with("User:ANONYMOUS lacks the right to Read on topic t; "));
    }

    #[test]
    fn a_refusal_keeps_the_worker_unready_until_the_right_is_there() {
        let (health, kafka) = (Health::default(), kafka(""));
        let right = Right::group("g");
        right.report_refused(&health, &kafka);
        right.report_refused(&health, &kafka);
        assert_eq!(health.report().problems, [right.refusal(&kafka)]);
        Right::write("t").report_granted(&health);
        assert!(health.has_problems());
        right.report_granted(&health);
        assert!(!health.has_problems());
    }
}
