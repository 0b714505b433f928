//! Whether a tool's result says that the call failed. The seed's classification is that of the Hermes controller, for its preset and for
//! signals. The step controller looks for one shape after the other, each in a file of its own.

mod asked;
mod envelope;
mod exit_code;
mod flags;
mod heads;
mod http_status;
mod nothing;
mod passing;
mod phrases;
mod seed;
mod shells;
mod tests_failed;
mod usage;
mod view;

pub use asked::Asked;
pub use seed::{Failure, classify};

use super::hash::Mix;
use tollgate_json::{DEPTH_MAX, Parser, Text, Value};
use view::View;

/// What a shape says of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureSign<'v> {
    /// The call failed; the line says how.
    Failed(&'v [u8]),
    /// The program that it starts is missing.
    Missing,
    /// The call did not fail, whatever else the result holds.
    Fine,
}

/// The shapes, in the order in which they are looked for. The first that says something decides.
const SHAPES: &[for<'v> fn(&View<'v>) -> Option<FailureSign<'v>>] = &[
    flags::see,
    http_status::see,
    shells::see_missing,
    exit_code::see,
    usage::see,
    heads::see,
    shells::see,
    tests_failed::see,
    phrases::see,
];

/// What can be seen of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// The class of the error: a hash of the line that names it, without numbers, quoted texts and paths. `None` is no failure.
    pub class: Option<u16>,
    /// Whether the failure is one that may pass, such as an outage, a rate limit or a lock, or the result says that it is too early.
    pub is_passing: bool,
    /// Whether the call failed because the program that it starts is missing.
    pub is_missing: bool,
    /// Whether the result does not tell whether another call may bring more: a failure without a cause, a success without a word.
    pub is_unclear: bool,
    /// Whether the result is the empty answer to a look-up.
    pub is_nothing: bool,
    /// Whether the failure is declared by the event or by a member of the result, for a cause that does not leave open whether the call ran.
    pub has_not_run: bool,
}

/// A result with what is known of its call.
#[derive(Clone, Copy)]
pub struct Result<'r> {
    /// The raw result.
    pub text: Option<&'r Text<'r>>,
    /// Whether the call failed, as the event says.
    pub declared: Option<bool>,
    /// The call's arguments as they are spelled, where the event of the result has them.
    pub arguments: &'r [u8],
    /// What the call asked for.
    pub asked: Asked,
    /// Whether the call was made before: only then it matters whether it is to be made again later.
    pub is_repeated: bool,
}

/// Looks at a result. `then` gets what was seen, and the text that the tool wrote, out of its envelope.
pub fn look<T>(result: &Result<'_>, then: impl FnOnce(Seen, &[u8]) -> T) -> T {
    let raw = result.text.map_or(b"".as_slice(), Text::as_bytes);
    let mut outer = Parser::new();
    let value = parsed(&mut outer, raw);
    let Some((text, is_error)) = value.and_then(envelope::open) else {
        return then(seen(&View::new(raw, value, result), result), raw);
    };
    let text = text.into_bytes();
    let mut inner = Parser::new();
    let value = parsed(&mut inner, &text);
    let declared = result.declared.or(is_error.then_some(true));
    then(seen(&View::new(&text, value, result), &Result { declared, ..*result }), &text)
}

/// Returns the object or list that a text is.
fn parsed<'p>(parser: &'p mut Parser, text: &'p [u8]) -> Option<Value<'p>> {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if matches!(first, b'{' | b'[') { parser.parse(text, DEPTH_MAX).ok() } else { None }
}

fn seen(view: &View<'_>, result: &Result<'_>) -> Seen {
    let failed = result.declared;
    let is_nothing = nothing::see(view);
    let said = if failed == Some(false) { Some(FailureSign::Fine) } else { SHAPES.iter().find_map(|see| see(view)) };
    let is_declared = || failed == Some(true) || matches!(flags::see(view), Some(FailureSign::Failed(_)));
    let (line, is_missing) = match said {
        Some(FailureSign::Failed(line)) => (line, false),
        Some(FailureSign::Missing) => (b"a missing program".as_slice(), true),
        Some(FailureSign::Fine) | None if failed == Some(true) => (view.first_line(), false),
        Some(FailureSign::Fine) | None => {
            let is_passing = result.is_repeated && passing::is_later(view);
            let is_unclear = result.is_repeated && passing::is_blank(view) && !view.asked.has(Asked::LOOKS_UP);
            return Seen { is_nothing, is_passing, is_unclear, ..Seen::default() };
        }
    };
    let line = if line.is_empty() { view.text } else { line };
    let is_passing = !is_missing && passing::see(view);
    let is_unclear = !is_missing && !is_passing && passing::is_unclear(view);
    let has_not_run = is_missing || !is_passing && !is_unclear && failed != Some(false) && is_declared();
    Seen { class: Some(class_of(line)), is_passing, is_unclear, is_missing, is_nothing, has_not_run }
}

/// How many bytes of an error's line its class depends on.
const CLASS_BYTES: usize = 160;

/// Returns the class of an error by its line. Digits, quoted texts and words with a slash are left out.
fn class_of(line: &[u8]) -> u16 {
    let (mut mix, mut quote) = (Mix::default(), None);
    let line = line.get(..CLASS_BYTES).unwrap_or(line);
    for word in line.split(|byte| *byte == b' ') {
        if quote.is_none() && word.contains(&b'/') {
            continue;
        }
        for byte in word.iter().copied() {
            let is_quote = matches!(byte, b'\'' | b'"' | b'`');
            match quote {
                Some(open) if open == byte => quote = None,
                None if is_quote => quote = Some(byte),
                None if !byte.is_ascii_digit() => mix.byte(byte.to_ascii_lowercase()),
                _ => {}
            }
        }
    }
    mix.short()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::decide::loops::CallContext;
    use tollgate_passport::ToolInput;

    /// Returns what is seen of a result of a call without a command.
    pub fn seen_of(result: &str) -> Seen {
        seen_after("", None, result)
    }

    /// Returns what is seen of a result of a command.
    pub fn seen_after(command: &str, declared: Option<bool>, result: &str) -> Seen {
        let (text, arguments) = (Text::plain(result.as_bytes()), serde_json::json!({"command": command}).to_string());
        let input = ToolInput::Encoded(Text::plain(arguments.as_bytes()));
        let context = CallContext { input: Some(&input), ..CallContext::default() };
        let asked = Asked::of(&context);
        look(&Result { text: Some(&text), declared, arguments: context.arguments(), asked, is_repeated: true }, |seen, _| seen)
    }

    /// Checks that each of the first results is seen as a failure, and none of the others.
    pub fn check(failures: &[&str], others: &[&str]) {
        for result in failures {
            assert!(seen_of(result).class.is_some(), "not seen: {result}");
        }
        for result in others {
            assert_eq!(seen_of(result).class, None, "no failure: {result}");
        }
    }

    /// A row is a result, and some of what is seen of it.
    #[test]
    fn results_are_seen_as_what_they_are() {
        for row in include_str!("../../../../tests/fixtures/seen_results.jsonl").lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let Seen { class, is_passing, is_missing, is_unclear, is_nothing, has_not_run: _ } = seen_of(row["result"].as_str().unwrap());
            let seen = [
                ("failed", class.is_some()),
                ("passing", is_passing),
                ("unclear", is_unclear),
                ("nothing", is_nothing),
                ("missing", is_missing),
            ];
            let expected: Vec<_> = seen.iter().filter(|(what, _)| row.get(what).is_some()).collect();
            assert!(!expected.is_empty() && expected.iter().all(|(what, is_seen)| row[what] == *is_seen), "{row}: {seen:?}");
        }
    }

    #[test]
    fn what_the_event_says_comes_first() {
        let look = |failed, result: &str| seen_after("", failed, result).class.is_some();
        assert!(!look(Some(false), "Error: disk full"));
        assert!(look(Some(true), "all is well"));
        assert!(look(Some(true), ""));
    }

    #[test]
    fn errors_that_differ_in_names_and_numbers_share_a_class() {
        let class = |result: &str| seen_of(result).class.unwrap();
        assert_eq!(class("ValueError: no user 'mia' (7)"), class("ValueError: no user 'ben' (12)"));
        assert_eq!(class("cat: /a/b: No such file or directory"), class("cat: /c/d.txt: No such file or directory"));
        assert_eq!(class("bash: Let: command not found"), class("sh: 1: I: not found"));
        assert_ne!(class("ValueError: no user 'mia'"), class("ValueError: the flight is full"));
    }
}
