//! Measures how fast the kill switch is: from producing a suspension until the first blocked call is read on every one of 16 partitions
//! that two worker processes share, under a steady stream of calls on all of them. Lifting a suspension is measured in the same way.
//!
//! Broker, workers, producer and reader share the machine, so absolute figures are this machine's. `cargo bench -p tollgate-bench --bench
//! controls`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{Value, json};
use tollgate_core::decide::controls::{ControlId, Subject, SubjectHasher};
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_testkit::{Broker, Cluster, Deployment, Worker};

const PARTITIONS: i32 = 16;
/// How many suspensions are measured; each of them is lifted too.
const SWITCHES: usize = 200;
/// How many switches come before those that count: the broker's code is not compiled yet.
const WARM_UP: usize = 20;
/// How often there is a call on every partition.
const CALL_INTERVAL: Duration = Duration::from_millis(20);
/// The milliseconds that a switch may take at the 99th percentile.
const TARGET_MS: f64 = 200.0;
const TIME_MAX: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let tollgate = tollgate_bench::build_worker(Path::new(env!("CARGO_BIN_EXE_tollgate-bench")))?;
    let broker = Broker::start_for_benchmarks(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    let cluster = Cluster::new(broker.bootstrap(), &tollgate)?;
    let mut deployment = Deployment::new(&cluster, PARTITIONS)?;
    // The properties are the defaults, without those that make tests quick.
    deployment.configure("/kafka/properties", json!({}));
    let workers = [deployment.start()?, deployment.start()?];
    wait_shared(&workers)?;
    let mut stream = Stream::new(&cluster, &deployment)?;
    let (mut suspended, mut resumed) = (Vec::new(), Vec::new());
    for switch in 0..WARM_UP + SWITCHES {
        if switch == WARM_UP {
            (suspended, resumed) = (Vec::new(), Vec::new());
            stream.waits.clear();
        }
        stream.user = format!("user-{switch}");
        stream.until_all("allow")?;
        suspended.push(stream.switch(true)?);
        resumed.push(stream.switch(false)?);
    }
    let rate = stream.sent.len() as f64 / stream.started.elapsed().as_secs_f64();
    println!("{PARTITIONS} partitions, two workers, {SWITCHES} switches each way, {rate:.0} calls/s");
    println!("{:<34} {:>9} {:>9} {:>9}", "", "p50 ms", "p99 ms", "max ms");
    show("any call → its verdict", std::mem::take(&mut stream.waits));
    let mut worst: f64 = 0.0;
    for (name, times) in [("blocked", suspended), ("allowed", resumed)] {
        let every = times.iter().map(|by_partition| by_partition.iter().copied().fold(0.0, f64::max)).collect();
        show(&format!("switch → {name} on a partition"), times.concat());
        worst = worst.max(show(&format!("switch → {name} on all of them"), every));
    }
    for worker in &workers {
        let delay = worker.metric("tollgate_control_delay_seconds_sum")? / worker.metric("tollgate_control_delay_seconds_count")?;
        println!("record written → in force, a worker's mean: {:.1} ms", delay * 1e3);
    }
    println!("the target of {TARGET_MS} ms at p99 is {}", if worst <= TARGET_MS { "met" } else { "MISSED" });
    Ok(())
}

/// Prints a distribution; returns its 99th percentile.
fn show(name: &str, mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(times.len() as f64 * share).ceil() as usize - 1];
    println!("{name:<34} {:>9.1} {:>9.1} {:>9.1}", at(0.5), at(0.99), at(1.0));
    at(0.99)
}

fn wait_shared(workers: &[Worker; 2]) -> Result<()> {
    let deadline = Instant::now() + TIME_MAX;
    let half = PARTITIONS as usize / 2;
    let is_settled = |worker: &Worker| Ok::<_, anyhow::Error>(worker.partitions()?.len() == half && worker.get("/readyz")?.0 == 200);
    while !(is_settled(&workers[0])? && is_settled(&workers[1])?) {
        ensure!(Instant::now() < deadline, "the partitions are not shared out");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// The calls of one user, on every partition, and the verdicts on them.
struct Stream<'c> {
    deployment: &'c Deployment,
    calls: BaseProducer,
    controls: BaseProducer,
    verdicts: BaseConsumer,
    user: String,
    started: Instant,
    due: Instant,
    /// When each call was sent.
    sent: Vec<Instant>,
    /// How long verdicts took, in milliseconds.
    waits: Vec<f64>,
}

impl<'c> Stream<'c> {
    fn new(cluster: &Cluster, deployment: &'c Deployment) -> Result<Self> {
        let producer =
            || cluster.client().set("enable.idempotence", "true").set("linger.ms", "0").set("partitioner", "murmur2_random").create();
        let verdicts: BaseConsumer =
            cluster.client().set("group.id", "bench").set("enable.auto.commit", "false").set("fetch.queue.backoff.ms", "5").create()?;
        let mut partitions = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            partitions.add_partition_offset(&deployment.decisions, partition, Offset::Beginning)?;
        }
        verdicts.assign(&partitions)?;
        let now = Instant::now();
        Ok(Self {
            deployment,
            calls: producer()?,
            controls: producer()?,
            verdicts,
            user: String::new(),
            started: now,
            due: now,
            sent: Vec::new(),
            waits: Vec::new(),
        })
    }

    /// Sends what is due.
    fn send(&mut self) -> Result<()> {
        if Instant::now() >= self.due {
            self.due = Instant::now() + CALL_INTERVAL;
            for partition in 0..PARTITIONS {
                let id = format!("{}/{}", self.user, self.sent.len());
                let event = json!({"type": "tool_call", "event_id": id, "turn_id": self.user, "tool_call_id": id, "tool_name": "ls",
                    "tool_input": {}, "user_id": self.user, "tenant_id": "acme"})
                .to_string();
                let record = BaseRecord::to(&self.deployment.events).partition(partition).key("t").payload(&event);
                self.calls.send(record).map_err(|(error, _)| error)?;
                self.sent.push(Instant::now());
            }
        }
        self.calls.poll(Duration::ZERO);
        self.controls.poll(Duration::ZERO);
        Ok(())
    }

    /// Sends and reads until there was a verdict of this code on every partition; returns when the first one was read on each.
    fn until_all(&mut self, code: &str) -> Result<Vec<Instant>> {
        let mut first: BTreeMap<i32, Instant> = BTreeMap::new();
        let deadline = Instant::now() + TIME_MAX;
        while first.len() < PARTITIONS as usize {
            ensure!(Instant::now() < deadline, "{code} on {} partitions", first.len());
            self.send()?;
            let mut timeout = Duration::from_millis(1);
            while let Some(message) = self.verdicts.poll(timeout).transpose()? {
                timeout = Duration::ZERO;
                let verdict: Value = serde_json::from_slice(message.payload().unwrap_or_default())?;
                let number = verdict["event_id"].as_str().and_then(|id| id.rsplit('/').next()?.parse::<usize>().ok());
                self.waits.extend(number.and_then(|number| Some(self.sent.get(number)?.elapsed().as_secs_f64() * 1e3)));
                // Verdicts on the user before may still arrive, and do not count.
                if verdict["turn_id"] == self.user.as_str() && verdict["code"] == code {
                    first.entry(message.partition()).or_insert_with(Instant::now);
                }
            }
        }
        Ok(first.into_values().collect())
    }

    /// Suspends the user, or lets them go on, and waits until that is in force everywhere; returns the milliseconds by partition.
    fn switch(&mut self, is_suspended: bool) -> Result<Vec<f64>> {
        let hash = SubjectHasher::new(None).hash(&Subject { kind: SubjectKind::User, tenant: "acme", id: &self.user });
        let key = ControlId::Subject(SubjectKind::User, hash).to_string();
        let value = json!({"type": "subject", "kind": "user", "hash": hash.to_string(), "state": "suspended"}).to_string();
        let mut record = BaseRecord::to(&self.deployment.controls).key(&key);
        record.payload = is_suspended.then_some(&value);
        let start = Instant::now();
        self.controls.send(record).map_err(|(error, _)| anyhow!("{error}"))?;
        let first = self.until_all(if is_suspended { "subject_suspended" } else { "allow" })?;
        Ok(first.into_iter().map(|first| (first - start).as_secs_f64() * 1e3).collect())
    }
}
