//! Tests what a worker costs that dies, freezes or stops: how long calls wait on the partitions that it had, with the default settings.
//!
//! `TOLLGATE_DEAD_WORKER=all` measures every case and shows them as a table, with `--nocapture`.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use serde_json::json;

use crate::membership::await_halves;
use tollgate_testkit::{Cluster, Deployment, Outgoing, TIME_MAX, Worker, header, wait_until};

const PARTITIONS: i32 = 4;
const POLL: Duration = Duration::from_millis(20);
const CALLS_PER_SECOND: usize = 50;
/// How long calls go on behind the fault in a table.
const TABLE_TIME: Duration = Duration::from_secs(20);

/// What happens to the first of two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    FreezeFor(u64),
    Freeze,
    Stop,
}

/// The workers of one case: whether they have instance ids, and whether the brokers assign partitions (KIP-848).
#[derive(Clone, Copy, Debug)]
struct Kind {
    is_static: bool,
    is_kip_848: bool,
}

struct Outcome {
    calls: usize,
    longest: Duration,
    over_a_second: usize,
    /// How often one worker took the other for dead.
    removals: usize,
}

fn call(number: usize) -> Outgoing {
    let id = format!("e{number}");
    let event = json!({"type": "tool_call", "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {"n": number}});
    Outgoing::new(format!("thread-{}", number % 48), event.to_string())
}

/// Sends calls at a steady pace, has something happen to one of two workers, and returns how long verdicts were waited for.
fn calls_through(cluster: &Cluster, kind: Kind, fault: Fault, is_over: impl Fn(&Worker, Duration) -> Result<bool>) -> Result<Outcome> {
    let mut deployment = Deployment::new(cluster, PARTITIONS)?;
    deployment.configure("/kafka/properties", if kind.is_kip_848 { json!({"group.protocol": "consumer"}) } else { json!({}) });
    let [first, second] = ["pod-a", "pod-b"].map(|name| deployment.spawn(if kind.is_static { name } else { "" }));
    let (first, second) = (first?, second?);
    first.wait_ready()?;
    second.wait_ready()?;
    await_halves(&first, &second, 2)?;
    let process = first.id();
    let (started, mut sent, mut first, mut hit_at) = (Instant::now(), 0, Some(first), None::<Instant>);
    let mut stopping = None;
    loop {
        cluster.produce(&deployment.events, &[call(sent)])?;
        sent += 1;
        ensure!(started.elapsed() < TIME_MAX, "the other worker did not take over:\n{}", second.log());
        if hit_at.is_none() && sent > 2 * CALLS_PER_SECOND {
            hit_at = Some(Instant::now());
            match (fault, first.take()) {
                (Fault::Kill, Some(worker)) => worker.kill()?,
                (Fault::Stop, Some(worker)) => stopping = Some(std::thread::spawn(move || worker.stop())),
                (Fault::Freeze | Fault::FreezeFor(_), Some(worker)) => {
                    worker.signal("STOP")?;
                    first = Some(worker);
                }
                (_, None) => {}
            }
        }
        let since = hit_at.map_or(Duration::ZERO, |at| at.elapsed());
        if let (Fault::FreezeFor(seconds), Some(worker)) = (fault, &first)
            && since >= Duration::from_secs(seconds)
        {
            worker.signal("CONT")?;
        }
        if hit_at.is_some() && is_over(&second, since)? {
            break;
        }
        let due = Duration::from_secs(1) * u32::try_from(sent)? / u32::try_from(CALLS_PER_SECOND)?;
        sleep(due.saturating_sub(started.elapsed()));
    }
    let verdicts = deployment.verdicts(cluster, sent)?;
    stopping.map_or(Ok(true), |thread| thread.join().expect("it does not panic").map(|status| status.success()))?;
    let (mut longest, mut over_a_second) = (0, 0);
    let sent_at: std::collections::BTreeMap<_, _> =
        cluster.read_all(&deployment.events)?.into_iter().map(|event| (id_of(&event.value), event.timestamp)).collect();
    let mut answered = std::collections::BTreeSet::new();
    for verdict in &verdicts {
        let id = header(verdict, "event_id");
        let sent_at = sent_at.get(&id).copied().flatten().context("an event without a time")?;
        if answered.insert(id) {
            let wait = verdict.timestamp.context("a verdict without a time")? - sent_at;
            longest = longest.max(wait);
            over_a_second += usize::from(wait > 1_000);
        }
    }
    let log = second.log();
    let removals = log.matches("a worker is silent").count();
    // It has the name of its reports in the controls topic, which ends with the process id.
    let is_named = kind.is_static || removals == 0 || log.contains(&format!("-{process}\" silence_max_ms="));
    ensure!(is_named, "the other worker does not call it by its name:\n{log}");
    Ok(Outcome { calls: answered.len(), longest: Duration::from_millis(u64::try_from(longest)?), over_a_second, removals })
}

fn id_of(value: &Option<Vec<u8>>) -> String {
    let event: serde_json::Value = serde_json::from_slice(value.as_deref().unwrap_or_default()).unwrap_or_default();
    event["event_id"].as_str().unwrap_or_default().to_owned()
}

fn has_all(worker: &Worker) -> Result<bool> {
    let is_ready = worker.get("/readyz")?.0 == 200;
    Ok(is_ready && worker.partitions()?.len() == usize::try_from(PARTITIONS)?)
}

/// A worker is killed: the other one has all partitions long before the group would miss its members, whether they have instance ids or not.
pub(crate) fn a_killed_worker_is_missed_before_its_session_is_over(cluster: &Cluster) -> Result<()> {
    if std::env::var("TOLLGATE_DEAD_WORKER").is_ok_and(|cases| cases == "all") {
        return table(cluster);
    }
    for is_static in [true, false] {
        let kind = Kind { is_static, is_kip_848: false };
        let outcome = calls_through(cluster, kind, Fault::Kill, |second, _| has_all(second))?;
        assert!(outcome.removals >= 1, "only the group has missed it: {kind:?}");
    }
    Ok(())
}

/// A roll-out raises the session: workers without the new setting do not take those that have it for dead.
pub(crate) fn a_worker_with_a_longer_session_is_not_missed(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, PARTITIONS)?;
    let [first, second] = [("pod-a", json!({})), ("pod-b", json!({"session.timeout.ms": 300_000}))].map(|(name, properties)| {
        deployment.configure("/kafka/properties", properties);
        deployment.spawn(name)
    });
    let (first, second) = (first?, second?);
    first.wait_ready()?;
    second.wait_ready()?;
    await_halves(&first, &second, 2)?;
    let asker: BaseConsumer = cluster.client().set("group.id", &deployment.group).create()?;
    let mut list = TopicPartitionList::new();
    list.add_partition_range(&deployment.state, 0, PARTITIONS - 1);
    let mut beats = std::collections::BTreeSet::new();
    wait_until("the beats of the second worker come for longer than the first one waits", || {
        let committed = asker.committed_offsets(list.clone(), TIME_MAX)?;
        beats.extend(committed.elements().iter().map(|element| element.metadata().to_owned()).filter(|beat| beat.ends_with(" pod-b")));
        Ok(beats.len() >= 24)
    })?;
    ensure!(!first.log().contains("a worker is silent"), "{}", first.log());
    ensure!(first.stop()?.success() && second.stop()?.success());
    Ok(())
}

/// A worker that was frozen for long finds its members removed, and joins again.
pub(crate) fn a_worker_that_thaws_joins_again(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, PARTITIONS)?;
    deployment.configure("/kafka/properties", json!({}));
    let (first, second) = (deployment.start()?, deployment.start()?);
    await_halves(&first, &second, 2)?;
    first.signal("STOP")?;
    wait_until("the other has all partitions", || has_all(&second))?;
    first.signal("CONT")?;
    wait_until("it has lost its partitions", || Ok(first.log().contains("is_lost=true")))?;
    await_halves(&first, &second, 2)?;
    let calls: Vec<_> = (0..50).map(call).collect();
    cluster.produce(&deployment.events, &calls)?;
    deployment.verdicts(cluster, calls.len())?;
    ensure!(first.stop()?.success() && second.stop()?.success());
    Ok(())
}

/// The group misses a worker and does not take it back, because another consumer holds the rebalance up. The member starts over, and works as
/// soon as the group goes on.
pub(crate) fn a_member_that_is_not_taken_back_starts_over(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, PARTITIONS)?;
    deployment.miss_members_soon();
    let worker = deployment.start()?;
    // Its heartbeats go on when it is polled no more. Then it takes no assignment, and joins no rebalance behind that.
    let holds_up: BaseConsumer = cluster
        .client()
        .set("group.id", &deployment.group)
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("max.poll.interval.ms", "3600000")
        .create()?;
    holds_up.subscribe(&[&deployment.events])?;
    wait_until("each has half of the partitions", || {
        let _polled = holds_up.poll(POLL);
        Ok(holds_up.assignment()?.count() == 2 && worker.partitions()?.len() == 2)
    })?;
    worker.signal("STOP")?;
    wait_until("the group misses the worker, and gives its partitions to the other consumer", || {
        let groups = holds_up.fetch_group_list(Some(&deployment.group), TIME_MAX)?;
        Ok(groups.groups().iter().any(|group| group.state() == "Stable" && group.members().len() == 1))
    })?;
    worker.signal("CONT")?;
    worker.await_line(&["member failed", "the group has not taken it back"])?;
    drop(holds_up);
    wait_until("the worker has all partitions", || has_all(&worker))?;
    cluster.produce(&deployment.events, &[call(0)])?;
    deployment.verdicts(cluster, 1)?;
    ensure!(worker.stop()?.success());
    Ok(())
}

fn table(cluster: &Cluster) -> Result<()> {
    println!("| protocol | instance ids | what happens | calls | longest wait (s) | over a second | taken for dead |");
    println!("|---|---|---|---|---|---|---|");
    for (is_kip_848, is_static) in [(false, true), (false, false), (true, true), (true, false)] {
        let faults = [Fault::Kill, Fault::Stop, Fault::FreezeFor(3), Fault::Freeze];
        // Of KIP-848 it is the broker's session that counts, whatever makes a member silent.
        for fault in &faults[..if is_kip_848 { 2 } else { 4 }] {
            let time = if is_kip_848 { TABLE_TIME * 3 } else { TABLE_TIME };
            let outcome = calls_through(cluster, Kind { is_static, is_kip_848 }, *fault, |_, since| Ok(since > time))?;
            let Outcome { calls, longest, over_a_second, removals } = outcome;
            let (protocol, ids) = (if is_kip_848 { "KIP-848" } else { "classic" }, if is_static { "yes" } else { "no" });
            println!("| {protocol} | {ids} | {fault:?} | {calls} | {:.1} | {over_a_second} | {removals} |", longest.as_secs_f64());
        }
    }
    Ok(())
}
