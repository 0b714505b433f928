//! `awk`, and its language.
//!
//! Left out of the options: `-f`, `-i`, `-e`, `-E`, `-l`, `-W` and all long ones but two. Left out of the language, without regard to what
//! is a text in it: `|` other than `||`, and `>` outside the condition of `if` and `while`, behind the first brace (an output or a comparison:
//! `5 < $1` is one that is allowed),
//! `@` (loads, and calls what is computed), a backslash at the end of a line, `getline`, `system`, `ARGV` and `ARGC`, and `SYMTAB` that
//! holds them (which files are read:
//! some versions connect to a file that begins with `/inet`), functions that are not listed here.

use std::sync::LazyLock;

use super::options::Options;
use super::reading::{COMPUTED, MISSING, OPERAND, scan};
use super::{Started, Style, Unlisted};
use crate::argument::{Argument, Certainty};

/// TABLE: functions that run, write and connect to nothing, and words that a parenthesis may stand behind.
const FUNCTIONS: &[&str] = &[
    "and", "atan2", "compl", "cos", "else", "exit", "exp", "fflush", "for", "gensub", "gsub", "if", "in", "index", "int", "length", "log",
    "lshift", "match", "mktime", "or", "patsplit", "print", "printf", "rand", "return", "rshift", "sin", "split", "sprintf", "sqrt",
    "srand", "strftime", "strtonum", "sub", "substr", "switch", "systime", "tolower", "toupper", "while", "xor",
];

/// TABLE: words that stand nowhere in a program.
const WORDS: [&str; 8] = ["ARGC", "ARGV", "FUNCTAB", "SYMTAB", "extension", "getline", "inet", "system"];

static OPTIONS: LazyLock<Options> = LazyLock::new(|| Options::new("-F=TEXT -v=TEXT"));

/// Returns the options, and how they are told from operands.
pub fn options() -> (&'static Options, Style) {
    (&OPTIONS, Style::First)
}

pub(super) fn awk(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let scan = scan(arguments, &OPTIONS, Style::First)?;
    let (index, files) = match scan.operands.split_first() {
        Some((index, files)) => (*index, files),
        None => return Err(Unlisted { index: arguments.len(), what: MISSING }),
    };
    let program = arguments.get(index).and_then(Argument::as_known).ok_or(Unlisted { index, what: COMPUTED })?;
    check(program).map_err(|what| Unlisted { index, what })?;
    // Some versions take options behind the program, and none may be the name of a connection.
    let is_file = |word: &Argument| word.is_operand() && !word.text.contains("/inet");
    match files.iter().find(|at| !arguments.get(**at).is_some_and(is_file)) {
        Some(index) => {
            let is_known = arguments.get(*index).is_some_and(|word| word.certainty == Certainty::Known);
            Err(Unlisted { index: *index, what: if is_known { OPERAND } else { COMPUTED } })
        }
        None => Ok(Vec::new()),
    }
}

/// Returns whether actions may print into a file. The condition of `if` and `while` is an expression, and nothing is printed in it. Where texts and
/// patterns stand, a parenthesis may be one of their characters.
fn may_write(actions: &str) -> bool {
    let has_texts = actions.contains(['"', '/', '#', '\\']);
    let (mut depth, mut is_condition) = (0_usize, false);
    actions.char_indices().any(|(at, char)| {
        match char {
            '(' if depth == 0 => {
                let front = actions.get(..at).unwrap_or_default().trim_end();
                let word = front.rsplit(|char: char| !char.is_ascii_alphanumeric() && char != '_').next().unwrap_or_default();
                (depth, is_condition) = (1, matches!(word, "if" | "while"));
            }
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char == '>' && (has_texts || depth == 0 || !is_condition)
    })
}

/// Says whether a program only reads, computes and prints.
///
/// # Errors
/// Returns what the program has that is not known to be harmless.
pub fn check(program: &str) -> Result<(), &'static str> {
    // In front of all actions stand patterns, which print nothing.
    let (_, actions) = program.split_once('{').unwrap_or((program, ""));
    let pipes = actions.split(|c| c != '|').any(|run| !matches!(run.len(), 0 | 2));
    let continued = program.contains("\\\n") || program.contains("\\\r");
    if pipes || continued || may_write(actions) || program.contains('@') || WORDS.iter().any(|word| program.contains(word)) {
        return Err(OPERAND);
    }
    let mut before = program;
    while let Some((head, _)) = before.rsplit_once('(') {
        before = head;
        let head = head.trim_end();
        let start = head.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        let word = head.get(start..).unwrap_or_default();
        // A number, or nothing, is no function.
        let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_name && !FUNCTIONS.contains(&word) {
            return Err(OPERAND);
        }
    }
    Ok(())
}
