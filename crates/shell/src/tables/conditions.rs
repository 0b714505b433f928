//! `test`, `[`, and `[[` as far as it means the same.
//!
//! Left out: `-v`, `-R` (evaluate subscripts), `-o` and `-a` (an option of the shell, or several conditions, which shells tell apart
//! differently), parentheses, `<`, `>`, `=~`. The grammar has `==` in `[[` alone. Some shells evaluate numbers as arithmetic: they must be decimal.

use super::reading::{COMPUTED, MISSING, OPERAND};
use super::shell::is_decimal;
use super::{Started, Unlisted};
use crate::argument::Argument;

/// TABLE: operators in front of one operand, of which nothing is evaluated.
const UNARY: [&str; 20] =
    ["-G", "-L", "-O", "-S", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-n", "-p", "-r", "-s", "-u", "-w", "-x", "-z"];

/// TABLE: operators between two operands, of which nothing is evaluated.
const BINARY: [&str; 5] = ["!=", "-ef", "-nt", "-ot", "="];

/// TABLE: operators between two numbers.
const NUMBERS: [&str; 6] = ["-eq", "-ge", "-gt", "-le", "-lt", "-ne"];

/// Reads `[ … ]`, or `[[ … ]]`, which is a command of its own to dash. Where the grammar lets the latter stand it has words only.
pub(super) fn bracket(arguments: &[Argument], end: &str) -> Result<Vec<Started>, Unlisted> {
    match arguments.split_last() {
        Some((last, [left, operator, right])) if end == "]]" && [operator, last].map(Argument::as_known) == [Some("=="), Some(end)] => {
            test(&[left.clone(), Argument::known("="), right.clone()])
        }
        Some((last, rest)) if last.as_known() == Some(end) => test(rest),
        _ => Err(Unlisted { index: arguments.len(), what: MISSING }),
    }
}

pub(super) fn test(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    // Of several numbers, or none, a test makes an error.
    if let Some(index) = arguments.iter().position(|argument| argument.many && !argument.is_number) {
        return Err(Unlisted { index, what: COMPUTED });
    }
    condition(arguments, 0)
}

fn condition(arguments: &[Argument], from: usize) -> Result<Vec<Started>, Unlisted> {
    let unlisted = |at: usize| Unlisted { index: from + at, what: OPERAND };
    let is_number = |word: &Argument| word.is_number || word.as_known().is_some_and(is_decimal);
    match arguments {
        [] | [_] => Ok(Vec::new()),
        [_, operator, _] if operator.as_known().is_some_and(|operator| BINARY.contains(&operator)) => Ok(Vec::new()),
        [left, operator, right] if operator.as_known().is_some_and(|operator| NUMBERS.contains(&operator)) => {
            match (is_number(left), is_number(right)) {
                (true, true) => Ok(Vec::new()),
                (false, _) => Err(unlisted(0)),
                (true, false) => Err(unlisted(2)),
            }
        }
        // Shells look for a condition of three words first, then for this.
        [not, rest @ ..] if from == 0 && not.as_known() == Some("!") => condition(rest, 1),
        [operator, operand] => match operator.as_known() {
            Some(operator) if UNARY.contains(&operator) => Ok(Vec::new()),
            Some("-t") if is_number(operand) => Ok(Vec::new()),
            _ => Err(unlisted(0)),
        },
        _ => Err(unlisted(1)),
    }
}
