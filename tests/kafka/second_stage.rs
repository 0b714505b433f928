//! A second stage on the worker's own parts: consumer, offset tracker, checkpoints, restores and outbox are those that verdicts have, and its
//! topics and its consumer group are its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anyhow::{Result, ensure};
use rdkafka::message::OwnedHeaders;
use tollgate_config::load;
use tollgate_core::engine::checkpoint::Restore;
use tollgate_core::event::record::Offset;
use tollgate_fixtures::sample_stage::{Outcome, Request, Signals, Subjects, key_of};
use tollgate_testkit::{Cluster, Outgoing, wait_until};
use tollgate_worker::Stop;
use tollgate_worker::control_feed::worker_name;
use tollgate_worker::health::Health;
use tollgate_worker::kafka::StageTopics;
use tollgate_worker::member::Membership;
use tollgate_worker::metrics::Metrics;
use tollgate_worker::outbox::{OutboxTopics, Publications};
use tollgate_worker::process::{Preflight, Worker, WorkerParts};
use tollgate_worker::stages::{Done, RequestId, StageRuntime, StageSetup};

const PARTITIONS: u32 = 2;

/// What a tool weighs that is asked about: nothing when it is asked for the first time, so that it is asked twice, and then this.
const WEIGHT: u64 = 3;

/// The shell's side of the stage: alerts go out, and every request is answered at once.
#[derive(Debug, Default)]
struct Counting {
    responses: VecDeque<(RequestId, u64)>,
}

impl StageRuntime for Counting {
    type Stage = Signals;

    fn stage(&self, _: tollgate_core::event::record::Partition, state: Option<Subjects>) -> Signals {
        state.map_or_else(Signals::default, Signals::with_state)
    }

    fn limits(&self) {}

    fn publish(&mut self, done: Done<'_, Signals>, publications: &mut Publications<'_>) {
        if let Outcome::Alert(count) = done.outcome {
            publications.push(done.record.key.unwrap(), count.to_string().as_bytes(), OwnedHeaders::new(), None);
        }
    }

    fn ask(&mut self, request_id: RequestId, request: Request) {
        self.responses.push_back((request_id, if request.round == 1 { 0 } else { WEIGHT }));
    }

    fn response(&mut self) -> Option<(RequestId, u64)> {
        self.responses.pop_front()
    }
}

/// A worker of the stage in this process.
struct Running {
    worker: Worker,
    stop: Stop,
}

fn start(cluster: &Cluster, topics: &Arc<StageTopics>, output: &str) -> Result<Running> {
    let mut settings = load(None, [])?;
    settings.kafka.brokers = cluster.bootstrap().to_owned();
    (settings.worker.members, settings.worker.checkpoint_interval_ms) = (Some(1), 200);
    let stop = Stop::default();
    let parts = WorkerParts {
        worker: worker_name(None),
        kafka: Arc::new(settings.kafka),
        settings: settings.worker,
        topics: Preflight::of(PARTITIONS),
        membership: Membership::Group,
        metrics: Metrics::new()?,
        health: Arc::new(Health::default()),
        stop: stop.clone(),
    };
    let setup = StageSetup {
        topics: Arc::clone(topics),
        output: OutboxTopics { output: output.to_owned(), dead_letters: output.to_owned(), others: Vec::new() },
        reduce: Arc::new(|_, _| None),
        version: "counting".to_owned(),
        runtime: Box::new(Counting::default),
    };
    Ok(Running { worker: Worker::start(&parts, setup)?, stop })
}

impl Running {
    fn stop(self) {
        self.stop.give();
        self.worker.join();
    }
}

/// Its counts go on where a worker before it has stopped, no alert is raised twice, and what it has read is committed for its own group.
pub(crate) fn another_stage_runs_on_the_same_parts(cluster: &Cluster) -> Result<()> {
    let partitions = i32::try_from(PARTITIONS)?;
    let (input, output) = (cluster.topic("calls", partitions, &[])?, cluster.topic("alerts", partitions, &[])?);
    let state = cluster.topic("counts", partitions, &[("cleanup.policy", "compact")])?;
    let topics = Arc::new(StageTopics {
        stage: Some("counting"),
        group_id: cluster.unique("counting"),
        input: input.clone(),
        state: state.clone(),
        partitions: None,
    });
    let calls = |user: &str, tools: &[&str]| tools.iter().map(|tool| Outgoing::new(user, *tool)).collect::<Vec<_>>();
    let alerts = |wanted: &[(&str, u64)]| -> Result<()> {
        let found = cluster.read_until(&output, |records| records.len() >= wanted.len())?;
        let text = |bytes: &Option<Vec<u8>>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        let mut found: Vec<_> = found.iter().map(|record| (text(&record.key), text(&record.value))).collect();
        let mut wanted: Vec<_> = wanted.iter().map(|(user, count)| ((*user).to_owned(), count.to_string())).collect();
        found.sort();
        wanted.sort();
        ensure!(found == wanted, "wanted {wanted:?}, found {found:?}");
        Ok(())
    };

    let first = start(cluster, &topics, &output)?;
    // Twelve calls of one user, of which one weighs three and waits for that; seven of another.
    cluster.produce(
        &input,
        &[calls("ada", &["bash"; 4]), calls("ada", &["ask"]), calls("ada", &["bash"; 7]), calls("bob", &["bash"; 7])].concat(),
    )?;
    alerts(&[("ada", 7), ("ada", 10), ("bob", 5)])?;
    cluster.await_committed(&topics.group_id, &input, 19)?;
    first.stop();
    let wanted = BTreeMap::from([(key_of("ada"), 14), (key_of("bob"), 7)]);
    wait_until("the counts of both are written", || Ok(counts(cluster, &topics)? == wanted))?;

    // One more call of the first user reaches fifteen, if the count before it was restored.
    let second = start(cluster, &topics, &output)?;
    cluster.produce(&input, &calls("ada", &["bash"]))?;
    alerts(&[("ada", 7), ("ada", 10), ("ada", 15), ("bob", 5)])?;
    wait_until("the count goes on", || Ok(counts(cluster, &topics)?.get(&key_of("ada")) == Some(&15)))?;
    second.stop();
    Ok(())
}

/// What the state topic says last of every user.
fn counts(cluster: &Cluster, topics: &StageTopics) -> Result<BTreeMap<Box<str>, u64>> {
    let mut counts = BTreeMap::new();
    let records = cluster.read_all(&topics.state)?;
    for partition in 0..i32::try_from(PARTITIONS)? {
        let mut restore = Restore::<Subjects>::default();
        for record in records.iter().filter(|record| record.partition == partition) {
            restore.take(Offset(record.offset), record.key.as_deref(), record.value.as_deref());
        }
        let restored = restore.finish(&topics.owner(), ()).map_err(|(_, error)| error)?;
        counts.extend(restored.into_iter().flat_map(|restored| restored.state.entries).map(|(key, subject)| (key, subject.count)));
    }
    Ok(counts)
}
