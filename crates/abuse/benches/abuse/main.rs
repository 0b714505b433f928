//! Measures the fold of the abuse stage: signals a second of a core, and bytes of the process per subject, beside a prototype that is run in
//! the same minute. Time is that of the processor. Others on the machine still slow it down, because they share its memory, so that the
//! quickest of three runs of a row counts.
//!
//! `cargo bench -p tollgate-abuse --bench abuse`, with `-- --json` for one JSON object (Linux: it reads `/proc`). Each row runs in
//! a process of its own. `TOLLGATE_ABUSE_SUBJECTS` says how many subjects, a million without it. With `-- --warm-up` it says how long a
//! partition stands still when it takes in what rules that are new were shown.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "a benchmark has no interface")]

mod naive;
mod signals;
mod warm_up;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tollgate_abuse::{Abuse, AbuseRules, AbuseState};
use tollgate_core::decide::signal::{Batch, Clock, Point, Signals};
use tollgate_core::engine::stage::Stage;
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::measure::{is_json, print_json, rounded};

use naive::Naive;
use signals::{Traffic, rules};

const PAGE_BYTES: usize = 4_096;
/// The variable that says which row a process measures.
const ROW: &str = "TOLLGATE_ABUSE_ROW";
/// As many signals a record has.
const BATCH: usize = 64;
/// As many records are made, and then folded, before more are made.
const CHUNK: usize = 64;
const SIGNALS_EACH: usize = 3;
const RUNS: usize = 3;

/// A measurement: its name, how many rules there are, and what of it is compared.
struct Row {
    name: &'static str,
    rules: usize,
    /// How many of a hundred signals are of one and the same subject.
    hot: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Naive,
    Fold,
    Decode,
}

const ROWS: [Row; 6] = [
    Row { name: "naive prototype", rules: 4, hot: 0, kind: Kind::Naive },
    Row { name: "fold, uniform", rules: 10, hot: 0, kind: Kind::Fold },
    Row { name: "naive, one subject has half", rules: 4, hot: 50, kind: Kind::Naive },
    Row { name: "fold, one subject has half", rules: 10, hot: 50, kind: Kind::Fold },
    Row { name: "fold, 200 rules", rules: 200, hot: 0, kind: Kind::Fold },
    Row { name: "decode and fold", rules: 10, hot: 0, kind: Kind::Decode },
];

fn main() {
    if let Ok(row) = std::env::var(ROW) {
        let row = measure(&ROWS[row.parse::<usize>().expect("a number")]);
        println!("{row}");
        return;
    }
    if std::env::args().any(|argument| argument == "--warm-up") {
        warm_up::measure(subjects());
        return;
    }
    // The prototype runs beside the fold each time.
    let runs: Vec<Vec<Value>> = (0..RUNS).map(|_| (0..ROWS.len()).map(measure_apart).collect()).collect();
    let rows: Vec<Value> = (0..ROWS.len()).map(|row| quickest(runs.iter().map(|run| &run[row]))).collect();
    if is_json() {
        print_json("abuse", rows);
        return;
    }
    println!("{:<28} {:>6} {:>14} {:>18} {:>16} {:>12}", "row", "rules", "signals/s", "signals/s, known", "bytes/subject", "state bytes");
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap_or_default();
        println!(
            "{:<28} {:>6} {:>14.0} {:>18.0} {:>16.0} {:>12.0}",
            row["name"].as_str().unwrap_or_default(),
            row["rules"],
            number("signals_per_second"),
            number("signals_per_second_known"),
            number("bytes_per_subject"),
            number("state_bytes_per_subject")
        );
    }
}

fn subjects() -> usize {
    std::env::var("TOLLGATE_ABUSE_SUBJECTS").map_or(1_000_000, |subjects| subjects.parse().expect("a number"))
}

fn quickest<'r>(runs: impl Iterator<Item = &'r Value>) -> Value {
    let speed = |found: &Value| found["signals_per_second"].as_f64().expect("a number");
    runs.max_by(|one, other| speed(one).total_cmp(&speed(other))).expect("there is a run").clone()
}

/// Measures a row in a process of its own, so that what one leaves to the allocator is nothing to the next.
fn measure_apart(row: usize) -> Value {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let output = command.env(ROW, row.to_string()).stderr(Stdio::inherit()).output().expect("it starts");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("a row")
}

/// What is measured.
enum Subject {
    Naive(Box<Naive>),
    Stage(Box<Abuse>, i64),
}

fn measure(row: &Row) -> Value {
    let subjects = subjects();
    let mut traffic = Traffic::new(subjects, row.hot);
    let before = resident_bytes();
    let rules = Arc::new(AbuseRules { rules: rules(row.rules), lateness_ms: 300_000, subjects_max: 2 * subjects });
    let mut subject = match row.kind {
        Kind::Naive => Subject::Naive(Box::default()),
        Kind::Fold | Kind::Decode => Subject::Stage(Box::new(Abuse::new(rules, AbuseState::default())), 0),
    };
    let signals = SIGNALS_EACH * subjects;
    // Every subject comes once before any comes again; then the second half of the time is that of subjects that are known.
    let first = run(&mut subject, &mut traffic, subjects, row.kind);
    let known = run(&mut subject, &mut traffic, signals - subjects, row.kind);
    let bytes = resident_bytes().saturating_sub(before);
    let state_bytes = match &subject {
        Subject::Stage(stage, _) => tollgate_core::engine::checkpoint::KeyedState::bytes(stage.state()),
        Subject::Naive(_) => 0,
    };
    let per_second = |signals: usize, took: Duration| rounded(signals as f64 / took.as_secs_f64(), 0);
    json!({
        "name": row.name, "rules": row.rules, "subjects": subjects,
        "signals_per_second": per_second(signals, first + known),
        "signals_per_second_known": per_second(signals - subjects, known),
        "bytes_per_subject": bytes / subjects, "state_bytes_per_subject": state_bytes / subjects,
    })
}

/// Folds so many signals, and returns the time of the processor that it took. Making them is not timed.
fn run(subject: &mut Subject, traffic: &mut Traffic, signals: usize, kind: Kind) -> Duration {
    let mut took = Duration::ZERO;
    let mut left = signals;
    while left > 0 {
        let mut chunk = Vec::with_capacity(CHUNK);
        while left > 0 && chunk.len() < CHUNK {
            let count = left.min(BATCH);
            left -= count;
            chunk.push(Made::new(traffic.next(count), traffic.offset(), kind));
        }
        let started = processor_time();
        for made in &chunk {
            match subject {
                Subject::Naive(naive) => made.signals.points.iter().for_each(|point| naive.fold(point)),
                Subject::Stage(stage, next) => {
                    *next += 1;
                    made.fold(stage, *next, kind);
                }
            }
        }
        took += processor_time() - started;
    }
    took
}

/// A record that is made, and not folded yet.
struct Made {
    signals: Signals<'static>,
    value: Vec<u8>,
    time_ms: i64,
}

impl Made {
    fn new(points: Vec<Point<'static>>, next: i64, kind: Kind) -> Self {
        let time_ms = points[0].time_ms;
        let clock = Clock { source: Partition(0), next: Offset(next), time_ms, has_begun: false };
        let value = if kind == Kind::Decode { value_of(&points, clock) } else { Vec::new() };
        Self { signals: Signals { points, clocks: vec![clock], ..Signals::default() }, value, time_ms }
    }

    fn fold(&self, stage: &mut Abuse, offset: i64, kind: Kind) {
        self.with_record(offset, |record| {
            if kind == Kind::Decode {
                let _progress = stage.apply(record, &mut ());
            } else {
                let _folded = stage.fold(record, &self.signals);
            }
        });
    }

    fn with_record(&self, offset: i64, mut use_record: impl FnMut(&Record<'_>)) {
        let (partition, offset, value) = (Partition(0), Offset(offset), Some(self.value.as_slice()));
        let timestamp_ms = Some(self.time_ms);
        use_record(&Record { topic: "tollgate.signals", partition, offset, timestamp_ms, key: None, value, headers: &[] });
    }
}

/// Returns the time that the processor has given to this thread.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    Duration::from_nanos(stat.split_whitespace().next().expect("a time").parse().expect("nanoseconds"))
}

fn value_of(points: &[Point<'_>], clock: Clock) -> Vec<u8> {
    let (mut batch, mut value) = (Batch::default(), Vec::new());
    points.iter().for_each(|point| batch.point(point));
    batch.clock(clock);
    batch.take(&mut value);
    value
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = statm.split_whitespace().nth(1).expect("resident pages").parse().expect("a number");
    pages * PAGE_BYTES
}
