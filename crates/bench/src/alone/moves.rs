//! Measures what it costs that a partition moves: threads restored per second, and for how long verdicts are held up when a worker joins or
//! leaves as planned.
//!
//! Broker, workers, producer and reader share the machine, so absolute figures are this machine's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::{Value, json};
use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, Worker, header, wait_until};

use crate::{Ratio, Session};

const RESTORED_PARTITIONS: i32 = 4;
const RESTORED_THREADS: usize = 100_000;
const MOVED_PARTITIONS: i32 = 4;
const MOVES: usize = 8;

impl Session {
    /// Measures a restore, and moves as planned.
    pub(super) fn moves(&self) -> Result<()> {
        let cluster = Cluster::new(self.kafka.brokers.clone(), &self.invocation.binary)?;
        restore(&cluster)?;
        moves(&cluster)
    }
}

/// Measures how a worker takes over the threads that another one has left behind.
fn restore(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, RESTORED_PARTITIONS)?;
    for chunk in (0..RESTORED_THREADS).collect::<Vec<_>>().chunks(5_000) {
        let events: Vec<_> = chunk.iter().flat_map(|number| conversation(*number)).collect();
        cluster.produce(&deployment.events, &events)?;
    }
    let worker = deployment.start()?;
    wait_until("all threads are there", || Ok(worker.metric("tollgate_live_threads")? == RESTORED_THREADS as f64))?;
    let (records, bytes) = (worker.metric("tollgate_checkpoint_records_total")?, worker.metric("tollgate_checkpoint_bytes_total")?);
    println!("state: {records} records were written, {:.0} bytes each, for {RESTORED_THREADS} threads with a call", bytes / records);
    ensure!(worker.stop()?.success());
    let started = Instant::now();
    let worker = deployment.start()?;
    let seconds = started.elapsed().as_secs_f64();
    let restored: Vec<(f64, f64)> = worker
        .log()
        .lines()
        .filter(|line| line.contains(" restored "))
        .map(|line| Ok((field(line, "entries")?, field(line, "seconds")?)))
        .collect::<Result<_>>()?;
    let threads: f64 = restored.iter().map(|(threads, _)| threads).sum();
    ensure!(threads == RESTORED_THREADS as f64, "{threads} threads were restored");
    let slowest = restored.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
    println!(
        "restore: {threads} threads in {RESTORED_PARTITIONS} partitions, all at once: {slowest:.2} s, {:.0} threads/s",
        threads / slowest
    );
    println!("         from the start of the process until it was ready: {seconds:.2} s\n");
    Ok(())
}

fn field(line: &str, name: &str) -> Result<f64> {
    let value = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    Ok(value.with_context(|| format!("no {name} in {line}"))?.parse()?)
}

/// Returns a thread with a turn, a call and its result.
fn conversation(number: usize) -> [Outgoing; 3] {
    let thread = format!("{number:08x}-aaaa-bbbb-cccc-dddddddddddd");
    let call = format!(r#""tool_call_id":"c1","tool_name":"bash","tool_input":{{"command":{number}}}"#);
    let events = [
        r#""type":"turn_start","event_id":"s""#.to_owned(),
        format!(r#""type":"tool_call","event_id":"c",{call}"#),
        format!(r#""type":"tool_result","event_id":"r",{call},"result":"exit 1","failed":true"#),
    ];
    events.map(|event| Outgoing::new(thread.as_str(), format!(r#"{{"thread_id":"{thread}","turn_id":"turn-1",{event}}}"#)))
}

/// Measures waits under a steady load: one worker holds all partitions, another joins and leaves again and again.
fn moves(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, MOVED_PARTITIONS)?;
    // The properties are the defaults, without those that make tests quick.
    deployment.configure("/kafka/properties", json!({}));
    let first = deployment.start()?;
    let stop = AtomicBool::new(false);
    let mut windows = Vec::new();
    let sent = scope(|threads| {
        let load = threads.spawn(|| load(cluster, &deployment, &stop));
        let done = join_and_leave(&deployment, &first, &mut windows);
        stop.store(true, Ordering::Relaxed);
        let sent = load.join().map_err(|_| anyhow!("the load panicked"))?;
        done.and(sent)
    })?;
    let verdicts = deployment.verdicts(cluster, sent)?;
    let waits = waits(&cluster.read_all(&deployment.events)?, &verdicts);
    println!("{:<8} {:>7} {:>26} {:>10} {:>10}", "planned", "moves", "longest wait, median ms", "min ms", "max ms");
    for kind in ["join", "leave"] {
        let of_kind = windows.iter().filter(|window| window.kind == kind);
        let longest = |window: &Window| {
            let within = waits.iter().filter(|(sent, _)| (window.from..window.to).contains(sent));
            within.map(|(_, wait)| *wait).max().unwrap_or_default() as f64
        };
        let Ratio { median, min, max } = Ratio::of(of_kind.map(longest)).context("nothing has moved")?;
        println!("{kind:<8} {MOVES:>7} {median:>26} {min:>10} {max:>10}");
    }
    Ok(())
}

/// The time of a move, in milliseconds since 1970.
struct Window {
    kind: &'static str,
    from: i64,
    to: i64,
}

fn join_and_leave(deployment: &Deployment, first: &Worker, windows: &mut Vec<Window>) -> Result<()> {
    sleep(Duration::from_secs(1));
    for _ in 0..MOVES {
        let from = now_ms();
        let second = deployment.start()?;
        wait_until("both have partitions", || {
            Ok(first.partitions()?.len() == 2 && second.partitions()?.len() == 2 && is_ready(&second) && is_ready(first))
        })?;
        sleep(Duration::from_millis(500));
        let between = now_ms();
        ensure!(second.stop()?.success());
        wait_until("the first has them back", || Ok(first.partitions()?.len() == 4 && is_ready(first)))?;
        sleep(Duration::from_millis(500));
        windows.push(Window { kind: "join", from, to: between });
        windows.push(Window { kind: "leave", from: between, to: now_ms() });
    }
    Ok(())
}

fn is_ready(worker: &Worker) -> bool {
    worker.get("/readyz").is_ok_and(|(status, _)| status == 200)
}

/// Produces a call on every partition every 5 ms, and returns how many there were.
fn load(cluster: &Cluster, deployment: &Deployment, stop: &AtomicBool) -> Result<usize> {
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        let events: Vec<Outgoing> = (0..MOVED_PARTITIONS)
            .map(|partition| {
                let event = json!({"type": "tool_call", "thread_id": format!("t{partition}"), "event_id": format!("e{sent}"),
                    "tool_call_id": format!("c{sent}"), "tool_name": "ls", "tool_input": {}});
                Outgoing::new(format!("t{partition}"), event.to_string()).partition(partition)
            })
            .collect();
        cluster.produce(&deployment.events, &events)?;
        sent += 1;
        sleep(Duration::from_millis(5));
    }
    Ok(sent * MOVED_PARTITIONS as usize)
}

/// Returns when each event was sent, and how long it took until its verdict was: milliseconds.
fn waits(events: &[Record], verdicts: &[Record]) -> Vec<(i64, i64)> {
    let mut first: HashMap<(Vec<u8>, String), i64> = HashMap::new();
    for verdict in verdicts {
        let time = verdict.timestamp.unwrap_or_default();
        let earliest = first.entry((verdict.key.clone().unwrap_or_default(), header(verdict, "event_id"))).or_insert(time);
        *earliest = time.min(*earliest);
    }
    let wait = |event: &Record| {
        let value: Value = serde_json::from_slice(event.value.as_deref()?).ok()?;
        let verdict = first.get(&(event.key.clone()?, value.get("event_id")?.as_str()?.to_owned()))?;
        Some((event.timestamp?, verdict - event.timestamp?))
    };
    events.iter().filter_map(wait).collect()
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64
}
