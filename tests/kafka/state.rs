//! Tests state that survives: what a worker knew, the next owner knows, and a worker that lost a partition can do no harm.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{Value, json};

use crate::membership::{await_halves, under_load_meanwhile};
use crate::traffic::{awaited, conversations};
use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, Worker, by_thread, header, text, wait_until};

/// How often a worker is frozen until it is while it has something to write.
const FREEZES_MAX: usize = 8;
/// Has each checkpoint wait before it is written, so that a worker that is frozen at work nearly always has something to write.
const SLOW_WRITER: &str = "state=sleep(400)";
const DECIDED: &str = "tollgate_verdicts_total";
const FENCED: &str = "tollgate_checkpoints_total{outcome=\"fenced\"}";

/// Returns a deployment whose members are missed soon and whose state is written often.
pub(crate) fn quick_deployment(cluster: &Cluster, partitions: i32) -> Result<Deployment> {
    let mut deployment = Deployment::new(cluster, partitions)?;
    deployment.configure("/worker/checkpoint_interval_ms", json!(200));
    deployment.configure("/kafka/properties/session.timeout.ms", json!(4_000));
    deployment.configure("/kafka/properties/heartbeat.interval.ms", json!(200));
    Ok(deployment)
}

/// Checks that every event has the verdict of `eval`, all copies are the same bytes, and first copies are in order; returns how many
/// copies.
pub(crate) fn verdicts_are_those_of_eval(cluster: &Cluster, deployment: &Deployment, events: &[Outgoing]) -> Result<usize> {
    let verdicts = deployment.verdicts(cluster, awaited(events))?;
    let mut first: BTreeMap<_, &Record> = BTreeMap::new();
    let mut in_order = Vec::new();
    for verdict in &verdicts {
        match first.insert((verdict.key.clone(), header(verdict, "event_id")), verdict) {
            None => in_order.push(text(verdict)),
            Some(copy) => assert_eq!(text(copy), text(verdict), "two copies differ"),
        }
    }
    assert_eq!(by_thread(in_order), by_thread(deployment.eval(events)?));
    Ok(verdicts.len() - first.len())
}

/// A worker is frozen past its session timeout while another takes over, and then thawed: it writes nothing into the state any more, and
/// what it publishes late is what the other one published.
pub(crate) fn a_zombie_does_no_harm(cluster: &Cluster) -> Result<()> {
    let deployment = quick_deployment(cluster, 4)?;
    let zombie = deployment.spawn_adapted(|command| _ = command.env("FAILPOINTS", SLOW_WRITER))?;
    let heir = deployment.start()?;
    await_halves(&zombie, &heir, 2)?;
    // Of these, only as many are sent as there is time for.
    let events = conversations(12_000, 43);
    let sent = under_load_meanwhile(cluster, &deployment, &events, || {
        for _ in 0..FREEZES_MAX {
            freeze_past_its_session(&zombie, &heir)?;
            // One that had nothing to write, or heard first that it is no longer a member, has nothing to be fenced from.
            if zombie.metric(FENCED)? >= 1.0 {
                return Ok(());
            }
        }
        bail!("frozen {FREEZES_MAX} times, and never fenced")
    })?;
    verdicts_are_those_of_eval(cluster, &deployment, &events[..sent])?;
    assert_eq!(zombie.metric("tollgate_member_restarts_total")? + heir.metric("tollgate_member_restarts_total")?, 0.0);
    Ok(())
}

/// Freezes a worker that decides until another one has taken its partitions over, and waits until both have some again.
fn freeze_past_its_session(zombie: &Worker, heir: &Worker) -> Result<()> {
    let decided = zombie.metric(DECIDED)?;
    wait_until("the worker decides", || Ok(zombie.metric(DECIDED)? > decided))?;
    zombie.signal("STOP")?;
    wait_until("the heir has all partitions", || Ok(heir.partitions()?.len() == 4))?;
    heir.wait_ready()?;
    sleep(Duration::from_millis(500));
    zombie.signal("CONT")?;
    await_halves(zombie, heir, 2)
}

/// One partition's state cannot be read: it waits, visibly, while the other goes on; and it goes on once the state can be read.
pub(crate) fn unreadable_state_holds_its_partition_back(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 2)?;
    let key = "thread/damaged";
    cluster.produce(&deployment.state, &[Outgoing::new(key, [1, 0xff, 0xff]).partition(0)])?;
    let worker = deployment.spawn("")?;
    wait_until("the partition has failed", || Ok(readiness(&worker)?["members"][0]["failed"] == json!([0])))?;
    let ready = worker.get("/readyz")?;
    assert_eq!((ready.0, readiness(&worker)?["members"][0]["partitions"].clone()), (503, json!([0, 1])));
    let failures = || worker.metric("tollgate_restore_failures_total{reason=\"unreadable\"}");
    wait_until("the reason is counted", || Ok(failures()? >= 1.0))?;
    wait_until("the gauge to alert on is set", || Ok(worker.metric("tollgate_unrestored_partitions")? == 1.0))?;
    worker.await_line(&["state record at offset 0: the record cannot be read"])?;

    let call = |thread: &str, partition| {
        let event = json!({"type": "tool_call", "thread_id": thread, "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
        Outgoing::new(thread, event.to_string()).partition(partition)
    };
    cluster.produce(&deployment.events, &[call("held-back", 0), call("goes-on", 1)])?;
    deployment.verdicts(cluster, 1)?;
    // What should not be there would have come by now.
    sleep(Duration::from_millis(500));
    let verdicts = cluster.read_all(&deployment.decisions)?;
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0].key.as_deref(), Some(b"goes-on".as_slice()));

    cluster.produce(&deployment.state, &[Outgoing { key: Some(key.into()), partition: Some(0), ..Outgoing::default() }])?;
    worker.wait_ready()?;
    deployment.verdicts(cluster, 2)?;
    Ok(())
}

pub(crate) fn readiness(worker: &Worker) -> Result<Value> {
    Ok(worker.get("/readyz").ok().and_then(|(_, body)| serde_json::from_str(&body).ok()).unwrap_or_default())
}

/// A partition whose offset was committed with state does not start without it, and another group's state is not taken.
pub(crate) fn state_that_is_not_ours_is_not_taken(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 1)?;
    let events = conversations(20, 47);
    cluster.produce(&deployment.events, &events)?;
    let worker = deployment.start()?;
    cluster.await_committed(&deployment.group, &deployment.events, events.len())?;
    assert!(worker.stop()?.success());

    let own_group = deployment.group.clone();
    deployment.configure("/kafka/group_id", json!(cluster.unique("another")));
    refuses(&deployment, "the state is that of tollgate-")?;
    deployment.configure("/kafka/group_id", json!(own_group));
    deployment.configure("/kafka/topics/state", json!(cluster.topic("state", 1, &[("cleanup.policy", "compact")])?));
    refuses(&deployment, "was committed with state, and the state topic ends without any")
}

/// Checks that a worker of this deployment is never ready, and says why.
fn refuses(deployment: &Deployment, why: &str) -> Result<()> {
    let worker = deployment.spawn("")?;
    wait_until(why, || Ok(readiness(&worker)?["members"][0]["failed"] == json!([0])))?;
    worker.await_line(&[why])?;
    assert_eq!(worker.get("/readyz")?.0, 503);
    Ok(())
}

/// The group's offsets are set back by hand: what the state knows is skipped and counted.
pub(crate) fn what_the_state_knows_is_skipped(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 1)?;
    let events = conversations(50, 53);
    cluster.produce(&deployment.events, &events)?;
    let worker = deployment.start()?;
    let published = deployment.verdicts(cluster, awaited(&events))?.len();
    cluster.await_committed(&deployment.group, &deployment.events, events.len())?;
    assert!(worker.stop()?.success());

    set_offset(cluster, &deployment, 0)?;
    let worker = deployment.start()?;
    let skipped = events.len() as f64;
    wait_until("all were skipped", || Ok(worker.metric("tollgate_redelivered_records_total")? == skipped))?;
    assert_eq!(worker.metric("tollgate_events_consumed_total")?, 0.0);
    let event = json!({"type": "tool_call", "thread_id": "new", "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
    cluster.produce(&deployment.events, &[Outgoing::new("new", event.to_string())])?;
    assert_eq!(deployment.verdicts(cluster, awaited(&events) + 1)?.len(), published + 1);
    Ok(())
}

fn set_offset(cluster: &Cluster, deployment: &Deployment, offset: i64) -> Result<()> {
    let consumer: BaseConsumer = cluster.client().set("group.id", &deployment.group).create()?;
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(&deployment.events, 0, Offset::Offset(offset))?;
    wait_until("the offset is set", || Ok(consumer.commit(&offsets, CommitMode::Sync).is_ok()))
}

/// The state topic must fit the events topic and keep state; a worker says what to do about one that does not.
pub(crate) fn a_state_topic_that_does_not_fit_is_named(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 3)?;
    let said = |deployment: &Deployment| -> Result<String> {
        let output = deployment.command("run").env("TOLLGATE__ADMIN", "null").output()?;
        ensure!(output.status.code() == Some(1), "{output:?}");
        Ok(String::from_utf8(output.stderr)?)
    };
    let wide = cluster.topic("state", 4, &[("cleanup.policy", "compact")])?;
    deployment.configure("/kafka/topics/state", json!(wide));
    let log = said(&deployment)?;
    assert!(log.contains(&format!("topic {wide} has 4 partitions, {} has 3", deployment.events)), "{log}");
    let by_age = cluster.topic("state", 3, &[])?;
    deployment.configure("/kafka/topics/state", json!(by_age));
    let log = said(&deployment)?;
    assert!(log.contains(&format!("topic {by_age} has cleanup.policy=delete")) && log.contains("tollgate topics apply --execute"), "{log}");
    let small = cluster.topic("state", 3, &[("cleanup.policy", "compact"), ("max.message.bytes", "10000")])?;
    deployment.configure("/kafka/topics/state", json!(small));
    let log = said(&deployment)?;
    assert!(log.contains(&format!("topic {small} has max.message.bytes=10000")) && log.contains("limits.thread_bytes_max"), "{log}");
    Ok(())
}

/// A checkpoint that is larger than the state topic's batches may be is written all the same.
pub(crate) fn a_checkpoint_fits_its_topic(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 1)?;
    let state = cluster.topic("state", 1, &[("cleanup.policy", "compact"), ("max.message.bytes", "80000")])?;
    deployment.configure("/kafka/topics/state", json!(state));
    let call = |number: usize| {
        let thread = format!("thread-{number:05}");
        let event = json!({"type": "tool_call", "thread_id": thread, "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
        Outgoing::new(thread, event.to_string())
    };
    let events: Vec<Outgoing> = (0..2_000).map(call).collect();
    cluster.produce(&deployment.events, &events)?;
    let worker = deployment.start()?;
    cluster.await_committed(&deployment.group, &deployment.events, 2_000)?;
    // It is larger than a batch.
    worker.await_metric("tollgate_checkpoint_bytes_total", |bytes| bytes > 160_000.0)?;
    assert_eq!(worker.metric("tollgate_commit_failures_total")?, 0.0);
    Ok(())
}

/// A partition moves from one worker to another that joins, and back when that one leaves, and nobody waits until a session is over: a session
/// lasts longer than all of it may take. How long verdicts are held up is measured by `tollgate-bench moves`.
pub(crate) fn a_planned_move_waits_for_no_session(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 2)?;
    deployment.configure("/kafka/properties/session.timeout.ms", json!(300_000));
    let first = deployment.start()?;
    let call = |number: usize| {
        let event = json!({"type": "tool_call", "thread_id": "t", "event_id": format!("e{number}"), "tool_call_id": format!("c{number}"),
            "tool_name": "ls", "tool_input": {}});
        [
            Outgoing::new("t0", event.to_string().replace("\"t\"", "\"t0\"")).partition(0),
            Outgoing::new("t1", event.to_string().replace("\"t\"", "\"t1\"")).partition(1),
        ]
    };
    let events: Vec<Outgoing> = (0..30_000).flat_map(call).collect();
    let sent = under_load_meanwhile(cluster, &deployment, &events, || {
        for _ in 0..2 {
            let second = deployment.start()?;
            await_halves(&first, &second, 1)?;
            wait_until("the second decides", || Ok(second.metric(DECIDED)? > 0.0))?;
            ensure!(second.stop()?.success());
            wait_until("the first has both", || Ok(first.partitions()?.len() == 2))?;
            first.wait_ready()?;
        }
        Ok(())
    })?;
    deployment.verdicts(cluster, sent)?;
    Ok(())
}
