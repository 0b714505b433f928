//! Creates topics for a measurement and deletes them after it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::types::RDKafkaErrorCode;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::{TopicSettings, to_create};
use tollgate_worker::kafka::PlainContext;

const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Creates and deletes topics.
pub struct Topics {
    admin: AdminClient<PlainContext>,
    runtime: tokio::runtime::Runtime,
    brokers: String,
}

/// Returns a client's configuration: the brokers and the user's properties.
pub(super) fn client(kafka: &KafkaSettings) -> ClientConfig {
    let mut config = ClientConfig::new();
    for (key, value) in &kafka.properties {
        config.set(key, value);
    }
    config.set("bootstrap.servers", &kafka.brokers);
    config
}

impl Topics {
    /// Connects to the cluster.
    pub fn connect(kafka: &KafkaSettings) -> Result<Self> {
        let admin: AdminClient<PlainContext> = client(kafka).create_with_context(PlainContext::default()).context("kafka.properties")?;
        let answered = admin.inner().fetch_metadata(None, REQUEST_TIME_MAX / 3);
        answered.map_err(|error| anyhow!("the brokers at {} do not answer: {error}", kafka.brokers))?;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self { admin, runtime, brokers: kafka.brokers.clone() })
    }

    /// Creates the topics of a worker, named after `stem`.
    pub fn create(&self, stem: &str, partitions: u32) -> Result<TopicSettings> {
        let topics = TopicSettings::named(|spec| format!("{stem}.{}", spec.key));
        for topic in to_create(topics.each().filter(|topic| topic.spec.is_created()), partitions) {
            let settings: Vec<_> = topic.settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
            self.create_named(&[topic.name], topic.partitions, &settings)?;
        }
        Ok(topics)
    }

    /// Creates topics of these names.
    pub fn create_named(&self, names: &[&str], partitions: u32, settings: &[(&str, &str)]) -> Result<()> {
        let count = i32::try_from(partitions).context("so many partitions")?;
        let topics: Vec<NewTopic<'_>> = names
            .iter()
            .map(|name| {
                let topic = NewTopic::new(name, count, TopicReplication::Fixed(-1));
                settings.iter().fold(topic, |topic, (key, value)| topic.set(key, value))
            })
            .collect();
        let options = AdminOptions::new().request_timeout(Some(REQUEST_TIME_MAX)).operation_timeout(Some(REQUEST_TIME_MAX));
        let created = self.runtime.block_on(self.admin.create_topics(&topics, &options));
        for created in created.map_err(|error| anyhow!("no topics can be created at {}: {error}", self.brokers))? {
            created.map_err(|(name, error)| anyhow!("topic {name} cannot be created at {}: {error}", self.brokers))?;
        }
        let deadline = Instant::now() + REQUEST_TIME_MAX;
        for name in names {
            while self.led_partitions(name)? != partitions as usize {
                ensure!(Instant::now() < deadline, "topic {name} has no leaders");
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    /// Deletes every topic that is named after `stem`: a worker may create topics of its own.
    pub fn delete_all(&self, stem: &str) -> Result<()> {
        let metadata = self.admin.inner().fetch_metadata(None, REQUEST_TIME_MAX)?;
        let is_named = |name: &&str| name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(['.', '-']));
        let names: Vec<&str> = metadata.topics().iter().map(|topic| topic.name()).filter(is_named).collect();
        if names.is_empty() { Ok(()) } else { self.delete(&names) }
    }

    fn led_partitions(&self, name: &str) -> Result<usize> {
        let metadata = self.admin.inner().fetch_metadata(Some(name), REQUEST_TIME_MAX)?;
        Ok(metadata.topics().iter().flat_map(|topic| topic.partitions()).filter(|partition| partition.leader() >= 0).count())
    }

    /// Deletes topics, as far as they are there.
    pub fn delete(&self, names: &[&str]) -> Result<()> {
        let options = AdminOptions::new().request_timeout(Some(REQUEST_TIME_MAX));
        let deleted = self.runtime.block_on(self.admin.delete_topics(names, &options));
        for deleted in deleted.map_err(|error| anyhow!("no topics can be deleted at {}: {error}", self.brokers))? {
            match deleted {
                Ok(_) | Err((_, RDKafkaErrorCode::UnknownTopicOrPartition)) => {}
                Err((name, error)) => return Err(anyhow!("topic {name} cannot be deleted at {}: {error}", self.brokers)),
            }
        }
        Ok(())
    }
}
