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
    // Extras may stand behind the name of an archive, and a version that begins with a dot is a folder.
    let lower = name.split('[').next().unwrap_or(name).to_ascii_lowercase();
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_part)
        && !name.contains("@.")
        && ![lower.as_str(), name].iter().any(|name| ARCHIVES.iter().any(|end| name.ends_with(end)))
}

/// Returns whether a text is a word of letters, digits and a few marks.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Returns the objection unless what is asked holds.
pub fn accept(holds: bool, objection: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(objection) }
}

/// The most operands of which every number is tried.
const TRIED_MAX: usize = 16;

/// Returns how many of the first operands a check accepts, if it does not accept all: behind them stands the first with which it does not hold
/// any more. Each try looks at all of them, so that of many operands only some numbers are tried.
pub fn held(operands: &[&Argument], check: fn(&[&Argument]) -> Checked) -> usize {
    let holds = |count: usize| operands.get(..count).is_some_and(|some| check(some).is_ok());
    if operands.len() <= TRIED_MAX {
        return (0..operands.len()).rev().find(|count| holds(*count)).unwrap_or_default();
    }
    let (mut held, mut refused) = (0, operands.len());
    while refused - held > 1 {
        let middle = usize::midpoint(held, refused);
        if holds(middle) { held = middle } else { refused = middle }
    }
    held
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static TRIES: AtomicUsize = AtomicUsize::new(0);

    fn no_x(operands: &[&Argument]) -> Checked {
        TRIES.fetch_add(1, Ordering::Relaxed);
        accept(operands.iter().all(|operand| operand.text != "x"), "an x")
    }

    #[test]
    fn the_first_refused_of_many_operands_is_found_by_few_tries() {
        for place in [0, 1, 9_000, 29_999] {
            let words: Vec<Argument> = (0..30_000).map(|at| Argument::known(if at == place { "x" } else { "a" })).collect();
            assert_eq!(held(&words.iter().collect::<Vec<_>>(), no_x), place);
        }
        let tries = TRIES.load(Ordering::Relaxed);
        assert!(tries <= 4 * 15, "{tries}");
    }
}
