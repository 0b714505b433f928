//! The results of tests, for people and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::commands::shared::{Column, Screen, TITLE, Table, shown, style_of, text};

/// The width of what is expected and of what came, in cells, before a line breaks.
const DIFFERENCE_WIDTH: usize = 120;

const DIFFERENCE: &[Column] = &[text("field"), text("expected"), text("got")];

/// The results of all files.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) files: Vec<FileReport>,
}

/// The results of one file.
#[derive(Debug)]
pub(crate) struct FileReport {
    pub(crate) name: String,
    pub(crate) cases: Vec<Outcome>,
}

/// The result of one case.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) why: Option<String>,
    pub(crate) line: usize,
    /// What failed; nothing if the case passed.
    pub(crate) failures: Vec<Failure>,
}

/// What went wrong with a part of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What failed: an event, or an alert.
    pub(crate) what: &'static str,
    /// Its place in its case, from 1.
    pub(crate) number: usize,
    /// The line of the file that it stands on.
    pub(crate) line: usize,
    /// The fields in which something else came.
    pub(crate) differences: Vec<Difference>,
    /// What else is wrong, as sentences.
    pub(crate) problems: Vec<String>,
}

/// A field in which what came differs from what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) field: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl Outcome {
    /// Returns what failed, as lines: expected and got side by side.
    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.why.iter().map(|why| format!("  why: {}", shown(why))));
        for Failure { what, number, line, differences, problems } in &self.failures {
            lines.push(format!("  {what} {number}, {}:{line}", shown(file)));
            lines.extend(problems.iter().map(|problem| format!("    {}", shown(problem))));
            if !differences.is_empty() {
                let mut table = Table::new(DIFFERENCE);
                for difference in differences {
                    table.row(vec![difference.field.clone(), difference.expected.clone(), difference.got.clone()]);
                }
                lines.extend(table.lines(false, DIFFERENCE_WIDTH).iter().map(|line| format!("    {line}")));
            }
        }
        lines
    }

    fn has_passed(&self) -> bool {
        self.failures.is_empty()
    }

    fn as_json(&self, file: &str) -> Value {
        let failure = |failure: &Failure| {
            let differences: Vec<_> = failure
                .differences
                .iter()
                .map(|difference| json!({"field": difference.field, "expected": difference.expected, "got": difference.got}))
                .collect();
            json!({failure.what: failure.number, "line": failure.line, "differences": differences, "problems": failure.problems})
        };
        let failures: Vec<_> = self.failures.iter().map(failure).collect();
        json!({"file": file, "case": self.name, "why": self.why, "line": self.line, "passed": self.has_passed(), "failures": failures})
    }
}

impl Report {
    /// Returns how many cases passed, and how many there are.
    pub(crate) fn passed(&self) -> (usize, usize) {
        let cases = || self.files.iter().flat_map(|file| &file.cases);
        (cases().filter(|case| case.has_passed()).count(), cases().count())
    }

    /// Writes a line for each file, what failed, and the sum.
    pub(crate) fn write(&self, out: &mut impl Write, screen: Screen) -> io::Result<()> {
        for file in &self.files {
            let failed = file.cases.iter().filter(|case| !case.has_passed()).count();
            let (word, action) = if failed == 0 { ("ok", "allow") } else { ("FAILED", "block") };
            let word = screen.paint(style_of(action), word);
            let name = shown(&file.name);
            match failed {
                0 => writeln!(out, "{word}  {name}: {} passed", cases(file.cases.len()))?,
                failed => writeln!(out, "{word}  {name}: {failed} of {} failed", cases(file.cases.len()))?,
            }
            for case in file.cases.iter().filter(|case| !case.has_passed()) {
                writeln!(out, "\n{}", screen.paint(TITLE, &shown(&case.name)))?;
                case.lines(&file.name).iter().try_for_each(|line| writeln!(out, "{line}"))?;
                writeln!(out)?;
            }
        }
        let (passed, all) = self.passed();
        writeln!(out, "{passed} of {} passed", cases(all))
    }

    /// Writes a JSON object for each case, a line each.
    pub(crate) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let cases = self.files.iter().flat_map(|file| file.cases.iter().map(|case| case.as_json(&file.name)));
        cases.into_iter().try_for_each(|case| writeln!(out, "{case}"))
    }
}

/// Returns a share in whole per cent, rounded down, so that 100 is all.
pub(crate) fn percent((reached, all): (usize, usize)) -> usize {
    (reached * 100).checked_div(all).unwrap_or(100)
}

fn cases(count: usize) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}
