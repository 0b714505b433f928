//! Shape: lines that begin with the name of an error, and tracebacks.

use std::sync::LazyLock;

use super::FailureSign;
use super::view::{Hinted, View, beginning, hinted};
use crate::decide::loops::search::begins;

/// What a line may begin with, in lower case.
#[rustfmt::skip]
const HEADS: [&str; 14] = [
    "error:", "error -", "error[", "fatal:", "fatal error:", "panic:", "failed:", "failure:", "err:", "npm err!", "npm error",
    "<tool_use_error>", "traceback (most recent call last)", "exception:",
];
/// How an error's name may end.
const ENDINGS: [&[u8]; 2] = [b"Error", b"Exception"];

/// What stands between a place in a file and what is wrong there.
static AT_A_PLACE: LazyLock<Hinted> = LazyLock::new(|| hinted([": error: "]));

/// How many lines are looked at.
const LINES: usize = 12;

/// Looks for such a line among the first and at the end.
pub fn see<'v>(view: &View<'v>) -> Option<FailureSign<'v>> {
    let (mut is_traceback, is_placed) = (false, view.holds(view.head, &AT_A_PLACE));
    for line in view.lines().take(LINES) {
        let line = line.strip_prefix(b"E ").unwrap_or(line).trim_ascii_start();
        if begins(line, "traceback (most recent") {
            is_traceback = true;
        } else if HEADS.iter().any(|head| begins(line, head)) || has_named_error(line) || (is_placed && is_error_at_a_place(view, line)) {
            return Some(FailureSign::Failed(line));
        }
    }
    let last = || view.tail().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    is_traceback.then(|| FailureSign::Failed(beginning_of(view, last())))
}

/// Returns the last line where it lies in the text, which it does.
fn beginning_of<'v>(view: &View<'v>, line: &[u8]) -> &'v [u8] {
    view.text.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().filter(|last| last.len() >= line.len()).unwrap_or_default()
}

/// Returns whether a line begins with the name of an error and a colon, or is that name: `ValueError: …`, `java.io.IOException: …`,
/// `Error executing tool: …`.
fn has_named_error(line: &[u8]) -> bool {
    let word = line.split(|byte| matches!(byte, b':' | b' ' | b'(')).next().unwrap_or_default();
    let next = line.get(word.len()).copied();
    let is_name = word.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
    let is_named = is_name && ENDINGS.iter().any(|ending| word.ends_with(ending)) && matches!(next, Some(b':') | None);
    // The first word of a sentence that an error's text is: `Error executing tool`.
    let is_sentence = line.starts_with(b"Error ") && line.len() <= 300;
    is_named || is_sentence
}

/// Returns whether a place in a file stands before the error: `a.c:3:1: error: …`.
fn is_error_at_a_place(view: &View<'_>, line: &[u8]) -> bool {
    view.holds(beginning(line, 200), &AT_A_PLACE)
}
