//! A Kafka cluster as tests and benchmarks use it: topics, records and groups.

mod produce;
mod read;
mod record;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::{Client, ClientContext, DefaultClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::producer::BaseProducer;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::wait::wait_until;
use produce::Acknowledgements;
pub use record::{Outgoing, Position, Record};

/// How long a request or a batch of them may take; a broker that was just killed needs part of that.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The directory for the files of deployments.
enum Directory {
    /// It is gone when the value is dropped.
    Temporary(tempfile::TempDir),
    Given(PathBuf),
}

/// Clients of a cluster, which every test and benchmark is given, and the `tollgate` that its deployments run.
pub struct Cluster {
    bootstrap: String,
    tollgate: PathBuf,
    directory: Directory,
    admin: AdminClient<DefaultClientContext>,
    producer: BaseProducer<Acknowledgements>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("bootstrap", &self.bootstrap).field("tollgate", &self.tollgate).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Connects to the cluster at `bootstrap`; `tollgate` is the binary under test.
    ///
    /// # Errors
    /// A client cannot be made.
    pub fn new(bootstrap: String, tollgate: &Path) -> Result<Self> {
        Self::make(bootstrap, tollgate, Directory::Temporary(tempfile::tempdir()?))
    }

    /// Connects to the cluster at `bootstrap`. The files of its deployments go into `directory`, and stay there.
    pub(crate) fn with_directory(bootstrap: String, tollgate: &Path, directory: &Path) -> Result<Self> {
        Self::make(bootstrap, tollgate, Directory::Given(directory.to_owned()))
    }

    /// Connects to another cluster, or to the same cluster once more, with the binary and the directory of this one.
    ///
    /// # Errors
    /// A client cannot be made.
    pub fn at(&self, bootstrap: String) -> Result<Self> {
        Self::with_directory(bootstrap, &self.tollgate, self.directory())
    }

    fn make(bootstrap: String, tollgate: &Path, directory: Directory) -> Result<Self> {
        // The producer is made at once and not at its first use: it takes half a second to get the id that idempotence needs.
        let admin = client(&bootstrap).create()?;
        let producer = client(&bootstrap)
            .set("partitioner", "murmur2_random")
            .set("enable.idempotence", "true")
            // As the worker's own do, so that a new leader loses nothing.
            .set("max.in.flight", "1")
            .set("linger.ms", "0")
            .set("message.max.bytes", "10000000")
            .create_with_context(Acknowledgements)?;
        Ok(Self { bootstrap, tollgate: tollgate.to_owned(), directory, admin, producer })
    }

    /// Returns the address for `bootstrap.servers`.
    #[must_use]
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Returns the binary under test.
    #[must_use]
    pub fn tollgate(&self) -> &Path {
        &self.tollgate
    }

    /// Returns the directory for the files of deployments: configurations and the logs of workers.
    #[must_use]
    pub fn directory(&self) -> &Path {
        match &self.directory {
            Directory::Temporary(directory) => directory.path(),
            Directory::Given(directory) => directory,
        }
    }

    /// Returns a client's configuration, to add to.
    #[must_use]
    pub fn client(&self) -> ClientConfig {
        client(&self.bootstrap)
    }

    /// Returns a name that nothing else on this cluster has, even if others run these tests there.
    #[must_use]
    pub fn unique(&self, stem: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        format!("{stem}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Creates a topic under a unique name, which it returns.
    ///
    /// # Errors
    /// The cluster does not allow it, or its partitions get no leaders in time.
    pub fn topic(&self, stem: &str, partitions: i32, settings: &[(&str, &str)]) -> Result<String> {
        let name = self.unique(stem);
        self.create_topics(&[&name], partitions, settings)?;
        Ok(name)
    }

    /// Creates topics and waits until all their partitions can be written and read.
    ///
    /// # Errors
    /// The cluster does not allow it, or their partitions get no leaders in time.
    pub fn create_topics(&self, names: &[&str], partitions: i32, settings: &[(&str, &str)]) -> Result<()> {
        // As many replicas as the cluster has by default.
        self.create(names, partitions, -1, settings)
    }

    /// Creates a topic whose partitions have a single replica each, under a unique name, which it returns.
    ///
    /// # Errors
    /// The cluster does not allow it, or its partitions get no leaders in time.
    pub fn topic_of_one_replica(&self, stem: &str, partitions: i32) -> Result<String> {
        let name = self.unique(stem);
        self.create(&[&name], partitions, 1, &[("min.insync.replicas", "1")])?;
        Ok(name)
    }

    fn create(&self, names: &[&str], partitions: i32, replicas: i32, settings: &[(&str, &str)]) -> Result<()> {
        let topics: Vec<NewTopic<'_>> = names
            .iter()
            .map(|name| {
                let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(replicas));
                settings.iter().fold(topic, |topic, (key, value)| topic.set(key, value))
            })
            .collect();
        let options = AdminOptions::new().request_timeout(Some(REQUEST_TIME_MAX)).operation_timeout(Some(REQUEST_TIME_MAX));
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        for created in runtime.block_on(self.admin.create_topics(&topics, &options))? {
            created.map_err(|(name, error)| anyhow!("cannot create topic {name}: {error}"))?;
        }
        self.await_leaders(names, partitions)
    }

    /// Gives topics so many partitions, and waits until all of them can be written and read. A producer that knew a topic before may go on
    /// with the old number for minutes, this cluster's own included.
    ///
    /// # Errors
    /// The cluster does not allow it, or their partitions get no leaders in time.
    pub fn grow_topics(&self, names: &[&str], partitions: i32) -> Result<()> {
        let grown: Vec<_> = names.iter().map(|name| NewPartitions::new(name, partitions as usize)).collect();
        let options = AdminOptions::new().request_timeout(Some(REQUEST_TIME_MAX)).operation_timeout(Some(REQUEST_TIME_MAX));
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        for grown in runtime.block_on(self.admin.create_partitions(&grown, &options))? {
            grown.map_err(|(name, error)| anyhow!("topic {name} cannot grow: {error}"))?;
        }
        self.await_leaders(names, partitions)
    }

    /// Deletes topics.
    ///
    /// # Errors
    /// The cluster does not allow it.
    pub fn delete_topics(&self, names: &[&str]) -> Result<()> {
        let options = AdminOptions::new().request_timeout(Some(REQUEST_TIME_MAX)).operation_timeout(Some(REQUEST_TIME_MAX));
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        for deleted in runtime.block_on(self.admin.delete_topics(names, &options))? {
            deleted.map_err(|(name, error)| anyhow!("cannot delete topic {name}: {error}"))?;
        }
        Ok(())
    }

    fn await_leaders(&self, names: &[&str], partitions: i32) -> Result<()> {
        let deadline = Instant::now() + REQUEST_TIME_MAX;
        for name in names {
            while partition_count(self.admin.inner(), name)? != partitions {
                ensure!(Instant::now() < deadline, "topic {name} has no leaders");
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    /// Returns the offsets that a group has committed, by partition; partitions without one are left out.
    ///
    /// # Errors
    /// There is no such topic, or the brokers do not answer.
    pub fn committed(&self, group: &str, topic: &str) -> Result<BTreeMap<i32, i64>> {
        // Offsets of a transaction that is still open count as they were before it.
        let consumer: BaseConsumer = self.client().set("group.id", group).set("isolation.level", "read_uncommitted").create()?;
        let asked = all_partitions(topic, partition_count(consumer.client(), topic)?)?;
        let deadline = Instant::now() + REQUEST_TIME_MAX;
        let answered = loop {
            match consumer.committed_offsets(asked.clone(), REQUEST_TIME_MAX) {
                // The coordinator of a group may have to be found, or may still be loading.
                Err(_) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
                answered => break answered?,
            }
        };
        let offset = |offset| if let Offset::Offset(offset) = offset { Some(offset) } else { None };
        Ok(answered.elements().iter().filter_map(|element| Some((element.partition(), offset(element.offset())?))).collect())
    }

    /// Waits until the committed offsets of a group add up to `total`. The brokers end a transaction a moment after they have promised to,
    /// and a worker on a busy machine stops without its last checkpoint: a test that reads the offsets once, after a stop, reads the past.
    ///
    /// # Errors
    /// There is no such topic, or it does not come true in time.
    pub fn await_committed(&self, group: &str, topic: &str, total: usize) -> Result<()> {
        let total = i64::try_from(total)?;
        wait_until("all of it is committed", || Ok(self.committed(group, topic)?.values().sum::<i64>() == total))
    }

    /// Waits until no transaction is open on a topic. The brokers end a transaction a moment after they have promised to, and nobody can read
    /// until then what lies behind its beginning.
    ///
    /// # Errors
    /// There is no such topic, or a transaction stays open.
    pub fn await_transactions(&self, topic: &str) -> Result<()> {
        let of = |isolation| self.client().set("group.id", "none").set("isolation.level", isolation).create();
        let [readable, written]: [BaseConsumer; 2] = [of("read_committed")?, of("read_uncommitted")?];
        let partitions = 0..partition_count(written.client(), topic)?;
        let end = |of: &BaseConsumer, partition| Ok::<_, anyhow::Error>(of.fetch_watermarks(topic, partition, REQUEST_TIME_MAX)?.1);
        wait_until("no transaction is open", || {
            let is_open = |partition| Ok::<_, anyhow::Error>(end(&written, partition)? != end(&readable, partition)?);
            Ok(!partitions.clone().map(is_open).collect::<Result<Vec<_>>>()?.contains(&true))
        })
    }
}

fn client(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    // The default backs off for up to ten seconds, which a test that restarts the broker would wait for.
    config.set("bootstrap.servers", bootstrap).set("reconnect.backoff.max.ms", "500");
    config
}

/// Returns how many partitions of a topic have a leader.
fn partition_count<C: ClientContext>(client: &Client<C>, topic: &str) -> Result<i32> {
    let metadata = client.fetch_metadata(Some(topic), REQUEST_TIME_MAX)?;
    let led = metadata.topics().iter().flat_map(|topic| topic.partitions()).filter(|partition| partition.leader() >= 0);
    Ok(i32::try_from(led.count())?)
}

/// Returns all partitions of a topic, from their beginning.
fn all_partitions(topic: &str, count: i32) -> Result<TopicPartitionList> {
    ensure!(count > 0, "there is no topic {topic}");
    let mut partitions = TopicPartitionList::new();
    for partition in 0..count {
        partitions.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    Ok(partitions)
}
