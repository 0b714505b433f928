//! Measures what a policy on trial (`run --shadow`) costs: the thread that decides, and the whole process, at several samples. No broker is
//! needed: what differs is handed to a producer that finds none.
//!
//! All samples take turns over the same events, and the median of the rounds counts. The clock is that of CPU time. The deciding thread pauses
//! between batches until the judge has caught up, so that nothing is dropped; the pause costs no CPU time.
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use nix::sys::resource::UsageWho;
use serde_json::json;
use tollgate_config::settings::Settings;
use tollgate_core::decide::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::shadow::{Decision, Sample};
use tollgate_core::engine::stage::{Progress, Stage as _};
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_testkit::{Mix, MixEvent};
use tollgate_worker::metrics::Metrics;
use tollgate_worker::shadow::{ShadowFeed, Trial};

use super::{SMALL_EVENTS, Seconds, cpu_seconds, medians};

const ROUNDS: usize = 5;
const EVENTS: usize = 100_000;
/// How many events are decided before the judge has to catch up: fewer than may wait for it.
const BATCH: usize = 4_000;
/// The shares of the threads, in per cent; 0 is without a policy on trial.
const SAMPLES: [f64; 4] = [0.0, 1.0, 5.0, 100.0];
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Measures every sample.
pub(super) fn measure() -> Result<()> {
    let read = |user| anyhow::Ok(Settings::read(&user, &tollgate_core::settings::defaults()?)?);
    let settings = read(json!({"kafka": {"brokers": "127.0.0.1:1"}}))?;
    let trial = read(json!({"tool_loop_guardrails": {"same_tool_failure_halt_after": 4}}))?;
    let mut mix = Mix::new(SMALL_EVENTS);
    let mut events = vec![MixEvent::blank(); EVENTS];
    events.iter_mut().for_each(|event| mix.next_into(event));
    let bytes: usize = events.iter().map(|event| event.value.len()).sum();
    let mut costs = [const { Vec::new() }; SAMPLES.len()];
    for _ in 0..ROUNDS {
        for (costs, percent) in costs.iter_mut().zip(SAMPLES) {
            costs.push(decide(&settings, &trial, percent, &events)?);
        }
    }
    println!("{EVENTS} events of {} bytes, {ROUNDS} rounds", bytes / EVENTS);
    println!("{:<10} {:>18} {:>7} {:>18} {:>7}", "sample", "deciding ns/event", "ratio", "process ns/event", "ratio");
    let none = costs.first().map_or((f64::NAN, f64::NAN), |costs| medians(costs));
    let ns = |seconds: f64| seconds * 1e9 / EVENTS as f64;
    for (costs, percent) in costs.iter().zip(SAMPLES) {
        let (deciding, process) = medians(costs);
        let (over, process_over) = (deciding / none.0, process / none.1);
        println!("{:<10} {:>18.0} {over:>6.2}× {:>18.0} {process_over:>6.2}×", format!("{percent} %"), ns(deciding), ns(process));
    }
    Ok(())
}

/// Decides on all events, with a share of the threads on trial. Returns the CPU time of the thread that decides, and of the process.
fn decide(ours: &Settings, theirs: &Settings, percent: f64, events: &[MixEvent]) -> Result<Seconds> {
    let (policy, metrics) = (Arc::new(Policy::new(&ours.policy)), Metrics::new()?);
    let kafka = Arc::new(ours.kafka.clone());
    let start = |sample| -> Result<_> {
        let on_trial = Arc::new(Policy::new(&theirs.policy));
        let feed = ShadowFeed::start(&Trial::new(&theirs.policy, &policy, on_trial, sample, (&kafka, &metrics))?);
        feed.taken(Partition(0), None);
        Ok((feed, sample))
    };
    let mut feed = Sample::of_percent(percent).map(start).transpose()?;
    let (mut stage, mut out, mut fed) = (Deciding::new(Arc::clone(&policy)), VerdictBuffer::default(), 0);
    let (mut deciding, process) = (0.0, cpu_seconds(UsageWho::RUSAGE_SELF)?);
    for (number, batch) in events.chunks(BATCH).enumerate() {
        let before = cpu_seconds(UsageWho::RUSAGE_THREAD)?;
        for (index, event) in batch.iter().enumerate() {
            let record = Record {
                topic: "agent.events",
                partition: Partition(0),
                offset: Offset(i64::try_from(number * BATCH + index)?),
                timestamp_ms: None,
                key: Some(event.thread_id.as_bytes()),
                value: Some(&event.value),
                headers: &[],
            };
            let Progress::Done(outcome) = stage.apply(&record, &mut out) else { bail!("nobody is asked") };
            if let Some((feed, _)) = &mut feed {
                match &outcome {
                    Outcome::Verdict { decided, .. } => feed.decided(&record, &out.thread_id, || Some(Decision::of(decided))),
                    _ => feed.decided(&record, &out.thread_id, || None),
                }
            }
        }
        deciding += cpu_seconds(UsageWho::RUSAGE_THREAD)? - before;
        if let Some((_, sample)) = &feed {
            fed += batch.iter().filter(|event| sample.has(&event.thread_id) && event.is_awaited()).count();
            wait_judged(&metrics, fed as u64)?;
        }
    }
    let process = cpu_seconds(UsageWho::RUSAGE_SELF)? - process;
    ensure!(metrics.shadow_dropped.get() == 0, "events were dropped");
    Ok((deciding, process))
}

/// Waits until the judge has compared what it was fed.
fn wait_judged(metrics: &Metrics, fed: u64) -> Result<()> {
    let deadline = Instant::now() + PAUSE_MAX;
    while metrics.shadow_compared.get() + metrics.shadow_left_out.get() < fed {
        ensure!(Instant::now() < deadline, "the judge stands still");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
