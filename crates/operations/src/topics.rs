//! A reader of the configured topics for commands, with a time limit on every request.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use rdkafka::ClientConfig;
use rdkafka::Offset as KafkaOffset;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message as _};

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_core::settings::did_you_mean;
use tollgate_worker::Stop;
use tollgate_worker::kafka::{
    Inquirer, PropertyFault, Right, Watch, is_forbidden, is_unreachable, open_transactions, partitions_of, passes, reader_config,
};
use tollgate_worker::partition::{RestoreError, ends, read_messages};

use crate::BROKERS_TIMEOUT;

/// How long one request for the topics may take. There are several until the brokers have answered.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// For how long a partition is asked for again whose leader is away. Another broker becomes its leader meanwhile, and may fail in its turn.
/// Kafka's own tools wait as long.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait before it is asked for again, so that a broker that refuses at once is not flooded.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// A reader of the brokers' topics, in no consumer group.
pub struct Topics<'s> {
    kafka: &'s KafkaSettings,
    reader: Inquirer,
    /// The sign that ends the wait for a partition.
    stop: Stop,
    /// The last partition of which it was said that it is asked for again.
    said: Cell<Option<Partition>>,
}

/// Asks for the topics for up to [`BROKERS_TIMEOUT`], in several requests: one that a dying broker has taken is never answered, and the next
/// one goes to another.
fn insist<T>(ask: impl Fn(Duration) -> Result<T, KafkaError>) -> Result<T, KafkaError> {
    let deadline = Instant::now() + BROKERS_TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match ask(left.min(REQUEST_TIMEOUT)) {
            Err(KafkaError::MetadataFetch(code)) if is_unreachable(code) && Instant::now() + RETRY_PAUSE < deadline => {
                std::thread::sleep(RETRY_PAUSE);
            }
            answer => return answer,
        }
    }
}

/// Returns whether the error goes away by itself. The topic was found before, so that a broker that does not know it has just started.
fn is_away(error: &RestoreError) -> bool {
    match error {
        RestoreError::Kafka { error, .. } => error.rdkafka_error_code().is_some_and(passes),
        RestoreError::Silence => true,
        _ => false,
    }
}

/// A topic that exists.
#[derive(Debug, Clone, Copy)]
pub struct Topic<'s> {
    /// The name.
    pub name: &'s str,
    /// How many partitions the topic has.
    pub partitions: u32,
}

impl<'s> Topics<'s> {
    /// Returns a reader that has asked for nothing yet.
    ///
    /// # Errors
    /// librdkafka does not take a property of the configuration.
    pub fn new(kafka: &'s KafkaSettings) -> anyhow::Result<Self> {
        Self::with(kafka, reader_config(kafka, &kafka.group_id))
    }

    /// Returns a reader that does not wait for commits.
    ///
    /// # Errors
    /// librdkafka does not take a property of the configuration.
    pub fn uncommitted(kafka: &'s KafkaSettings) -> anyhow::Result<Self> {
        Self::with(kafka, reader_config(kafka, &kafka.group_id).set("isolation.level", "read_uncommitted").clone())
    }

    fn with(kafka: &'s KafkaSettings, config: ClientConfig) -> anyhow::Result<Self> {
        let reader = Inquirer::new(config).map_err(|error| PropertyFault::of(&error, kafka))?;
        Ok(Self { kafka, reader, stop: Stop::default(), said: Cell::default() })
    }

    /// Has this sign end the wait for a partition whose leader is away.
    pub fn stopped_by(self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self }
    }

    /// Returns how the brokers are reached.
    pub(crate) fn kafka(&self) -> &'s KafkaSettings {
        self.kafka
    }

    /// Finds the topic of a role.
    ///
    /// # Errors
    /// The brokers do not answer, there is no such topic, or it may not be read.
    pub fn find(&self, role: TopicRole) -> anyhow::Result<Topic<'s>> {
        self.named(self.kafka.topics.of(role).name, &role.spec().path())
    }

    /// Says on stderr what open transactions hide of a topic: every reader here waits for commits, and ends before them. Returns whether there
    /// are any.
    pub fn say_open_transactions(&self, topic: Topic<'_>) -> anyhow::Result<bool> {
        let (kafka, name, partitions) = (self.kafka.clone(), topic.name.to_owned(), i32::try_from(topic.partitions)?);
        let found = open_transactions(&kafka, &name, 0..partitions).with_context(|| format!("whether {name} has open transactions"))?;
        for open in &found {
            say!("tollgate: {name}: {open}: records from there on are not read before it ends");
        }
        Ok(!found.is_empty())
    }

    /// Finds a topic by its name, which stands in a key of the configuration or in an option.
    pub fn named<'n>(&self, name: &'n str, key: &str) -> anyhow::Result<Topic<'n>> {
        let brokers = self.kafka.shown_brokers();
        let asked = name.to_owned();
        let watch = &mut Watch { is_wanted: &|| !self.stop.is_given(), say: &mut say_why_not(self.kafka) };
        let answer = self.reader.ask(watch, move |client| insist(|timeout| partitions_of(client, &asked, timeout)));
        match answer.unwrap_or(Err(KafkaError::Canceled)) {
            Ok(0) => bail!("no such topic: {name} ({key}), at brokers {brokers} (kafka.brokers){}", self.nearest(name)),
            Ok(partitions) => Ok(Topic { name, partitions: u32::try_from(partitions)? }),
            Err(error) if is_forbidden(&error) => bail!("{}", Right::read(name).refusal(self.kafka)),
            Err(error) => Err(self.unreachable(&error)),
        }
    }

    /// Returns the name of a topic that may have been meant, for people.
    fn nearest(&self, name: &str) -> String {
        let names = self.reader.client().fetch_metadata(None, BROKERS_TIMEOUT);
        let names: Vec<_> = names.iter().flat_map(|found| found.topics()).map(|topic| topic.name().to_owned()).collect();
        did_you_mean(name, names.iter().map(String::as_str))
    }

    /// Returns why the brokers could not be asked, for people.
    fn unreachable(&self, error: &KafkaError) -> anyhow::Error {
        self.reader.abandon();
        let reason = self.reader.last_reason().map_or_else(|| error.to_string(), |reason| reason.to_string());
        anyhow!("the brokers at {} (kafka.brokers) do not answer: {reason}", self.kafka.shown_brokers())
    }

    /// Reads a partition, showing each record once, with its offset.
    pub fn read(
        &self,
        topic: Topic<'_>,
        partition: Partition,
        mut show: impl FnMut(Offset, Option<&[u8]>, Option<&[u8]>),
    ) -> anyhow::Result<()> {
        self.read_messages(topic, partition, KafkaOffset::Beginning, |message| {
            show(Offset(message.offset()), message.key(), message.payload());
            true
        })
    }

    /// Returns where a partition begins and ends.
    pub fn ends(&self, topic: Topic<'_>, partition: Partition) -> anyhow::Result<(Offset, Offset)> {
        let until = Instant::now() + PATIENCE;
        loop {
            match ends(self.reader.client(), topic.name, partition) {
                Err(error) if self.tries_again(topic, partition, until, &error) => {}
                answer => return self.answer(answer, topic, partition),
            }
        }
    }

    /// Returns the same, and does not ask again.
    pub fn ends_at_once(&self, topic: Topic<'_>, partition: Partition) -> anyhow::Result<(Offset, Offset)> {
        self.answer(ends(self.reader.client(), topic.name, partition), topic, partition)
    }

    /// Reads a partition from an offset that it has, until `show` returns `false` or the partition ends.
    pub fn read_from(
        &self,
        topic: Topic<'_>,
        partition: Partition,
        begin: Offset,
        show: impl FnMut(&BorrowedMessage<'_>) -> bool,
    ) -> anyhow::Result<()> {
        self.read_messages(topic, partition, KafkaOffset::Offset(begin.0), show)
    }

    /// Does the same, and does not ask again.
    pub fn read_at_once(
        &self,
        topic: Topic<'_>,
        partition: Partition,
        begin: Offset,
        show: impl FnMut(&BorrowedMessage<'_>) -> bool,
    ) -> anyhow::Result<()> {
        let read = read_messages(self.reader.client(), topic.name, partition, KafkaOffset::Offset(begin.0), show);
        self.answer(read.map(drop), topic, partition)
    }

    /// Reads a partition, and goes on behind what was read if its leader is away for a while.
    fn read_messages(
        &self,
        topic: Topic<'_>,
        partition: Partition,
        mut begin: KafkaOffset,
        mut show: impl FnMut(&BorrowedMessage<'_>) -> bool,
    ) -> anyhow::Result<()> {
        // It begins anew with each record that comes.
        let mut until = Instant::now() + PATIENCE;
        loop {
            let read = read_messages(self.reader.client(), topic.name, partition, begin, |message| {
                begin = KafkaOffset::Offset(message.offset().saturating_add(1));
                until = Instant::now() + PATIENCE;
                show(message)
            });
            match read {
                Err(error) if self.tries_again(topic, partition, until, &error) => {}
                read => return self.answer(read.map(drop), topic, partition),
            }
        }
    }

    /// Returns whether to ask for a partition again after this error, a moment later, and says so once of each partition.
    fn tries_again(&self, topic: Topic<'_>, partition: Partition, until: Instant, error: &RestoreError) -> bool {
        let tries_again = is_away(error) && Instant::now() + RETRY_PAUSE < until && !self.stop.wait(RETRY_PAUSE);
        if tries_again && self.said.replace(Some(partition)) != Some(partition) {
            say!("tollgate: partition {partition} of {}: {error}; trying for {} s", topic.name, PATIENCE.as_secs());
        }
        tries_again
    }

    fn answer<T>(&self, read: Result<T, RestoreError>, topic: Topic<'_>, partition: Partition) -> anyhow::Result<T> {
        match read {
            Err(error) if error.reason() == "forbidden" => bail!("{}", Right::read(topic.name).refusal(self.kafka)),
            read => read.with_context(|| format!("partition {partition} of {}", topic.name)),
        }
    }
}

/// Waits until a broker answers, and says meanwhile why none does. Returns `false` if the sign to stop came first.
pub fn reach(kafka: &KafkaSettings, stop: &Stop) -> anyhow::Result<bool> {
    let topics = Topics::new(kafka)?;
    let watch = &mut Watch { is_wanted: &|| !stop.is_given(), say: &mut say_why_not(kafka) };
    match topics.reader.ask(watch, |client| client.fetch_metadata(None, BROKERS_TIMEOUT).map(drop)) {
        Some(Ok(())) => Ok(true),
        Some(Err(error)) => Err(topics.unreachable(&error)),
        None => {
            topics.reader.abandon();
            Ok(false)
        }
    }
}

/// Returns what says why the brokers do not answer.
fn say_why_not(kafka: &KafkaSettings) -> impl FnMut(&str) {
    let brokers = kafka.shown_brokers();
    move |reason| {
        say!("tollgate: the brokers at {brokers} (kafka.brokers) cannot be reached: {reason}; trying for {} s", BROKERS_TIMEOUT.as_secs());
    }
}

impl Topic<'_> {
    /// Returns the partition of that number.
    pub fn partition(self, number: u32) -> anyhow::Result<Partition> {
        let Self { name, partitions } = self;
        ensure!(
            number < partitions,
            "--partition {number}: topic {name} has {partitions} partitions; write 0 to {}",
            partitions.saturating_sub(1)
        );
        Ok(Partition(i32::try_from(number)?))
    }

    /// Returns every partition.
    pub fn all(self) -> anyhow::Result<Vec<Partition>> {
        (0..self.partitions).map(|number| self.partition(number)).collect()
    }
}
