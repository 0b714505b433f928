//! Words with braces. Bash and zsh make several words of such a word, dash and busybox sh one: a command with braces is judged in both ways.

use super::words::ends_word;

/// The most numbers that a range may stand for.
const RANGE_MAX: u32 = 200;

/// Reads a word with one list or range in braces, as in `src/{a,b}` and `{1..9}`: how long the word is, the words that bash and zsh make of it, and
/// the word that it is to dash and busybox sh, each as it would be written without braces.
pub(super) fn list(text: &str) -> Option<(usize, Vec<String>, String)> {
    let length = text.bytes().position(|byte| ends_word(Some(byte))).unwrap_or(text.len());
    let (front, rest) = text.get(..length)?.split_once('{')?;
    let (list, behind) = rest.split_once('}')?;
    let items = match list.split_once("..") {
        Some((first, last)) => numbers(first, last)?,
        None => list.split(',').map(str::to_owned).collect(),
    };
    // Nothing else in it is expanded but a star, and a word of nothing would be none.
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/=*@:+".contains(&byte));
    let is_list = list.contains([',', '.']) && items.iter().all(|item| is_plain(item) && !item.is_empty());
    let words = items.iter().map(|item| format!("{front}{item}{behind}")).collect();
    (is_list && is_plain(front) && is_plain(behind)).then(|| (length, words, format!("{front}'{{'{list}'}}'{behind}")))
}

/// Returns the numbers of a range. A zero in front would stand in front of every number.
fn numbers(first: &str, last: &str) -> Option<Vec<String>> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text);
    let (first, last) = (number(first)?, number(last)?);
    (first <= last && last - first < RANGE_MAX).then(|| (first..=last).map(|number| number.to_string()).collect())
}
