//! Replays synthetic runs of agents: verdicts are the same bytes however the log is cut, and the default policy decides as it always has.
//! The program `recorded` does the same with recorded runs.

use tollgate_fixtures::runs::{Log, assert_is_the_same_however_it_is_cut, counts_of, judged};
use tollgate_fixtures::traffic::{Mix, MixEvent, MixSettings};

/// What the default policy decides on the synthetic runs.
const COUNTS: [(&str, usize); 8] = [
    ("model_response allow allow", 2_207),
    ("model_response suppress safety_terminated", 83),
    ("tool_call allow allow", 2_470),
    ("tool_call block idempotent_no_progress_block", 112),
    ("tool_call block repeated_exact_failure_block", 122),
    ("tool_result allow allow", 2_064),
    ("tool_result warn idempotent_no_progress_warning", 125),
    ("tool_result warn repeated_exact_failure_warning", 134),
];

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

#[test]
fn synthetic_runs_give_the_same_bytes_however_they_are_cut() {
    assert_is_the_same_however_it_is_cut(&synthetic());
}

#[test]
fn what_the_default_policy_makes_of_synthetic_runs() {
    assert_eq!(judged(&synthetic()).0, counts_of(&COUNTS));
}
