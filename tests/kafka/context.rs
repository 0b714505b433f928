//! What a test is handed: the cluster, and the few things that tests do with topics and groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{Client, ClientContext, DefaultClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers as _, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

/// How long any one request or a batch of them may take; a broker that was just killed needs some of it.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The cluster under test, and the clients of one test.
pub(crate) struct Context {
    bootstrap: String,
    admin: AdminClient<DefaultClientContext>,
    producer: BaseProducer<Acknowledgements>,
}

/// A record to produce.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
    /// Left out: where the key hashes to.
    pub(crate) partition: Option<i32>,
    /// Milliseconds since 1970; left out: now.
    pub(crate) timestamp: Option<i64>,
}

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

/// Where a record ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
}

impl Outgoing {
    pub(crate) fn new(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self { key: Some(key.into()), value: Some(value.into()), ..Self::default() }
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), Some(value.into())));
        self
    }

    #[must_use]
    pub(crate) fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }
}

impl Context {
    /// The producer is made at once, not when it is wanted: it takes half a second to be given the id that idempotence needs.
    pub(crate) fn new(bootstrap: String) -> Result<Self> {
        let admin = client(&bootstrap).create()?;
        let producer = client(&bootstrap)
            .set("partitioner", "murmur2_random")
            .set("enable.idempotence", "true")
            .set("linger.ms", "0")
            .set("message.max.bytes", "10000000")
            .create_with_context(Acknowledgements)?;
        Ok(Self { bootstrap, admin, producer })
    }

    /// The address for `bootstrap.servers`.
    pub(crate) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// A client's configuration, to add to.
    pub(crate) fn client(&self) -> ClientConfig {
        client(&self.bootstrap)
    }

    /// A name that nothing else on this cluster has, whoever else runs these tests there.
    pub(crate) fn unique(&self, stem: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        format!("{stem}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Creates a topic under a unique name, which it returns.
    pub(crate) fn topic(&self, stem: &str, partitions: i32, settings: &[(&str, &str)]) -> Result<String> {
        let name = self.unique(stem);
        self.create_topics(&[&name], partitions, settings)?;
        Ok(name)
    }

    /// Creates topics and waits until all their partitions can be written and read.
    pub(crate) fn create_topics(&self, names: &[&str], partitions: i32, settings: &[(&str, &str)]) -> Result<()> {
        let topics: Vec<NewTopic<'_>> = names
            .iter()
            .map(|name| {
                let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(-1));
                settings.iter().fold(topic, |topic, (key, value)| topic.set(key, value))
            })
            .collect();
        let options = AdminOptions::new().request_timeout(Some(REQUEST_TIME_MAX)).operation_timeout(Some(REQUEST_TIME_MAX));
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        for created in runtime.block_on(self.admin.create_topics(&topics, &options))? {
            created.map_err(|(name, error)| anyhow!("cannot create topic {name}: {error}"))?;
        }
        let deadline = Instant::now() + REQUEST_TIME_MAX;
        for name in names {
            while partition_count(self.admin.inner(), name)? != partitions {
                ensure!(Instant::now() < deadline, "topic {name} has no leaders");
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    /// Produces records in order and waits until all are acknowledged; says where each is.
    pub(crate) fn produce(&self, topic: &str, records: &[Outgoing]) -> Result<Vec<Position>> {
        let acknowledged: Vec<Acknowledgement> = records.iter().map(|record| send(&self.producer, topic, record)).collect::<Result<_>>()?;
        self.producer.flush(REQUEST_TIME_MAX)?;
        acknowledged.iter().map(|position| Ok(position.get().context("a record was never acknowledged")?.clone()?)).collect()
    }

    /// Reads a topic from its beginning to where it ends now, in order within each partition. Aborted records are left out.
    pub(crate) fn read_all(&self, topic: &str) -> Result<Vec<Record>> {
        let reader = Reader::new(self, topic)?;
        let (mut records, mut ended) = (Vec::new(), BTreeSet::new());
        let deadline = Instant::now() + REQUEST_TIME_MAX;
        while ended.len() < reader.partition_count {
            match reader.next(deadline)? {
                Read::Record(record) => records.push(record),
                Read::End { partition } => _ = ended.insert(partition),
            }
        }
        Ok(records)
    }

    /// Reads a topic from its beginning until `enough` says so of all that was read; it is an error if that takes longer than `time_max`.
    pub(crate) fn read_until(&self, topic: &str, time_max: Duration, enough: impl Fn(&[Record]) -> bool) -> Result<Vec<Record>> {
        let reader = Reader::new(self, topic)?;
        let mut records = Vec::new();
        let deadline = Instant::now() + time_max;
        while !enough(&records) {
            match reader.next(deadline).with_context(|| format!("{} records of {topic} are not enough", records.len()))? {
                Read::Record(record) => records.push(record),
                Read::End { .. } => {}
            }
        }
        Ok(records)
    }

    /// The offsets that a group has committed, by partition; partitions without one are left out.
    pub(crate) fn committed(&self, group: &str, topic: &str) -> Result<BTreeMap<i32, i64>> {
        // What a transaction that is taken for open is about counts as it was before.
        let consumer: BaseConsumer = self.client().set("group.id", group).set("isolation.level", "read_uncommitted").create()?;
        let asked = all_partitions(topic, partition_count(consumer.client(), topic)?)?;
        let answered = consumer.committed_offsets(asked, REQUEST_TIME_MAX)?;
        let offset = |offset| if let Offset::Offset(offset) = offset { Some(offset) } else { None };
        Ok(answered.elements().iter().filter_map(|element| Some((element.partition(), offset(element.offset())?))).collect())
    }
}

fn client(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    // The default backs off for up to ten seconds, which a test that restarts the broker would wait for.
    config.set("bootstrap.servers", bootstrap).set("reconnect.backoff.max.ms", "500");
    config
}

type Acknowledgement = Arc<OnceLock<KafkaResult<Position>>>;

/// Files each delivery report where the sender of the record looks for it.
struct Acknowledgements;

impl ClientContext for Acknowledgements {}

impl ProducerContext for Acknowledgements {
    type DeliveryOpaque = Acknowledgement;

    fn delivery(&self, result: &DeliveryResult<'_>, acknowledgement: Acknowledgement) {
        let position = match result {
            Ok(message) => Ok(Position { partition: message.partition(), offset: message.offset() }),
            Err((error, _)) => Err(error.clone()),
        };
        acknowledgement.set(position).expect("a record is reported once");
    }
}

fn send(producer: &BaseProducer<Acknowledgements>, topic: &str, record: &Outgoing) -> Result<Acknowledgement> {
    let acknowledgement = Acknowledgement::default();
    let headers =
        record.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: value.as_ref() }));
    let mut unsent: BaseRecord<'_, [u8], [u8], Acknowledgement> = BaseRecord::with_opaque_to(topic, Arc::clone(&acknowledgement));
    unsent.key = record.key.as_deref();
    unsent.payload = record.value.as_deref();
    unsent.partition = record.partition;
    unsent.timestamp = record.timestamp;
    unsent.headers = (!record.headers.is_empty()).then_some(headers);
    while let Err((error, refused)) = producer.send(unsent) {
        ensure!(error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull), error);
        producer.poll(POLL_INTERVAL);
        unsent = refused;
    }
    Ok(acknowledgement)
}

enum Read {
    Record(Record),
    /// The partition has no more for now.
    End {
        partition: i32,
    },
}

/// Reads all partitions of a topic from the beginning, in no group.
struct Reader {
    consumer: BaseConsumer,
    partition_count: usize,
}

impl Reader {
    fn new(context: &Context, topic: &str) -> Result<Self> {
        // librdkafka wants a group even of those that never join it.
        let consumer: BaseConsumer = context
            .client()
            .set("group.id", "none")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("fetch.wait.max.ms", "100")
            .create()?;
        let partitions = all_partitions(topic, partition_count(consumer.client(), topic)?)?;
        consumer.assign(&partitions)?;
        Ok(Self { consumer, partition_count: partitions.count() })
    }

    /// Waits out errors: librdkafka reports a broker that is down and goes on trying.
    fn next(&self, deadline: Instant) -> Result<Read> {
        let mut last_error = None;
        loop {
            ensure!(Instant::now() < deadline, "it takes too long (last error: {last_error:?})");
            match self.consumer.poll(POLL_INTERVAL) {
                Some(Ok(message)) => return Ok(Read::Record(Record::from(&message))),
                Some(Err(KafkaError::PartitionEOF(partition))) => return Ok(Read::End { partition }),
                Some(Err(error)) => last_error = Some(error),
                None => {}
            }
        }
    }
}

impl From<&BorrowedMessage<'_>> for Record {
    fn from(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
        Self {
            partition: message.partition(),
            offset: message.offset(),
            timestamp: message.timestamp().to_millis(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers: headers.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect(),
        }
    }
}

/// How many partitions of a topic have a leader.
fn partition_count<C: ClientContext>(client: &Client<C>, topic: &str) -> Result<i32> {
    let metadata = client.fetch_metadata(Some(topic), REQUEST_TIME_MAX)?;
    let led = metadata.topics().iter().flat_map(|topic| topic.partitions()).filter(|partition| partition.leader() >= 0);
    Ok(i32::try_from(led.count())?)
}

/// All partitions of a topic, from their beginning.
fn all_partitions(topic: &str, count: i32) -> Result<TopicPartitionList> {
    ensure!(count > 0, "there is no topic {topic}");
    let mut partitions = TopicPartitionList::new();
    for partition in 0..count {
        partitions.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    Ok(partitions)
}
