//! Programs that start the command that is given to them.
//!
//! Left out: `env -S` (splits a text), `-i`, `-u` (without a path some systems look for programs in the folder at hand), `-C`;
//! `exec -a`, `-c`, `-l`; `sudo -e`, `-i`, `-s`, `-A`, `-D`, `-R` (edits, shells, other folders), `doas -C`, `-s`; `ionice -p`;
//! `time -o`; `watch -x`, `-d`. The durations of `timeout` must be known, since old versions take the first word for the program.

use std::sync::LazyLock;

use super::options::Options;
use super::reading::{COMPUTED, MISSING, OPERAND, OPTION, nothing, scan};
use super::{Operands, PROGRAM, Program, Started, Style, Unlisted};
use crate::argument::Argument;

const COMMAND: Operands = Operands::Command { assignments: false };
const ASSIGNED: Operands = Operands::Command { assignments: true };
const STARTER: Program = Program { style: Style::First, operands: COMMAND, ..PROGRAM };

/// TABLE: the programs.
pub const PROGRAMS: &[Program] = &[
    // Many programs in one, a builtin, and programs without options that are needed.
    Program { names: &["builtin", "chronic", "exec", "nohup"], ..STARTER },
    Program { names: &["command"], operands: Operands::Own(command), ..PROGRAM },
    Program { names: &["crontab"], operands: Operands::Own(crontab), ..PROGRAM },
    Program { names: &["doas"], options: "-n -u=NAME", ..STARTER },
    Program { names: &["env", "genv"], operands: ASSIGNED, ..STARTER },
    Program { names: &["ionice"], options: "-c=NUM -n=NUM -t", ..STARTER },
    Program { names: &["nice"], options: "-n=NUM --adjustment=NUM -NUM", ..STARTER },
    Program { names: &["setsid"], options: "-f -w --fork --wait", ..STARTER },
    Program { names: &["stdbuf", "gstdbuf"], options: "-i=MODE -o=MODE -e=MODE --input=MODE --output=MODE --error=MODE", ..STARTER },
    Program {
        names: &["sudo"],
        options: "-n -E -H -S -k -u=NAME -g=NAME --non-interactive --user=NAME --group=NAME",
        operands: ASSIGNED,
        ..STARTER
    },
    Program { names: &["time"], options: "-p", ..STARTER },
    Program { names: &["timeout", "gtimeout"], operands: Operands::Own(timeout), ..PROGRAM },
    Program { names: &["watch"], operands: Operands::Own(watch), ..PROGRAM },
    // Others start programs too, and what their arguments mean is not written down here: nothing of them is allowed.
    Program {
        names: &[
            "aa-exec",
            "caffeinate",
            "chpst",
            "choom",
            "chrt",
            "daemonize",
            "eatmydata",
            "fakechroot",
            "ld.so",
            "newgrp",
            "retry",
            "runcon",
            "softlimit",
            "sudoedit",
            "vipw",
            "visudo",
            "taskset",
            "torify",
            "tsp",
            "x86_64",
            "i386",
        ],
        operands: Operands::Own(nothing),
        ..PROGRAM
    },
];

static TIMEOUT: LazyLock<Options> =
    LazyLock::new(|| Options::new("-v -k=TIME -s=SIGNAL --foreground --preserve-status --verbose --kill-after=TIME --signal=SIGNAL"));

static WATCH: LazyLock<Options> = LazyLock::new(|| Options::new("-t -n=NUM --no-title --interval=NUM"));

/// `command NAME …` starts, `command -v NAME` looks up.
fn command(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
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

/// `crontab` without `-l` takes what it reads for a table of commands.
fn crontab(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    match arguments {
        [only] if only.as_known() == Some("-l") => Ok(Vec::new()),
        _ => Err(Unlisted { index: 0, what: OPTION }),
    }
}

fn starts(command: Vec<Argument>) -> Vec<Started> {
    if command.is_empty() { Vec::new() } else { vec![Started::Command(command)] }
}

fn timeout(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
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

/// `watch` joins its operands to a text for a shell.
fn watch(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let scan = scan(arguments, &WATCH, Style::First)?;
    let mut text = String::new();
    for index in &scan.operands {
        let word = arguments.get(*index).and_then(Argument::as_known).ok_or(Unlisted { index: *index, what: COMPUTED })?;
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    let at = scan.operands.first().and_then(|index| arguments.get(*index)).map_or(0, |word| word.at);
    Ok(vec![Started::Text(Argument { at, ..Argument::known(text) })])
}
