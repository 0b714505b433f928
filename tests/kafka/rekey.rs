//! Tests topics that are given more partitions: workers refuse, `tollgate state rekey` moves the threads, and nothing is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use serde_json::{Value, json};
use tollgate_core::decide::thread::{StoredThread, Thread, ThreadStore};
use tollgate_core::engine::checkpoint::{KeyedState as _, PartitionState, StateKey, StateRecord};
use tollgate_core::event::record::{Offset, partition_of};

use crate::state::quick_deployment;
use crate::stderr;
use crate::traffic::{awaited, conversations};
use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, TIME_MAX, eventually, parsed, text, wait_until};

/// Returns the same records, each for the partition that its key hashes to among so many. A producer that knew the topic before would go
/// on with the old number.
fn placed(events: &[Outgoing], partitions: u32) -> Vec<Outgoing> {
    let place = |event: &Outgoing| event.clone().partition(partition_of(event.key.as_deref().unwrap_or_default(), partitions).0);
    events.iter().map(place).collect()
}

/// Gives the topics that follow the events, and the events, so many partitions, and returns the cluster as a new client sees it.
fn grow(cluster: &Cluster, deployment: &Deployment, partitions: i32) -> Result<Cluster> {
    cluster.grow_topics(&[&deployment.decisions, &deployment.state, &deployment.events], partitions)?;
    cluster.at(cluster.bootstrap().to_owned())
}

fn rekey(deployment: &Deployment, arguments: &[&str]) -> Result<Output> {
    Ok(deployment.command("state").arg("rekey").args(arguments).output()?)
}

/// Checks that a worker does not start, and says one of these.
fn does_not_start(deployment: &Deployment, whys: &[&str]) -> Result<()> {
    let output = deployment.command("run").env("TOLLGATE__ADMIN", "null").output()?;
    let is_said = whys.iter().any(|why| stderr(&output).contains(why));
    ensure!(output.status.code() == Some(1) && is_said, "not {whys:?}: {output:?}");
    Ok(())
}

/// Checks that the state is not moved, and that this is said.
fn is_refused(deployment: &Deployment, arguments: &[&str], why: &str) -> Result<()> {
    let output = rekey(deployment, arguments)?;
    ensure!(output.status.code() == Some(1) && stderr(&output).contains(why), "not {why}: {output:?}");
    Ok(())
}

/// Waits until the state is not moved for this reason: what the brokers know of members may be some seconds old.
fn comes_to_be_refused(deployment: &Deployment, arguments: &[&str], why: &str) -> Result<()> {
    eventually(|| is_refused(deployment, arguments, why))
}

fn event(thread: &str, id: &str, fields: Value) -> Outgoing {
    let mut event = json!({"thread_id": thread, "event_id": id, "turn_id": "turn-1"});
    fields.as_object().expect("an object").iter().for_each(|(key, value)| event[key] = value.clone());
    Outgoing::new(thread, event.to_string())
}

fn call(thread: &str, id: &str) -> Outgoing {
    event(thread, &format!("{id}/call"), json!({"type": "tool_call", "tool_call_id": id, "tool_name": "deploy", "tool_input": {"a": 1}}))
}

fn failure(thread: &str, id: &str) -> Outgoing {
    let fields = json!({"type": "tool_result", "tool_call_id": id, "tool_name": "deploy", "result": "Error: no", "failed": true});
    event(thread, &format!("{id}/result"), fields)
}

fn cut_off(thread: &str) -> Outgoing {
    let calls = json!([{"id": "c1", "type": "function", "function": {"name": "deploy", "arguments": "{\"a"}}]);
    let response = json!({"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": calls}}]});
    event(thread, "response", json!({"type": "model_response", "response": response}))
}

/// Returns ids of threads that hash to another partition after the change.
fn movers(stem: &str, count: usize, from: u32, to: u32) -> Vec<String> {
    let is_mover = |id: &String| partition_of(id.as_bytes(), from) != partition_of(id.as_bytes(), to);
    (0..).map(|number| format!("{stem}-{number}")).filter(is_mover).take(count).collect()
}

/// Returns the newest value of every thread in the state topic, with its partition.
fn threads(cluster: &Cluster, deployment: &Deployment) -> Result<BTreeMap<(String, i32), Vec<u8>>> {
    let mut threads = BTreeMap::new();
    for Record { key, value, partition, .. } in cluster.read_all(&deployment.state)? {
        if let Ok(StateKey::Entry(id)) = StateKey::read(key.as_deref(), ThreadStore::KIND) {
            let key = (id.to_owned(), partition);
            match value {
                Some(value) => _ = threads.insert(key, value),
                None => _ = threads.remove(&key),
            }
        }
    }
    Ok(threads)
}

/// Starts a move that stops before its commit of this number, waits until it is there, and kills it. Returns whether it got that far.
fn kill_at(cluster: &Cluster, deployment: &Deployment, commit: usize, log: &std::path::Path) -> Result<bool> {
    let mut command: Command = deployment.command("state");
    command.args(["rekey", "--execute", "--batch", "15"]).env("FAILPOINTS", format!("rekey={commit}*off->1*sleep(600000)->off"));
    let mut child: Child = command.stdout(Stdio::null()).stderr(File::create(log)?).spawn()?;
    let reader: BaseConsumer = cluster.client().set("group.id", "none").create()?;
    let ends = || -> Result<i64> { (0..12).map(|number| Ok(reader.fetch_watermarks(&deployment.state, number, TIME_MAX)?.1)).sum() };
    let (mut known, mut since, started) = (ends()?, Instant::now(), Instant::now());
    // It stands still once it has written what it will not commit.
    while since.elapsed() < Duration::from_secs(3) || started.elapsed() < Duration::from_secs(6) {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        let now = ends()?;
        if now != known {
            (known, since) = (now, Instant::now());
        }
        sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    Ok(true)
}

/// A topic of 4 partitions is given 12. No worker starts before the threads are moved; the move is killed at many points and goes on; and
/// then every verdict is the one that `eval` gives for the whole thread.
pub(crate) fn threads_follow_their_topic_through_kills(cluster: &Cluster) -> Result<()> {
    let deployment = quick_deployment(cluster, 4)?;
    let (suppressed, failing) = (movers("cut-off", 10, 4, 12), movers("fails", 10, 4, 12));
    let events = conversations(400, 61);
    let (first, second) = events.split_at(events.len() / 2);
    let (mut before, mut after) = (first.to_vec(), second.to_vec());
    before.extend(suppressed.iter().map(|thread| cut_off(thread)));
    before.extend(failing.iter().flat_map(|id| [call(id, "c1"), failure(id, "c1"), call(id, "c2"), failure(id, "c2")]));
    after.extend(suppressed.iter().chain(&failing).map(|thread| call(thread, if thread.starts_with("cut") { "c1" } else { "c3" })));
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, &before)?;
    cluster.await_committed(&deployment.group, &deployment.events, before.len())?;
    ensure!(worker.stop()?.success());
    cluster.await_transactions(&deployment.state)?;
    let known = threads(cluster, &deployment)?;

    let cluster = &grow(cluster, &deployment, 12)?;
    does_not_start(&deployment, &[&format!("is keyed for 4 partitions, and {} has 12: ", deployment.events)])?;
    let planned = rekey(&deployment, &["-o", "json"])?;
    ensure!(planned.status.success() && stderr(&planned).contains("nothing was changed"), "{planned:?}");
    let lines: Vec<Value> = String::from_utf8(planned.stdout)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let arriving = |what: &str| lines.iter().filter_map(|line| line["arriving"][what].as_u64()).sum::<u64>();
    let to_move = known.keys().filter(|(id, at)| partition_of(id.as_bytes(), 12).0 != *at).count() as u64;
    assert_eq!((lines.len(), arriving("threads")), (12, to_move));
    ensure!(arriving("suppressions") >= 10 && arriving("stops") >= 10, "{lines:?}");
    assert_eq!(threads(cluster, &deployment)?, known, "a plan changes nothing");

    let directory = tempfile::tempdir()?;
    for commit in [0, 1, 2, 4, 3] {
        let log = directory.path().join(format!("rekey-{commit}.log"));
        ensure!(kill_at(cluster, &deployment, commit, &log)?, "it was not killed: {}", std::fs::read_to_string(&log)?);
        let now: BTreeSet<_> = threads(cluster, &deployment)?.into_keys().map(|(id, _)| id).collect();
        assert_eq!(now.len(), known.len(), "every thread is somewhere, and once");
        // On a busy machine it may have been killed before its first commit.
        does_not_start(&deployment, &["is keyed for 4 partitions", "is being moved from 4 to 12 partitions"])?;
    }
    let moved = rekey(&deployment, &["--execute"])?;
    ensure!(moved.status.success(), "{moved:?}");
    ensure!(stderr(&moved).contains(&format!("all {} threads are there", known.len())), "{moved:?}");
    cluster.await_transactions(&deployment.state)?;
    for ((id, at), value) in threads(cluster, &deployment)? {
        assert_eq!(partition_of(id.as_bytes(), 12).0, at);
        let stayed = known.get(&(id.clone(), at));
        ensure!(stayed.is_none_or(|before| *before == value), "{id} stayed and was changed");
    }
    ensure!(stderr(&rekey(&deployment, &["--execute"])?).contains("nothing to do"));

    let worker = deployment.start()?;
    let after = placed(&after, 12);
    cluster.produce(&deployment.events, &after)?;
    before.extend(after);
    let verdicts = deployment.verdicts(cluster, awaited(&before))?;
    // A thread's verdicts are on two partitions, between which there is no order. Every one of them is that of the whole thread.
    let got: BTreeSet<_> = verdicts.iter().map(text).collect();
    ensure!(got == deployment.eval(&before)?.into_iter().collect::<BTreeSet<_>>(), "verdicts differ from those of eval");
    for (threads, event, code) in [(&suppressed, "c1/call", "suppressed_tool_call"), (&failing, "c3/call", "repeated_exact_failure_block")]
    {
        let is_one = |verdict: &Value| verdict["event_id"] == event && verdict["code"] == code;
        let blocked: BTreeSet<_> = verdicts.iter().map(parsed).filter(is_one).map(|verdict| verdict["thread_id"].to_string()).collect();
        ensure!(threads.iter().all(|thread| blocked.contains(&json!(thread).to_string())), "{code}: {blocked:?}");
    }
    ensure!(worker.stop()?.success());
    Ok(())
}

fn problems(worker: &tollgate_testkit::Worker) -> String {
    worker.get("/readyz").map(|(_, body)| body).unwrap_or_default()
}

/// Returns the threads that have a verdict.
fn decided(cluster: &Cluster, deployment: &Deployment) -> Result<BTreeSet<String>> {
    let key = |record: Record| String::from_utf8(record.key.unwrap_or_default());
    Ok(cluster.read_all(&deployment.decisions)?.into_iter().map(key).collect::<Result<_, _>>()?)
}

/// A topic grows while a worker runs: it says so within seconds, goes on with the partitions that it had, and takes none of the new ones.
/// It stops where threads now hash to other ones of those. What came before is drained, and then the state is moved.
pub(crate) fn a_topic_that_grows_under_a_worker_is_named(cluster: &Cluster) -> Result<()> {
    let deployment = quick_deployment(cluster, 2)?;
    let mut worker = deployment.start()?;
    cluster.produce(&deployment.events, &[call("first", "c1"), failure("first", "c1")])?;
    deployment.verdicts(cluster, 2)?;
    let cluster = &grow(cluster, &deployment, 4)?;
    let named = format!("topic {} has 4 partitions and had 2: the new ones are not decided, and the others go on", deployment.events);
    wait_until("the growth is named", || Ok(problems(&worker).contains(&named)))?;
    worker.await_line(&[&named])?;
    let (stays, moves) = (call("stays", "c1").partition(0), call("moves", "c1").partition(3));
    cluster.produce(&deployment.events, &[stays, moves])?;
    deployment.verdicts(cluster, 3)?;
    assert!(decided(cluster, &deployment)?.contains("stays") && !decided(cluster, &deployment)?.contains("moves"));
    comes_to_be_refused(&deployment, &["--execute"], "members of the group: 1 (")?;

    let cluster = &grow(cluster, &deployment, 5)?;
    ensure!(worker.wait()?.code() == Some(1), "{}", worker.log());
    ensure!(worker.log().contains("so the worker stops"), "{}", worker.log());
    let lagging: Vec<_> = (0..2).map(|number| call(&format!("late-{number}"), "c1").partition(number)).collect();
    cluster.produce(&deployment.events, &lagging)?;
    // A member that could not say that it leaves is missed some seconds later.
    let undecided = "events of before the change that are not decided: 2 (partition 0: decided up to ";
    comes_to_be_refused(&deployment, &["--execute", "--misplaced", "keep"], undecided)?;
    does_not_start(&deployment, &["with `tollgate run --drain-partitions 2`"])?;
    let drainer = deployment.spawn_adapted(|command| _ = command.args(["--drain-partitions", "2"]))?;
    deployment.verdicts(cluster, 5)?;
    wait_until("new partitions are refused", || Ok(drainer.log().contains("it is not among the first 2 partitions")))?;
    assert!(!decided(cluster, &deployment)?.contains("moves"));
    ensure!(drainer.stop()?.success());
    let moved = rekey(&deployment, &["--execute", "--misplaced", "keep"])?;
    ensure!(moved.status.success(), "{moved:?}");
    let worker = deployment.start()?;
    deployment.verdicts(cluster, 6)?;
    assert!(decided(cluster, &deployment)?.contains("moves"));
    ensure!(worker.stop()?.success());
    Ok(())
}

/// Threads whose producer uses another partitioner, and threads that two partitions know, are moved only when it is said how.
pub(crate) fn threads_that_are_elsewhere_are_named(cluster: &Cluster) -> Result<()> {
    let deployment = quick_deployment(cluster, 2)?;
    let is_wanted = |id: &String| partition_of(id.as_bytes(), 6).0 >= 2;
    let [astray, split]: [String; 2] =
        (0..).map(|number| format!("t{number}")).filter(is_wanted).take(2).collect::<Vec<_>>().try_into().expect("two");
    let right = |id: &str| partition_of(id.as_bytes(), 2).0;
    let worker = deployment.start()?;
    cluster.produce(
        &deployment.events,
        &[
            call(&astray, "c1").partition(1 - right(&astray)),
            Outgoing { timestamp: Some(2_000), ..call(&split, "c1").partition(right(&split)) },
            Outgoing { timestamp: Some(1_000), ..call(&split, "c2").partition(1 - right(&split)) },
        ],
    )?;
    cluster.await_committed(&deployment.group, &deployment.events, 3)?;
    ensure!(worker.stop()?.success());
    cluster.await_transactions(&deployment.state)?;
    let known = threads(cluster, &deployment)?;
    assert_eq!(known.len(), 3);
    let cluster = &grow(cluster, &deployment, 6)?;
    is_refused(&deployment, &["--execute"], "threads on partitions that their id never hashed to: 2 (such as ")?;
    is_refused(
        &deployment,
        &["--execute", "--misplaced", "move"],
        "threads that two partitions know and that would meet on one: 1 (such as ",
    )?;
    assert_eq!(threads(cluster, &deployment)?, known, "what is refused changes nothing");
    does_not_start(&deployment, &["is keyed for 2 partitions"])?;
    let moved = rekey(&deployment, &["--execute", "--misplaced", "move", "--keep-newest"])?;
    ensure!(moved.status.success(), "{moved:?}");
    cluster.await_transactions(&deployment.state)?;
    let placed: Vec<_> = threads(cluster, &deployment)?.into_keys().collect();
    let expected: BTreeSet<_> = [astray, split.clone()].into_iter().map(|id| (id.clone(), partition_of(id.as_bytes(), 6).0)).collect();
    assert_eq!(placed.into_iter().collect::<BTreeSet<_>>(), expected);
    let shown = deployment.command("state").args(["show", &split, "-o", "json"]).output()?;
    let shown: Value = serde_json::from_slice(&shown.stdout).with_context(|| stderr(&shown))?;
    assert_eq!(shown["last_event_ms"], 2_000, "what has the later event is kept");
    ensure!(deployment.start()?.stop()?.success());
    Ok(())
}

/// Writes the state of threads that have these ids, keyed for so many partitions, and returns its size.
fn write_state(cluster: &Cluster, deployment: &Deployment, ids: &[String], partitions: u32) -> Result<usize> {
    let mut records = Vec::with_capacity(ids.len() + partitions as usize);
    let mut bytes = 0;
    let record = |record: StateRecord, partition: i32| Outgoing {
        key: Some(record.key.into_bytes()),
        value: record.value,
        partition: Some(partition),
        ..Outgoing::default()
    };
    for (number, id) in ids.iter().enumerate() {
        let mut thread = Thread::default();
        thread.turn.id = Some("turn-1".into());
        (0..10).for_each(|call| thread.turn.memory_mut().suppression.add(Some(&format!("call-{number}-{call}")), None));
        let stored = StoredThread { thread, applied: Offset(i64::try_from(number)?), ..StoredThread::default() };
        let entry = StateRecord::entry::<ThreadStore>(id, Some(&stored));
        bytes += entry.bytes();
        records.push(record(entry, partition_of(id.as_bytes(), partitions).0));
    }
    let owner = format!("{}/{}", deployment.group, deployment.events);
    let own = PartitionState { owner, next: Offset(i64::try_from(ids.len())?), partitions: Some(partitions), ..PartitionState::default() };
    records.extend((0..i32::try_from(partitions)?).map(|partition| record(StateRecord::partition(&own), partition)));
    for some in records.chunks(10_000) {
        cluster.produce(&deployment.state, some)?;
    }
    Ok(bytes)
}

/// Moves as many threads as `TOLLGATE_REKEY_THREADS` says, and prints how fast. Before that, it moves 61: their transaction leaves the mark of
/// a partition 64 offsets before the end, where the search for the partition's own record begins, and that record one before it.
pub(crate) fn a_large_state_moves(cluster: &Cluster) -> Result<()> {
    let few = quick_deployment(cluster, 1)?;
    write_state(cluster, &few, &movers("few", 61, 1, 2), 1)?;
    grow(cluster, &few, 2)?;
    let moved = rekey(&few, &["--execute"])?;
    ensure!(moved.status.success() && stderr(&moved).contains("all 61 threads are there"), "{moved:?}");

    let count: usize = std::env::var("TOLLGATE_REKEY_THREADS").ok().map_or(Ok(3_000), |count| count.parse())?;
    let deployment = quick_deployment(cluster, 4)?;
    let ids: Vec<_> = (0..count).map(|number| format!("thread-{number:08}")).collect();
    let bytes = write_state(cluster, &deployment, &ids, 4)?;
    grow(cluster, &deployment, 12)?;
    let started = Instant::now();
    let moved = rekey(&deployment, &["--execute"])?;
    let said = stderr(&moved);
    ensure!(moved.status.success() && said.contains(&format!("all {count} threads are there")), "{moved:?}");
    println!("rekey of {count} threads ({bytes} bytes) took {:.1} s in all:\n{said}", started.elapsed().as_secs_f64());
    Ok(())
}
