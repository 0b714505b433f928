//! Measures the costliest legal events of the largest size against ordinary ones of that size, and prints the ratio.
//!
//! Every event has as many bytes as `limits.event_bytes_max` allows by default. An ordinary one is a file: as the text that a tool has
//! returned, or as the text that a tool is to write. The reference is the cheaper of the two. An extreme one is of a shape that makes
//! reading, hashing, detecting or examining dear. Each round times the reference and the extreme event in turn, so that a machine that gets
//! slower gets slower for both. What refuses an event, if anything does, stands in the last column.
//!
//! `cargo bench -p tollgate-core --bench extremes`, with `-- --json` for one JSON object, or `-- WORD` for the events whose name holds it
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "a benchmark has no interface")]

mod shapes;

use std::time::Instant;

use serde_json::json;
use tollgate_core::decide::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::Progress;
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::measure::{is_json, median, median_ratio, print_json, rounded};

use shapes::{BYTES, EXTREMES, Extreme, ORDINARY};

const ROUNDS: usize = 7;
/// How many times an ordinary event's cost an extreme one may cost.
const RATIO_MAX: f64 = 100.0;

fn main() {
    let is_json = is_json();
    let word = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let reference = ORDINARY.iter().map(|make| make()).min_by(|left, right| time(left).0.total_cmp(&time(right).0)).unwrap();
    if !is_json {
        println!("events of {BYTES} bytes; the reference is: {}", reference.name);
        println!("{:<52} {:>10} {:>8}  outcome", "event", "ms", "ratio");
    }
    let (mut rows, mut worst) = (Vec::new(), 0.0_f64);
    for make in ORDINARY.iter().chain(EXTREMES) {
        let extreme = make();
        if word.as_deref().is_some_and(|word| !extreme.name.contains(word)) {
            continue;
        }
        assert!(extreme.event.len() <= BYTES && extreme.event.len() > BYTES * 9 / 10, "{}: {}", extreme.name, extreme.event.len());
        let (mut costs, mut references) = (Vec::new(), Vec::new());
        let mut outcome = String::new();
        for _ in 0..ROUNDS {
            references.push(time(&reference).0);
            let (cost, said) = time(&extreme);
            costs.push(cost);
            outcome = said;
        }
        let ratio = median_ratio(&costs, &references);
        worst = worst.max(ratio);
        let ms = median(costs) / 1e6;
        if !is_json {
            println!("{:<52} {ms:>10.1} {ratio:>8.1}  {outcome}", extreme.name);
        }
        rows.push(json!({"name": extreme.name, "ms": rounded(ms, 1), "over_ordinary": rounded(ratio, 1), "outcome": outcome}));
    }
    if is_json {
        print_json("extremes", rows);
    } else {
        println!("the target of {RATIO_MAX} times an ordinary event is {}", if worst <= RATIO_MAX { "met" } else { "MISSED" });
    }
}

/// Returns the nanoseconds of one event on a processor that has seen none, and what became of it.
fn time(extreme: &Extreme) -> (f64, String) {
    let stage = Deciding::new((extreme.policy)());
    let mut processor = PartitionProcessor::new(Partition(0), stage);
    let mut out = VerdictBuffer::default();
    let (partition, offset, value) = (Partition(0), Offset(0), Some(extreme.event.as_bytes()));
    let record = Record { topic: "agent.events", partition, offset, timestamp_ms: None, key: None, value, headers: &[] };
    let started = Instant::now();
    let applied = processor.apply(&record, &mut out);
    let ns = started.elapsed().as_nanos() as f64;
    let said = match applied {
        Ok(Applied::Taken(Progress::Done(Outcome::Verdict { decided, .. }))) => decided.code.into_owned(),
        Ok(Applied::Taken(Progress::Done(Outcome::DeadLetter(rejection)))) => format!("refused: {}", rejection.code.as_str()),
        Ok(Applied::Taken(Progress::Asks(_))) => "asks".to_owned(),
        other => panic!("{}: {other:?}", extreme.name),
    };
    (ns, said)
}
