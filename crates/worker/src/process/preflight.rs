//! The check of the topics before a worker joins: it asks the brokers, and [`tollgate_config::topics`] has the rules.

use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::producer::Producer;
use tollgate_core::event::record::Partition;

use crate::health::Health;
use crate::kafka::{
    Inquirer, PlainContext, Right, SecretFiles, StageTopics, TopicConfig, Watch, check_administration, consumer_config, is_forbidden,
    leaderless, make_producer, partitions_of, state_producer_config, topic_admin, topic_configs,
};
use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::{Cleanup, Limits, Topic, TopicFault, TopicRole, check_partitions, check_settings};

use crate::stop::Stop;

use super::Needs;
use super::embedded::cluster_of_dev;
use super::preflight_error::{PreflightError, RETRY_PAUSE};

/// How long one request to the brokers may take.
pub(super) const METADATA_TIMEOUT: Duration = Duration::from_secs(5);
/// How long topics that are missing are asked for again: a broker that has just started answers before it knows its topics.
const MISSING_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the same reason is not logged again.
const SAME_REASON: Duration = Duration::from_secs(1);
/// The part of the health report that says whether the brokers can be reached.
const BROKERS: &str = "brokers";
/// The upper limit of a batch of verdicts in bytes, whatever the topics take. It is librdkafka's own default.
const BATCH_BYTES_MAX: u64 = 1_000_000;

/// What a worker needs to know of its topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preflight {
    /// Partitions of the topic that the worker's stage reads: of the events topic, or of the signals topic.
    pub partitions: u32,
    /// Partitions of the signals topic, if it is needed.
    pub signal_partitions: u32,
    /// The largest batch that every topic takes that we publish to, in bytes.
    pub batch_bytes_max: u64,
    /// The largest batch that the state topic takes, in bytes.
    pub state_batch_bytes_max: u64,
}

impl Preflight {
    /// Returns what is known of topics with this many partitions whose sizes are not known.
    #[must_use]
    pub fn of(partitions: u32) -> Self {
        Self { partitions, signal_partitions: partitions, batch_bytes_max: BATCH_BYTES_MAX, state_batch_bytes_max: BATCH_BYTES_MAX }
    }

    /// Returns the same topics with batches limited to what the topics take.
    fn within(self, limits: &Limits) -> Self {
        Self {
            batch_bytes_max: self.batch_bytes_max.min(limits.batch_bytes.unwrap_or(u64::MAX)),
            state_batch_bytes_max: self.state_batch_bytes_max.min(limits.state_batch_bytes.unwrap_or(u64::MAX)),
            ..self
        }
    }
}

/// Checks the topics that are needed and their partitions, and asks again for as long as the brokers cannot be reached. Why they cannot is
/// logged, and shown by the health report. Of two groups the right to the second one is left to its members.
///
/// # Errors
/// Returns [`PreflightError`], with what to do about it.
pub fn check_topics(kafka: &KafkaSettings, needs: &Needs, health: &Health, stop: &Stop) -> Result<Preflight, PreflightError> {
    let group = needs.groups(kafka).into_iter().next().unwrap_or_else(|| StageTopics::of(kafka));
    let inquire = || Inquirer::new(consumer_config(kafka, &group.group_id, None)).map_err(PreflightError::Client);
    let (mut inquirer, mut secrets) = (inquire()?, SecretFiles::new(kafka));
    let topics = needs.topics(kafka);
    let brokers = kafka.shown_brokers();
    let is_wanted = || !stop.is_given();
    let mut said: Option<(String, Instant)> = None;
    let mut say = |reason: &str| {
        // Two connections that fail at once give one reason.
        if said.as_ref().is_some_and(|(before, at)| before == reason && at.elapsed() < SAME_REASON) {
            return;
        }
        said = Some((reason.to_owned(), Instant::now()));
        health.set_problem(BROKERS, Some(format!("the brokers at {brokers} cannot be reached: {reason}")));
        tracing::warn!(brokers, reason, "the brokers cannot be reached; trying again");
    };
    let watch = &mut Watch { is_wanted: &is_wanted, say: &mut say };
    let mut missing_since: Option<Instant> = None;
    loop {
        let names: Vec<_> = topics.iter().map(|topic| topic.name.to_owned()).collect();
        let answer = inquirer.ask(watch, move |client| {
            // A topic that is forbidden is an answer too, so that all of them are named at once.
            let count = |name: &String| match partitions_of(client, name, METADATA_TIMEOUT) {
                Err(error) if is_forbidden(&error) => Ok(None),
                counted => counted.map(Some),
            };
            names.iter().map(count).collect::<Result<Vec<_>, _>>()
        });
        match answer {
            Some(Ok(counts)) => {
                if health.set_problem(BROKERS, None) {
                    tracing::info!(brokers, "the brokers answer");
                }
                let mut refusals: Vec<_> =
                    topics.iter().zip(&counts).filter(|(_, count)| count.is_none()).flat_map(|(topic, _)| needs.rights_on(topic)).collect();
                refusals.extend(group_refusal(&inquirer, &group, &is_wanted));
                if !refusals.is_empty() {
                    return Err(PreflightError::Forbidden { refusals: refusals.iter().map(|right| right.refusal(kafka)).collect() });
                }
                let found = found(&topics, &counts.into_iter().flatten().collect::<Vec<_>>());
                if !is_asked_again(&found, &mut missing_since) {
                    warn_of_leaderless(&inquirer, &topics, &is_wanted);
                    return refuse_dev(&inquirer, &group.group_id, kafka, &is_wanted).and(found);
                }
            }
            Some(Err(error)) => tracing::debug!(brokers, %error, "no answer"),
            None => {}
        }
        if !inquirer.pause(watch, RETRY_PAUSE) {
            inquirer.abandon();
            return Err(PreflightError::Stopped(brokers.clone()));
        }
        // What keeps the brokers from answering may have been mended in a file.
        if secrets.take_over_untried() {
            // Of a certificate and its key, one may have changed only.
            inquirer = inquire().unwrap_or(inquirer);
        }
    }
}

/// Refuses the embedded broker of a `tollgate dev` that does the work of the group itself.
fn refuse_dev(inquirer: &Inquirer, group_id: &str, kafka: &KafkaSettings, is_wanted: &dyn Fn() -> bool) -> Result<(), PreflightError> {
    let watch = &mut Watch { is_wanted, say: &mut |_| {} };
    let cluster = inquirer.ask(watch, |client| Ok(client.client().fetch_cluster_id(METADATA_TIMEOUT)));
    match cluster {
        Some(Ok(Some(id))) if id.starts_with(&cluster_of_dev(group_id)) => {
            Err(PreflightError::Dev { brokers: kafka.shown_brokers(), group_id: group_id.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Names a partition that has no leader. That is no reason not to start: the other partitions go on.
fn warn_of_leaderless(inquirer: &Inquirer, topics: &[Topic<'_>], is_wanted: &dyn Fn() -> bool) {
    let names: Vec<_> = topics.iter().map(|topic| topic.name.to_owned()).collect();
    let watch = &mut Watch { is_wanted, say: &mut |_| {} };
    let answer = inquirer.ask(watch, move |client| leaderless(client.client(), &names, |_| true, METADATA_TIMEOUT));
    if let Some(Ok(Some(said))) = answer {
        tracing::warn!("{said}");
    }
}

/// Returns whether topics are missing and have not been for long: a broker that has just started does not know them yet.
fn is_asked_again(found: &Result<Preflight, PreflightError>, missing_since: &mut Option<Instant>) -> bool {
    let Err(error @ PreflightError::Topics(TopicFault::Missing { .. })) = found else { return false };
    let since = missing_since.get_or_insert_with(|| {
        tracing::warn!(%error, "asking again, since a broker that has just started may not know its topics yet");
        Instant::now()
    });
    since.elapsed() < MISSING_TIME_MAX
}

/// Returns what is known of topics with these numbers of partitions, if they fit.
fn found(topics: &[Topic<'_>], counts: &[usize]) -> Result<Preflight, PreflightError> {
    check_partitions(topics, counts)?;
    let count_of = |role: TopicRole| {
        let found = topics.iter().zip(counts).find(|(topic, _)| topic.spec == role.spec());
        found.map_or(0, |(_, count)| u32::try_from(*count).unwrap_or(u32::MAX))
    };
    Ok(Preflight { signal_partitions: count_of(TopicRole::Signals), ..Preflight::of(count_of(TopicRole::Events)) })
}

/// Returns the right to a group if the brokers refuse it. A group whose coordinator does not answer yet is left to the members. The brokers
/// have answered by now: that one of them cannot be reached is no problem of the worker.
fn group_refusal(inquirer: &Inquirer, group: &StageTopics, is_wanted: &dyn Fn() -> bool) -> Option<Right> {
    let topic = group.input.clone();
    let watch = &mut Watch { is_wanted, say: &mut |_| {} };
    let answer = inquirer.ask_group(watch, move |client| {
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition(&topic, 0);
        client.committed_offsets(list, METADATA_TIMEOUT)
    });
    let answer = answer?.and_then(|list| list.elements().iter().try_for_each(|element| element.error()));
    Right::refused_by(answer.err()?.rdkafka_error_code(), &group.group_id, || Right::read(&group.input))
}

/// Checks the right to transactional ids of each group, with an id of the group that no partition has. The brokers keep it for some days.
///
/// # Errors
/// Returns [`PreflightError::Forbidden`]. Any other failure shows when a worker starts, and is none of rights.
pub fn check_transactions(kafka: &KafkaSettings, needs: &Needs) -> Result<(), PreflightError> {
    needs.groups(kafka).iter().try_for_each(|topics| check_transaction(kafka, topics))
}

fn check_transaction(kafka: &KafkaSettings, topics: &StageTopics) -> Result<(), PreflightError> {
    let mut config = state_producer_config(kafka, topics, Partition(0), BATCH_BYTES_MAX);
    config.set("transactional.id", format!("{}/check", topics.group_id));
    let producer = make_producer(&config, PlainContext::default()).map_err(PreflightError::Client)?;
    let Err(error) = producer.init_transactions(METADATA_TIMEOUT) else { return Ok(()) };
    tracing::debug!(%error, "no transactional id");
    let right = Right::refused_by(error.rdkafka_error_code(), &topics.group_id, || Right::write(&topics.state));
    right.map_or(Ok(()), |right| Err(PreflightError::Forbidden { refusals: vec![right.refusal(kafka)] }))
}

/// Checks how the topics are configured, and returns what is known of them with the sizes that they take. Brokers may refuse to say, since
/// that can require a permission; the defaults stay then.
///
/// # Errors
/// Returns [`TopicFault`] for a topic that would lose records that must not be lost, or that cannot hold the largest ones.
pub async fn check_configs(
    kafka: &KafkaSettings,
    needs: &Needs,
    preflight: Preflight,
    thread_bytes_max: usize,
) -> Result<Preflight, PreflightError> {
    let topics = needs.topics(kafka);
    if let Err(reason) = check_administration(kafka) {
        tracing::warn!("how the topics are configured is not checked: {reason}");
        return Ok(preflight);
    }
    let described = match describe(kafka, &topics).await {
        Ok(described) => described,
        Err(error) => {
            let compacted = topics.iter().filter(|topic| matches!(topic.spec.cleanup, Cleanup::Compact { .. }));
            let compacted = compacted.map(|topic| topic.name).collect::<Vec<_>>().join(" and ");
            tracing::warn!(
                %error,
                "how the topics are configured is unknown; batches keep librdkafka's default size, and {compacted} had better be compacted"
            );
            return Ok(preflight);
        }
    };
    let setting = |topic: &str, name: &str| {
        let (_, config) = topics.iter().zip(&described).find(|(described, _)| described.name == topic)?;
        config.as_ref()?.in_force.get(name).cloned()
    };
    let limits = check_settings(&topics, setting, thread_bytes_max)?;
    for (topic, warning) in &limits.warnings {
        tracing::warn!(topic, "{warning}");
    }
    Ok(preflight.within(&limits))
}

async fn describe(kafka: &KafkaSettings, topics: &[Topic<'_>]) -> Result<Vec<Option<TopicConfig>>, KafkaError> {
    let names: Vec<_> = topics.iter().map(|topic| topic.name).collect();
    let described = topic_configs(&topic_admin(kafka)?, &names, METADATA_TIMEOUT).await?;
    for (name, _) in names.iter().zip(&described).filter(|(_, config)| config.is_none()) {
        tracing::warn!("how topic {name} is configured is not checked: {}", Right::describe_configs(name).refusal(kafka));
    }
    Ok(described)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread::{sleep, spawn};

    use rdkafka::mocking::{MockCluster, MockCoordinator};

    #[test]
    fn brokers_that_leave_while_the_group_is_asked_for_are_no_problem_for_ever() {
        let cluster = MockCluster::new(2).unwrap();
        let mut kafka = tollgate_config::load(None, []).unwrap().kafka;
        kafka.brokers = cluster.bootstrap_servers();
        let needs = Needs::deciding();
        for topic in needs.topics(&kafka) {
            cluster.create_topic(topic.name, 2, 1).unwrap();
        }
        cluster.coordinator(MockCoordinator::Group(kafka.group_id.clone()), 2).unwrap();
        cluster.broker_down(2).unwrap();
        // Slow enough that it is heard that the other one is away.
        cluster.broker_round_trip_time(1, Duration::from_millis(300)).unwrap();

        let health = Arc::new(Health::default());
        let asking = spawn({
            let (kafka, health) = (kafka.clone(), Arc::clone(&health));
            move || check_topics(&kafka, &needs, &health, &Stop::default())
        });
        let wait_for = |has_problems: bool| {
            let deadline = Instant::now() + Duration::from_secs(120);
            while health.has_problems() != has_problems {
                assert!(!asking.is_finished() && Instant::now() < deadline, "{:?}", health.report().problems);
                sleep(Duration::from_millis(1));
            }
        };
        wait_for(true);
        wait_for(false);
        // The topics are known. Now the group is asked for, whose coordinator does not answer, and the first broker leaves too.
        cluster.broker_down(1).unwrap();
        assert_eq!(asking.join().unwrap().unwrap().partitions, 2);
        assert_eq!(health.report().problems, [""; 0]);
    }
}
