//! One run: a deployment on the brokers, load, faults, and what came of them.

use std::fs;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;
use tollgate_testkit::harness::Place;
use tollgate_testkit::{Broker, Brokers, BrokersSettings, Cluster, Deployment, NODES, Random, test_cache};

use super::clock::Chronicle;
use super::faults::{BrokerFault, Fault};
use super::front::Front;
use super::inject::{OnBrokers, SMALL_DISK_BYTES, SMALL_DISK_NODE, on_workers};
use super::load::{self, Events, Lag};
use super::options::Options;
use super::plain::first_reads;
use super::report::Report;
use super::verify::verify;
use super::waits::AllWaits;
use super::worker_group::{Member, WorkerGroup, plain_group};

pub(super) const PARTITIONS: i32 = 12;
/// Events a second on one broker and on three.
const RATES: (u64, u64) = (400, 600);
/// The session timeout on one broker: short, so that the group soon notices a worker that is gone, and not so short that it misses a worker
/// that is slow.
const SESSION_TIMEOUT: Duration = Duration::from_millis(3_000);
/// How much longer than its session a worker is frozen at least.
const FROZEN_LONGER: Duration = Duration::from_millis(300);
/// How long a run without faults on one broker takes.
const QUIET_TIME: Duration = Duration::from_secs(15);
/// The time from one fault to the next on one broker, in milliseconds.
const PAUSE_MS: std::ops::Range<usize> = 400..1_400;
/// How many kills go by before the group is left to catch up, and how long that is waited for.
const KILLS_PER_CATCH_UP: u64 = 20;
const CATCH_UP_TIME_MAX: Duration = Duration::from_secs(30);
/// How long load goes on before the first fault on three brokers.
const CALM: Duration = Duration::from_secs(3);
pub(super) const HEAL_TIME_MAX: Duration = Duration::from_secs(300);

/// What a run is on.
struct Run<'r> {
    name: String,
    seed: u64,
    rate: u64,
    cluster: &'r Cluster,
    deployment: &'r Deployment,
    chronicle: &'r Chronicle,
    members: &'r [Member],
}

impl Run<'_> {
    /// Starts the fleet and the load, has faults done, and verifies what the topics hold in the end.
    fn go(&self, inject: impl FnOnce(&mut WorkerGroup<'_>, &Lag) -> Result<()>) -> Result<Report> {
        let Self { seed, cluster, deployment, chronicle, .. } = *self;
        let started = Instant::now();
        let mut fleet = WorkerGroup::start(deployment, chronicle, self.members)?;
        let (gate, plain) = (lag(cluster, deployment, &deployment.group)?, lag(cluster, deployment, &plain_group(deployment))?);
        let noted = Events::default();
        let reader = load::read(cluster, &deployment.decisions, &noted)?;
        let sender = load::send(cluster, &deployment.events, self.rate, seed, &noted);
        let injected = inject(&mut fleet, &gate);
        // The load goes on until it is stopped, whatever has happened.
        chronicle.note("the load ends")?;
        let sent = sender.finish();
        injected.and(sent)?;
        fleet.settle()?;
        let is_paired = self.members.iter().any(|member| member.is_paired);
        fleet.wait_until_decided(|| Ok(gate.get()? + if is_paired { plain.get()? } else { 0 }))?;
        fleet.stop("")?;
        reader.finish()?;
        let duration = started.elapsed();
        let events = noted.lock();
        let waits = AllWaits::of(&events, &first_reads(&fleet.notes, events.len())?, chronicle);
        let WorkerGroup { fault_counts, mut findings, .. } = fleet;
        let totals = verify(cluster, deployment, &events, &mut findings)?;
        Ok(Report { name: self.name.clone(), seed, duration, fault_counts, totals, waits, findings })
    }
}

fn lag(cluster: &Cluster, deployment: &Deployment, group: &str) -> Result<Lag> {
    Lag::of(cluster, group, &deployment.events)
}

/// Has verdicts depend on what threads remember: loops are seen after more repetitions than by default, and the limits of threads, of their
/// bytes and of idle time are all reached.
fn configure(deployment: &mut Deployment, options: &Options) {
    let loops = json!({
        "exact_failure_warn_after": 3, "exact_failure_block_after": 5, "same_tool_failure_warn_after": 6,
        "same_tool_failure_halt_after": 10, "no_progress_warn_after": 3, "no_progress_block_after": 5,
    });
    let guardrails = json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["format_disk"]}}});
    let limits = json!({"threads_per_partition_max": 28, "thread_bytes_max": 12_288, "thread_idle_seconds_max": 90});
    for (pointer, value) in [("/tool_loop_guardrails", loops), ("/guardrails", guardrails), ("/limits", limits)] {
        deployment.configure(pointer, value);
    }
    options.config.iter().for_each(|(pointer, value)| deployment.configure(pointer, value.clone()));
}

/// Kills, freezes, adds and removes workers, and crashes the broker, until so many workers were killed.
pub(super) fn on_one_broker(options: &Options, cluster: &Cluster, broker: &mut Broker) -> Result<Report> {
    let mut deployment = Deployment::new(cluster, PARTITIONS)?;
    let session_ms = u64::try_from(SESSION_TIMEOUT.as_millis())?;
    deployment.configure(
        "/kafka/properties",
        json!({
            "session.timeout.ms": session_ms, "heartbeat.interval.ms": 200, "max.poll.interval.ms": 60_000,
            "reconnect.backoff.max.ms": 500,
        }),
    );
    deployment.configure("/worker", json!({"members": 1, "checkpoint_interval_ms": 300}));
    configure(&mut deployment, options);
    let chronicle = Chronicle::new(cluster.directory())?;
    let members = ["pod-a", "pod-b", "", ""].map(|name| Member { name, ..Member::default() });
    let rate = if options.rate == 0 { RATES.0 } else { options.rate };
    let (name, deployment, chronicle) = ("one broker".to_owned(), &deployment, &chronicle);
    Run { name, seed: options.seed, rate, cluster, deployment, chronicle, members: &members }.go(|fleet, lag| {
        if options.kills == 0 {
            return fleet.rest(QUIET_TIME);
        }
        let mut random = Random::new(options.seed ^ 0x5c4ed);
        let kills_per_crash = options.kills_per_crash.clamp(1, options.kills.div_ceil(2));
        let (mut next_crash, mut next_catch_up) = (kills_per_crash, KILLS_PER_CATCH_UP);
        while fleet.fault_counts.kills < options.kills {
            fleet.rest(Duration::from_millis((PAUSE_MS.start + random.below(PAUSE_MS.len())) as u64))?;
            fleet.act(&mut random, SESSION_TIMEOUT + FROZEN_LONGER)?;
            if fleet.fault_counts.kills >= next_crash {
                next_crash += kills_per_crash;
                // No worker is leaving then: without a broker that takes too long.
                fleet.settle()?;
                chronicle.note("the broker crashes")?;
                broker.kill()?;
                sleep(Duration::from_millis(300 + random.below(2_000) as u64));
                broker.start_again()?;
                chronicle.note("the broker is back")?;
                fleet.fault_counts.crashes += 1;
            }
            if fleet.fault_counts.kills >= next_catch_up {
                next_catch_up += KILLS_PER_CATCH_UP;
                catch_up(fleet, || Ok(lag.get()? <= rate))?;
            }
        }
        Ok(())
    })
}

/// Waits for a while until the group has caught up with the load.
fn catch_up(fleet: &mut WorkerGroup<'_>, has_caught_up: impl Fn() -> Result<bool>) -> Result<()> {
    fleet.settle()?;
    let started = Instant::now();
    while !has_caught_up().unwrap_or(false) {
        if started.elapsed() > CATCH_UP_TIME_MAX {
            fleet.fault_counts.catch_ups_in_vain += 1;
            break;
        }
        fleet.rest(Duration::from_millis(100))?;
    }
    fleet.fault_counts.catch_ups.push(started.elapsed());
    Ok(())
}

/// Starts the brokers that a fault needs: behind proxies, or one of them on a small disk.
pub(super) fn brokers_for(fault: Fault) -> Result<Brokers> {
    let settings = BrokersSettings {
        proxied: fault.brokers == Some(BrokerFault::Connections),
        small_disk: (fault.brokers == Some(BrokerFault::DiskFull)).then_some((SMALL_DISK_NODE, SMALL_DISK_BYTES)),
        properties: String::new(),
        logs: Some(crate::target_tmpdir().join("kafka")),
    };
    Brokers::start(&test_cache(&crate::target_tmpdir()), &settings)
}

/// Does one fault again and again for some time on three brokers. On an error the brokers may be in any condition.
pub(super) fn on_three_brokers(options: &Options, fault: Fault, seed: u64, place: &Place, brokers: &mut Brokers) -> Result<Report> {
    let ran = three_brokers(options, fault, seed, place, brokers);
    for node in 0..NODES {
        let _copied = fs::copy(brokers.log_path(node), place.directory.join(format!("broker-{}.log", node + 1)));
    }
    ran.with_context(|| format!("{fault}, seed {seed}; logs are in {}", place.directory.display()))
}

fn three_brokers(options: &Options, fault: Fault, seed: u64, place: &Place, brokers: &mut Brokers) -> Result<Report> {
    let cluster = &place.cluster(brokers.bootstrap())?;
    let deployment = deployment_on_three(cluster, options)?;
    brokers.wait_in_sync(HEAL_TIME_MAX)?;
    let chronicle = Chronicle::new(&place.directory)?;
    let names = if fault.is_static { ["pod-0", "pod-1"] } else { ["", ""] };
    let members = names.map(|name| Member { name, is_paired: true, ..Member::default() });
    let rate = if options.rate == 0 { RATES.1 } else { options.rate };
    let (deployment, chronicle) = (&deployment, &chronicle);
    let front = fault.has_front().then(|| Front::start(cluster)).transpose()?;
    let report = Run { name: fault.to_string(), seed, rate, cluster, deployment, chronicle, members: &members }.go(|fleet, _| {
        fleet.rest(CALM)?;
        let until = Instant::now() + Duration::from_secs(options.seconds);
        let random = |salt: u64| Random::new(seed ^ salt);
        let injected = scope(|threads| {
            let on_brokers = threads.spawn(|| {
                let mut faults = OnBrokers { brokers, chronicle, random: random(0xb20c_e125), topic: &deployment.events };
                fault.brokers.map_or(Ok(()), |fault| faults.run(fault, until))
            });
            let on_workers = fault.workers.map_or(Ok(()), |fault| on_workers(fault, fleet, &mut random(0x00f1_ee70), until));
            let rested = fleet.rest(until.saturating_duration_since(Instant::now()));
            on_brokers.join().map_err(|_| anyhow!("the faults of brokers panicked"))?.and(on_workers).and(rested)
        });
        let healed = brokers.heal(HEAL_TIME_MAX);
        injected.and(healed)
    })?;
    front.map_or(Ok(()), |front| front.finish(cluster, chronicle))?;
    Ok(report)
}

fn deployment_on_three(cluster: &Cluster, options: &Options) -> Result<Deployment> {
    // The broker's own time of each verdict says how much of a wait is the reader's.
    let appended = [("message.timestamp.type", "LogAppendTime")];
    let mut deployment = Deployment::with_topic_settings(cluster, PARTITIONS, &[], &appended)?;
    // The state topic of other tests is compacted as eagerly as Kafka lets it be, which takes much of the time that three brokers have.
    deployment.state = cluster.topic("state", PARTITIONS, &[("cleanup.policy", "compact")])?;
    deployment.configure("/kafka/topics/state", json!(deployment.state));
    // The clients' settings are the defaults: those of the worker are what is measured.
    deployment.configure("/kafka/properties", json!({}));
    deployment.configure("/log/filter", json!("info,tollgate=debug,librdkafka=debug"));
    configure(&mut deployment, options);
    Ok(deployment)
}
