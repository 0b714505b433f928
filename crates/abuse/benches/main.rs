//! Measures the fold of the abuse stage: signals a second of a core, and bytes of the process per subject, beside a prototype that is run in
//! the same minute. Time is that of the processor. Others on the machine still slow it down, because they share its memory, so that the
//! quickest of three runs of a row counts.
//!
//! `cargo bench -p tollgate-abuse -- fold`, with `--json` for one JSON object. Each row runs in a process of its own.
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

use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::json;
use tollgate_abuse::{Abuse, AbuseRules, AbuseState};
use tollgate_core::decide::signal::{Batch, Clock, Point, Signals};
use tollgate_core::engine::checkpoint::KeyedState;
use tollgate_core::engine::stage::Stage;
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::measure::{Table, apart, processor_time, resident_bytes, rounded};

use naive::Naive;
use signals::{Traffic, rules};

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

/// The benchmarks of the abuse stage alone
#[derive(Parser)]
#[command(bin_name = "cargo bench -p tollgate-abuse --", max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    benchmark: Benchmark,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
    /// Cargo passes this option to every benchmark
    #[arg(long = "bench", global = true, hide = true)]
    _bench: bool,
}

#[derive(Subcommand)]
enum Benchmark {
    /// The fold: signals a second and bytes per subject, beside a naive prototype
    Fold {
        /// How many subjects there are
        #[arg(long, env = "TOLLGATE_ABUSE_SUBJECTS", default_value_t = 1_000_000)]
        subjects: usize,
        /// Measure the row of this number alone
        #[arg(long, hide = true)]
        row: Option<usize>,
    },
}

fn main() {
    let Cli { benchmark: Benchmark::Fold { subjects, row }, json, .. } = Cli::parse();
    match row {
        Some(row) => measure_row(&ROWS[row], subjects),
        None => measure(Table::new("fold", json), subjects),
    }
}

fn measure(mut table: Table, subjects: usize) {
    // The prototype runs beside the fold each time.
    let run = |row: usize| apart(&["fold", "--subjects", &subjects.to_string(), "--row", &row.to_string()]);
    let runs: Vec<Vec<Vec<f64>>> = (0..RUNS).map(|_| (0..ROWS.len()).map(run).collect()).collect();
    for (number, row) in ROWS.iter().enumerate() {
        let quickest = runs.iter().map(|run| &run[number]).max_by(|one, other| one[0].total_cmp(&other[0])).expect("there is a run");
        table.row([
            ("name", json!(row.name)),
            ("rules", json!(row.rules)),
            ("subjects", json!(subjects)),
            ("signals_per_second", json!(quickest[0])),
            ("signals_per_second_known", json!(quickest[1])),
            ("bytes_per_subject", json!(quickest[2])),
            ("state_bytes_per_subject", json!(quickest[3])),
        ]);
    }
    table.end();
}

/// What is measured.
enum Subject {
    Naive(Box<Naive>),
    Stage(Box<Abuse>, i64),
}

/// Measures one row, and prints the figures of the row.
fn measure_row(row: &Row, subjects: usize) {
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
        Subject::Stage(stage, _) => stage.state().bytes(),
        Subject::Naive(_) => 0,
    };
    let per_second = |signals: usize, took: Duration| rounded(signals as f64 / took.as_secs_f64(), 0);
    let speeds = [per_second(signals, first + known), per_second(signals - subjects, known)];
    println!("{}", json!([speeds[0], speeds[1], bytes / subjects, state_bytes / subjects]));
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
        let (partition, offset, value) = (Partition(0), Offset(offset), Some(self.value.as_slice()));
        let timestamp_ms = Some(self.time_ms);
        let record = Record { topic: "tollgate.signals", partition, offset, timestamp_ms, key: None, value, headers: &[] };
        if kind == Kind::Decode {
            let _progress = stage.apply(&record, &mut ());
        } else {
            let _folded = stage.fold(&record, &self.signals);
        }
    }
}

fn value_of(points: &[Point<'_>], clock: Clock) -> Vec<u8> {
    let (mut batch, mut value) = (Batch::default(), Vec::new());
    points.iter().for_each(|point| batch.point(point));
    batch.clock(clock);
    batch.take(&mut value);
    value
}
