//! State that survives: what a worker knew, the next owner knows, and whoever lost a partition can do no harm.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{Value, json};

use crate::membership::{under_load, wait_until};
use crate::traffic::{awaited, conversations};
use tollgate_testkit::{Context, Gate, Outgoing, Record, Worker, by_thread, header, text};

const TIME_MAX: Duration = Duration::from_secs(90);
const FENCED: &str = "tollgate_checkpoints_total{outcome=\"fenced\"}";

/// Returns a deployment whose members are missed soon and whose state is written often.
fn quick_gate(context: &Context, partitions: i32) -> Result<Gate> {
    let mut gate = Gate::new(context, partitions)?;
    gate.configure("/worker/checkpoint_interval_ms", json!(200));
    gate.configure("/kafka/properties/session.timeout.ms", json!(2_000));
    gate.configure("/kafka/properties/heartbeat.interval.ms", json!(200));
    Ok(gate)
}

/// Checks that every event has the verdict of `eval`, all copies are the same bytes, and first copies are in order; returns how many
/// copies.
fn verdicts_are_those_of_eval(context: &Context, gate: &Gate, events: &[Outgoing]) -> Result<usize> {
    let verdicts = gate.verdicts(context, awaited(events), TIME_MAX)?;
    let mut first: BTreeMap<_, &Record> = BTreeMap::new();
    let mut in_order = Vec::new();
    for verdict in &verdicts {
        match first.insert((verdict.key.clone(), header(verdict, "event_id")), verdict) {
            None => in_order.push(text(verdict)),
            Some(copy) => assert_eq!(text(copy), text(verdict), "two copies differ"),
        }
    }
    assert_eq!(by_thread(in_order), by_thread(gate.eval(events)?));
    Ok(verdicts.len() - first.len())
}

/// A worker is killed again and again; the next one goes on with what it knew.
pub(crate) fn verdicts_after_kills_are_those_of_eval(context: &Context) -> Result<()> {
    let gate = quick_gate(context, 4)?;
    let events = conversations(600, 41);
    let mut worker = gate.spawn("pod-a")?;
    worker.wait_ready()?;
    let mut last = None;
    under_load(context, &gate, &events, || {
        for _ in 0..3 {
            sleep(Duration::from_millis(700));
            worker.kill()?;
            worker = gate.spawn("pod-a")?;
            worker.wait_ready()?;
        }
        last = Some(worker);
        Ok(())
    })?;
    verdicts_are_those_of_eval(context, &gate, &events)?;
    let worker = last.context("the last worker")?;
    assert!(worker.log().contains("restored"), "{}", worker.log());
    Ok(())
}

/// A worker is frozen past its session timeout while another takes over, and then thawed: it writes nothing into the state any more, and
/// what it publishes late is what the other one published.
pub(crate) fn a_zombie_does_no_harm(context: &Context) -> Result<()> {
    let gate = quick_gate(context, 4)?;
    let (zombie, heir) = (gate.start()?, gate.start()?);
    wait_until("both have partitions", || Ok(zombie.partitions()?.len() == 2 && heir.partitions()?.len() == 2))?;
    let events = conversations(1_000, 43);
    under_load(context, &gate, &events, || {
        sleep(Duration::from_millis(600));
        zombie.signal("STOP")?;
        wait_until("the heir has all partitions", || Ok(heir.partitions()?.len() == 4))?;
        heir.wait_ready()?;
        sleep(Duration::from_millis(500));
        zombie.signal("CONT")?;
        wait_until("the zombie is fenced, and then takes part again", || {
            Ok(zombie.metric(FENCED)? >= 1.0 && zombie.partitions()?.len() == 2 && heir.partitions()?.len() == 2)
        })?;
        sleep(Duration::from_millis(500));
        Ok(())
    })?;
    verdicts_are_those_of_eval(context, &gate, &events)?;
    assert_eq!(zombie.metric("tollgate_member_restarts_total")? + heir.metric("tollgate_member_restarts_total")?, 0.0);
    Ok(())
}

/// One partition's state cannot be read: it waits, visibly, while the other goes on; and it goes on once the state can be read.
pub(crate) fn unreadable_state_holds_its_partition_back(context: &Context) -> Result<()> {
    let gate = Gate::new(context, 2)?;
    let key = "thread/damaged";
    context.produce(&gate.state, &[Outgoing::new(key, [1, 0xff, 0xff]).partition(0)])?;
    let worker = gate.spawn("")?;
    wait_until("the partition has failed", || Ok(readiness(&worker)?["members"][0]["failed"] == json!([0])))?;
    let ready = worker.get("/readyz")?;
    assert_eq!((ready.0, readiness(&worker)?["members"][0]["partitions"].clone()), (503, json!([0, 1])));
    assert!(worker.metric("tollgate_restore_failures_total{reason=\"unreadable\"}")? >= 1.0);
    wait_until("the gauge to alert on is set", || Ok(worker.metric("tollgate_unrestored_partitions")? == 1.0))?;
    let log = worker.log();
    assert!(log.contains("state record at offset 0: the record cannot be read"), "{log}");

    let call = |thread: &str, partition| {
        let event = json!({"type": "tool_call", "thread_id": thread, "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
        Outgoing::new(thread, event.to_string()).partition(partition)
    };
    context.produce(&gate.events, &[call("held-back", 0), call("goes-on", 1)])?;
    let verdicts = gate.verdicts(context, 1, TIME_MAX)?;
    sleep(Duration::from_millis(500));
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0].key.as_deref(), Some(b"goes-on".as_slice()));

    context.produce(&gate.state, &[Outgoing { key: Some(key.into()), partition: Some(0), ..Outgoing::default() }])?;
    worker.wait_ready()?;
    gate.verdicts(context, 2, TIME_MAX)?;
    Ok(())
}

fn readiness(worker: &Worker) -> Result<Value> {
    Ok(worker.get("/readyz").ok().and_then(|(_, body)| serde_json::from_str(&body).ok()).unwrap_or_default())
}

/// What was committed with state does not start without it, and another group's state is nobody else's.
pub(crate) fn state_that_is_not_ours_is_not_taken(context: &Context) -> Result<()> {
    let mut gate = Gate::new(context, 1)?;
    let events = conversations(20, 47);
    context.produce(&gate.events, &events)?;
    let worker = gate.start()?;
    gate.verdicts(context, awaited(&events), TIME_MAX)?;
    assert!(worker.stop()?.success());

    let own_group = gate.group.clone();
    gate.configure("/kafka/group_id", json!(context.unique("another")));
    refuses(&gate, "the state is that of tollgate-")?;
    gate.configure("/kafka/group_id", json!(own_group));
    gate.configure("/kafka/topics/state", json!(context.topic("state", 1, &[("cleanup.policy", "compact")])?));
    refuses(&gate, "was committed with state, and the state topic ends without any")
}

/// Checks that a worker of this deployment is never ready, and says why.
fn refuses(gate: &Gate, why: &str) -> Result<()> {
    let worker = gate.spawn("")?;
    wait_until(why, || Ok(readiness(&worker)?["members"][0]["failed"] == json!([0])))?;
    let log = worker.log();
    ensure!(log.contains(why), "{log}");
    assert_eq!(worker.get("/readyz")?.0, 503);
    Ok(())
}

/// The group's offsets are set back by hand: what the state knows is skipped and counted.
pub(crate) fn what_the_state_knows_is_skipped(context: &Context) -> Result<()> {
    let gate = Gate::new(context, 1)?;
    let events = conversations(50, 53);
    context.produce(&gate.events, &events)?;
    let worker = gate.start()?;
    let published = gate.verdicts(context, awaited(&events), TIME_MAX)?.len();
    assert!(worker.stop()?.success());

    set_offset(context, &gate, 0)?;
    let worker = gate.start()?;
    let skipped = events.len() as f64;
    wait_until("all were skipped", || Ok(worker.metric("tollgate_redelivered_records_total")? == skipped))?;
    assert_eq!(worker.metric("tollgate_events_consumed_total")?, 0.0);
    let event = json!({"type": "tool_call", "thread_id": "new", "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
    context.produce(&gate.events, &[Outgoing::new("new", event.to_string())])?;
    assert_eq!(gate.verdicts(context, awaited(&events) + 1, TIME_MAX)?.len(), published + 1);
    Ok(())
}

fn set_offset(context: &Context, gate: &Gate, offset: i64) -> Result<()> {
    let consumer: BaseConsumer = context.client().set("group.id", &gate.group).create()?;
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(&gate.events, 0, Offset::Offset(offset))?;
    Ok(consumer.commit(&offsets, CommitMode::Sync)?)
}

/// The state topic must fit the events topic and keep state; a worker says what to do about one that does not.
pub(crate) fn a_state_topic_that_does_not_fit_is_named(context: &Context) -> Result<()> {
    let mut gate = Gate::new(context, 3)?;
    let said = |gate: &Gate| -> Result<String> {
        let output = gate.command("run").output()?;
        ensure!(output.status.code() == Some(1), "{output:?}");
        Ok(String::from_utf8(output.stderr)?)
    };
    let wide = context.topic("state", 4, &[("cleanup.policy", "compact")])?;
    gate.configure("/kafka/topics/state", json!(wide));
    let log = said(&gate)?;
    assert!(log.contains(&format!("topic {wide} has 4 partitions, {} has 3", gate.events)), "{log}");
    let by_age = context.topic("state", 3, &[])?;
    gate.configure("/kafka/topics/state", json!(by_age));
    let log = said(&gate)?;
    assert!(
        log.contains(&format!("topic {by_age} has cleanup.policy=delete")) && log.contains("--add-config cleanup.policy=compact"),
        "{log}"
    );
    let small = context.topic("state", 3, &[("cleanup.policy", "compact"), ("max.message.bytes", "10000")])?;
    gate.configure("/kafka/topics/state", json!(small));
    let log = said(&gate)?;
    assert!(log.contains(&format!("topic {small} has max.message.bytes=10000")) && log.contains("limits.thread_bytes_max"), "{log}");
    Ok(())
}

/// A checkpoint that is larger than the state topic's batches may be is written all the same.
pub(crate) fn a_checkpoint_fits_its_topic(context: &Context) -> Result<()> {
    let mut gate = Gate::new(context, 1)?;
    let state = context.topic("state", 1, &[("cleanup.policy", "compact"), ("max.message.bytes", "80000")])?;
    gate.configure("/kafka/topics/state", json!(state));
    let call = |number: usize| {
        let thread = format!("thread-{number:05}");
        let event = json!({"type": "tool_call", "thread_id": thread, "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
        Outgoing::new(thread, event.to_string())
    };
    let events: Vec<Outgoing> = (0..2_000).map(call).collect();
    context.produce(&gate.events, &events)?;
    let worker = gate.start()?;
    wait_until("everything is committed", || Ok(context.committed(&gate.group, &gate.events)?.get(&0) == Some(&2_000)))?;
    assert!(worker.metric("tollgate_checkpoint_bytes_total")? > 160_000.0, "the checkpoint is no larger than a batch");
    assert_eq!(worker.metric("tollgate_commit_failures_total")?, 0.0);
    Ok(())
}

/// A partition moves from one worker to another that joins, and back when that one leaves: how long its verdicts are held up.
pub(crate) fn a_planned_move_is_quick(context: &Context) -> Result<()> {
    let gate = Gate::new(context, 2)?;
    let first = gate.start()?;
    let call = |number: usize| {
        let event = json!({"type": "tool_call", "thread_id": "t", "event_id": format!("e{number}"), "tool_call_id": format!("c{number}"),
            "tool_name": "ls", "tool_input": {}});
        [
            Outgoing::new("t0", event.to_string().replace("\"t\"", "\"t0\"")).partition(0),
            Outgoing::new("t1", event.to_string().replace("\"t\"", "\"t1\"")).partition(1),
        ]
    };
    let events: Vec<Outgoing> = (0..1_500).flat_map(call).collect();
    let mut moves = Vec::new();
    under_load(context, &gate, &events, || {
        sleep(Duration::from_millis(500));
        for _ in 0..2 {
            let second = gate.start()?;
            wait_until("both have partitions", || Ok(first.partitions()?.len() == 1 && second.partitions()?.len() == 1))?;
            moves.push(Instant::now());
            sleep(Duration::from_millis(700));
            ensure!(second.stop()?.success());
            wait_until("the first has both", || Ok(first.partitions()?.len() == 2))?;
            first.wait_ready()?;
        }
        Ok(())
    })?;
    let verdicts = gate.verdicts(context, events.len(), TIME_MAX)?;
    let mut waits = waits(&context.read_all(&gate.events)?, &verdicts);
    waits.sort_unstable();
    let longest = waits.last().copied().unwrap_or_default();
    println!("planned moves: the longest wait for a verdict was {longest} ms, the median {} ms", waits[waits.len() / 2]);
    // Far above what it takes on an idle machine: this is no measurement, it is to notice a stall.
    assert!(longest < 5_000, "{longest} ms");
    Ok(())
}

/// Returns the milliseconds from each event's record to the first record of its verdict.
fn waits(events: &[Record], verdicts: &[Record]) -> Vec<i64> {
    let mut first: BTreeMap<String, i64> = BTreeMap::new();
    for verdict in verdicts {
        let (thread, time) = (String::from_utf8_lossy(verdict.key.as_deref().unwrap_or_default()), verdict.timestamp.unwrap_or_default());
        let earliest = first.entry(format!("{thread}/{}", header(verdict, "event_id"))).or_insert(time);
        *earliest = time.min(*earliest);
    }
    let wait = |event: &Record| {
        let value: Value = serde_json::from_slice(event.value.as_deref()?).ok()?;
        let verdict = first.get(&format!("{}/{}", value["thread_id"].as_str()?, value["event_id"].as_str()?))?;
        Some(verdict - event.timestamp?)
    };
    events.iter().filter_map(wait).collect()
}
