//! Words with braces, of which each shell makes what is tried: bash and zsh several words, dash and busybox sh one.

use super::tree::{Simple, Word};
use super::words::ends_word;

/// Programs that do the same with each of their operands.
const ALIKE: [&str; 8] = ["cat", "head", "ls", "mkdir", "rm", "tail", "touch", "wc"];

/// The program that copies files.
const COPIER: &str = "cp";

/// The most numbers that a range of a loop may stand for.
const RANGE_MAX: u32 = 200;

/// Reads `{1..9}`, as a word of a loop: how long it is, and the words that it stands for. To dash and busybox sh it stands for itself.
pub(super) fn range(text: &str) -> Option<(usize, Vec<String>)> {
    let inner = text.strip_prefix('{')?.split('}').next()?;
    let length = inner.len() + 2;
    let (first, last) = inner.split_once("..")?;
    // A zero in front would stand in front of every number.
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text);
    let (first, last) = (number(first)?, number(last)?);
    let is_word = text.get(length - 1..).is_some_and(|rest| rest.starts_with('}')) && ends_word(text.as_bytes().get(length).copied());
    let is_short = first <= last && last - first < RANGE_MAX;
    (is_word && is_short).then(|| (length, (first..=last).map(|number| number.to_string()).chain([format!("{{{inner}}}")]).collect()))
}

/// Reads a word with one list in braces, as in `src/{a,b}`, of a program that does the same with each of its operands, or copies all but the last:
/// how long the word is, and the words that it stands for. To dash and busybox sh it stands for itself.
pub(super) fn list(text: &str, simple: &Simple) -> Option<(usize, Vec<String>)> {
    let program = simple.words.first().and_then(Word::as_text)?;
    let length = text.bytes().position(|byte| ends_word(Some(byte))).unwrap_or(text.len());
    let takes = ALIKE.contains(&program) || program == COPIER;
    let word = text.get(..length).filter(|word| takes && word.contains('{'))?;
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    let (front, rest) = word.split_once('{')?;
    let (list, behind) = rest.split_once('}')?;
    let items: Vec<&str> = list.split(',').collect();
    let is_list = items.len() > 1 && items.iter().all(|item| is_plain(item) && !item.contains(".."));
    // What stands in front is in front of each word, so that no word is an option.
    let begins = |text: &str| text.starts_with(|first: char| first.is_ascii_alphanumeric() || "./".contains(first));
    let is_open = begins(front) || front.is_empty() && items.iter().all(|item| begins(item));
    (is_list && is_open && is_plain(front) && is_plain(behind))
        .then(|| (length, items.iter().map(|item| format!("{front}{item}{behind}")).chain([word.to_owned()]).collect()))
}

/// Returns whether a command may have braces, the last of which are at a place. `cp` writes its last operand, which is one word to all shells, and
/// does more with options.
pub(super) fn are_taken(simple: &Simple, last: usize) -> bool {
    let is_operand = |word: &Word| word.as_text().is_some_and(|text| !text.starts_with('-'));
    match simple.words.split_first() {
        Some((program, operands)) if program.as_text() == Some(COPIER) => {
            operands.iter().all(is_operand) && operands.last().is_some_and(|word| word.at != last)
        }
        _ => true,
    }
}
