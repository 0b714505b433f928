//! What the arguments of a call may write, and how much.

use std::borrow::Cow;

use tollgate_json::{DEPTH_MAX, Parser, Shape, Text, Value};

use super::argument_names::{ArgumentNames, are_alike, fold};
use super::argument_role::ArgumentRole;
use super::arguments::Arguments;

/// TABLE: encodings, without case and punctuation, in which no character has more bytes than in UTF-8.
const NARROW: &str = "ascii base64 binary cp1252 hex iso88591 latin1 usascii utf8 windows1252";

/// The most bytes of a character in any encoding, and of the mark in front of a text.
const WIDEST: usize = 4;

impl<'v> Arguments<'v> {
    /// Returns how many bytes of the arguments may be written: of a text those that it has, of another value those that spell it. Left out are texts
    /// of which a function says so by their names, also in lists, among the arguments and in the items of `edits`. Where an encoding is named that is
    /// not known to be narrow, each character counts as many as it has in the widest.
    pub(super) fn written_bytes(&self, is_left_out: impl Fn(&str, &str) -> bool) -> usize {
        type Member<'v> = (Option<Cow<'v, str>>, Value<'v>);
        let members = |value: Value<'v>| value.members().map(|(key, value)| (key.as_text().and_then(Text::into_str), value));
        let is_edits = |(name, value): &Member<'v>| {
            name.as_deref().is_some_and(|name| are_alike(name, "edits"))
                && value.shape() == Shape::Array
                && value.items().all(|item| item.is_object())
        };
        let (edits, others): (Vec<Member<'v>>, Vec<_>) = self.0.into_iter().flat_map(members).partition(is_edits);
        let given = others.into_iter().chain(edits.into_iter().flat_map(|(_, edits)| edits.items()).flat_map(members));
        let is_written = |(name, value): &Member<'v>| {
            let is_left = |value: Value<'v>| {
                let text = value.as_text().and_then(Text::into_str);
                name.as_deref().zip(text.as_deref()).is_some_and(|(name, text)| is_left_out(name, text))
            };
            if value.shape() == Shape::Array { !value.items().all(is_left) } else { !is_left(*value) }
        };
        let text_of = |value: Value<'v>| value.as_text().and_then(Text::into_str);
        let is_narrow = |text: &str| fold(text).is_some_and(|name| NARROW.split(' ').any(|known| known == name));
        let mut encodings = self.named(&["encoding", "charset"]).into_iter().filter_map(|(_, value)| text_of(value));
        let is_wide = encodings.any(|encoding| !is_narrow(&encoding));
        let written = |text: Cow<'_, str>| if is_wide { WIDEST * (1 + text.chars().count()) } else { text.len() };
        // A text that is no Unicode counts as it is spelled.
        let bytes = |value: Value<'v>| text_of(value).map_or(value.source().len(), written);
        given.filter(is_written).map(|(_, value)| bytes(value)).sum()
    }
}

/// Returns whether edits that are written out in a text, or in a list of texts, may name files of their own, and nobody judges these: what a tool
/// of an MCP server is given is judged by its names, written out or not. A text that is no JSON may name any.
pub(super) fn names_places(value: Value<'_>, names: &ArgumentNames<'_>) -> bool {
    if names.is_of_server() {
        return false;
    }
    if value.shape() == Shape::Array {
        return value.items().any(|item| item.shape() == Shape::String && names_places(item, names));
    }
    let Some(text) = value.as_text().and_then(Text::into_str) else { return false };
    let mut parser = Parser::new();
    let Ok(root) = parser.parse(text.as_bytes(), DEPTH_MAX) else { return !text.trim().is_empty() };
    let is_place = |key: &str| {
        let role = fold(key).and_then(|name| names.role(&name)).map(|(role, _)| role);
        role == Some(ArgumentRole::Path) || role.is_none() && (key == "name" || key.contains(['/', '\\', '.']))
    };
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        open.extend(value.items());
        for (key, value) in value.members() {
            if key.as_text().and_then(Text::into_str).is_none_or(|key| is_place(&key)) {
                return true;
            }
            open.push(value);
        }
    }
    false
}
