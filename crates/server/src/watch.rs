//! Looks at the topics of a server, on a thread of its own: neither delivery reports nor replies wait for what brokers say of topics.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;

use tollgate_config::settings::KafkaSettings;
use tollgate_core::event::record::Partition;
use tollgate_worker::Stop;
use tollgate_worker::kafka::{PlainContext, cluster_topic, consumer_config, leaderless, make_consumer};
use tollgate_worker::threads::MustRun;

use crate::shared::{Condition, Shared};
use crate::watched::Current;

/// How often the topics are looked at.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long a question about a topic may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long brokers are silent before another client asks them: librdkafka may not notice that they are back.
const CLIENT_SILENCE_MAX: Duration = Duration::from_secs(30);

/// The code of refusals while the replies topic, or the server's partition of it, is away.
pub(crate) const UNHEARD: &str = "reply_partition_missing";

/// The code of refusals while the events topic is away.
const EVENTS_MISSING: &str = "events_topic_missing";

/// Whether the server's partition of the replies topic is there and has a leader, or the condition of the server without it. `None` before
/// the first look.
pub(crate) type ReplyPartition = Current<Option<Result<(), Condition>>>;

/// The watch on the topics of a server.
pub(crate) struct TopicWatch {
    kafka: Arc<KafkaSettings>,
    partition: Partition,
    shared: Arc<Shared>,
    found: ReplyPartition,
}

impl TopicWatch {
    /// Starts the watch. Returns where it says what it has found of the server's partition.
    ///
    /// # Errors
    /// A property is wrong, or the system gives no more threads.
    pub fn start(
        kafka: &Arc<KafkaSettings>,
        partition: Partition,
        shared: &Arc<Shared>,
        (must_run, stop): (MustRun, &Stop),
    ) -> anyhow::Result<(ReplyPartition, JoinHandle<()>)> {
        let found = Current::new(None);
        let watch = Self { kafka: Arc::clone(kafka), partition, shared: Arc::clone(shared), found: found.clone() };
        let (client, stop) = (watch.client()?, stop.clone());
        let thread = must_run.spawn(move || watch.run(client, &stop))?;
        Ok((found, thread))
    }

    fn client(&self) -> Result<BaseConsumer<PlainContext>, KafkaError> {
        let mut config = consumer_config(&self.kafka, &self.kafka.group_id, None);
        make_consumer(config.set("client.id", "tollgate-serve").set("statistics.interval.ms", "0"), PlainContext::default())
    }

    fn run(&self, mut client: BaseConsumer<PlainContext>, stop: &Stop) {
        let mut answered = Instant::now();
        while !stop.is_for_good() {
            // No partition is assigned, so only events come.
            while client.poll(Duration::ZERO).is_some() {}
            if self.look(&client) {
                answered = Instant::now();
            } else if answered.elapsed() >= CLIENT_SILENCE_MAX {
                (client, answered) = (self.client().unwrap_or(client), Instant::now());
            }
            let _sign = stop.wait(INTERVAL);
        }
    }

    /// Looks at the topics once. Returns whether the brokers have answered.
    fn look(&self, client: &BaseConsumer<PlainContext>) -> bool {
        let replies = self.reply_partition(client);
        // Of two causes, the one that the reader of the replies names is enough.
        if replies.is_ok() {
            self.look_for_events(client);
        }
        self.found.set(Some(replies));
        let events = std::slice::from_ref(&self.kafka.topics.events);
        // The threads on a partition without a leader wait in vain, and the server is ready for the others.
        let found = leaderless(client.client(), events, |_| true, TIMEOUT);
        found.map(|found| self.shared.set_warning("serve events", found)).is_ok()
    }

    /// Refuses requests while the events topic is not there, and lets the server begin again when it is.
    fn look_for_events(&self, client: &BaseConsumer<PlainContext>) {
        let topic = &self.kafka.topics.events;
        let is_refusing = matches!(self.shared.condition(), Condition::CutOff { code: EVENTS_MISSING, .. });
        match cluster_topic(client, topic, TIMEOUT).map(|found| found.partitions) {
            Ok(0) => {
                let why = format!(
                    "there is no events topic {topic}; create it with `tollgate topics apply --execute`, or change kafka.topics.events"
                );
                self.shared.set(Condition::CutOff { code: EVENTS_MISSING, why });
            }
            Ok(_) if is_refusing => self.shared.set(Condition::Starting),
            _ => {}
        }
    }

    fn reply_partition(&self, client: &BaseConsumer<PlainContext>) -> Result<(), Condition> {
        let (topic, number) = (&self.kafka.topics.replies, self.partition.0);
        let found = cluster_topic(client, topic, TIMEOUT).map_err(|error| Condition::CutOff {
            code: "kafka_unreachable",
            why: format!("the brokers at {} do not answer: {error}; the server goes on trying", self.kafka.shown_brokers()),
        })?;
        let unheard = |why| Err(Condition::CutOff { code: UNHEARD, why });
        if i32::try_from(found.partitions).is_ok_and(|count| number >= count) {
            return unheard(format!(
                "the replies topic {topic} has {} partitions and no partition {number}; create what is missing with `tollgate topics apply \
                 --execute --optional`, or change serve.partition",
                found.partitions
            ));
        }
        match leaderless(client.client(), std::slice::from_ref(topic), |partition| partition == self.partition, TIMEOUT) {
            Ok(Some(why)) => unheard(why),
            _ => Ok(()),
        }
    }
}
