//! Shells: `sh -c TEXT` is a command line of its own, `sh FILE` executes code that is not seen.
//!
//! Left out: `-s` and no operand (they execute what they read), `-i`, `--rcfile`, `--init-file`, all options but `-e -u -x -l -n -c` and
//! `-o` with the names that `set` may have; a `c` that is not the last letter, and options behind it (some shells take the next word for
//! the text, others the next that is no option); scripts in `/dev` and `/proc`, which are other names of what a shell reads.

use super::reading::{COMPUTED, MISSING, OPERAND, OPTION, literal};
use super::shell::{NAMED, letters};
use super::{Started, Unlisted};
use crate::argument::Argument;

pub(super) fn shell(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let mut at = 0;
    let mut is_text = false;
    while let Some(argument) = arguments.get(at) {
        let is_plus = argument.as_known().is_some_and(|text| text.starts_with('+'));
        if argument.is_operand() && !is_plus {
            break;
        }
        let text = argument.as_known().ok_or(Unlisted { index: at, what: COMPUTED })?;
        if matches!(text, "--login" | "--norc" | "--noprofile" | "--posix") {
            at += 1;
            continue;
        }
        let found = letters(text, "euxlnc").ok_or(Unlisted { index: at, what: OPTION })?;
        if found.is_named {
            at += 1;
            let name = arguments.get(at).and_then(Argument::as_known);
            name.filter(|name| NAMED.contains(name)).ok_or(Unlisted { index: at, what: OPTION })?;
        }
        at += 1;
        if found.is_text {
            is_text = true;
            break;
        }
    }
    let unlisted = |what| Unlisted { index: at, what };
    let operand = arguments.get(at).ok_or(unlisted(MISSING))?;
    if is_text {
        let text = operand.as_known().filter(|_| !operand.many).ok_or(unlisted(COMPUTED))?;
        return if text.starts_with(['-', '+']) { Err(unlisted(OPERAND)) } else { Ok(vec![Started::Text(operand.clone())]) };
    }
    let script = operand.as_known().ok_or(unlisted(COMPUTED))?;
    if script.is_empty() || script == "-" || is_input(script) {
        return Err(unlisted(OPERAND));
    }
    let rest = arguments.get(at + 1..).unwrap_or_default();
    literal(rest).map_err(|found| Unlisted { index: found.index + at + 1, ..found })
}

/// Returns whether a path may be another name of what the shell reads, or of what another program writes.
fn is_input(path: &str) -> bool {
    const SEGMENTS: [&str; 7] = ["fd", "proc", "pts", "stderr", "stdin", "stdout", "tty"];
    path.split('/').any(|segment| SEGMENTS.contains(&segment) || segment == "dev" && (path.starts_with('/') || path.contains("..")))
}
