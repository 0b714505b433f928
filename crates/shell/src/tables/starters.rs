//! Programs that start the command that is given to them.
//!
//! Left out: `env -S` (splits a text), `-i`, `-u` (without a path some systems look for programs in the folder at hand), `-C`;
//! `exec -a`, `-c`, `-l`; `sudo -e`, `-i`, `-s`, `-A`, `-D`, `-R` (edits, shells, other folders), `doas -C`, `-s`; `ionice -p`;
//! `time -o`; `watch -x`, `-d`. The durations of `timeout` must be known, since old versions take the first word for the program.

use std::sync::LazyLock;

use super::options::Options;
use super::reading::{COMPUTED, MISSING, OPERAND, OPTION, scan};
use super::{Started, Style, Unlisted};
use crate::argument::Argument;

/// Says of `exec` that it has a redirection which feeds other commands than its own.
pub const FEEDS: &str = "an input for all that follows";

static TIMEOUT: LazyLock<Options> =
    LazyLock::new(|| Options::new("-v -k=TIME -s=SIGNAL --foreground --preserve-status --verbose --kill-after=TIME --signal=SIGNAL"));

/// `command NAME …` starts, `command -v NAME` looks up.
pub(super) fn command(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let Some(first) = arguments.first() else { return Ok(Vec::new()) };
    match first.as_known() {
        Some("-v" | "-V") => {
            let is_name = |word: &Argument| word.is_operand() && !word.many;
            let doubtful = arguments.iter().skip(1).position(|word| !is_name(word));
            doubtful.map_or(Ok(Vec::new()), |at| Err(Unlisted { index: at + 1, what: COMPUTED }))
        }
        Some("--") => Ok(starts(arguments.get(1..).unwrap_or_default().to_vec())),
        _ if first.is_operand() => Ok(starts(arguments.to_vec())),
        Some(_) => Err(Unlisted { index: 0, what: OPTION }),
        None => Err(Unlisted { index: 0, what: COMPUTED }),
    }
}

fn starts(command: Vec<Argument>) -> Vec<Started> {
    if command.is_empty() { Vec::new() } else { vec![Started::Command(command)] }
}

pub(super) fn timeout(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let scan = scan(arguments, &TIMEOUT, Style::First)?;
    let index = scan.operands.first().copied().unwrap_or(arguments.len());
    let duration = arguments.get(index).ok_or(Unlisted { index, what: MISSING })?;
    let is_duration = |text: &str| {
        let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
        number.starts_with(|c: char| c.is_ascii_digit()) && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    if !duration.as_known().is_some_and(is_duration) {
        return Err(Unlisted { index, what: OPERAND });
    }
    Ok(starts(arguments.get(index + 1..).unwrap_or_default().to_vec()))
}
