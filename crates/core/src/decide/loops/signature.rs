//! The identity of a call and of a result: digests of their canonical forms.

use std::cell::OnceCell;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::classify;
use super::search::Hints;
use tollgate_json::digest::{Digest, Fingerprint};
use tollgate_json::{DEPTH_MAX, Parser, Shape, Text, Value, arrangement, canonical};
use tollgate_passport::ToolInput;

/// A tool's name with the digest of its canonical arguments. It is stable, and the arguments cannot be derived from it.
#[derive(Debug, Clone, Copy)]
pub struct Signature<'a> {
    /// The tool's name as the event spells it.
    pub tool_name: &'a str,
    /// The fingerprint of the tool's name, as state holds it.
    pub tool: Fingerprint,
    /// The digest of the canonical arguments.
    pub args: Digest,
}

impl<'a> Signature<'a> {
    /// Returns the signature of a tool with arguments of that digest.
    #[must_use]
    pub fn new(tool_name: &'a str, args: Digest) -> Self {
        Self { tool_name, tool: Fingerprint::of(tool_name), args }
    }
}

/// How many bytes of a command line are looked at.
const COMMAND_BYTES: usize = 300;
/// How far into the arguments a command line is looked for, in bytes.
const ARGUMENT_BYTES: usize = 2_000;
/// The arguments whose texts are looked at, as they stand in JSON: a command line, what is done to a screen, keys for a terminal.
const NAMES: [&str; 6] = ["\"command\"", "\"cmd\"", "\"script\"", "\"args\"", "\"action\"", "\"chars\""];
static HINTS: LazyLock<Hints> = LazyLock::new(|| Hints::new(&NAMES));
static FINDERS: LazyLock<[Finder<'static>; NAMES.len()]> = LazyLock::new(|| NAMES.map(Finder::new));
/// The flags behind which a shell takes a command line.
const SHELL_FLAGS: [&[u8]; 3] = [b"-lc", b"-c", b"-ec"];

/// What a controller may ask about a call besides its signature.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallContext<'a> {
    /// The call's id.
    pub id: Option<Fingerprint>,
    /// Its arguments, where the event has them.
    pub input: Option<&'a ToolInput<'a>>,
    /// Whether the event says that a person watches the run.
    pub is_attended: bool,
    /// Whether nothing may be stopped, because a person watches and the settings leave it to them.
    pub only_warns: bool,
}

impl<'a> CallContext<'a> {
    /// Returns the beginning of the command line in the arguments, as it is spelled there; empty where there is none.
    ///
    /// Of a list that hands a line to a shell (`["bash", "-lc", "make"]`) it is that line, of any other list its first text.
    #[must_use]
    pub fn command(&self) -> &[u8] {
        self.text_of(0..4)
    }

    /// Returns what is done to a screen, where the arguments name it (`"action": "scroll"`); empty elsewhere.
    #[must_use]
    pub fn action(&self) -> &[u8] {
        self.text_of(4..5)
    }

    /// Returns the keys that are sent to the program of a terminal (`"chars": "q"`); empty elsewhere.
    #[must_use]
    pub fn keys(&self) -> &[u8] {
        self.text_of(5..6)
    }

    /// Returns the arguments as they are spelled; empty where the event has none.
    #[must_use]
    pub fn arguments(&self) -> &[u8] {
        match self.input {
            Some(ToolInput::Value(value)) => value.source(),
            Some(ToolInput::Encoded(text)) => text.as_bytes(),
            Some(ToolInput::Absent { .. }) | None => b"",
        }
    }

    /// Returns whether any of the arguments may be there that texts are taken from. For most calls one pass tells that none is.
    #[must_use]
    pub fn may_have_texts(&self) -> bool {
        HINTS.hints_in(self.beginning()) != 0
    }

    /// Returns the part of the arguments that is looked at.
    fn beginning(&self) -> &[u8] {
        let source = self.arguments();
        source.get(..ARGUMENT_BYTES).unwrap_or(source)
    }

    /// Returns the beginning of the text of the first of these [`NAMES`] that has a text; empty where there is none.
    fn text_of(&self, names: std::ops::Range<usize>) -> &[u8] {
        let finders = FINDERS.get(names).unwrap_or_default();
        finders.iter().find_map(|name| text_behind(self.beginning(), name)).unwrap_or_default()
    }
}

/// Returns the text behind a key in quotes: of a list its first text, or the line that it hands to a shell.
fn text_behind<'s>(source: &'s [u8], key: &Finder<'_>) -> Option<&'s [u8]> {
    let at = key.find(source)?;
    let value = source.get(at + key.needle().len()..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let Some(list) = value.strip_prefix(b"[") else { return quoted(value).map(|(text, _)| text) };
    let (first, rest) = quoted(list)?;
    let line = || quoted(next(rest)?).filter(|(flag, _)| SHELL_FLAGS.contains(flag)).and_then(|(_, rest)| quoted(next(rest)?));
    Some(line().map_or(first, |(line, _)| line))
}

/// Returns the text in quotes that a JSON source begins with, cut to [`COMMAND_BYTES`], and the source behind it.
fn quoted(source: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = source.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr_iter(b'"', text).find(|end| end.checked_sub(1).and_then(|at| text.get(at)) != Some(&b'\\'));
    let end = end.unwrap_or(text.len());
    Some((text.get(..end.min(COMMAND_BYTES))?, text.get(end + 1..).unwrap_or_default()))
}

/// Returns the source behind the comma that it begins with.
fn next(source: &[u8]) -> Option<&[u8]> {
    source.trim_ascii_start().strip_prefix(b",")
}

/// Returns the digest of a call's arguments. Anything but an object, and text that is not JSON, counts as `{}`. The canonical form is
/// written at the end of `scratch`, and taken away again.
#[must_use]
pub fn arguments_digest(input: &ToolInput<'_>, scratch: &mut Vec<u8>) -> Digest {
    match input {
        ToolInput::Value(value) => digest_of_object(Some(*value), scratch),
        ToolInput::Encoded(text) => digest_of_object(Parser::new().parse(text.as_bytes(), DEPTH_MAX).ok(), scratch),
        ToolInput::Absent { .. } => digest_of_object(None, scratch),
    }
}

/// A call's arguments as state holds them: what they mean, and how they are spelled. Both together stand for their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arguments {
    /// The digest of the canonical form, as [`arguments_digest`] computes it. Arguments that mean the same share it: white space, the order
    /// of keys and the spelling of numbers are lost, and of a key that stands twice all but the last.
    pub canonical: Digest,
    /// What the canonical form has lost: the fingerprint of the bytes as they stand in the event, or the arrangement of a plain object,
    /// which together with the canonical form determines them.
    pub spelling: Fingerprint,
}

/// The mark of an arrangement that is that of a JSON text in a string.
const IN_A_STRING: u8 = 0x80;

impl Arguments {
    /// Returns a call's arguments in digests. `scratch` serves as for [`arguments_digest`].
    #[must_use]
    pub fn of(input: &ToolInput<'_>, scratch: &mut Vec<u8>) -> Self {
        // Hashing is most of the cost of a decision, so the bytes are not hashed where something shorter determines them.
        let (canonical, short) = match input {
            ToolInput::Value(value) if value.is_object() => {
                let (canonical, is_canonical) = digest_and_spelling(*value, scratch);
                (canonical, if is_canonical { Some(canonical.fingerprint()) } else { arranged(*value, 0) })
            }
            ToolInput::Encoded(text) => match Parser::new().parse(text.as_bytes(), DEPTH_MAX) {
                Ok(value) if value.is_object() => {
                    let is_plain = text.has_short_escapes() && text.as_bytes() == value.source();
                    (digest_of_value(value, scratch), is_plain.then(|| arranged(value, IN_A_STRING)).flatten())
                }
                _ => (digest_of_object(None, scratch), None),
            },
            ToolInput::Value(_) | ToolInput::Absent { .. } => (digest_of_object(None, scratch), None),
        };
        Self { canonical, spelling: short.unwrap_or_else(|| spelling(input)) }
    }
}

/// Returns the arrangement of an object, with a mark, in the place of a fingerprint. It begins with small numbers, as a fingerprint does by
/// chance only.
fn arranged(object: Value<'_>, mark: u8) -> Option<Fingerprint> {
    let [spacing, places @ ..] = arrangement(object)?;
    let mut bytes = [0; 16];
    let (first, rest) = bytes.split_first_mut()?;
    *first = spacing | mark;
    rest.copy_from_slice(&places);
    Some(Fingerprint::from_bytes(bytes))
}

/// Returns the fingerprint of arguments as they stand in the event. The form comes first, so that no two forms are taken for each other,
/// nor either for a canonical form, which begins with a brace.
fn spelling(input: &ToolInput<'_>) -> Fingerprint {
    let (form, source): (&[u8], &[u8]) = match input {
        ToolInput::Absent { null: false } => (b"absent", b""),
        ToolInput::Absent { null: true } => (b"null", b""),
        // The source of a string is without its quotes.
        ToolInput::Value(value) if value.shape() == Shape::String => (b"string", value.source()),
        ToolInput::Value(value) => (b"value", value.source()),
        ToolInput::Encoded(text) => (b"text", text.source()),
    };
    Digest::of_parts(&[form, source]).fingerprint()
}

fn digest_of_object(value: Option<Value<'_>>, scratch: &mut Vec<u8>) -> Digest {
    match value.filter(Value::is_object) {
        Some(object) => digest_of_value(object, scratch),
        None => Digest::of(b"{}"),
    }
}

fn digest_of_value(value: Value<'_>, scratch: &mut Vec<u8>) -> Digest {
    digest_and_spelling(value, scratch).0
}

/// Returns the digest of a value's canonical form, and whether the value is spelled in that form.
fn digest_and_spelling(value: Value<'_>, scratch: &mut Vec<u8>) -> (Digest, bool) {
    let start = scratch.len();
    canonical::write(value, scratch);
    let bytes = scratch.get(start..).unwrap_or_default();
    let found = (Digest::of(bytes), bytes == value.source());
    scratch.truncate(start);
    found
}

/// Returns the digest of a result. It is that of the canonical form if the result is JSON other than `null`, otherwise that of the text
/// itself. Null counts as "".
#[must_use]
pub fn result_digest(result: Option<&Text<'_>>) -> Digest {
    let text = result.map_or(b"".as_slice(), Text::as_bytes);
    let mut parser = Parser::new();
    match begins_as_json(text).then(|| parser.parse(text, DEPTH_MAX)) {
        Some(Ok(value)) if !value.is_null() => digest_of_value(value, &mut Vec::new()),
        _ => Digest::of(text),
    }
}

/// Returns whether a text begins as JSON, or what Python takes for it, does. Most results are no JSON, and their first character tells.
fn begins_as_json(text: &[u8]) -> bool {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_some_and(|first| matches!(first, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'N' | b'I'))
}

/// A result as a controller observes it. Its digest, and whether it is a failure, are found out on first use.
#[derive(Debug)]
pub struct Observation<'a> {
    /// Whether the call failed, as the event says.
    pub declared: Option<bool>,
    tool_name: &'a str,
    result: Option<&'a Text<'a>>,
    has_failed: OnceCell<bool>,
    digest: OnceCell<Digest>,
}

impl<'a> Observation<'a> {
    /// Returns the observation of a tool's result, whose event says this of its failure.
    #[must_use]
    pub fn new(tool_name: &'a str, declared: Option<bool>, result: Option<&'a Text<'a>>) -> Self {
        Self { declared, tool_name, result, has_failed: OnceCell::new(), digest: OnceCell::new() }
    }

    /// Returns whether the call failed, as the event says or as [`classify`] says of its result.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.declared.unwrap_or_else(|| *self.has_failed.get_or_init(|| classify(self.tool_name, self.result).is_some()))
    }

    /// Returns the raw result.
    #[must_use]
    pub fn text(&self) -> Option<&'a Text<'a>> {
        self.result
    }

    /// Returns the result's digest, as [`result_digest`] computes it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| result_digest(self.result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Digest {
        arguments_digest(&ToolInput::Encoded(Text::plain(text.as_bytes())), &mut Vec::new())
    }

    fn result(text: &str) -> Digest {
        result_digest(Some(&Text::plain(text.as_bytes())))
    }

    #[test]
    fn a_command_line_is_found_in_a_text_and_in_a_list_for_a_shell() {
        for (arguments, command) in [
            (r#"{"command": "git status"}"#, "git status"),
            (r#"{"cwd": "/", "command": ["bash", "-lc", "git status"]}"#, "git status"),
            (r#"{"command":["ls","-l"]}"#, "ls"),
            (r#"{"command": []}"#, ""),
            (r#"{"command": 7}"#, ""),
            (r#"{"path": "a"}"#, ""),
        ] {
            let input = ToolInput::Encoded(Text::plain(arguments.as_bytes()));
            let context = CallContext { input: Some(&input), ..CallContext::default() };
            assert_eq!(context.command(), command.as_bytes(), "{arguments}");
        }
    }

    #[test]
    fn anything_but_an_object_shares_one_signature() {
        for text in ["null", "[1]", "\"s\"", "5", "true", "{}", "not json", "", "[[[["] {
            assert_eq!(args(text), Digest::of(b"{}"), "{text}");
        }
        assert_eq!(arguments_digest(&ToolInput::Absent { null: false }, &mut Vec::new()), Digest::of(b"{}"));
    }

    /// Every two of these differ in their bytes or in their form, and many of them share a signature.
    #[test]
    fn arguments_that_are_spelled_differently_are_told_apart() {
        let spellings = [
            "{\"a\":2}",
            "{\"a\": 2}",
            "{\"a\":1,\"a\":2}",
            "{\"a\":3,\"a\":2}",
            "{\"\\u0061\":2}",
            "{\"a\":2,\"a\":2}",
            "{\"b\":1,\"a\":2}",
            "{\"a\":2,\"b\":1}",
            "{\"a\":2.0}",
            "{\"a\":2.00}",
            "{}",
            "{ }",
            "[]",
            "[1]",
            "5",
            "\"5\"",
            "5.0",
            "\"\"",
            "null",
            "true",
        ];
        // The same in a string, as OpenAI sends it, and some that differ by the string's own escapes and by space around the object.
        let texts = spellings.iter().map(|spelling| serde_json::Value::from(*spelling).to_string());
        let odd = [r#""{\"a\":2, \"b\":1}""#, r#""{\"a\":2, \"\u0062\":1}""#, r#""{\u0022a\":2,\"b\":1}""#, r#"" {\"a\":2,\"b\":1}""#];
        let texts: Vec<_> = texts.chain(odd.map(str::to_owned)).chain([r#""{\"a\":2,\"b\":1}\n""#.to_owned()]).collect();
        let mut parsers: Vec<_> = (0..spellings.len() + texts.len()).map(|_| Parser::new()).collect();
        let (of_values, of_texts) = parsers.split_at_mut(spellings.len());
        let mut inputs = vec![ToolInput::Absent { null: false }, ToolInput::Absent { null: true }];
        for (spelling, parser) in spellings.iter().zip(of_values) {
            inputs.push(ToolInput::Value(parser.parse(spelling.as_bytes(), 8).unwrap()));
        }
        for (text, parser) in texts.iter().zip(of_texts) {
            inputs.push(ToolInput::Encoded(parser.parse(text.as_bytes(), 8).unwrap().as_text().unwrap()));
        }
        let all: Vec<_> = inputs.iter().map(|input| Arguments::of(input, &mut Vec::new())).collect();
        for (at, one) in all.iter().enumerate() {
            assert_eq!(one.canonical, arguments_digest(&inputs[at], &mut Vec::new()));
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(one == other, at == other_at, "{:?} {:?}", inputs[at], inputs[other_at]);
            }
        }
        assert!(all.iter().filter(|one| one.canonical == all[2].canonical).count() >= 8);
    }

    #[test]
    fn a_lone_surrogate_hashes_by_surrogatepass() {
        assert!(args(r#"{"q":"\ud800"}"#).to_string().starts_with("a3fea9c6"));
    }

    /// The pairs are those of the reference's paragraph on result hashes.
    #[test]
    fn results_are_compared_by_value_where_they_are_json() {
        assert_eq!(result_digest(None), result(""));
        for (left, right) in [("{\"a\":1,\"b\":2}", "{\"b\": 2, \"a\":1}"), ("5", "5 "), ("1e2", "100.0"), ("\"x\"", " \"x\" ")] {
            assert_eq!(result(left), result(right), "{left} {right}");
        }
        for (left, right) in [(" null", "null"), ("null", ""), (" null", ""), ("5", "5.0"), ("\"x\"", "x")] {
            assert_ne!(result(left), result(right), "{left} {right}");
        }
    }
}
