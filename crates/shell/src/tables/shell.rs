//! Builtins of shells that are harmless with the arguments below. Some shells evaluate numbers as arithmetic, which executes what stands
//! in a subscript: where a number is expected, only decimal digits may stand.
//!
//! Left out: `wait -p` (sets), `cd -e`, `-@`, all options of `set` but those below, its operands, and its listing.

use super::reading::{MISSING, OPERAND};
use super::{Started, Unlisted};
use crate::argument::Argument;

/// TABLE: what `set -o` may be followed by.
pub const NAMED: [&str; 4] = ["errexit", "nounset", "pipefail", "xtrace"];

/// Returns whether this is a decimal number that means the same to all shells.
#[must_use]
pub fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() <= 18 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn first_not(arguments: &[Argument], is_harmless: impl Fn(&str) -> bool) -> Result<Vec<Started>, Unlisted> {
    match arguments.iter().position(|argument| !argument.as_known().is_some_and(&is_harmless)) {
        Some(index) => Err(Unlisted { index, what: OPERAND }),
        None => Ok(Vec::new()),
    }
}

/// Returns the arguments with a number in the place of numbers that the line computes.
fn with_numbers(arguments: &[Argument]) -> Vec<Argument> {
    arguments.iter().map(|word| if word.is_number { Argument::known("1") } else { word.clone() }).collect()
}

pub(super) fn numbers(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    first_not(&with_numbers(arguments), |text| is_decimal(text) && !text.starts_with('-'))
}

pub(super) fn number(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    if arguments.len() > 1 {
        return Err(Unlisted { index: 1, what: OPERAND });
    }
    numbers(arguments)
}

/// Variables that may be set, with their values. Without any it prints them all.
pub(super) fn export(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    if arguments.is_empty() {
        return Err(Unlisted { index: 0, what: MISSING });
    }
    first_not(arguments, |text| text.split_once('=').is_some_and(|(name, value)| crate::assignments::is_harmless(name, value)))
}

/// Signals and process ids, which may be those that a program has printed. Behind the signal a number with a dash is a group of processes, or all
/// of them.
pub(super) fn kill(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    if let Some(at) = arguments.iter().skip(1).position(|argument| argument.text.starts_with('-')) {
        return Err(Unlisted { index: at + 1, what: OPERAND });
    }
    first_not(&with_numbers(arguments), |text| {
        let word = text.strip_prefix(['-', '%']).unwrap_or(text);
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

pub(super) fn set(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    if arguments.is_empty() {
        return Err(Unlisted { index: 0, what: MISSING });
    }
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let unlisted = Unlisted { index: at, what: OPERAND };
        if letters(argument.as_known().unwrap_or_default(), "eux").ok_or(unlisted)?.is_named {
            at += 1;
            let name = arguments.get(at).and_then(Argument::as_known);
            name.filter(|name| NAMED.contains(name)).ok_or(Unlisted { index: at, what: OPERAND })?;
        }
        at += 1;
    }
    Ok(Vec::new())
}

/// Letters behind a dash or plus, as shells take them.
#[derive(Debug, Clone, Copy)]
pub struct Letters {
    /// The last is an `o`: the name of an option follows.
    pub is_named: bool,
    /// The last is a `c`: a command line follows.
    pub is_text: bool,
}

/// Reads letters of these, the last of which may be an `o` or, where it is allowed, a `c`.
#[must_use]
pub fn letters(text: &str, allowed: &str) -> Option<Letters> {
    let rest = text.strip_prefix(['-', '+']).filter(|rest| !rest.is_empty())?;
    let (rest, is_named) = rest.strip_suffix('o').map_or((rest, false), |rest| (rest, true));
    let (rest, is_text) = match rest.strip_suffix('c') {
        Some(rest) if !is_named && allowed.contains('c') && text.starts_with('-') => (rest, true),
        _ => (rest, false),
    };
    rest.chars().all(|letter| letter != 'c' && allowed.contains(letter)).then_some(Letters { is_named, is_text })
}
