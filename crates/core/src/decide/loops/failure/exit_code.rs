//! Shape: return codes, as the shells of agents print them. Exit code 1 of a program that answers with it is no failure.

use std::sync::LazyLock;

use super::view::{Hinted, View, hinted, number};
use super::{Asked, FailureSign};
use crate::decide::loops::search::{begins, position};

/// The members of an object that hold a return code.
const MEMBERS: [&str; 5] = ["exit_code", "exitCode", "returncode", "return_code", "exit_status"];
/// What stands before a return code in texts, in lower case.
const WORDS: [&str; 8] =
    ["<returncode>", "<exit_code>", "exit code: ", "exit code ", "exit status ", "exited with code ", "returncode: ", "return code: "];
/// Each of them holds one of these.
static IN_WORDS: LazyLock<Hinted> = LazyLock::new(|| hinted(["code", "exit status"]));

/// Looks for a return code.
pub fn see<'v>(view: &View<'v>) -> Option<FailureSign<'v>> {
    match code_of(view)? {
        0 => Some(FailureSign::Fine),
        1 if view.asked.has(Asked::ANSWERS) => Some(FailureSign::Fine),
        _ => Some(FailureSign::Failed(error_line(view))),
    }
}

fn code_of(view: &View<'_>) -> Option<i64> {
    let metadata = view.member("metadata");
    let nested = |key: &&str| metadata.and_then(|object| object.get(key)).filter(|code| !code.is_null());
    if let Some(code) = MEMBERS.iter().find_map(|key| view.member(key)).or_else(|| MEMBERS.iter().find_map(nested)) {
        return number(code.source());
    }
    // A short text is its own end.
    let first = if view.text.len() > view.tail().len() { view.text.get(..200).unwrap_or(view.text) } else { b"" };
    let ends = [first, view.tail()];
    // A code stands alone on its line, or in brackets: elsewhere it is something that a text tells.
    let at_line = |text: &[u8], at: usize| {
        let before = text.get(..at).unwrap_or_default();
        let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        ["", "[", "(", "command", "process", "command failed with", "[command", "[process", "(process"]
            .iter()
            .any(|start| line.eq_ignore_ascii_case(start.as_bytes()))
    };
    if !ends.iter().any(|end| view.holds(end, &IN_WORDS)) {
        return None;
    }
    WORDS.iter().flat_map(|word| ends.map(|end| (word, end))).find_map(|(word, end)| {
        let at = position(end, word).filter(|at| at_line(end, *at))?;
        number(end.get(at + word.len()..)?)
    })
}

/// Returns the line that names the error: the first with a colon, or else the first.
fn error_line<'v>(view: &View<'v>) -> &'v [u8] {
    let is_tag = |line: &[u8]| line.starts_with(b"<") || WORDS.iter().any(|word| begins(line, word));
    let named = view.lines().find(|line| !is_tag(line) && position(line, "error").is_some());
    named.or_else(|| view.lines().find(|line| !is_tag(line))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::decide::loops::failure::tests::seen_after;

    #[test]
    fn one_is_an_answer_of_programs_that_compare_or_search() {
        let failed = |command: &str, result: &str| seen_after(command, None, result).class.is_some();
        for command in ["grep -rn alpha src", "cat a | grep b", "diff a b", "cd x && test -f y", "git diff --quiet"] {
            assert!(!failed(command, "<returncode>1</returncode>"), "{command}");
            assert!(failed(command, "<returncode>2</returncode>"), "{command}");
        }
        for command in ["make", "grepper x", "pytest -k grep", ""] {
            assert!(failed(command, "<returncode>1</returncode>"), "{command}");
        }
    }
}
