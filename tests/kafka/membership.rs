//! Tests members that come and go: every event is answered, and only offsets behind acknowledged verdicts are committed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use anyhow::{Result, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use serde_json::json;

use crate::traffic::{awaited, conversations};
use tollgate_testkit::{Broker, Cluster, Deployment, Outgoing, TIME_MAX, Worker, header, wait_until};

/// How many events a load sends at once, and the pause between two batches.
const BATCH: usize = 40;
const PACE: Duration = Duration::from_millis(40);

/// Produces the events at a steady pace while `meanwhile` runs, and the rest of them at once after it.
pub(crate) fn under_load(
    cluster: &Cluster,
    deployment: &Deployment,
    events: &[Outgoing],
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let sent = under_load_meanwhile(cluster, deployment, events, meanwhile)?;
    cluster.produce(&deployment.events, &events[sent..]).map(drop)
}

/// Produces the events at a steady pace for as long as `meanwhile` runs, and returns how many were produced.
pub(crate) fn under_load_meanwhile(
    cluster: &Cluster,
    deployment: &Deployment,
    events: &[Outgoing],
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<usize> {
    let stop = AtomicBool::new(false);
    scope(|threads| {
        let load = threads.spawn(|| -> Result<usize> {
            let mut sent = 0;
            for batch in events.chunks(BATCH) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                cluster.produce(&deployment.events, batch)?;
                sent += batch.len();
                sleep(PACE);
            }
            Ok(sent)
        });
        let done = meanwhile();
        stop.store(true, Ordering::Relaxed);
        let sent = load.join().expect("the load does not panic")?;
        done.map(|()| sent)
    })
}

/// Checks that every event that wants one has a verdict, under its own thread.
fn all_answered(cluster: &Cluster, deployment: &Deployment, events: &[Outgoing]) -> Result<()> {
    let verdicts = deployment.verdicts(cluster, awaited(events))?;
    let answered: BTreeSet<_> = verdicts.iter().map(|verdict| (verdict.key.clone(), header(verdict, "event_id"))).collect();
    assert_eq!(answered.len(), awaited(events));
    Ok(())
}

/// Waits until each of two workers has so many partitions, which are all partitions between them.
pub(crate) fn await_halves(first: &Worker, second: &Worker, half: usize) -> Result<()> {
    wait_until("each has half of the partitions", || {
        let [first, second] = [first.partitions()?, second.partitions()?];
        Ok((first.len(), second.len()) == (half, half) && first.iter().all(|partition| !second.contains(partition)))
    })
}

/// Waits until the offsets of every partition with records are committed up to its end.
fn committed_to_the_end(cluster: &Cluster, deployment: &Deployment) -> Result<()> {
    let mut ends = std::collections::BTreeMap::new();
    for record in cluster.read_all(&deployment.events)? {
        ends.insert(record.partition, record.offset + 1);
    }
    wait_until("all of it is committed", || Ok(cluster.committed(&deployment.group, &deployment.events)? == ends))
}

fn call(partition: i32) -> Outgoing {
    let id = format!("last-{partition}");
    let event = json!({"type": "tool_call", "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {}});
    Outgoing::new(id, event.to_string()).partition(partition)
}

/// A graceful stop commits everything, so the next worker decides nothing twice.
pub(crate) fn a_stopped_worker_leaves_nothing_to_repeat(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 3)?;
    let events = conversations(200, 17);
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, &events)?;
    deployment.verdicts(cluster, awaited(&events))?;
    assert!(worker.stop()?.success());
    committed_to_the_end(cluster, &deployment)?;
    let next = deployment.start()?;
    let calls: Vec<_> = (0..3).map(call).collect();
    cluster.produce(&deployment.events, &calls)?;
    // Whatever the next worker had decided again would stand in front of the new calls of its partition.
    let verdicts = deployment.verdicts(cluster, awaited(&events) + calls.len())?;
    assert_eq!(verdicts.len(), awaited(&events) + calls.len());
    next.await_metric("tollgate_events_consumed_total", |count| count >= calls.len() as f64)?;
    assert_eq!(next.metric("tollgate_events_consumed_total")?, calls.len() as f64);
    Ok(())
}

/// The members of a worker leave at once when it stops, though each of them begins a rebalance for the other.
pub(crate) fn a_stopped_worker_is_no_member(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 6)?;
    deployment.configure("/worker/members", json!(2));
    let client: BaseConsumer = cluster.client().create()?;
    let _stays = deployment.start()?;
    for round in 0..5 {
        ensure!(deployment.start()?.stop()?.success());
        let listed = client.fetch_group_list(Some(&deployment.group), TIME_MAX)?;
        let members: Vec<_> = listed.groups().iter().flat_map(|group| group.members()).map(|member| member.id().to_owned()).collect();
        ensure!(members.len() == 2, "round {round}: {members:?}");
    }
    Ok(())
}

/// With static membership a restart moves no partition.
pub(crate) fn a_static_member_keeps_its_partitions(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 6)?;
    // A restart takes less than a session, however slow the machine is.
    deployment.configure("/kafka/properties/session.timeout.ms", json!(240_000));
    let (first, second) = (deployment.spawn("pod-a")?, deployment.spawn("pod-b")?);
    first.wait_ready()?;
    second.wait_ready()?;
    await_halves(&first, &second, 3)?;
    let before = first.partitions()?;
    // Behind this line stands what is logged from now on.
    second.await_line(&["ready: deciding on 3 of 6 partitions"])?;
    let known = second.log().len();
    assert!(first.stop()?.success());
    let first = deployment.spawn("pod-a")?;
    first.wait_ready()?;
    wait_until("the first has its partitions back", || Ok(first.partitions()? == before))?;
    let log = second.log();
    // The last of the rebalances at the beginning may come late, and moves nothing.
    let moves = |line: &&str| [" assigned ", " revoked "].iter().any(|what| line.contains(what)) && !line.contains("partitions=[]");
    let (before, since) = log.split_at(known);
    assert_eq!(since.lines().filter(moves).collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(before.lines().any(|line| moves(&line)), "that is how a move is told:\n{log}");
    Ok(())
}

/// The broker-side group protocol of KIP-848 works too.
pub(crate) fn the_consumer_protocol_works_too(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 4)?;
    deployment.configure("/kafka/properties", json!({"group.protocol": "consumer"}));
    let (first, second) = (deployment.start()?, deployment.start()?);
    await_halves(&first, &second, 2)?;
    let events = conversations(200, 19);
    cluster.produce(&deployment.events, &events)?;
    all_answered(cluster, &deployment, &events)?;
    assert!(first.stop()?.success());
    wait_until("the second has all partitions", || Ok(second.partitions()?.len() == 4))
}

/// A first SIGTERM drains, which takes as long as the broker is away; a second one ends the process at once.
pub(crate) fn a_second_signal_ends_at_once(cluster: &Cluster, broker: &mut Broker) -> Result<()> {
    let deployment = Deployment::new(cluster, 2)?;
    let mut worker = deployment.start()?;
    let events = conversations(50, 29);
    cluster.produce(&deployment.events, &events)?;
    deployment.verdicts(cluster, awaited(&events))?;
    broker.kill()?;
    worker.signal("TERM")?;
    worker.await_line(&["a second signal ends the process at once"])?;
    worker.signal("TERM")?;
    let status = worker.wait()?;
    assert!(matches!(status.code(), Some(0 | 143)), "{status}");
    Ok(())
}

/// A stop while the brokers are away ends within the drain timeout and a little more.
pub(crate) fn a_stop_ends_though_the_brokers_are_away(cluster: &Cluster, broker: &mut Broker) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 2)?;
    deployment.configure("/worker/drain_timeout_ms", json!(2_000));
    let mut worker = deployment.start()?;
    let events = conversations(50, 37);
    cluster.produce(&deployment.events, &events)?;
    deployment.verdicts(cluster, awaited(&events))?;
    broker.kill()?;
    worker.signal("TERM")?;
    worker.wait()?;
    Ok(())
}

/// Two workers that have one instance id take each other's place again and again, and the log of each names the id.
pub(crate) fn two_workers_with_one_instance_id_are_told_so(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 2)?;
    let workers = [deployment.spawn("gate-1")?, deployment.spawn("gate-1")?];
    for worker in &workers {
        worker.await_line(&["member failed", "two workers have worker.instance_id=gate-1, so give each one of its own"])?;
    }
    let [first, second] = workers;
    ensure!(first.stop()?.success() && second.stop()?.success(), "a worker did not end well");
    Ok(())
}
