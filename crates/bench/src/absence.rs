//! The parts that a report does not show, each with its reason: it failed, or this machine lacks something for it.

use serde::Serialize;

/// The longest reason that is shown.
const WHY_CHARS_MAX: usize = 300;

/// A part of a report that was not measured, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absence {
    /// What was not measured.
    pub part: String,
    /// Why, in one line.
    pub why: String,
    /// Whether it failed; otherwise it is only not possible on this machine.
    pub failed: bool,
}

impl Absence {
    /// Returns the absence of a part that cannot be measured here.
    pub fn missing(part: &str, why: &str) -> Self {
        Self { part: part.to_owned(), why: one_line(why), failed: false }
    }

    /// Returns the absence of a part that failed.
    pub fn failed(part: &str, why: &str) -> Self {
        Self { part: part.to_owned(), why: one_line(why), failed: true }
    }
}

/// Returns the first line of a message and, where more follow, the last one: errors begin with what happened and logs end with why.
fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("for no reason that was given");
    let line = match lines.next_back() {
        None => first.to_owned(),
        Some(last) => format!("{}: {last}", first.trim_end_matches([':', ' '])),
    };
    // A bar would end the cell of a table.
    line.replace('|', "/").chars().take(WHY_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_that_a_table_can_hold() {
        assert_eq!(Absence::missing("python", "pip is missing\n").why, "pip is missing");
        let log = "python ended; its log:\nTraceback\n  line 1\nModuleNotFoundError: a | b\n\n";
        assert_eq!(Absence::failed("python", log).why, "python ended; its log: ModuleNotFoundError: a / b");
        assert_eq!(Absence::failed("x", &"ä".repeat(999)).why.chars().count(), 300);
        assert_eq!(Absence::failed("x", "\n").why, "for no reason that was given");
    }
}
