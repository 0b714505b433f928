//! What operands are known to be harmless: checks that several tables share.

use super::values::is_plain;
use crate::argument::{Argument, Certainty};

/// What a check says of its operands.
pub type Checked = Result<(), &'static str>;

/// TABLE: the ends of names that package managers take for files.
const ARCHIVES: &[&str] =
    &[".whl", ".zip", ".gz", ".bz2", ".xz", ".tgz", ".tbz", ".txz", ".tlz", ".lz", ".lzma", ".tar", ".egg", ".rpm", ".deb", ".rb"];

/// Accepts operands that are written out and have only characters that mean nothing to a shell or a template: names of targets, tasks
/// and scripts, and what they are given.
pub fn plain(operands: &[&Argument]) -> Checked {
    let is_fine = |operand: &&Argument| operand.as_known().is_some_and(|text| is_plain(text) && !text.starts_with(['-', '@', '+']));
    accept(operands.iter().all(is_fine), "an operand that is not plain")
}

/// As [`plain`], and options for what is run: they are its own.
pub fn plain_with_options(operands: &[&Argument]) -> Checked {
    let is_fine = |operand: &&Argument| {
        operand
            .as_known()
            .is_some_and(|text| text.split_once('=').map_or(is_plain(text), |(name, value)| is_plain(name) && is_plain(value)))
    };
    accept(operands.iter().all(is_fine), "an operand that is not plain")
}

/// Accepts operands that are written out, or found by a glob below a folder that is: none is an option or a file of arguments (`@file`).
pub fn files(operands: &[&Argument]) -> Checked {
    let is_fine = |operand: &&Argument| {
        matches!(operand.certainty, Certainty::Known | Certainty::Operand) && !operand.text.starts_with(['-', '@', '+'])
    };
    accept(operands.iter().all(is_fine), "an operand that is not a plain name of a file")
}

/// Accepts operands that are written out.
pub fn literal(operands: &[&Argument]) -> Checked {
    accept(operands.iter().all(|operand| operand.as_known().is_some()), "an operand that is computed")
}

/// Accepts names of packages with versions, from the index that is configured: no addresses, paths or archives.
pub fn packages(operands: &[&Argument]) -> Checked {
    accept(operands.iter().all(|operand| operand.as_known().is_some_and(is_package)), "a package that is not a plain name")
}

/// Accepts no operands.
pub fn none(operands: &[&Argument]) -> Checked {
    accept(operands.is_empty(), "an operand that is not known to be harmless")
}

/// Returns whether a text is a package's name, with extras or versions: `name`, `name[extra]>=1.2`, `@scope/name@^2`.
#[must_use]
pub fn is_package(text: &str) -> bool {
    let name = match text.strip_prefix('@').and_then(|scoped| scoped.split_once('/')) {
        Some((scope, name)) if is_word(scope) => name,
        Some(_) => return false,
        None => text,
    };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-[],<>=!~^*@+".contains(&byte);
    let lower = name.to_ascii_lowercase();
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_part)
        && !ARCHIVES.iter().any(|end| lower.ends_with(end))
}

/// Returns whether a text is a word of letters, digits and a few marks.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Returns the objection unless what is asked holds.
pub fn accept(holds: bool, objection: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(objection) }
}
