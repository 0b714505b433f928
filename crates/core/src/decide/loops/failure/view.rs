//! A result as the shapes of failures look at it.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::Asked;
use crate::decide::loops::search::Hints;
use tollgate_json::Value;

/// How many bytes at the beginning of a text are looked at.
const HEAD_BYTES: usize = 1_000;
/// How many bytes at the end of a text are looked at.
const TAIL_BYTES: usize = 300;

/// The members of an object that hold its text, in the order of preference.
const TEXT_MEMBERS: [&str; 9] = ["error", "stderr", "message", "output", "stdout", "content", "text", "result", "detail"];

/// A result's text, out of its envelope.
pub struct View<'v> {
    /// The whole text.
    pub text: &'v [u8],
    /// The text as JSON, where it is an object or a list.
    pub value: Option<Value<'v>>,
    /// What the call asked for.
    pub asked: Asked,
    /// The call's arguments as they are spelled; empty where they are not known.
    pub arguments: &'v [u8],
    /// The beginning of what the tool says: of the text, or of the member of an object that holds its text.
    pub head: &'v [u8],
    /// Which of [`HINTS`] the parts of the text hold that are looked at, a bit for each.
    hints: u16,
}

impl<'v> View<'v> {
    /// Returns the view of a text out of a result.
    pub fn new(text: &'v [u8], value: Option<Value<'v>>, result: &super::Result<'v>) -> Self {
        let member =
            |object: Value<'v>| TEXT_MEMBERS.iter().find_map(|key| Some(object.get(key)?.as_text()?.source()).filter(|s| !s.is_empty()));
        // Values without such a member are data, in which words say nothing.
        let said = value.map_or(text, |value| member(value).unwrap_or_default());
        let head = beginning(said, HEAD_BYTES).trim_ascii_start();
        let mut view = Self { text, value, asked: result.asked, arguments: result.arguments, head, hints: 0 };
        // What a member says stands somewhere in the text. The end of a short text is a part of its beginning.
        let first = if value.is_some() { head } else { b"" };
        let end = if text.len() > HEAD_BYTES { view.tail() } else { b"" };
        view.hints = [first, beginning(text, HEAD_BYTES), end].into_iter().fold(0, |hints, part| hints | SEARCH.hints_in(part));
        view
    }

    /// Returns whether a part of the text holds one of these pieces. It is a quick look before a closer one: for most texts the hints have
    /// told already that it does not.
    pub fn holds(&self, part: &[u8], pieces: &Hinted) -> bool {
        self.hints & pieces.bits != 0 && pieces.finders.iter().any(|piece| piece.find(part).is_some())
    }

    /// Returns the first line that is not blank; empty where there is none.
    pub fn first_line(&self) -> &'v [u8] {
        self.lines().next().unwrap_or_default()
    }

    /// Returns the lines at the beginning that are not blank, without the space around them.
    pub fn lines(&self) -> impl Iterator<Item = &'v [u8]> + use<'v> {
        lines(self.head)
    }

    /// Returns the end of the text.
    pub fn tail(&self) -> &'v [u8] {
        self.text.get(self.text.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default().trim_ascii_end()
    }

    /// Returns a member of the object that the text is.
    pub fn member(&self, key: &str) -> Option<Value<'v>> {
        self.value?.get(key).filter(|value| !value.is_null())
    }
}

/// Returns the lines of a text that are not blank. An escaped line break, as members of an object have it, ends a line too.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    let next = move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr2_iter(b'\n', b'\\', rest).find(|at| rest.get(*at) == Some(&b'\n') || rest.get(at + 1) == Some(&b'n'));
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let is_escaped = end.is_some_and(|at| rest.get(at) == Some(&b'\\'));
        rest = end.and_then(|at| rest.get(at + 1 + usize::from(is_escaped)..)).unwrap_or_default();
        Some(line.trim_ascii())
    };
    std::iter::from_fn(next).filter(|line| !line.is_empty())
}

/// Returns the first bytes of a text.
pub fn beginning(text: &[u8], bytes: usize) -> &[u8] {
    text.get(..bytes).unwrap_or(text)
}

/// Pieces of text that are hints.
pub struct Hinted {
    bits: u16,
    finders: Vec<Finder<'static>>,
}

/// What the shapes look for in every result: one pass finds all of it.
const HINTS: [&str; 11] =
    ["ail", "AIL", "rrors", "code", "exit status", "ot found", "o such file", "does not exist", "not ", "such command", ": error: "];
static SEARCH: LazyLock<Hints> = LazyLock::new(|| Hints::new(&HINTS));

/// Returns pieces out of [`HINTS`], to be looked for closely.
pub fn hinted<const N: usize>(pieces: [&'static str; N]) -> Hinted {
    let bits = HINTS.iter().enumerate().filter(|(_, hint)| pieces.contains(hint)).fold(0, |bits, (at, _)| bits | 1 << at);
    Hinted { bits, finders: pieces.map(Finder::new).into() }
}

/// Returns the whole number that a text begins with, after white space.
pub fn number(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    let digits = text.iter().skip(usize::from(text.first() == Some(&b'-'))).take_while(|byte| byte.is_ascii_digit()).count();
    let end = digits + usize::from(text.first() == Some(&b'-'));
    std::str::from_utf8(text.get(..end)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::loops::failure::Result;

    /// Every hint is put at every place of texts that hold other hints too.
    #[test]
    fn a_hint_is_seen_wherever_it_stands() {
        let fillers = ["", "-", "--the tail does not exist: code, not found--"];
        let repeats = [(0, 1), (3, 70), (40, 3), (HEAD_BYTES - 2, 100), (2 * HEAD_BYTES, 2)];
        let cases = HINTS.iter().flat_map(|hint| fillers.iter().flat_map(move |filler| repeats.map(|repeat| (hint, filler, repeat))));
        for (hint, filler, (before, after)) in cases {
            let text = format!("{}{hint}{}", filler.repeat(before), filler.repeat(after));
            let result = Result { text: None, declared: None, arguments: b"", asked: Asked::default(), is_repeated: false };
            let view = View::new(text.as_bytes(), None, &result);
            let parts = [view.head, view.tail()];
            let is_there = parts.iter().any(|part| memchr::memmem::find(part, hint.as_bytes()).is_some());
            let pieces = hinted([*hint]);
            assert_eq!(parts.iter().any(|part| view.holds(part, &pieces)), is_there, "{hint} in {text}");
        }
    }
}
