//! Measures what a policy on trial (`run --shadow`) costs: the thread that decides, and the whole process, at several samples. No broker is
//! needed: what differs is handed to a producer that finds none.
//!
//! ```text
//! cargo bench -p tollgate-bench --bench shadow
//! ```
//!
//! All samples take turns over the same events, and the median of the rounds counts. The clock is that of CPU time. The deciding thread pauses
//! between batches until the judge has caught up, so that nothing is dropped; the pause costs no CPU time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use serde_json::json;
use tollgate_config::settings::Settings;
use tollgate_core::decide::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::shadow::{Decision, Sample};
use tollgate_core::engine::stage::{Progress, Stage as _};
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_testkit::{Mix, MixEvent, MixSettings};
use tollgate_worker::metrics::Metrics;
use tollgate_worker::shadow::{ShadowFeed, Trial};

const ROUNDS: usize = 5;
const EVENTS: usize = 100_000;
/// How many events are decided before the judge has to catch up: fewer than may wait for it.
const BATCH: usize = 4_000;
/// The shares of the threads, in per cent; 0 is without a policy on trial.
const SAMPLES: [f64; 4] = [0.0, 1.0, 5.0, 100.0];
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Nanoseconds of CPU time per event.
#[derive(Debug, Clone, Copy)]
struct Cost {
    deciding: f64,
    process: f64,
}

fn main() {
    let settings = Settings::read(&json!({"kafka": {"brokers": "127.0.0.1:1"}}), &tollgate_core::settings::defaults().unwrap()).unwrap();
    let trial = Settings::read(
        &json!({"tool_loop_guardrails": {"same_tool_failure_halt_after": 4}}),
        &tollgate_core::settings::defaults().unwrap(),
    )
    .unwrap();
    let mut mix =
        Mix::new(MixSettings { result_bytes_max: 600, arguments_bytes_max: 200, response_bytes_max: 1_000, ..MixSettings::USUAL });
    let events: Vec<MixEvent> = (0..EVENTS)
        .map(|_| {
            let mut event = MixEvent::blank();
            mix.next_into(&mut event);
            event
        })
        .collect();
    let bytes: usize = events.iter().map(|event| event.value.len()).sum();
    let mut costs = [const { Vec::new() }; SAMPLES.len()];
    for _ in 0..ROUNDS {
        for (costs, percent) in costs.iter_mut().zip(SAMPLES) {
            costs.push(measure(&settings, &trial, percent, &events));
        }
    }
    let median = |costs: &[Cost], of: fn(&Cost) -> f64| {
        let mut found: Vec<f64> = costs.iter().map(of).collect();
        found.sort_by(f64::total_cmp);
        found[found.len() / 2]
    };
    println!("{EVENTS} events of {} bytes, {ROUNDS} rounds", bytes / EVENTS);
    println!("{:<10} {:>18} {:>7} {:>18} {:>7}", "sample", "deciding ns/event", "ratio", "process ns/event", "ratio");
    let [alone, ..] = &costs;
    let base = (median(alone, |cost| cost.deciding), median(alone, |cost| cost.process));
    for (costs, percent) in costs.iter().zip(SAMPLES) {
        let (deciding, process) = (median(costs, |cost| cost.deciding), median(costs, |cost| cost.process));
        let name = if percent == 0.0 { "none".to_owned() } else { format!("{percent} %") };
        println!("{name:<10} {deciding:>18.0} {:>6.2}× {process:>18.0} {:>6.2}×", deciding / base.0, process / base.1);
    }
}

/// Decides on all events, with a share of the threads on trial.
fn measure(ours: &Settings, theirs: &Settings, percent: f64, events: &[MixEvent]) -> Cost {
    let (policy, metrics) = (Arc::new(Policy::new(&ours.policy)), Metrics::new().unwrap());
    let kafka = Arc::new(ours.kafka.clone());
    let mut feed = Sample::of_percent(percent).map(|sample| {
        let on_trial = Arc::new(Policy::new(&theirs.policy));
        let trial = Trial::new(&theirs.policy, &policy, on_trial, sample, (&kafka, &metrics)).unwrap();
        let feed = ShadowFeed::start(&trial);
        feed.taken(Partition(0), None);
        (feed, sample)
    });
    let (mut stage, mut out, mut fed) = (Deciding::new(policy), VerdictBuffer::default(), 0);
    let (mut deciding, process) = (Duration::ZERO, cpu_time(UsageWho::RUSAGE_SELF));
    for (number, batch) in events.chunks(BATCH).enumerate() {
        let before = cpu_time(UsageWho::RUSAGE_THREAD);
        for (index, event) in batch.iter().enumerate() {
            let record = Record {
                topic: "agent.events",
                partition: Partition(0),
                offset: Offset(i64::try_from(number * BATCH + index).unwrap()),
                timestamp_ms: None,
                key: Some(event.thread_id.as_bytes()),
                value: Some(&event.value),
                headers: &[],
            };
            let Progress::Done(outcome) = stage.apply(&record, &mut out) else { panic!("nobody is asked") };
            if let Some((feed, _)) = &mut feed {
                match &outcome {
                    Outcome::Verdict { decided, .. } => feed.decided(&record, &out.thread_id, || Some(Decision::of(decided))),
                    _ => feed.decided(&record, &out.thread_id, || None),
                }
            }
        }
        deciding += cpu_time(UsageWho::RUSAGE_THREAD) - before;
        if let Some((_, sample)) = &feed {
            fed += batch.iter().filter(|event| sample.has(&event.thread_id) && event.is_awaited()).count();
            wait_judged(&metrics, fed as u64);
        }
    }
    let process = cpu_time(UsageWho::RUSAGE_SELF) - process;
    assert_eq!(metrics.shadow_dropped.get(), 0);
    let per_event = |time: Duration| time.as_secs_f64() * 1e9 / events.len() as f64;
    Cost { deciding: per_event(deciding), process: per_event(process) }
}

fn wait_judged(metrics: &Metrics, fed: u64) {
    let deadline = Instant::now() + PAUSE_MAX;
    while metrics.shadow_compared.get() + metrics.shadow_left_out.get() < fed {
        assert!(Instant::now() < deadline, "the judge stands still");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn cpu_time(who: UsageWho) -> Duration {
    let usage: Usage = getrusage(who).unwrap();
    [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| Duration::from_micros((time.tv_sec() * 1_000_000 + time.tv_usec()).unsigned_abs()))
        .sum()
}
