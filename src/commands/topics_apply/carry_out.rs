//! Has the brokers check a plan, or carry it out.

use std::collections::BTreeMap;

use anyhow::bail;
use rdkafka::admin::{AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication, TopicResult};
use rdkafka::error::{KafkaResult, RDKafkaErrorCode};

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::{Change, TopicPlan};
use tollgate_worker::kafka::{Right, admin_error_code, passes};

use super::find::{ClusterTopics, Finder};
use tollgate_operations::BROKERS_TIMEOUT;

/// What the brokers are to do with a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They say whether they would carry it out. What they would not tell of settings is not asked.
    Check,
    Execute,
}

/// Why a change was not made.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The topic is there by now: the brokers do not show it yet, or somebody else has created it.
    Exists {
        topic: String,
    },
    /// It may work in a moment.
    Passing {
        topic: String,
        what: String,
    },
    Final {
        topic: String,
        what: String,
    },
}

impl Trouble {
    pub(super) fn topic(&self) -> &str {
        let (Self::Exists { topic } | Self::Passing { topic, .. } | Self::Final { topic, .. }) = self;
        topic
    }
}

/// Carries plans out, or has them checked, and returns what went wrong.
pub(super) fn carry_out(
    finder: &Finder<'_>,
    found: &ClusterTopics<'_>,
    plans: &[TopicPlan<'_>],
    mode: Mode,
) -> anyhow::Result<Vec<Trouble>> {
    let options = AdminOptions::new().request_timeout(Some(BROKERS_TIMEOUT)).operation_timeout(Some(BROKERS_TIMEOUT));
    let options = options.validate_only(mode == Mode::Check);
    let mut troubles = create(finder, plans, &options)?;
    troubles.extend(add_partitions(finder, plans, &options)?);
    if mode == Mode::Execute {
        troubles.extend(alter(finder, found, plans, &options)?);
    }
    Ok(troubles)
}

fn create(finder: &Finder<'_>, plans: &[TopicPlan<'_>], options: &AdminOptions) -> anyhow::Result<Vec<Trouble>> {
    let mut topics = Vec::new();
    for plan in plans {
        for change in &plan.changes {
            let Change::Create { partitions, replication_factor, settings } = change else { continue };
            let replication = TopicReplication::Fixed(i32::try_from(*replication_factor)?);
            let topic = NewTopic::new(plan.topic.name, i32::try_from(*partitions)?, replication);
            topics.push(settings.iter().fold(topic, |topic, (name, value)| topic.set(name, value)));
        }
    }
    if topics.is_empty() {
        return Ok(Vec::new());
    }
    let answer = finder.runtime.block_on(finder.admin()?.create_topics(&topics, options));
    troubles(finder, "created", answer, topics.iter().map(|topic| topic.name), Right::create)
}

fn add_partitions(finder: &Finder<'_>, plans: &[TopicPlan<'_>], options: &AdminOptions) -> anyhow::Result<Vec<Trouble>> {
    let mut topics = Vec::new();
    for plan in plans {
        for change in &plan.changes {
            let Change::AddPartitions { wanted, .. } = change else { continue };
            topics.push(NewPartitions::new(plan.topic.name, usize::try_from(*wanted)?));
        }
    }
    if topics.is_empty() {
        return Ok(Vec::new());
    }
    let answer = finder.runtime.block_on(finder.admin()?.create_partitions(&topics, options));
    troubles(finder, "given more partitions", answer, topics.iter().map(|topic| topic.topic_name), Right::alter)
}

/// Changes settings. A topic's own settings that stay are named again, because those that are not named are reset.
fn alter(finder: &Finder<'_>, found: &ClusterTopics<'_>, plans: &[TopicPlan<'_>], options: &AdminOptions) -> anyhow::Result<Vec<Trouble>> {
    let mut altered = Vec::new();
    for plan in plans.iter().filter(|plan| plan.new_settings().next().is_some()) {
        let name = plan.topic.name;
        let mut values: BTreeMap<&str, &str> = BTreeMap::new();
        for (setting, value) in found.own.get(name).into_iter().flatten() {
            let Some(value) = value else {
                bail!(
                    "topic {name} has a value of {setting} that the brokers do not show, and that a change would reset: change it with \
                     kafka-configs.sh instead: {}",
                    listed(plan)
                );
            };
            values.insert(setting, value);
        }
        for (setting, value) in plan.new_settings() {
            values.insert(setting, value);
        }
        altered.push((name, values));
    }
    if altered.is_empty() {
        return Ok(Vec::new());
    }
    let resources: Vec<_> = altered
        .iter()
        .map(|(name, values)| {
            let resource = AlterConfig::new(ResourceSpecifier::Topic(name));
            values.iter().fold(resource, |resource, (setting, value)| resource.set(setting, value))
        })
        .collect();
    let answer = finder.runtime.block_on(finder.admin()?.alter_configs(&resources, options));
    // What was refused of one topic comes back as if it was done; the next look at the topics shows it.
    let answer = answer.map(|_| Vec::new());
    troubles(finder, "configured", answer, altered.iter().map(|(name, _)| *name), Right::alter_configs)
}

/// Returns what went wrong, by topic. If the request as a whole did, that is so for every topic.
fn troubles<'t>(
    finder: &Finder<'_>,
    doing: &str,
    answer: KafkaResult<Vec<TopicResult>>,
    topics: impl Iterator<Item = &'t str>,
    right: impl Fn(&str) -> Right,
) -> anyhow::Result<Vec<Trouble>> {
    let failed: Vec<(String, RDKafkaErrorCode)> = match answer {
        Ok(results) => results.into_iter().filter_map(Result::err).collect(),
        Err(error) => match admin_error_code(&error) {
            Some(RDKafkaErrorCode::UnsupportedFeature) => return Err(finder.not_administered()),
            Some(code) => topics.map(|name| (name.to_owned(), code)).collect(),
            None => bail!("the topics cannot be {doing}: {error}"),
        },
    };
    let trouble = |(topic, code): (String, RDKafkaErrorCode)| {
        let what = match code {
            RDKafkaErrorCode::TopicAlreadyExists => return Trouble::Exists { topic },
            RDKafkaErrorCode::TopicAuthorizationFailed | RDKafkaErrorCode::ClusterAuthorizationFailed => {
                right(&topic).refusal(finder.kafka)
            }
            RDKafkaErrorCode::PolicyViolation => {
                format!("topic {topic} cannot be {doing}: a policy of the cluster refuses it; the brokers' log or their owner says which")
            }
            code => format!("topic {topic} cannot be {doing}: {code}"),
        };
        if passes(code) { Trouble::Passing { topic, what } } else { Trouble::Final { topic, what } }
    };
    Ok(failed.into_iter().map(trouble).collect())
}

/// Returns what the brokers have not made of a plan, and why that may be.
pub(super) fn not_taken(kafka: &KafkaSettings, plan: &TopicPlan<'_>) -> String {
    let name = plan.topic.name;
    let what = format!("topic {name} is not as it was asked for, although the brokers refused nothing: {}", listed(plan));
    if plan.new_settings().next().is_none() {
        return what;
    }
    format!(
        "{what}. They do not say if a right is wanting or a policy of the cluster forbids it. If {}",
        Right::alter_configs(name).refusal(kafka)
    )
}

fn listed(plan: &TopicPlan<'_>) -> String {
    plan.changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
