//! Shape: what shells and their tools say of programs and files that are not there.

use std::sync::LazyLock;

use super::FailureSign;
use super::view::{Hinted, View, hinted};
use crate::decide::loops::search::position;

/// What is said of a program that is not installed.
const MISSING: [&str; 4] = ["command not found", "is not recognized as", "no such command", "executable file not found"];
/// Each of them holds one of these.
static IN_MISSING: LazyLock<Hinted> = LazyLock::new(|| hinted(["not ", "such command"]));
/// What is said of files, in lower case, at the end of a line.
const FILES: [&str; 7] = [
    ": no such file or directory",
    ": permission denied",
    ": is a directory",
    ": not a directory",
    ": file exists",
    ": operation not permitted",
    ": read-only file system",
];

/// How many lines are looked at.
const LINES: usize = 6;

/// Looks for a program that is not installed.
pub fn see_missing<'v>(view: &View<'v>) -> Option<FailureSign<'v>> {
    if !view.holds(view.head, &IN_MISSING) {
        return None;
    }
    // Longer lines are a text that tells of it.
    let is_short = |line: &&[u8]| line.len() <= 200;
    let named = |line: &[u8]| {
        let is_shell = line.starts_with(b"sh: ") || line.starts_with(b"/bin/sh: ") || line.starts_with(b"dash: ");
        MISSING.iter().any(|phrase| position(line, phrase).is_some()) || (is_shell && line.ends_with(b": not found"))
    };
    view.lines().take(LINES).filter(is_short).any(named).then_some(FailureSign::Missing)
}

/// Looks for a file that is not there or may not be used.
pub fn see<'v>(view: &View<'v>) -> Option<FailureSign<'v>> {
    let is_said = |line: &&[u8]| FILES.iter().any(|phrase| position(line, phrase).is_some_and(|at| at + phrase.len() + 1 >= line.len()));
    view.lines().take(LINES).find(is_said).map(FailureSign::Failed)
}
