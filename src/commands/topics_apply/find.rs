//! What the brokers have: topics, their replicas and their settings. Brokers that are not up yet are waited for.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use rdkafka::admin::AdminClient;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::runtime::Runtime;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::{FoundTopic, Needed, Topic};
use tollgate_operations::BROKERS_TIMEOUT;
use tollgate_worker::kafka::{
    Inquirer, PlainContext, PropertyFault, Right, TopicConfig, TopicMetadata, Watch, admin_error_code, cluster_topic, is_forbidden, passes,
    reader_config, said_leaderless, topic_admin, topic_configs,
};

/// How long to wait before unreachable brokers are asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long it may take until every broker knows of a new topic.
const SHOWN_MAX: Duration = Duration::from_secs(3);

/// The clients that look at topics and change them.
pub(super) struct Finder<'s> {
    pub(super) kafka: &'s KafkaSettings,
    pub(super) runtime: Runtime,
    /// It is made once the brokers have answered. Closing a client that cannot reach any may wait for a name server.
    admin: OnceCell<AdminClient<PlainContext>>,
    inquirer: Inquirer,
    /// Whether topics are asked for too that no worker needs.
    with_optional: bool,
    /// Whether workers watch for abuse.
    with_abuse: bool,
    wait: Duration,
}

/// What was found.
#[derive(Debug)]
pub(super) struct ClusterTopics<'s> {
    /// The topics that matter, each with what was found of it: `None` if it is missing.
    pub(super) topics: Vec<(Topic<'s>, Option<FoundTopic>)>,
    /// The settings that topics have of their own, by the topic's name.
    pub(super) own: BTreeMap<String, BTreeMap<String, Option<String>>>,
    pub(super) brokers: u32,
    /// The sentences that name partitions without a leader, by the topic's name.
    pub(super) leaderless: BTreeMap<String, String>,
}

/// Why something is not known.
enum Unknown {
    /// It may be known in a moment.
    Yet(KafkaError),
    Never(anyhow::Error),
}

impl<'s> Finder<'s> {
    pub(super) fn new(kafka: &'s KafkaSettings, (with_optional, with_abuse): (bool, bool), wait: Duration) -> anyhow::Result<Self> {
        let fault = |error: KafkaError| PropertyFault::of(&error, kafka);
        let inquirer = Inquirer::new(reader_config(kafka, &kafka.group_id)).map_err(fault)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { kafka, runtime, admin: OnceCell::new(), inquirer, with_optional, with_abuse, wait })
    }

    /// Returns the client that administers topics.
    pub(super) fn admin(&self) -> anyhow::Result<&AdminClient<PlainContext>> {
        if let Some(admin) = self.admin.get() {
            return Ok(admin);
        }
        let admin = topic_admin(self.kafka).map_err(|error| PropertyFault::of(&error, self.kafka))?;
        Ok(self.admin.get_or_init(|| admin))
    }

    /// Returns what there is. Until the deadline, brokers that do not answer are asked again.
    pub(super) fn find(&self, deadline: Instant) -> anyhow::Result<ClusterTopics<'s>> {
        let (brokers, seconds) = (self.kafka.shown_brokers(), self.wait.as_secs());
        let mut say =
            |reason: &str| say!("tollgate: the brokers at {brokers} (kafka.brokers) cannot be reached: {reason}; trying for {seconds} s");
        let is_wanted = || Instant::now() < deadline;
        let watch = &mut Watch { is_wanted: &is_wanted, say: &mut say };
        let mut last = None;
        loop {
            match self.look(watch) {
                Some(Ok(found)) => return Ok(found),
                Some(Err(Unknown::Never(error))) => return Err(error),
                Some(Err(Unknown::Yet(error))) => last = Some(error),
                None => {}
            }
            if !self.inquirer.pause(watch, RETRY_PAUSE) {
                self.inquirer.abandon();
                let reason = self.inquirer.last_reason().map(|reason| reason.to_string());
                let reason = reason.or_else(|| last.map(|error| error.to_string())).unwrap_or_else(|| "no answer, and no error".to_owned());
                bail!("the brokers at {brokers} (kafka.brokers) do not answer: {reason}");
            }
        }
    }

    /// Looks once. Returns `None` if the time was up first.
    fn look(&self, watch: &mut Watch<'_>) -> Option<Result<ClusterTopics<'s>, Unknown>> {
        let topics: Vec<Topic<'s>> = self.kafka.each_topic().collect();
        let names: Vec<_> = topics.iter().map(|topic| topic.name.to_owned()).collect();
        let answer = self.inquirer.ask(watch, move |client| {
            // A topic that is forbidden is an answer too, so that all of them are named at once.
            let look = |name: &String| match cluster_topic(client, name, BROKERS_TIMEOUT) {
                Err(error) if is_forbidden(&error) => Ok(None),
                found => found.map(Some),
            };
            names.iter().map(look).collect::<Result<Vec<_>, _>>()
        })?;
        let metadata = match answer {
            Ok(metadata) => metadata,
            Err(error) => return Some(Err(self.unknown(error))),
        };
        let seen: Vec<_> = topics.into_iter().zip(metadata).filter(|(topic, seen)| self.matters(topic, seen.as_ref())).collect();
        let refused = seen.iter().filter(|(_, seen)| seen.is_none()).map(|(topic, _)| topic.name);
        let configs = match self.forbidden(refused).and_then(|()| self.configs(&seen)) {
            Ok(configs) => configs,
            Err(unknown) => return Some(Err(unknown)),
        };
        Some(Ok(Self::assemble(&seen, configs)))
    }

    fn matters(&self, topic: &Topic<'_>, seen: Option<&TopicMetadata>) -> bool {
        // One that nobody needs matters if it is there.
        let is_needed = match topic.spec.needed {
            Needed::Always => true,
            Needed::ForAbuse => self.with_abuse,
            Needed::OnRequest => false,
        };
        is_needed || self.with_optional || seen.is_some_and(|seen| seen.partitions > 0)
    }

    /// Returns an error that names the topics that may not be looked at, if there are any.
    fn forbidden<'t>(&self, topics: impl Iterator<Item = &'t str>) -> Result<(), Unknown> {
        let refusals: Vec<_> = topics.map(|name| Right::look_at(name).refusal(self.kafka)).collect();
        if refusals.is_empty() {
            return Ok(());
        }
        let more = "with --execute, grant Create, Alter and AlterConfigs too";
        Err(Unknown::Never(anyhow!("{}\n{more}", refusals.join("\n"))))
    }

    /// Returns how the topics that exist are configured, by name.
    fn configs(&self, seen: &[(Topic<'_>, Option<TopicMetadata>)]) -> Result<BTreeMap<String, TopicConfig>, Unknown> {
        let names: Vec<_> =
            seen.iter().filter(|(_, seen)| seen.is_some_and(|seen| seen.partitions > 0)).map(|(topic, _)| topic.name).collect();
        let (admin, deadline) = (self.admin().map_err(Unknown::Never)?, Instant::now() + SHOWN_MAX);
        let configs = loop {
            let configs = self.runtime.block_on(topic_configs(admin, &names, BROKERS_TIMEOUT)).map_err(|error| self.unknown(error))?;
            // A broker may not know yet of a topic that was created a moment ago, and its answer looks like that to a right that is wanting.
            if configs.iter().all(Option::is_some) || Instant::now() >= deadline {
                break configs;
            }
            std::thread::sleep(RETRY_PAUSE);
        };
        let refused = names.iter().zip(&configs).filter(|(_, config)| config.is_none()).map(|(name, _)| *name);
        self.forbidden(refused)?;
        Ok(names.iter().zip(configs).filter_map(|(name, config)| Some(((*name).to_owned(), config?))).collect())
    }

    fn assemble(seen: &[(Topic<'s>, Option<TopicMetadata>)], mut configs: BTreeMap<String, TopicConfig>) -> ClusterTopics<'s> {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mut found =
            ClusterTopics { topics: Vec::with_capacity(seen.len()), own: BTreeMap::new(), brokers: 0, leaderless: BTreeMap::new() };
        for (topic, metadata) in seen {
            let Some(metadata) = metadata else { continue };
            found.brokers = found.brokers.max(count(metadata.brokers));
            let leaderless = metadata.leaderless.map(|partition| (topic.name.to_owned(), said_leaderless(topic.name, partition)));
            found.leaderless.extend(leaderless);
            let config = configs.remove(topic.name);
            let exists = config.map(|config| {
                found.own.insert(topic.name.to_owned(), config.own);
                (metadata, config.in_force)
            });
            let Some((metadata, settings)) = exists else {
                found.topics.push((*topic, None));
                continue;
            };
            let (partitions, replication_factor) = (count(metadata.partitions), count(metadata.replicas));
            found.topics.push((*topic, Some(FoundTopic { partitions, replication_factor, settings })));
        }
        found
    }

    /// Returns whether to ask again after an error, or what is wrong.
    fn unknown(&self, error: KafkaError) -> Unknown {
        match admin_error_code(&error) {
            Some(code) if passes(code) => Unknown::Yet(error),
            Some(RDKafkaErrorCode::UnsupportedFeature) => Unknown::Never(self.not_administered()),
            _ => Unknown::Never(anyhow!("the brokers at {} do not tell about topics: {error}", self.kafka.shown_brokers())),
        }
    }

    /// Returns the error for brokers that know no requests of administration.
    pub(super) fn not_administered(&self) -> anyhow::Error {
        anyhow!(
            "the brokers at {} know no requests of administration. The embedded broker of tollgate dev knows none and needs none: it has \
             every topic; apply them on a real Kafka",
            self.kafka.shown_brokers()
        )
    }
}
