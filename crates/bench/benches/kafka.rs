//! Measures a worker through a real broker: events per second and CPU per event, as a ratio to a pass-through of the same topic in the same
//! minute, and the time from event to verdict as a waiter sees it.
//!
//! Broker, worker, producer and waiter share the machine, so absolute figures are this machine's. `cargo bench -p tollgate-bench --bench
//! kafka`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::json;
use tollgate_testkit::{Broker, Cluster, Deployment, Outgoing, Worker};

const PARTITIONS: i32 = 8;
const ROUNDS: usize = 3;
const EVENTS: usize = 200_000;
/// The events per second while latency is measured, and for how long.
const RATES: [u64; 3] = [100, 1_000, 5_000];
const RATE_TIME: Duration = Duration::from_secs(10);

fn main() -> Result<()> {
    let tollgate = tollgate_bench::build_worker(Path::new(env!("CARGO_BIN_EXE_tollgate-bench")))?;
    let broker = Broker::start_for_benchmarks(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    let cluster = Cluster::new(broker.bootstrap(), &tollgate)?;
    println!("{:<14} {:>12} {:>16}", "draining", "events/s", "CPU µs/event");
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let deployment = Deployment::new(&cluster, PARTITIONS)?;
        for chunk in (0..EVENTS).collect::<Vec<_>>().chunks(20_000) {
            let events: Vec<_> = chunk.iter().map(|number| call(*number)).collect();
            cluster.produce(&deployment.events, &events)?;
        }
        let passed = pass_through(&cluster, &deployment)?;
        let decided = decide(&cluster, &deployment)?;
        for (name, (rate, cpu)) in [("pass-through", passed), ("tollgate run", decided)] {
            println!("{name:<14} {rate:>12.0} {cpu:>16.2}");
        }
        ratios.push(decided.1 / passed.1);
    }
    ratios.sort_by(f64::total_cmp);
    println!("CPU ratio gate/pass-through, median of {ROUNDS}: {:.2}\n", ratios[ratios.len() / 2]);

    println!("{:<14} {:>10} {:>10} {:>10}", "event→verdict", "p50 ms", "p99 ms", "max ms");
    let deployment = Deployment::new(&cluster, PARTITIONS)?;
    let _worker = deployment.start()?;
    for rate in RATES {
        let mut waits = latencies(&cluster, &deployment, rate)?;
        waits.sort_by(f64::total_cmp);
        let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
        println!("{:<14} {:>10.2} {:>10.2} {:>10.2}", format!("{rate}/s"), at(0.5), at(0.99), at(1.0));
    }
    Ok(())
}

/// Returns an event of about 600 bytes with about 200 bytes of arguments.
fn call(number: usize) -> Outgoing {
    let thread = format!("thread-{:06}", number % 5_000);
    let event = json!({
        "type": "tool_call", "thread_id": thread, "event_id": format!("turn-{number:08}/call_{number:010}/call"), "agent_id": "coder-7",
        "turn_id": format!("turn-{:04}", number / 40_000), "user_id": "user-4711", "tenant_id": "acme", "run_id": "run-20260101-000017",
        "timestamp": "2026-01-01T00:00:00.000Z", "tool_call_id": format!("call_{number:024}"), "tool_name": "read_file",
        "tool_input": {"path": format!("src/module_{}/component_{}.py", number % 7, number % 11), "start_line": number % 500, "end_line": number % 500 + 40,
            "encoding": "utf-8", "reason": "look at how the total of the cart is computed before the discount is applied to it"},
    });
    Outgoing::new(thread, event.to_string())
}

/// Measures the floor: one thread that copies every record to a topic of its own.
fn pass_through(cluster: &Cluster, deployment: &Deployment) -> Result<(f64, f64)> {
    let target = cluster.topic("passed", PARTITIONS, &[])?;
    let consumer = reader(cluster, &deployment.events, Offset::Beginning)?;
    let producer: BaseProducer<DefaultProducerContext> =
        cluster.client().set("enable.idempotence", "true").set("linger.ms", "0").set("queue.buffering.max.messages", "200000").create()?;
    let (started, cpu, mut taken) = (Instant::now(), cpu_seconds("self")?, 0);
    while taken < EVENTS {
        let Some(message) = consumer.poll(Duration::from_millis(100)).transpose()? else { continue };
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&target)
            .partition(message.partition())
            .key(message.key().unwrap_or_default())
            .payload(message.payload().unwrap_or_default());
        while let Err((_, refused)) = producer.send(record) {
            producer.poll(Duration::from_millis(10));
            record = refused;
        }
        taken += 1;
        if taken % 256 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    producer.flush(Duration::from_secs(60))?;
    Ok(figures(started, cpu_seconds("self")? - cpu))
}

/// Measures a worker that drains the topic, from its first verdict to its last.
fn decide(cluster: &Cluster, deployment: &Deployment) -> Result<(f64, f64)> {
    let consumer = reader(cluster, &deployment.decisions, Offset::Beginning)?;
    let worker = deployment.spawn("")?;
    let count = || -> Result<i64> {
        let ends =
            (0..PARTITIONS).map(|partition| Ok(consumer.fetch_watermarks(&deployment.decisions, partition, Duration::from_secs(5))?.1));
        ends.sum()
    };
    while count()? == 0 {
        std::thread::sleep(Duration::from_millis(2));
    }
    let (first, cpu) = (Instant::now(), cpu_of(&worker)?);
    let missed = count()?;
    while count()? < EVENTS as i64 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (rate, per_event) = (first.elapsed().as_secs_f64(), cpu_of(&worker)? - cpu);
    let events = EVENTS as f64 - missed as f64;
    worker.stop()?;
    Ok((events / rate, per_event * 1e6 / events))
}

/// Publishes at a steady rate and waits for every verdict; returns the milliseconds from the intended moment of each event.
fn latencies(cluster: &Cluster, deployment: &Deployment, rate: u64) -> Result<Vec<f64>> {
    let consumer = reader(cluster, &deployment.decisions, Offset::End)?;
    let producer: BaseProducer =
        cluster.client().set("enable.idempotence", "true").set("linger.ms", "0").set("partitioner", "murmur2_random").create()?;
    let run = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    // The first fetch and the first produce set connections up.
    consumer.poll(Duration::from_millis(1_500));
    let total = usize::try_from(rate * RATE_TIME.as_secs())?;
    let (started, mut sent, mut waits) = (Instant::now(), 0, Vec::new());
    let due = |number: usize| Duration::from_nanos(number as u64 * 1_000_000_000 / rate);
    while waits.len() < total {
        while sent < total && started.elapsed() >= due(sent) {
            let thread = format!("t{}", sent % 500);
            let event = json!({"type": "tool_call", "event_id": format!("{run}-{sent}"), "tool_call_id": format!("{run}-{sent}"),
                "tool_name": "read_file", "tool_input": {"path": "src/cart.py", "start_line": sent}})
            .to_string();
            producer.send(BaseRecord::to(&deployment.events).key(&thread).payload(&event)).map_err(|(error, _)| error)?;
            sent += 1;
        }
        producer.poll(Duration::ZERO);
        while let Some(message) = consumer.poll(Duration::ZERO).transpose()? {
            let verdict: serde_json::Value = serde_json::from_slice(message.payload().unwrap_or_default())?;
            let id = verdict["event_id"].as_str().and_then(|id| id.strip_prefix(&format!("{run}-"))).map(str::parse::<usize>);
            if let Some(Ok(number)) = id {
                waits.push((started.elapsed() - due(number)).as_secs_f64() * 1e3);
            }
        }
        std::thread::sleep(Duration::from_micros(100));
        anyhow::ensure!(started.elapsed() < RATE_TIME * 6, "{} of {total} verdicts came", waits.len());
    }
    Ok(waits)
}

fn reader(cluster: &Cluster, topic: &str, from: Offset) -> Result<BaseConsumer> {
    let consumer: BaseConsumer =
        cluster.client().set("group.id", "bench").set("enable.auto.commit", "false").set("fetch.queue.backoff.ms", "5").create()?;
    let mut partitions = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        partitions.add_partition_offset(topic, partition, from)?;
    }
    consumer.assign(&partitions)?;
    Ok(consumer)
}

fn figures(started: Instant, cpu_seconds: f64) -> (f64, f64) {
    (EVENTS as f64 / started.elapsed().as_secs_f64(), cpu_seconds * 1e6 / EVENTS as f64)
}

fn cpu_of(worker: &Worker) -> Result<f64> {
    cpu_seconds(&worker.id().to_string())
}

/// Returns the user and system time of a process, in seconds: fields 14 and 15 of its stat, in hundredths.
fn cpu_seconds(process: &str) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").context("a stat line")?;
    let ticks: f64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}
