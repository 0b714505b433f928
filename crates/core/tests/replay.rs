//! Recorded runs of real agents: the same bytes however the log is cut, and what the default policy makes of them.
//!
//! The runs are in `data/real`, with their licence beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use support::{Gate, check_each, default_policy};
use tollgate_core::deciding::Outcome;
use tollgate_core::record::partition_of;

/// A recording, and what the default policy decides on it: a change here is a change of behaviour.
struct Recording {
    path: &'static str,
    threads: usize,
    /// Verdicts by event type, action and code.
    counts: &'static [(&'static str, usize)],
    /// Every verdict that is not a plain allow: thread, event, tool, code, count.
    remarks: &'static [(&'static str, &'static str, &'static str, &'static str, Option<u64>)],
}

const RECORDINGS: [Recording; 2] = [
    Recording {
        path: "tests/data/real/tau-airline.jsonl.gz",
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
        path: "tests/data/real/sweagent-demos.jsonl.gz",
        threads: 21,
        counts: &[("tool_call allow allow", 227), ("tool_result allow allow", 227)],
        remarks: &[],
    },
];

/// The lines of a compressed recording with the thread of each. Every system that builds this has `gzip`.
fn read(path: &str) -> Vec<(String, String)> {
    let unpacked = Command::new("gzip").args(["-dc", path]).output().expect("gzip runs");
    assert!(unpacked.status.success(), "{path}: {}", String::from_utf8_lossy(&unpacked.stderr));
    let lines = String::from_utf8(unpacked.stdout).unwrap();
    let thread_of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["thread_id"].as_str().unwrap().to_owned();
    lines.lines().map(|line| (thread_of(line), line.to_owned())).collect()
}

/// The verdicts of each thread in order, when the log is read by this many lanes.
fn replay(log: &[(String, String)], lanes: u32) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut gates: Vec<_> = (0..lanes).map(|_| Gate::new(default_policy())).collect();
    let mut verdicts: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (thread_id, line) in log {
        let lane = usize::try_from(partition_of(thread_id.as_bytes(), lanes).0).unwrap();
        let (applied, bytes) = gates[lane].record(Some(thread_id.as_bytes()), Some(line.as_bytes()), &[]);
        assert!(!matches!(applied, Outcome::DeadLetter(_)), "{line}");
        assert_eq!(bytes.is_empty(), matches!(applied, Outcome::Boundary(_)), "{line}");
        verdicts.entry(thread_id.clone()).or_default().push(bytes);
    }
    verdicts
}

#[test]
fn one_lane_and_32_give_the_same_bytes_twice() {
    let log: Vec<_> = RECORDINGS.iter().flat_map(|recording| read(recording.path)).collect();
    let expected = replay(&log, 1);
    assert_eq!(expected.len(), 210);
    assert_eq!(replay(&log, 32), expected);
    assert_eq!(replay(&log, 1), expected, "once more");
    assert_eq!(replay(&log, 32), expected, "once more by 32 lanes");
    assert_eq!(replay(&interleaved(&log), 1), expected, "all runs at the same time");
}

/// The same threads side by side: the first event of each, then the second of each, and so on.
fn interleaved(log: &[(String, String)]) -> Vec<(String, String)> {
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

#[test]
fn what_the_default_policy_makes_of_them() {
    check_each(&RECORDINGS, |recording| recording.path.to_owned(), |recording| check_recording(recording));
}

fn check_recording(recording: &Recording) {
    let log = read(recording.path);
    let mut gate = Gate::new(default_policy());
    let mut counts = BTreeMap::<String, usize>::new();
    let mut remarks = Vec::new();
    for (thread_id, line) in &log {
        let (_, bytes) = gate.record(Some(thread_id.as_bytes()), Some(line.as_bytes()), &[]);
        let Ok(verdict) = serde_json::from_slice::<Value>(&bytes) else { continue };
        let field = |name: &str| verdict[name].as_str().unwrap().to_owned();
        *counts.entry(format!("{} {} {}", field("type"), field("action"), field("code"))).or_default() += 1;
        if verdict["code"] != "allow" {
            remarks.push((thread_id.clone(), field("event_id"), field("tool_name"), field("code"), verdict["count"].as_u64()));
        }
    }
    let threads: std::collections::BTreeSet<_> = log.iter().map(|(thread_id, _)| thread_id).collect();
    assert_eq!(threads.len(), recording.threads);
    let expected: BTreeMap<_, _> = recording.counts.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect();
    assert_eq!(counts, expected);
    let owned = |text: &str| text.to_owned();
    let expected =
        recording.remarks.iter().map(|(thread, event, tool, code, n)| (owned(thread), owned(event), owned(tool), owned(code), *n));
    assert_eq!(remarks, expected.collect::<Vec<_>>());
}
