//! The cluster that `tollgate dev` works on: the embedded broker, or a real one with topics of its own.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::error::RDKafkaErrorCode;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::{Topic, TopicSettings, to_create};
use tollgate_worker::kafka::{PlainContext, check_administration, consumer_config};

/// Partitions of the topics that are created on real brokers.
const PARTITIONS: u32 = 4;
/// How long the brokers may take to create the topics.
const CREATE_TIMEOUT: Duration = Duration::from_secs(15);

/// Gives the topics and the group names that begin with the prefix, so that nothing of anybody else's is touched.
pub(super) fn put_prefix(kafka: &mut KafkaSettings, prefix: &str) {
    let named = |name: &str| format!("{prefix}{name}");
    let topics = TopicSettings::named(|spec| {
        let configured = kafka.topics.each().find(|topic| topic.spec == spec);
        named(configured.map_or(spec.default_name, |topic| topic.name))
    });
    kafka.topics = topics;
    kafka.group_id = named(&kafka.group_id);
    kafka.reply_topics.iter_mut().for_each(|topic| *topic = named(topic));
}

/// Returns every topic that the configuration names. A prefix of reply topics names none.
pub(super) fn topics_of(kafka: &KafkaSettings) -> Vec<String> {
    kafka.each_topic().map(|topic| topic.name.to_owned()).collect()
}

/// Creates the topics that are not there yet, and returns their names.
pub(super) async fn create_topics(kafka: &KafkaSettings) -> anyhow::Result<Vec<String>> {
    // The HTTP server reads replies.
    let is_wanted = |topic: &Topic<'_>| topic.spec.is_created() || topic.name == kafka.topics.replies;
    let ours = to_create(kafka.each_topic().filter(is_wanted), PARTITIONS);
    let mut topics = Vec::new();
    for topic in &ours {
        let new = NewTopic::new(topic.name, i32::try_from(topic.partitions)?, TopicReplication::Fixed(-1));
        topics.push(topic.settings.iter().fold(new, |new, (key, value)| new.set(key, value)));
    }
    check_administration(kafka).map_err(|reason| anyhow!("topics cannot be created: {reason}"))?;
    let admin: AdminClient<PlainContext> =
        consumer_config(kafka, &kafka.group_id, None).create_with_context(PlainContext::default()).context("kafka.properties")?;
    let options = AdminOptions::new().request_timeout(Some(CREATE_TIMEOUT)).operation_timeout(Some(CREATE_TIMEOUT));
    let brokers = kafka.shown_brokers();
    let outcomes = admin.create_topics(&topics, &options).await;
    let mut created = Vec::new();
    for outcome in outcomes.map_err(|error| anyhow!("the brokers at {brokers} (--brokers) do not create topics: {error}"))? {
        match outcome {
            Ok(name) => created.push(name),
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((name, code)) => return Err(anyhow!("topic {name} cannot be created at {brokers}: {code}")),
        }
    }
    Ok(created)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_config::load;

    #[test]
    fn everything_gets_the_prefix() {
        let variables = [("TOLLGATE__KAFKA__REPLY_TOPICS".into(), "['replies', 'team-a.*']".into())];
        let mut kafka = load(None, variables).unwrap().kafka;
        put_prefix(&mut kafka, "me.");
        assert!(kafka.topics.each().all(|topic| topic.name == format!("me.{}", topic.spec.default_name)));
        assert_eq!(
            (kafka.group_id.as_str(), &kafka.reply_topics[..]),
            ("me.tollgate", &["me.replies".to_owned(), "me.team-a.*".to_owned()][..])
        );
        let names = topics_of(&kafka);
        assert!(names.contains(&"me.replies".to_owned()) && !names.iter().any(|name| name.contains('*')), "{names:?}");
        assert!(kafka.state_owner().starts_with("me."), "{}", kafka.state_owner());
    }
}
