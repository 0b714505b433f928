//! Measures what signals cost: the same traffic decided on without signals and controls, and with them.
//!
//! A thread's model answers, calls a tool and gets its result, again and again, for a thousand users of twenty tenants. With signals on, calls,
//! responses and tokens are told by tenant, as the default rules ask for it, and a thousand other users are suspended, so that each call's user
//! is looked up. The last column also puts the signals into batches for sixteen partitions, and writes those, a batch for 500 events.
//! Rounds are timed in turn: quote the ratios.

use std::hint::black_box;
use std::sync::Arc;

use serde_json::json;
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::decide::signal::{Batch, Interest, KeyKind, SignalKind, SubjectPartitions};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_fixtures::controls::{controls, suspend};
use tollgate_fixtures::events::{At, Feed, policy};
use tollgate_fixtures::gate::settings;
use tollgate_fixtures::measure::{Table, in_turns, median, median_ratio, rounded, time_per_event};

const ROUNDS: usize = 101;
const THREADS: usize = 1_000;
const TENANTS: usize = 20;
const SUSPENDED: usize = 1_000;
const PARTITIONS: usize = 16;
const EVENTS_A_BATCH: usize = 500;
/// How many times as much an event may cost with signals.
const TARGET: f64 = 1.10;

pub fn measure(mut table: Table) {
    let (prelude, measured) = traffic();
    let (off, on, controlled) = (policy(), with_signals(), Arc::new(suspended()));
    let times = in_turns(
        ROUNDS,
        [
            &|| decide(&off, &prelude, &measured),
            &|| decide(&on, &prelude, &measured),
            &|| decide_and_tell(&on, &prelude, &measured),
            &|| decide(&controlled, &prelude, &measured),
        ],
    );
    for (name, of_side) in ["off", "on", "on, in batches", "controls alone"].into_iter().zip(&times) {
        let ratio = rounded(median_ratio(of_side, &times[0]), 3);
        table.row([("name", json!(name)), ("ns", json!(rounded(median(of_side.clone()), 1))), ("over_off", json!(ratio))]);
    }
    table.end_with_target(&format!("{TARGET} times as much for deciding with signals"), median_ratio(&times[1], &times[0]) <= TARGET);
}

/// Returns the events that bring every thread into a turn, and those that are measured.
fn traffic() -> (Vec<String>, Vec<String>) {
    let of = |thread: usize, event: String| {
        let event = event.replacen("user-4711", &format!("user-{thread}"), 1);
        event.replacen(r#""acme""#, &format!(r#""tenant-{}""#, thread % TENANTS), 1)
    };
    let step = |thread, call| {
        let at = At { thread, turn: 1, call };
        [at.model_response(), at.tool_call(), at.tool_result()].map(|event| of(thread, event))
    };
    let prelude = (0..THREADS).flat_map(|thread| {
        let start = of(thread, At { thread, turn: 1, call: 0 }.turn_start());
        std::iter::once(start).chain(step(thread, 1))
    });
    let measured = (2..5).flat_map(|call| (0..THREADS).flat_map(move |thread| step(thread, call)));
    (prelude.collect(), measured.collect())
}

fn suspended() -> Policy {
    let controls = controls();
    for number in 0..SUSPENDED {
        suspend(&controls, SubjectKind::User, "tenant-1", &format!("suspended-{number}"), &json!({}));
    }
    Policy::under(&settings(&json!({})), Arc::new(controls))
}

fn with_signals() -> Arc<Policy> {
    let mut interest = Interest::default();
    for signal in ["call", "response", "tokens"] {
        interest.add(SignalKind::from_name(signal).expect("a signal"), KeyKind::Tenant);
    }
    Arc::new(suspended().with_signals(interest))
}

fn decide(policy: &Arc<Policy>, prelude: &[String], measured: &[String]) -> f64 {
    let mut feed = Feed::new(policy);
    feed.apply_all(prelude);
    time_per_event(measured.len(), || feed.apply_all(measured))
}

fn decide_and_tell(policy: &Arc<Policy>, prelude: &[String], measured: &[String]) -> f64 {
    let mut feed = Feed::new(policy);
    feed.apply_all(prelude);
    let mut batches: Vec<Batch> = (0..PARTITIONS).map(|_| Batch::default()).collect();
    let (mut partitions, mut targets, mut value) = (SubjectPartitions::new(PARTITIONS as u32), Vec::new(), Vec::new());
    time_per_event(measured.len(), || {
        for (number, event) in measured.iter().enumerate() {
            black_box(feed.apply(event));
            let offset = Offset(i64::try_from(number).expect("a small number"));
            feed.signals().add_to((Partition(0), offset), &mut partitions, &mut batches, &mut targets);
            if (number + 1) % EVENTS_A_BATCH == 0 {
                for batch in batches.iter_mut().filter(|batch| !batch.is_empty()) {
                    value.clear();
                    batch.take(&mut value);
                    black_box(&value);
                }
            }
        }
    })
}
