//! The chaos test: workers are killed, frozen, added and removed, and the broker crashes, while events keep coming. Every verdict must be
//! the byte-identical one that a fold of its partition gives, and the state in the end must be the fold's.
//!
//! The suite runs a short form of it. `TOLLGATE_CHAOS_KILLS=1000 cargo test --test kafka -- chaos --nocapture` runs a long one.
//! `TOLLGATE_CHAOS_SEED` and `TOLLGATE_CHAOS_RATE` (events a second) set seed and rate. `TOLLGATE_CHAOS_LOG` names a file for what was done
//! when, and the logs of all workers. `TOLLGATE_CHAOS_KILLS_PER_CRASH` sets how many kills go by between two crashes of the broker. With no
//! kills (0) it runs for a while without any fault.

mod fleet;
mod load;
mod report;
mod topics;
mod traffic;
mod verify;

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::traffic::Random;
use tollgate_testkit::{Broker, Cluster, Deployment};

use fleet::Fleet;
use load::Load;
use report::Report;
use topics::Committed;

pub(super) const PARTITIONS: i32 = 16;
/// The session timeout: short, so that the group soon notices a worker that is gone, and not so short that it misses one that is slow.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_millis(3_000);
pub(super) const TICK: Duration = Duration::from_millis(20);
/// How long a run without faults takes.
const QUIET_TIME: Duration = Duration::from_secs(15);
/// The time from one fault to the next, in milliseconds.
const PAUSE_MS: std::ops::Range<usize> = 400..1_400;
/// How many kills go by before the group is left to catch up, and how long that is waited for.
const KILLS_PER_CATCH_UP: u64 = 20;
const CATCH_UP_TIME_MAX: Duration = Duration::from_secs(30);

/// The options of a run.
struct Options {
    kills: u64,
    seed: u64,
    rate: u64,
    /// How many kills go by between two crashes of the broker; it crashes at least once.
    kills_per_crash: u64,
}

impl Options {
    fn from_environment() -> Result<Self> {
        let number = |name: &str, default: u64| match std::env::var(name) {
            Ok(text) => text.parse().with_context(|| format!("{name} is no number: {text}")),
            Err(_) => Ok(default),
        };
        Ok(Self {
            kills: number("TOLLGATE_CHAOS_KILLS", 45)?,
            seed: number("TOLLGATE_CHAOS_SEED", 1)?,
            rate: number("TOLLGATE_CHAOS_RATE", 400)?,
            kills_per_crash: number("TOLLGATE_CHAOS_KILLS_PER_CRASH", 150)?,
        })
    }
}

/// Faults of every kind, under load, change no verdict.
pub(crate) fn faults_change_no_verdict(cluster: &Cluster, broker: &mut Broker) -> Result<()> {
    let options = Options::from_environment()?;
    let deployment = deployment(cluster)?;
    let started = Instant::now();
    let mut fleet = Fleet::start(&deployment, options.seed ^ 0xf1ee7)?;
    let committed = Committed::of(cluster, &deployment)?;
    let load = Load::start(cluster, &deployment.events, options.rate, options.seed);
    // The load goes on until it is stopped, whatever happens to the rest.
    let survived = do_faults(&options, &mut fleet, broker, || Ok(committed.lag(&load.ends())? <= options.rate));
    let finished = load.finish();
    survived?;
    let (sent, ends) = finished?;
    fleet.settle()?;
    fleet.wait_until_decided(|| committed.lag(&ends))?;
    fleet.stop()?;
    let duration = started.elapsed();
    let Fleet { deeds, mut findings, .. } = fleet;
    let totals = verify::verify(cluster, &deployment, &mut findings)?;
    if totals.events != sent {
        findings.add("events lost or repeated by the load", || format!("{sent} were sent, {} are there", totals.events));
    }
    let report = Report { seed: options.seed, duration, sent, deeds, totals, findings };
    eprintln!("\n{report}");
    ensure!(report.findings.count() == 0, "seed {}: {} findings, see the report", options.seed, report.findings.count());
    Ok(())
}

/// Returns a deployment whose members soon notice each other's absence, and whose verdicts depend on what threads remember: loops are seen
/// after more repetitions than by default, and the limits of threads, of their bytes and of idle time are all reached.
fn deployment(cluster: &Cluster) -> Result<Deployment> {
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
    deployment.configure(
        "/tool_loop_guardrails",
        json!({
            "exact_failure_warn_after": 3, "exact_failure_block_after": 5, "same_tool_failure_warn_after": 6,
            "same_tool_failure_halt_after": 10, "no_progress_warn_after": 3, "no_progress_block_after": 5,
        }),
    );
    deployment
        .configure("/guardrails", json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["format_disk"]}}}));
    deployment.configure("/limits", json!({"threads_per_partition_max": 28, "thread_bytes_max": 12_288, "thread_idle_seconds_max": 90}));
    Ok(deployment)
}

/// Does the faults of the seed until so many workers were killed.
fn do_faults(options: &Options, fleet: &mut Fleet<'_>, broker: &mut Broker, has_caught_up: impl Fn() -> Result<bool>) -> Result<()> {
    if options.kills == 0 {
        sleep(QUIET_TIME);
        return fleet.tick();
    }
    let mut random = Random(options.seed ^ 0x5c4ed);
    let broker_every = options.kills_per_crash.clamp(1, options.kills.div_ceil(2));
    let (mut next_broker, mut next_breath) = (broker_every, KILLS_PER_CATCH_UP);
    while fleet.deeds.kills < options.kills {
        let pause = Duration::from_millis((PAUSE_MS.start + random.below(PAUSE_MS.len())) as u64);
        let until = Instant::now() + pause;
        while Instant::now() < until {
            fleet.tick()?;
            sleep(TICK);
        }
        fleet.act()?;
        if fleet.deeds.kills >= next_broker {
            next_broker += broker_every;
            restart(broker, fleet, &mut random)?;
        }
        if fleet.deeds.kills >= next_breath {
            next_breath += KILLS_PER_CATCH_UP;
            catch_up(fleet, &has_caught_up)?;
        }
    }
    Ok(())
}

/// Kills the broker and starts it again. No worker is leaving then: without a broker that takes too long.
fn restart(broker: &mut Broker, fleet: &mut Fleet<'_>, random: &mut Random) -> Result<()> {
    fleet.settle()?;
    fleet.note("the broker crashes")?;
    let from_ms = fleet::now_ms()?;
    broker.kill()?;
    sleep(Duration::from_millis(300 + random.below(2_000) as u64));
    broker.start_again()?;
    fleet.deeds.outages_ms.push((from_ms, fleet::now_ms()?));
    fleet.note("the broker is back")
}

/// Waits for a while until the group has caught up with the load.
fn catch_up(fleet: &mut Fleet<'_>, has_caught_up: impl Fn() -> Result<bool>) -> Result<()> {
    fleet.settle()?;
    let started = Instant::now();
    while !has_caught_up().unwrap_or(false) {
        if started.elapsed() > CATCH_UP_TIME_MAX {
            fleet.deeds.catch_ups_in_vain += 1;
            break;
        }
        fleet.tick()?;
        sleep(TICK * 5);
    }
    fleet.deeds.catch_ups.push(started.elapsed());
    Ok(())
}
