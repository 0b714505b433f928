//! Shape: the summary of a test run or a build, at the end of its output.

use std::sync::LazyLock;

use super::FailureSign;
use super::view::{Hinted, View, hinted, number};
use crate::decide::loops::search::position;

/// What a line of a summary says that names a failure, in lower case.
const PHRASES: [&str; 9] = [
    "test result: failed",
    "failed (failures=",
    "failed (errors=",
    "--- fail",
    "build failure",
    "build failed",
    "tests failed",
    "test suites: failed",
    "failures!",
];
/// What stands behind a number of failures, in lower case.
const COUNTED: [&str; 5] = [" failed", " failing", " failures", " failure", " errors"];

/// What the end of every such summary holds.
static WORDS: LazyLock<Hinted> = LazyLock::new(|| hinted(["ail", "AIL", "rrors"]));

/// Looks for a summary that counts a failure, in the last lines.
pub fn see<'v>(view: &View<'v>) -> Option<FailureSign<'v>> {
    let tail = view.tail();
    if !view.holds(tail, &WORDS) {
        return None;
    }
    let lines = || tail.rsplit(|byte| *byte == b'\n').take(LINES).filter(|line| line.len() <= 160);
    let counts = |line: &[u8]| COUNTED.iter().any(|word| position(line, word).is_some_and(|at| counts_some(line, at)));
    let is_summary = |line: &&[u8]| PHRASES.iter().any(|phrase| position(line, phrase).is_some()) || (is_count(line) && counts(line));
    lines().find(is_summary).map(FailureSign::Failed)
}

/// How many lines at the end are looked at.
const LINES: usize = 4;

/// Returns whether a line is made of counts: of tests that passed or failed.
fn is_count(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let said = ["passed", "total", "tests", "examples", "passing", "in "].iter().any(|word| position(line, word).is_some());
    said || line.starts_with(b"=") || number(line).is_some()
}

/// Returns whether the number in front of a place is there and not 0.
fn counts_some(line: &[u8], at: usize) -> bool {
    let before = line.get(..at).unwrap_or_default();
    let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    before.get(before.len() - digits..).is_some_and(|number| number.iter().any(|digit| *digit != b'0'))
}

#[cfg(test)]
mod tests {
    use crate::decide::loops::failure::tests::check;

    #[test]
    fn summaries_with_failures_are_seen_behind_long_output() {
        let behind = |summary: &str| format!("{}{summary}\n", "a line of output\n".repeat(200));
        let failures = [
            "=== 3 failed, 9 passed in 0.4s ===",
            "test result: FAILED. 4 passed; 1 failed",
            "Tests:  2 failed, 5 total",
            "FAILED (failures=1)",
            "BUILD FAILURE",
        ];
        let others = [
            "=== 12 passed in 0.4s ===",
            "test result: ok. 5 passed; 0 failed",
            "Tests: 0 failed, 5 total",
            "The year saw 3 failed harvests",
            "OK",
        ];
        let (failures, others) = (failures.map(behind), others.map(behind));
        check(&failures.each_ref().map(String::as_str), &others.each_ref().map(String::as_str));
    }
}
