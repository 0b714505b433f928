//! What a call asks for, as far as it decides what its result means. Events of results need not have the arguments, so it is found out when
//! the call is made.

use crate::decide::loops::CallContext;
use crate::decide::loops::search::{begins, position};

/// The programs for which exit code 1 is an answer: nothing found, a difference, not true.
const ANSWERING: [&str; 12] = ["grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "pgrep", "which", "git diff"];
/// The programs that look something up.
const LOOKUPS: [&str; 10] = ["find", "grep", "rg", "ag", "fd", "locate", "which", "whereis", "ls", "git grep"];

/// What a call asks for: a set of flags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked(u8);

impl Asked {
    /// Exit code 1 of the command is an answer.
    pub const ANSWERS: u8 = 1;
    /// The command looks something up.
    pub const LOOKS_UP: u8 = 2;
    /// The command asks for help.
    pub const HELP: u8 = 4;
    /// The call sends a command, or keys to a program.
    pub const SENDS: u8 = 8;
    /// All flags.
    const ALL: u8 = 15;

    /// Returns what a call asks for.
    pub fn of(context: &CallContext<'_>) -> Self {
        if !context.may_have_texts() {
            return Self::default();
        }
        let command = context.command();
        if command.is_empty() {
            return Self(if context.keys().is_empty() { 0 } else { Self::SENDS });
        }
        let flag = |flag: u8, applies: bool| if applies { flag } else { 0 };
        let is_help = ["--help", " -h", "help "].iter().any(|word| position(command, word).is_some());
        Self(Self::SENDS | flag(Self::ANSWERS, answers(command)) | flag(Self::LOOKS_UP, is_lookup(command)) | flag(Self::HELP, is_help))
    }

    /// Returns the flags of these bits.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL)
    }

    /// Returns the flags as bits, of which the lowest four are in use.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether a flag is set.
    pub fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// Returns whether the last program of a command line answers with exit code 1.
fn answers(command: &[u8]) -> bool {
    let last = command.rsplit(|byte| matches!(byte, b'|' | b';' | b'&')).next().unwrap_or_default().trim_ascii_start();
    ANSWERING.iter().any(|program| begins(last, program) && last.get(program.len()).is_none_or(|next| !next.is_ascii_alphanumeric()))
}

/// Returns whether a command line is a look-up.
fn is_lookup(command: &[u8]) -> bool {
    let command = if begins(command, "cd ") {
        memchr::memmem::find(command, b"&& ").and_then(|at| command.get(at + 3..)).unwrap_or(command)
    } else {
        command
    };
    LOOKUPS.iter().any(|program| begins(command, program) && command.get(program.len()).is_none_or(|next| *next == b' '))
}
