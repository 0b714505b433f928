//! Replays runs of agents: verdicts are the same bytes however the log is cut, and the default policy decides as it always has.
//!
//! Synthetic runs are the test kit's traffic. Recorded runs of real agents are not on every machine: where they are missing, their tests
//! are reported as ignored, with the reason.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

#[path = "redact/pair.rs"]
#[allow(dead_code, reason = "the tests of redaction use the rest of it")]
mod pair;
#[path = "support/recorded.rs"]
mod recorded;
mod support;
#[path = "../../testkit/src/traffic/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the benchmarks use the rest of it")]
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Once;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::Value;
use support::{Gate, default_policy};
use tollgate_core::deciding::Outcome;
use tollgate_core::record::partition_of;

use traffic::{Mix, MixEvent, MixSettings};

/// Events in order: the thread of each, and the event.
type Log = Vec<(String, String)>;

/// A recording, and what the default policy decides on it: a change here is a change of behaviour.
struct Recording {
    name: &'static str,
    threads: usize,
    /// Verdicts by event type, action and code.
    counts: &'static [(&'static str, usize)],
    /// Every verdict that is not a plain allow: thread, event, tool, code, count.
    remarks: &'static [(&'static str, &'static str, &'static str, &'static str, Option<u64>)],
}

const RECORDINGS: [Recording; 2] = [
    Recording {
        name: recorded::TAU_AIRLINE,
        threads: 189,
        counts: &[
            ("tool_call allow allow", 1_209),
            ("tool_call block repeated_exact_failure_block", 4),
            ("tool_result allow allow", 1_204),
            ("tool_result allow not_executed", 4),
            ("tool_result warn repeated_exact_failure_warning", 3),
            ("tool_result warn same_tool_failure_warning", 2),
        ],
        remarks: &[
            ("tau-airline/gpt-4o/3/0", "e46", "update_reservation_flights", "same_tool_failure_warning", Some(3)),
            ("tau-airline/gpt-4o/8/1", "e29", "book_reservation", "repeated_exact_failure_warning", Some(2)),
            ("tau-airline/gpt-4o/8/1", "e32", "book_reservation", "repeated_exact_failure_block", Some(2)),
            ("tau-airline/gpt-4o/8/1", "e33", "book_reservation", "not_executed", None),
            ("tau-airline/gpt-4o/9/2", "e45", "book_reservation", "repeated_exact_failure_warning", Some(2)),
            ("tau-airline/gpt-4o/9/2", "e48", "book_reservation", "repeated_exact_failure_block", Some(2)),
            ("tau-airline/gpt-4o/9/2", "e49", "book_reservation", "not_executed", None),
            ("tau-airline/gpt-4o/9/2", "e52", "book_reservation", "repeated_exact_failure_block", Some(2)),
            ("tau-airline/gpt-4o/9/2", "e53", "book_reservation", "not_executed", None),
            ("tau-airline/gpt-4o/11/2", "e15", "book_reservation", "repeated_exact_failure_warning", Some(2)),
            ("tau-airline/gpt-4o/11/2", "e20", "book_reservation", "repeated_exact_failure_block", Some(2)),
            ("tau-airline/gpt-4o/11/2", "e21", "book_reservation", "not_executed", None),
            ("tau-airline/gpt-4o/11/2", "e27", "book_reservation", "same_tool_failure_warning", Some(3)),
        ],
    },
    Recording {
        name: recorded::SWEAGENT_DEMOS,
        threads: 21,
        counts: &[("tool_call allow allow", 227), ("tool_result allow allow", 227)],
        remarks: &[],
    },
];

/// What the default policy decides on the synthetic runs.
const SYNTHETIC_COUNTS: [(&str, usize); 8] = [
    ("model_response allow allow", 2_207),
    ("model_response suppress safety_terminated", 83),
    ("tool_call allow allow", 2_470),
    ("tool_call block idempotent_no_progress_block", 112),
    ("tool_call block repeated_exact_failure_block", 122),
    ("tool_result allow allow", 2_064),
    ("tool_result warn idempotent_no_progress_warning", 125),
    ("tool_result warn repeated_exact_failure_warning", 134),
];

/// Whether it has been said that recorded runs are missing.
static WARNED: Once = Once::new();

fn main() -> ExitCode {
    let ran = |ran: Result<(), String>| match ran {
        Ok(()) => Ok(Completion::Completed),
        Err(lacking) => {
            WARNED.call_once(|| eprintln!("\nWARNING: recorded runs are NOT tested: {lacking}"));
            Ok::<_, Failed>(Completion::ignored_with(lacking))
        }
    };
    let mut trials = vec![
        Trial::test("synthetic_runs_give_the_same_bytes_however_they_are_cut", || {
            is_the_same_however_it_is_cut(&synthetic());
            Ok(())
        }),
        Trial::test("what_the_default_policy_makes_of_synthetic_runs", || {
            assert_eq!(judged(&synthetic()).0, owned(&SYNTHETIC_COUNTS));
            Ok(())
        }),
        Trial::ignorable_test("recorded_runs_give_the_same_bytes_however_they_are_cut", move || {
            let logs = RECORDINGS.iter().map(|recording| read(recording.name)).collect::<Result<Vec<_>, _>>();
            ran(logs.map(|logs| is_the_same_however_it_is_cut(&logs.concat())))
        }),
    ];
    for recording in &RECORDINGS {
        let name = format!("what_the_default_policy_makes_of_{}", recording.name);
        trials.push(Trial::ignorable_test(name, move || ran(read(recording.name).map(|log| check_recording(recording, &log)))));
        let name = format!("redaction_keeps_every_verdict_of_{}", recording.name);
        trials.push(Trial::ignorable_test(name, move || ran(read(recording.name).map(|log| check_redaction(recording, &log)))));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn read(name: &str) -> Result<Log, String> {
    let thread_of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["thread_id"].as_str().unwrap().to_owned();
    Ok(recorded::events(name)?.into_iter().map(|line| (thread_of(&line), line)).collect())
}

/// Returns 300 threads at the same time, with more loops, cut-off responses and long results than usual.
fn synthetic() -> Log {
    let settings = MixSettings { seed: 7, threads: 300, loops: 0.2, safety_stops: 0.05, ..MixSettings::default() };
    let (mut mix, mut event) = (Mix::new(settings), MixEvent::blank());
    let mut next = || {
        mix.next_into(&mut event);
        (event.thread_id.clone(), String::from_utf8(event.value.clone()).unwrap())
    };
    (0..8_000).map(|_| next()).collect()
}

/// Returns the verdicts of each thread in order, when the log is read by this many partitions.
fn replay(log: &[(String, String)], partitions: u32) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut gates: Vec<_> = (0..partitions).map(|_| Gate::new(default_policy())).collect();
    let mut verdicts: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (thread_id, line) in log {
        let partition = usize::try_from(partition_of(thread_id.as_bytes(), partitions).0).unwrap();
        let (applied, bytes) = gates[partition].record(Some(thread_id.as_bytes()), Some(line.as_bytes()), &[]);
        assert!(!matches!(applied, Outcome::DeadLetter(_)), "{line}");
        assert_eq!(bytes.is_empty(), matches!(applied, Outcome::Boundary(_)), "{line}");
        verdicts.entry(thread_id.clone()).or_default().push(bytes);
    }
    verdicts
}

fn is_the_same_however_it_is_cut(log: &Log) {
    let expected = replay(log, 1);
    assert!(expected.len() > 100, "{} threads", expected.len());
    assert_eq!(replay(log, 32), expected, "32 partitions");
    assert_eq!(replay(log, 1), expected, "once more");
    assert_eq!(replay(log, 32), expected, "once more by 32 partitions");
    assert_eq!(replay(&interleaved(log), 1), expected, "all threads at the same time");
    assert_eq!(replay(&one_by_one(log), 1), expected, "one thread after the other");
}

/// Returns the threads side by side: the first event of each, then the second of each, and so on.
fn interleaved(log: &Log) -> Log {
    let mut seen = BTreeMap::<&str, usize>::new();
    let mut ranked: Vec<_> = log
        .iter()
        .map(|entry| {
            let rank = seen.entry(&entry.0).or_default();
            *rank += 1;
            (*rank, entry)
        })
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, entry)| entry.clone()).collect()
}

/// Returns the threads one after the other, each when the one before it is done.
fn one_by_one(log: &Log) -> Log {
    let mut sorted = log.clone();
    // The sort is stable.
    sorted.sort_by(|left, right| left.0.cmp(&right.0));
    sorted
}

/// A verdict that is not a plain allow: thread, event, tool, code, count.
type Remark = (String, String, String, String, Option<u64>);

/// Counts each kind of verdict, and returns those that are no plain allow.
fn judged(log: &Log) -> (BTreeMap<String, usize>, Vec<Remark>) {
    let mut gate = Gate::new(default_policy());
    let mut counts = BTreeMap::<String, usize>::new();
    let mut remarks = Vec::new();
    for (thread_id, line) in log {
        let (_, bytes) = gate.record(Some(thread_id.as_bytes()), Some(line.as_bytes()), &[]);
        let Ok(verdict) = serde_json::from_slice::<Value>(&bytes) else { continue };
        let field = |name: &str| verdict[name].as_str().unwrap_or_default().to_owned();
        *counts.entry(format!("{} {} {}", field("type"), field("action"), field("code"))).or_default() += 1;
        if verdict["code"] != "allow" {
            remarks.push((thread_id.clone(), field("event_id"), field("tool_name"), field("code"), verdict["count"].as_u64()));
        }
    }
    (counts, remarks)
}

fn owned(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect()
}

fn check_recording(recording: &Recording, log: &Log) {
    let threads: BTreeSet<_> = log.iter().map(|(thread_id, _)| thread_id).collect();
    assert_eq!(threads.len(), recording.threads);
    let (counts, remarks) = judged(log);
    assert_eq!(counts, owned(recording.counts));
    let own = |text: &str| text.to_owned();
    let expected = recording.remarks.iter().map(|(thread, event, tool, code, n)| (own(thread), own(event), own(tool), own(code), *n));
    assert_eq!(remarks, expected.collect::<Vec<_>>());
}

fn check_redaction(recording: &Recording, log: &Log) {
    let mut pair = pair::Pair::new(default_policy);
    for (thread_id, line) in log {
        pair.record(Some(thread_id.as_bytes()), Some(line.as_bytes()), &[]).unwrap();
    }
    let verdicts: usize = recording.counts.iter().map(|(_, count)| count).sum();
    assert_eq!((pair.verdicts, pair.interventions), (verdicts, recording.remarks.len()));
}
