//! Writes transactions to the state topic, and shuts out every worker that still could. Each step fails if a right is wanting, or if the
//! brokers do not answer.

use std::thread::scope;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, Producer};

use tollgate_config::settings::KafkaSettings;
use tollgate_core::engine::checkpoint::StateRecord;
use tollgate_core::event::record::Partition;
use tollgate_worker::kafka::{PlainContext, Right, StageTopics, make_producer, state_producer_config};
use tollgate_worker::partition::{flush_state, is_fenced, last_code, repeat_step, send_state};
use tollgate_worker::process::{Needs, Preflight, check_configs};

use super::Job;

/// How long one step of a transaction may take before it is given up.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// How many partitions are fenced at a time.
const FENCED_AT_A_TIME: usize = 8;

/// A record to write to a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) partition: Partition,
    pub(super) record: StateRecord,
}

/// The transactional producer of the moves. A second one shuts out the first.
pub(super) struct Writer<'w> {
    producer: BaseProducer<PlainContext>,
    config: ClientConfig,
    kafka: &'w KafkaSettings,
    topics: &'w StageTopics,
}

impl<'w> Writer<'w> {
    /// Returns a writer, and aborts what an earlier one has left open.
    ///
    /// # Errors
    /// A right is wanting, the state topic is not compacted, or the brokers do not answer.
    pub(super) fn new(job: &'w Job<'_>) -> anyhow::Result<Self> {
        let (kafka, topics) = (&job.settings.kafka, &job.topics);
        let thread_bytes_max = job.settings.policy.limits.thread_bytes_max;
        let known = crate::runtime()?.block_on(check_configs(kafka, &Needs::deciding(), Preflight::of(job.count()), thread_bytes_max))?;
        let mut config = state_producer_config(kafka, topics, Partition(0), known.state_batch_bytes_max);
        config.set("transactional.id", topics.rekey_transactional_id()).set("linger.ms", "5");
        let producer = start(&config, kafka, topics)?;
        Ok(Self { producer, config, kafka, topics })
    }

    /// Waits until everyone who reads sees what was committed. The brokers answer a commit before that.
    pub(super) fn settle(&mut self) -> anyhow::Result<()> {
        // They take a producer of the same id only behind the end of its last transaction.
        self.producer = start(&self.config, self.kafka, self.topics)?;
        Ok(())
    }

    /// Writes records in one transaction.
    ///
    /// # Errors
    /// Nothing of it is written, or, if the brokers do not answer its end, perhaps all of it.
    pub(super) fn commit(&self, changes: &[Change]) -> anyhow::Result<()> {
        let written = self.write(changes).and_then(|()| {
            fail::fail_point!("rekey");
            repeat_step(|| self.producer.commit_transaction(STEP_TIMEOUT))
        });
        written.map_err(|error| {
            // If it fails too, the next writer aborts.
            let _aborted = self.producer.abort_transaction(STEP_TIMEOUT);
            self.failed(&error)
        })
    }

    fn write(&self, changes: &[Change]) -> KafkaResult<()> {
        self.producer.begin_transaction()?;
        for Change { partition, record } in changes {
            send_state(&self.producer, &self.topics.state, *partition, record)?;
        }
        flush_state(&self.producer, STEP_TIMEOUT)
    }

    fn failed(&self, error: &KafkaError) -> anyhow::Error {
        failed(&self.producer, error, self.kafka, self.topics)
    }
}

/// Returns a producer that has shut out the one before it, and has ended what that one left open.
fn start(config: &ClientConfig, kafka: &KafkaSettings, topics: &StageTopics) -> anyhow::Result<BaseProducer<PlainContext>> {
    let producer: BaseProducer<PlainContext> = make_producer(config, PlainContext::default())?;
    let started = connect(&producer, topics, Partition(0)).and_then(|()| producer.init_transactions(STEP_TIMEOUT));
    started.map_err(|error| failed(&producer, &error, kafka, topics))?;
    Ok(producer)
}

fn failed(producer: &BaseProducer<PlainContext>, error: &KafkaError, kafka: &KafkaSettings, topics: &StageTopics) -> anyhow::Error {
    let code = last_code(producer, error);
    if is_fenced(code) {
        return anyhow!("another `tollgate state rekey` has taken over; let it end");
    }
    refused(error, code, kafka, topics)
}

/// Shuts out whoever could still write the state of a partition.
pub(super) fn fence(job: &Job<'_>) -> anyhow::Result<()> {
    let (kafka, topics) = (&job.settings.kafka, &job.topics);
    let fence_one = |partition: &Partition| {
        let fenced = make_producer(&state_producer_config(kafka, topics, *partition, 1_000_000), PlainContext::default()).and_then(
            |producer: BaseProducer<PlainContext>| {
                connect(&producer, topics, *partition)?;
                producer.init_transactions(STEP_TIMEOUT)
            },
        );
        fenced.map_err(|error| refused(&error, error.rdkafka_error_code(), kafka, topics)).with_context(|| format!("partition {partition}"))
    };
    for some in job.partitions.chunks(FENCED_AT_A_TIME) {
        let fenced: Vec<_> = scope(|threads| {
            let running: Vec<_> = some.iter().map(|partition| threads.spawn(move || fence_one(partition))).collect();
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("fencing panicked")))).collect()
        });
        fenced.into_iter().collect::<anyhow::Result<()>>()?;
    }
    Ok(())
}

/// Connects a second broker, so that librdkafka finds the coordinator at once and not half a second later.
fn connect(producer: &BaseProducer<PlainContext>, topics: &StageTopics, partition: Partition) -> KafkaResult<()> {
    producer.client().fetch_watermarks(&topics.state, partition.0, STEP_TIMEOUT).map(drop)
}

fn refused(error: &KafkaError, code: Option<RDKafkaErrorCode>, kafka: &KafkaSettings, topics: &StageTopics) -> anyhow::Error {
    match Right::refused_by(code, &topics.group_id, || Right::write(&topics.state)) {
        Some(right) => anyhow!("{}", right.refusal(kafka)),
        None => anyhow!("topic {} could not be written: {error}; run it again", topics.state),
    }
}
