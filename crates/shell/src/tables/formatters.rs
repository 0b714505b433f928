//! Programs that check and rewrite the files that they are given. What they find below a folder is source code by their settings.

use super::is_in;
use super::options::attached;
use super::reading::read;
use super::touches::{Touch, all_words, touched};
use crate::argument::{Argument, text_in_front};
use crate::grammar::Access;

/// TABLE: their names, with what has to stand there so that they only check (an option, or the first word; nothing where they only check or print
/// by themselves), and the other options that change nothing of that.
const ROWS: [(&str, &str, &str); 6] = [
    ("black isort autopep8 yapf", "--check --check-only --diff -c -d", "-q --quiet -v --verbose -l --line-length --profile --exclude -r"),
    ("rustfmt", "--check", "--edition -q -v -l"),
    (
        "ruff",
        "check --check --diff",
        "--select --ignore --exclude --quiet -q --no-cache --statistics --preview --output-format --exit-zero",
    ),
    ("clang-format gofmt goimports shfmt", "", "-d -e -l -s --dry-run --style"),
    ("prettier", "", "--check -c --list-different -l --parser --log-level --ignore-unknown -u"),
    (
        "eslint mypy pylint flake8 stylelint",
        "",
        "--quiet --max-warnings --ext --format -f --strict --ignore-missing-imports --pretty -p -m",
    ),
];

/// TABLE: those of these options that take no value.
const FLAGS: &str = "-q --quiet -v --verbose -r --no-cache --statistics --preview --exit-zero";

fn row(program: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    ROWS.iter().find(|(names, ..)| is_in(names, program))
}

/// Returns whether a program is one of them.
pub(super) fn is_formatter(program: &str) -> bool {
    row(program).is_some()
}

/// Returns whether a program expands patterns among its files itself.
#[must_use]
pub fn expands_patterns(program: &str) -> bool {
    matches!(program, "git" | "npm" | "npx" | "bunx" | "kubectl" | "gh" | "7z" | "7za" | "split") || is_formatter(program)
}

/// The files that it is given. They count as written unless it is known to only check.
pub(super) fn of_formatter(program: &str, arguments: &[Argument]) -> Vec<Touch> {
    let Some((_, needed, harmless)) = row(program) else { return Vec::new() };
    let texts = || arguments.iter().map(|argument| argument.text.as_str()).enumerate();
    // Behind another option it may be the value of that.
    let is_value = |index: usize| {
        let before = text_in_front(arguments, index);
        before.starts_with('-')
            && !before.contains('=')
            && !is_in(FLAGS, before)
            && !is_in(needed, before)
            && (program, before) != ("rustfmt", "-l")
    };
    let is_needed = |(index, text): (usize, &str)| is_in(needed, text) && (index == 0 || text.starts_with('-') && !is_value(index));
    let is_harmless = |text: &str| is_in(harmless, text.split('=').next().unwrap_or(text)) || is_in(needed, text);
    let is_doubtful = |(_, text): &(usize, &str)| text.starts_with('-') && !is_harmless(text);
    let checks = (needed.is_empty() || texts().any(is_needed)) && !texts().any(|word| is_doubtful(&word));
    let mut touched = all_words(arguments, if checks { Access::Read } else { Access::Write });
    // What is attached to an option that is not known may be a file too.
    let written = |(index, text)| attached(text).into_iter().map(move |path| Touch::write(index, path));
    touched.extend(texts().filter(is_doubtful).flat_map(written));
    // Some take the name of a format with the file that they write behind a colon.
    let reports = touched.iter().filter_map(|touch| match touch {
        Touch::File { index, path, .. } => Some(Touch::write(*index, path.split_once(':')?.1)),
        Touch::Pattern(_) => None,
    });
    let reports: Vec<Touch> = reports.collect();
    touched.extend(reports);
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    touched.retain(|touch| !matches!(touch, Touch::File { index, path, .. } if is_number(path) || *index == 0 && program == "ruff"));
    touched
}

/// The files of a tool that another program starts, of which the name stands in front of its arguments.
pub(super) fn of_tool(arguments: &[Argument], behind: usize) -> Vec<Touch> {
    let Some(tool) = behind.checked_sub(1).and_then(|at| arguments.get(at)).filter(|tool| is_formatter(&tool.text)) else {
        return Vec::new();
    };
    let rest = arguments.get(behind..).unwrap_or_default();
    let mut touched = touched(&tool.text, rest, read(&tool.text, rest).is_ok());
    touched.iter_mut().for_each(|touch| {
        if let Touch::File { index, .. } = touch {
            *index += behind;
        }
    });
    touched
}
