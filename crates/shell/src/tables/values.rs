//! What values of options, and operands, are known to be harmless, where not all are.

use super::Value;
use crate::argument::{Argument, Certainty};

/// TABLE: settings of `git` that only change how things are shown or written down, with the values that they may have. A value of
/// `*` is any. A name that ends in a dot stands for all below it. Left out is all that names a program, a file or an address, and what
/// makes `git` sign or ask.
const GIT: &[(&str, &[&str])] = &[
    ("advice.", &["true", "false"]),
    ("color.ui", &["true", "false", "auto", "always", "never"]),
    ("column.ui", &["auto", "always", "never"]),
    ("commit.gpgsign", &["false"]),
    ("core.abbrev", &["7", "8", "10", "12", "40", "no", "auto"]),
    ("core.autocrlf", &["true", "false", "input"]),
    ("core.editor", &["true", ":"]),
    ("core.eol", &["lf", "crlf", "native"]),
    ("core.filemode", &["true", "false"]),
    ("core.longpaths", &["true", "false"]),
    ("core.pager", &["cat", ""]),
    ("core.quotepath", &["true", "false", "off"]),
    ("diff.algorithm", &["histogram", "patience", "minimal", "myers"]),
    ("diff.context", &["0", "1", "3", "5", "10"]),
    ("diff.noprefix", &["true", "false"]),
    ("diff.renames", &["true", "false", "copies"]),
    ("fetch.prune", &["true", "false"]),
    ("gc.auto", &["0"]),
    ("init.defaultbranch", &["main", "master", "develop", "trunk"]),
    ("log.showsignature", &["false"]),
    ("merge.conflictstyle", &["merge", "diff3", "zdiff3"]),
    ("merge.ff", &["true", "false", "only"]),
    ("pull.ff", &["true", "false", "only"]),
    ("pull.rebase", &["true", "false"]),
    ("push.autosetupremote", &["true", "false"]),
    ("push.default", &["simple", "current", "upstream", "nothing", "matching"]),
    ("tag.gpgsign", &["false"]),
    ("user.email", &["*"]),
    ("user.name", &["*"]),
];

/// TABLE: settings of `cmake` that choose among what the project offers. Left out is all that names a program, a file or a flag.
const CMAKE: &[&str] =
    &["BUILD_SHARED_LIBS", "BUILD_TESTING", "CMAKE_BUILD_TYPE", "CMAKE_CXX_STANDARD", "CMAKE_C_STANDARD", "CMAKE_EXPORT_COMPILE_COMMANDS"];

/// Returns whether a value is one of its kind.
#[must_use]
pub fn holds(kind: Value, value: &Argument) -> bool {
    match kind {
        Value::Name => is_name(value),
        // Some programs take several files, with commas between them, and some take `-f=FILE` for `-f FILE`.
        Value::File => is_name(value) && !value.text.contains(',') && !value.text.starts_with('=') || value.as_known() == Some("-"),
        Value::Expression => value.as_known().is_some_and(is_expression),
        Value::Warning => value.as_known().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':')),
        Value::Disabled => value.as_known().and_then(|text| text.strip_prefix("no:")).is_some_and(is_plain),
        Value::Below | Value::Input => value.as_known().is_some_and(is_below),
        Value::Git => value.as_known().and_then(|text| text.split_once('=')).is_some_and(|(name, value)| is_git_setting(name, Some(value))),
        Value::Written => value.as_known().is_some_and(|text| !text.is_empty() && !text.starts_with('-')),
        Value::Encoding => value.as_known().is_some_and(is_encoding),
        Value::Triple => value.as_known().is_some_and(|text| is_code(text) && !text.ends_with(".json")),
        Value::Format => value.as_known().is_some_and(|text| !shows_signature(text)),
        Value::Strategy => value.as_known().is_some_and(is_strategy),
        Value::Packages => value.as_known().is_some_and(is_selector),
        Value::Repository => value.as_known().is_some_and(is_repository),
        Value::Cmake => value.as_known().is_some_and(is_cmake_setting),
        Value::Text | Value::Next | Value::Word | Value::Shell | Value::Sed => false,
    }
}

fn is_selector(text: &str) -> bool {
    !text.starts_with('-') && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@/._-*{}[]!^".contains(&byte))
}

/// Returns whether a text is known and is no address, no option and no file of arguments (`@file`).
#[must_use]
pub fn is_name(value: &Argument) -> bool {
    matches!(value.certainty, Certainty::Known | Certainty::Operand)
        && !value.text.starts_with(['-', '@'])
        && !value.text.contains([':', ';'])
}

/// Returns whether a text combines names with `and`, `or`, `not` and brackets. Without dots and quotes there is nothing to evaluate.
fn is_expression(text: &str) -> bool {
    !text.starts_with(['-', '@']) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_- ()[]/".contains(&byte))
}

/// Returns whether a path leads below the working folder, and to nothing hidden.
#[must_use]
pub fn is_below(path: &str) -> bool {
    is_plain(path)
        && !path.contains(':')
        && !path.starts_with(['/', '~', '-', '='])
        && path.split('/').all(|segment| segment == "." || !segment.starts_with('.'))
}

/// Returns whether a setting of `git` may have the value; without one, whether it may have one of any.
#[must_use]
pub fn is_git_setting(name: &str, value: Option<&str>) -> bool {
    // The names of sections and settings have no case.
    let name = name.to_ascii_lowercase();
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_row = |row: &str| if row.ends_with('.') { name.strip_prefix(row).is_some_and(is_word) } else { name == row };
    let Some((_, values)) = GIT.iter().find(|(row, _)| is_row(row)) else { return false };
    values.contains(&"*") || value.is_some_and(|value| values.contains(&value))
}

/// Returns whether a format of `git` shows who signed something: `%G?`, `%+GK`, `%(signature)`.
fn shows_signature(format: &str) -> bool {
    let behind = format.split('%').skip(1).map(|rest| rest.strip_prefix(['+', '-', ' ']).unwrap_or(rest));
    format.contains("signature") || behind.into_iter().any(|rest| rest.starts_with('G'))
}

/// Returns whether a text is the name of an encoding, with what becomes of characters that another one does not have.
fn is_encoding(text: &str) -> bool {
    is_code(text.strip_suffix("//TRANSLIT").or_else(|| text.strip_suffix("//IGNORE")).unwrap_or(text))
}

/// Returns whether a text is a name of letters and digits with a few signs between them, and no path.
fn is_code(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
}

/// Returns whether a text is an option of a merge. Left out is `subtree`, which writes into a folder of its own choice.
fn is_strategy(text: &str) -> bool {
    const STRATEGIES: &str = "diff-algorithm find-renames histogram ignore-all-space ignore-cr-at-eol ignore-space-at-eol ignore-space-change \
         minimal no-renames no-renormalize ours patience rename-threshold renormalize theirs";
    let name = text.split('=').next().unwrap_or_default();
    STRATEGIES.split_ascii_whitespace().any(|strategy| strategy == name)
}

/// Returns whether a text is `OWNER/NAME`, without a host in front.
fn is_repository(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && !name.starts_with(['-', '.']) && is_plain(name) && !name.contains([':', '@']);
    text.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name) && !name.contains('/'))
}

/// Returns whether a text is `NAME=VALUE` or `NAME:TYPE=VALUE` with a setting of the table.
fn is_cmake_setting(text: &str) -> bool {
    let Some((name, value)) = text.split_once('=') else { return false };
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    CMAKE.contains(&name) && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns whether a text has only characters that mean nothing to a shell, a template or a regular expression's reader.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-+@%:,".contains(&byte))
}

/// TABLE: names that repositories give their remotes. A name that is no remote is a folder to git, and a folder has hooks.
const REMOTES: [&str; 2] = ["origin", "upstream"];

/// Returns whether an operand is the usual name of a remote, and no address, path or folder.
#[must_use]
pub fn is_remote(operand: &Argument) -> bool {
    operand.as_known().is_some_and(|text| REMOTES.contains(&text))
}

/// Returns whether an operand is a reference, or a pair of them.
#[must_use]
pub fn is_refspec(operand: &Argument) -> bool {
    if operand.is_reference && operand.certainty == Certainty::Operand && operand.text == "*" {
        return true;
    }
    let text = operand.as_known().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-+:*^@{}~#=%".contains(&byte);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_plain)
}
