//! Administration of topics: the client for it, and how topics are configured.
//!
//! rdkafka has no incremental change of settings. The one that it has resets every setting of the topic that is not named, so whoever
//! changes one names the topic's own ones again. It does not tell either which topic an answer about settings refuses: a topic that may not
//! be described comes back without settings, and a change that was refused comes back as if it was made.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ConfigSource, OwnedResourceSpecifier, ResourceSpecifier};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

use tollgate_config::settings::KafkaSettings;

use super::{PlainContext, consumer_config};

/// The settings of a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicConfig {
    /// All that are in force.
    pub in_force: BTreeMap<String, String>,
    /// Those that were set for this topic. A value that brokers do not show is `None`.
    pub own: BTreeMap<String, Option<String>>,
}

/// Returns a client that administers topics.
///
/// # Errors
/// librdkafka does not take a property.
pub fn topic_admin(kafka: &KafkaSettings) -> KafkaResult<AdminClient<PlainContext>> {
    consumer_config(kafka, &kafka.group_id, None).create_with_context(PlainContext::default())
}

/// Returns the code of an error of an administration request, which rdkafka does not count among those that have one.
#[must_use]
pub fn admin_error_code(error: &KafkaError) -> Option<RDKafkaErrorCode> {
    match error {
        KafkaError::AdminOp(code) => Some(*code),
        error => error.rdkafka_error_code(),
    }
}

/// Returns how topics that exist are configured, in the order of their names: `None` for one that we may not look at.
///
/// # Errors
/// The brokers do not answer, or do not know the question.
pub async fn topic_configs(admin: &AdminClient<PlainContext>, names: &[&str], timeout: Duration) -> KafkaResult<Vec<Option<TopicConfig>>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let resources: Vec<_> = names.iter().map(|name| ResourceSpecifier::Topic(name)).collect();
    let options = AdminOptions::new().request_timeout(Some(timeout));
    let described = admin.describe_configs(&resources, &options).await?;
    let of = |wanted: &str| {
        let mut known = described.iter().filter_map(|described| described.as_ref().ok());
        let found = known.find(|found| matches!(&found.specifier, OwnedResourceSpecifier::Topic(name) if name == wanted))?;
        // Every topic has settings.
        (!found.entries.is_empty()).then(|| {
            let mut config = TopicConfig::default();
            for entry in &found.entries {
                if entry.source == ConfigSource::DynamicTopic {
                    config.own.insert(entry.name.clone(), entry.value.clone());
                }
                if let Some(value) = &entry.value {
                    config.in_force.insert(entry.name.clone(), value.clone());
                }
            }
            config
        })
    };
    Ok(names.iter().map(|name| of(name)).collect())
}
