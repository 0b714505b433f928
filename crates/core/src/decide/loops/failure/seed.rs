//! Classifying tool results as failures, for events that do not say `failed`.
//!
//! The rules are those of the Hermes controller (`classify_tool_failure`), including its exceptions. They are always given the raw result.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use tollgate_json::{DEPTH_MAX, Parser, Text, Value};

/// How many characters of a text the heuristics read.
const WINDOW_CHARACTERS: usize = 500;

/// The most bytes that so many characters take: a character has four at most.
const WINDOW_BYTES_MAX: usize = 4 * WINDOW_CHARACTERS;

/// The words that mean a failure wherever they stand. Their searchers are made once.
static WORDS: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| ["traceback", "\"error\"", "\"failed\""].map(Finder::new));

/// The reason why a result counts as a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A terminal command ended with an exit code other than 0.
    ExitCode,
    /// The result says that it is an error.
    Error,
    /// The memory tool is full.
    MemoryFull,
}

/// Classifies a tool's raw result. Returns `None` if it is not a failure.
#[must_use]
pub fn classify(tool_name: &str, result: Option<&Text<'_>>) -> Option<Failure> {
    let text = result?;
    let mut parser = Parser::new();
    let beginning = text.beginning(WINDOW_BYTES_MAX);
    let object = may_be_object(&beginning).then(|| parser.parse(text.as_bytes(), DEPTH_MAX).ok().filter(Value::is_object)).flatten();
    match object {
        Some(object) if tool_name == "terminal" => terminal_failure(object),
        // The terminal's rules never apply to plain text.
        None if tool_name == "terminal" => None,
        Some(object) if tool_name == "memory" && is_memory_full(object) => Some(Failure::MemoryFull),
        Some(object) => object_failure(object),
        None => text_failure(&beginning),
    }
}

/// Returns whether a text that begins like this can be a JSON object, judging by its first character.
fn may_be_object(beginning: &[u8]) -> bool {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    // Where the beginning is all white space, the whole text has to be read.
    beginning.iter().find(|byte| !is_space(byte)).is_none_or(|first| *first == b'{')
}

fn terminal_failure(object: Value<'_>) -> Option<Failure> {
    let exit_code = object.get("exit_code").filter(|code| !code.is_null());
    match exit_code {
        Some(code) if !code.equals_zero() => Some(Failure::ExitCode),
        _ => object_failure(object),
    }
}

fn is_memory_full(object: Value<'_>) -> bool {
    let says_full = || {
        let error = object.get("error")?.as_text()?;
        memchr::memmem::find(error.as_bytes(), b"exceed the limit")
    };
    member_is(object, "success", false) && says_full().is_some()
}

fn object_failure(object: Value<'_>) -> Option<Failure> {
    let has_error = || object.get("error").is_some_and(|error| !error.is_null() && !error.is_text(""));
    (member_is(object, "success", false) || member_is(object, "failed", true) || has_error()).then_some(Failure::Error)
}

fn member_is(object: Value<'_>, key: &str, flag: bool) -> bool {
    object.get(key).and_then(|value| value.as_bool()) == Some(flag)
}

/// Applies the heuristics for anything that is not a JSON object: certain words near the start mean a failure.
fn text_failure(text: &[u8]) -> Option<Failure> {
    let mut window = [0; WINDOW_CHARACTERS];
    let all = lower_case_window(text, &mut window);
    let lower = all.as_ref();
    let is_failure = lower.starts_with(b"error:") || text.starts_with(b"Error") || WORDS.iter().any(|word| word.find(lower).is_some());
    is_failure.then_some(Failure::Error)
}

/// Returns the first characters in lower case, as far as it matters for ASCII words: apart from A to Z only U+212A (Kelvin, `k`) and U+0130
/// (`i` and a combining dot) have ASCII in their lower case. The window is cut before lowering, as the original cuts it. What is all ASCII,
/// as most texts are, is written to `window`.
fn lower_case_window<'w>(text: &[u8], window: &'w mut [u8; WINDOW_CHARACTERS]) -> Cow<'w, [u8]> {
    let bytes = WINDOW_CHARACTERS.min(text.len());
    if let (Some(beginning), Some(window)) = (text.get(..bytes).filter(|beginning| beginning.is_ascii()), window.get_mut(..bytes)) {
        window.copy_from_slice(beginning);
        window.make_ascii_lowercase();
        return Cow::Borrowed(window);
    }
    let mut starts = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, 0x80..0xc0)).map(|(at, _)| at);
    let end = starts.nth(WINDOW_CHARACTERS).unwrap_or(text.len());
    let mut lower = Vec::with_capacity(end);
    let mut rest = text.get(..end).unwrap_or_default();
    while let Some((first, tail)) = rest.split_first() {
        rest = match rest {
            [0xe2, 0x84, 0xaa, after @ ..] => {
                lower.push(b'k');
                after
            }
            [0xc4, 0xb0, after @ ..] => {
                lower.extend_from_slice("i\u{307}".as_bytes());
                after
            }
            _ => {
                lower.push(first.to_ascii_lowercase());
                tail
            }
        };
    }
    Cow::Owned(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(tool: &str, result: &str) -> bool {
        classify(tool, Some(&Text::plain(result.as_bytes()))).is_some()
    }

    /// The terminal goes by its object alone, other tools go by object or by text.
    #[test]
    fn what_failed_is_told_by_tool_and_result() {
        for row in include_str!("../../../../tests/fixtures/tool_failures.jsonl").lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let [tool, result] = ["tool", "result"].map(|name| row[name].as_str().unwrap());
            assert_eq!(row["failed"], failed(tool, result), "{row}");
        }
        assert_eq!(classify("terminal", None), None);
    }

    #[test]
    fn the_window_is_500_characters() {
        assert!(failed("custom", &format!("{}traceback", "x".repeat(491))));
        assert!(!failed("custom", &format!("{}traceback", "x".repeat(492))));
        assert!(failed("custom", &format!("{}\"error\"", "😀".repeat(493))));
        assert!(!failed("custom", &format!("{}\"error\"", "😀".repeat(494))));
    }

    #[test]
    fn a_full_memory_has_its_own_class() {
        let classify = |text: &str| classify("memory", Some(&Text::plain(text.as_bytes())));
        assert_eq!(classify("{\"success\":false,\"error\":\"would exceed the limit\"}"), Some(Failure::MemoryFull));
        assert_eq!(classify("{\"success\":false,\"error\":\"would Exceed the limit\"}"), Some(Failure::Error));
    }
}
