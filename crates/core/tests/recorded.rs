//! Replays recorded runs of real agents: verdicts are the same bytes however the log is cut, the default policy decides as it always has,
//! and redaction keeps every verdict.
//!
//! Recorded runs are not on every machine: where they are missing, their tests are reported as ignored, with the reason. Only for that is
//! this a program of its own; `synthetic_runs` of the program `integration` does the same with runs that are made.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::Value;
use tollgate_fixtures::gate::default_policy;
use tollgate_fixtures::pair::Pair;
use tollgate_fixtures::recorded;
use tollgate_fixtures::runs::{Log, assert_is_the_same_however_it_is_cut, counts_of, judged};

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

fn main() -> ExitCode {
    let ran = |ran: Result<(), String>| match ran {
        Ok(()) => Ok(Completion::Completed),
        Err(lacking) => Ok::<_, Failed>(Completion::ignored_with(lacking)),
    };
    let mut trials = vec![Trial::ignorable_test("recorded_runs_give_the_same_bytes_however_they_are_cut", move || {
        let logs = RECORDINGS.iter().map(|recording| read(recording.name)).collect::<Result<Vec<_>, _>>();
        ran(logs.map(|logs| assert_is_the_same_however_it_is_cut(&logs.concat())))
    })];
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

fn check_recording(recording: &Recording, log: &Log) {
    let threads: BTreeSet<_> = log.iter().map(|(thread_id, _)| thread_id).collect();
    assert_eq!(threads.len(), recording.threads);
    let (counts, remarks) = judged(log);
    assert_eq!(counts, counts_of(recording.counts));
    let own = |text: &str| text.to_owned();
    let expected = recording.remarks.iter().map(|(thread, event, tool, code, n)| (own(thread), own(event), own(tool), own(code), *n));
    assert_eq!(remarks, expected.collect::<Vec<_>>());
}

fn check_redaction(recording: &Recording, log: &Log) {
    let mut pair = Pair::new(default_policy);
    for (thread_id, line) in log {
        pair.record(Some(thread_id.as_bytes()), Some(line.as_bytes()), &[]).unwrap();
    }
    let verdicts: usize = recording.counts.iter().map(|(_, count)| count).sum();
    assert_eq!((pair.verdicts, pair.interventions), (verdicts, recording.remarks.len()));
}
