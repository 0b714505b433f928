//! Programs that check and rewrite the files that they are given. What they find below a folder is source code by their settings.

use super::touches::{Touch, all_words, touched};
use crate::argument::Argument;
use crate::grammar::Access;

/// TABLE: their names, with the options by which they write, or by which they only check where they write without one.
const ROWS: [(&str, bool, &[&str]); 5] = [
    ("black isort autopep8 yapf", false, &["--check", "--check-only", "--diff", "-c", "-d"]),
    ("rustfmt", false, &["--check"]),
    ("ruff", true, &["--fix", "--unsafe-fixes", "--add-noqa", "format"]),
    ("clang-format gofmt goimports prettier shfmt", true, &["--write", "-i", "-w"]),
    ("eslint mypy pylint flake8 stylelint", true, &["--fix"]),
];

fn row(program: &str) -> Option<&'static (&'static str, bool, &'static [&'static str])> {
    ROWS.iter().find(|(names, ..)| names.split(' ').any(|name| name == program))
}

/// Returns whether a program is one of them.
pub(super) fn is_formatter(program: &str) -> bool {
    row(program).is_some()
}

/// Returns whether a program expands patterns among its files itself.
#[must_use]
pub fn expands_patterns(program: &str) -> bool {
    matches!(program, "git" | "npx" | "bunx") || is_formatter(program)
}

/// The files that it is given.
pub(super) fn of_formatter(program: &str, arguments: &[Argument]) -> Vec<Touch> {
    let Some((_, writes, options)) = row(program) else { return Vec::new() };
    let is_given = arguments.iter().any(|argument| options.contains(&argument.text.as_str()));
    // One of the words is the report, then, or what is attached to its option.
    let is_report = |text: &str| text.starts_with("--") && ["output", "report", "xml", "out-file"].iter().any(|word| text.contains(word));
    let reports = arguments.iter().any(|argument| reported(&argument.text).is_some() || is_report(&argument.text));
    let mut touched = all_words(arguments, if reports || is_given == *writes { Access::Write } else { Access::Read });
    touched.extend(arguments.iter().enumerate().filter_map(|(index, argument)| {
        let path = reported(&argument.text).filter(|path| !path.is_empty())?;
        Some(Touch::File { index, path: path.to_owned(), access: Access::Write })
    }));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    touched.retain(|touch| !matches!(touch, Touch::File { index, path, .. } if is_number(path) || *index == 0 && program == "ruff"));
    touched
}

/// Returns what is attached to `-o`, perhaps behind other letters: the report, unless it stands in the next word.
fn reported(text: &str) -> Option<&str> {
    let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    letters.split_once('o').map(|(_, path)| path)
}

/// The files of a tool that another program starts, of which the name stands in front of its arguments.
pub(super) fn of_tool(arguments: &[Argument], behind: usize) -> Vec<Touch> {
    let Some(tool) = behind.checked_sub(1).and_then(|at| arguments.get(at)).filter(|tool| is_formatter(&tool.text)) else {
        return Vec::new();
    };
    let mut touched = touched(&tool.text, arguments.get(behind..).unwrap_or_default());
    touched.iter_mut().for_each(|touch| {
        if let Touch::File { index, .. } = touch {
            *index += behind;
        }
    });
    touched
}
