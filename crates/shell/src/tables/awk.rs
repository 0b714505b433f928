//! `awk`, and its language.
//!
//! Left out of the options: `-f`, `-i`, `-e`, `-E`, `-l`, `-W` and all long ones but two. Left out of the language: `|` other than `||`, and `>`
//! outside the condition of `if` and `while`, behind the first brace (an output or a comparison: `5 < $1` is one that is allowed), `@` (loads, and
//! calls what is computed), a backslash at the end of a line, `getline`, `system`, `ARGV` and `ARGC`, and `SYMTAB` that holds them (which files are
//! read: some versions connect to a file that begins with `/inet`), functions that are not listed here, and a slash of which versions may think
//! differently.

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
const WORDS: [&str; 7] = ["ARGC", "ARGV", "FUNCTAB", "SYMTAB", "extension", "getline", "system"];

/// TABLE: words that are no values: what a slash behind them means is not asked.
const KEYWORDS: &str = "case delete do else exit func function in length next nextfile print printf return switch";

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

/// Returns whether actions may print into a file. The condition of `if` and `while` is an expression, and nothing is printed in it.
fn may_write(actions: &str) -> bool {
    let (mut depth, mut is_condition) = (0_usize, false);
    actions.char_indices().any(|(at, char)| {
        match char {
            '(' if depth == 0 => {
                let word = last_word(actions.get(..at).unwrap_or_default());
                (depth, is_condition) = (1, matches!(word, "if" | "while"));
            }
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char == '>' && (depth == 0 || !is_condition)
    })
}

/// Returns the word with which a program ends; an empty text if it ends with a sign.
fn last_word(program: &str) -> &str {
    program.trim_end().rsplit(|char: char| !is_of_word(char)).next().unwrap_or_default()
}

fn is_of_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// Returns a program with empty texts and regular expressions, and without its comments; `None` where versions of `awk` may see other ends.
fn bones(program: &str) -> Option<String> {
    let mut bones = String::with_capacity(program.len());
    // For each open parenthesis, and for the last that was closed, whether a statement may stand behind it.
    let (mut open, mut is_condition) = (Vec::new(), false);
    let mut left = program;
    while let Some((first, rest)) = split_first(left) {
        left = match first {
            '"' => behind(rest, '"')?,
            '#' => rest.trim_start_matches(|char| char != '\n'),
            '/' if begins_regex(&bones, is_condition, !open.is_empty())? => behind(rest, '/')?,
            _ => rest,
        };
        match first {
            '(' => open.push(matches!(last_word(&bones), "for" | "if" | "switch" | "while")),
            ')' => is_condition = open.pop()?,
            _ => {}
        }
        if first != '#' {
            bones.push(first);
        }
    }
    Some(bones)
}

fn split_first(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    chars.next().map(|first| (first, chars.as_str()))
}

/// Returns whether a slash behind these bones begins a regular expression, and divides nothing; `None` if versions may think differently.
fn begins_regex(bones: &str, is_condition: bool, is_inside: bool) -> Option<bool> {
    let bones = bones.trim_end_matches([' ', '\t']);
    match bones.chars().next_back() {
        None => Some(true),
        Some('\n') => (!is_inside).then_some(true),
        Some(')') => (!is_condition).then_some(false),
        Some(']' | '"' | '.') => Some(false),
        Some(char) if is_of_word(char) => (!super::is_in(KEYWORDS, last_word(bones))).then_some(false),
        Some(sign @ ('+' | '-')) => (!bones.ends_with(&format!("{sign}{sign}"))).then_some(true),
        Some(sign) => "{}(,;!~&|<>=*%^?:$".contains(sign).then_some(true),
    }
}

/// Returns what stands behind the end of a text or a regular expression. Versions differ in whether a slash in a set is the end of an expression,
/// and in where a set ends.
fn behind(mut rest: &str, end: char) -> Option<&str> {
    let is_regex = end == '/';
    if is_regex && rest.starts_with('=') {
        return None;
    }
    loop {
        let (first, behind) = split_first(rest)?;
        rest = match first {
            '\n' => return None,
            '\\' => split_first(behind)?.1,
            '[' if is_regex => behind_set(behind.strip_prefix('^').unwrap_or(behind))?,
            _ if first == end => return Some(behind),
            _ => behind,
        };
    }
}

fn behind_set(mut rest: &str) -> Option<&str> {
    if rest.starts_with(']') {
        return None;
    }
    loop {
        if let Some((name, behind)) = rest.strip_prefix("[:").and_then(|class| class.split_once(":]")) {
            rest = Some(behind).filter(|_| name.bytes().all(|byte| byte.is_ascii_alphabetic()))?;
            continue;
        }
        let (first, behind) = split_first(rest)?;
        rest = match first {
            ']' => return Some(behind),
            '[' | '/' | '\n' => return None,
            '\\' => behind.strip_prefix(|char| !"[]/\\\n".contains(char))?,
            _ => behind,
        };
    }
}

/// Says whether a program only reads, computes and prints.
///
/// # Errors
/// Returns what the program has that is not known to be harmless.
pub fn check(program: &str) -> Result<(), &'static str> {
    let bones = bones(program).ok_or(OPERAND)?;
    // In front of all actions stand patterns, which print nothing.
    let (_, actions) = bones.split_once('{').unwrap_or((&bones, ""));
    let pipes = actions.split(|c| c != '|').any(|run| !matches!(run.len(), 0 | 2));
    let continued = program.contains("\\\n") || program.contains("\\\r");
    let has_word = || bones.split(|char| !is_of_word(char)).any(|word| WORDS.contains(&word));
    if pipes || continued || may_write(actions) || bones.contains('@') || has_word() {
        return Err(OPERAND);
    }
    // A number, or nothing, is no function.
    let is_name = |word: &str| !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit());
    let mut fronts = bones.match_indices('(').map(|(at, _)| last_word(bones.get(..at).unwrap_or_default()));
    if fronts.any(|word| is_name(word) && !FUNCTIONS.contains(&word)) { Err(OPERAND) } else { Ok(()) }
}
