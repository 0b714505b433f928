//! Reading a call's arguments for the rules. Nothing with two readings is accepted, and a value of another type never counts as missing.

use std::borrow::Cow;

use crate::ToolInput;
use tollgate_json::{DEPTH_MAX, Parser, Shape, Text, Value};

use super::examine::Denial;
use super::fields::Amount;

/// The largest arguments that are read, in bytes of their JSON text. No model writes as much in one answer.
const BYTES_MAX: usize = 1024 * 1024;

/// How many pieces of paths are looked at, over all paths of a call together. Each piece is compared with every pattern.
const PIECES_MAX: usize = 16_384;

/// The code of the denial for arguments of another form.
const INVALID: &str = "oap.invalid_tool_arguments";

/// Arguments that were read. If the call has none, they are an empty object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'v>(Option<Value<'v>>);

impl<'v> Arguments<'v> {
    /// Reads arguments in any form of the event.
    pub(super) fn read(input: &'v ToolInput<'v>, parser: &'v mut Parser) -> Result<Self, Denial> {
        let root = match input {
            ToolInput::Absent { .. } => return Ok(Self(None)),
            ToolInput::Value(value) => *value,
            ToolInput::Encoded(text) => {
                check_size(text.as_bytes())?;
                parser.parse(text.as_bytes(), DEPTH_MAX).map_err(|_| Denial::new(INVALID, "Tool arguments are not JSON"))?
            }
        };
        check_size(root.source())?;
        if !root.is_object() {
            return Err(Denial::new(INVALID, format!("Tool arguments are {}, expected an object", root.shape())));
        }
        if root.repeats_a_key() {
            return Err(Denial::new(INVALID, "Tool arguments hold the same key more than once"));
        }
        Ok(Self(Some(root)))
    }

    /// Returns the value under a key. Null counts as missing.
    pub(super) fn value(&self, key: &str) -> Option<Value<'v>> {
        self.0.and_then(|root| root.get(key)).filter(|value| !value.is_null())
    }

    /// Returns the string under a key, or `None` if it is missing.
    pub(super) fn text(&self, key: &str) -> Result<Option<Cow<'v, str>>, Denial> {
        self.value(key).map(|value| text(key, value, "a string")).transpose()
    }

    /// Returns the strings under a key: one string, or a list of them.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<Cow<'v, str>>, Denial> {
        self.value(key).map_or_else(|| Ok(Vec::new()), |value| texts(key, value))
    }

    /// Returns all strings under any of these keys, in the order of the keys. Together they may have [`PIECES_MAX`] pieces between slashes.
    pub(super) fn all_texts(&self, keys: &[&str]) -> Result<Vec<Cow<'v, str>>, Denial> {
        let mut found = Vec::new();
        for key in keys {
            found.extend(self.texts(key)?);
        }
        check_pieces(&found)?;
        Ok(found)
    }

    /// Returns all strings under any of these keys in the objects that the arguments hold, at any depth.
    pub(super) fn inner_texts(&self, keys: &[&str]) -> Result<Vec<Cow<'v, str>>, Denial> {
        let inner = |value: Value<'v>| value.items().chain(value.members().map(|(_, value)| value)).collect::<Vec<_>>();
        let mut open: Vec<Value<'v>> = self.0.map(inner).unwrap_or_default();
        let mut found = Vec::new();
        while let Some(value) = open.pop() {
            for (key, value) in value.members().filter(|(_, value)| !value.is_null()) {
                let key = key.as_text().and_then(Text::into_str);
                if let Some(known) = keys.iter().find(|known| key.as_deref() == Some(**known)) {
                    found.extend(texts(known, value)?);
                }
            }
            open.extend(inner(value));
        }
        check_pieces(&found)?;
        Ok(found)
    }

    /// Returns the number under a key, which must be 0 or more, or `None` if it is missing.
    pub(super) fn number(&self, key: &str) -> Result<Option<Amount>, Denial> {
        let read = |value: Value<'_>| Amount::read(value).ok_or_else(|| mistyped(key, value, "a number of 0 or more"));
        self.value(key).map(read).transpose()
    }

    /// Returns how many bytes the texts in the arguments have together, at any depth, but for strings and lists of strings under keys that
    /// are to be left out. A list of lines may be written with an end behind each, so an item counts as one byte more.
    pub(super) fn text_bytes(&self, is_left_out: impl Fn(&str) -> bool) -> usize {
        let is_text = |value: &Value<'_>| value.shape() == Shape::String;
        let left_out = |key: &Value<'_>, value: &Value<'_>| {
            let is_known = || key.as_text().and_then(Text::into_str).is_some_and(|key| is_left_out(&key));
            (is_text(value) || value.items().all(|item| is_text(&item))) && !value.is_object() && is_known()
        };
        // A text that is no Unicode counts as it is spelled.
        let length = |value: &Value<'_>| value.as_text().map_or(0, |text| text.into_str().map_or(value.source().len(), |text| text.len()));
        let mut open: Vec<Value<'v>> = self.0.into_iter().collect();
        let mut bytes: usize = 0;
        while let Some(value) = open.pop() {
            bytes = bytes.saturating_add(length(&value)).saturating_add(value.items().count());
            open.extend(value.items());
            open.extend(value.members().filter(|(key, value)| !left_out(key, value)).map(|(_, value)| value));
        }
        bytes
    }

    /// Returns whether a key has a value that is neither null, false nor empty.
    pub(super) fn holds(&self, key: &str) -> bool {
        let is_empty = |value: &Value<'_>| match value.shape() {
            Shape::String => value.source().is_empty(),
            Shape::Array => value.items().next().is_none(),
            Shape::Object => value.members().next().is_none(),
            _ => value.as_bool() == Some(false),
        };
        self.value(key).is_some_and(|value| !is_empty(&value))
    }
}

fn check_size(text: &[u8]) -> Result<(), Denial> {
    if text.len() <= BYTES_MAX {
        return Ok(());
    }
    Err(Denial::new("oap.context_too_large", format!("Tool arguments have {} bytes; at most {BYTES_MAX} are looked at", text.len())))
}

fn texts<'v>(key: &str, value: Value<'v>) -> Result<Vec<Cow<'v, str>>, Denial> {
    const EXPECTED: &str = "a string or an array of strings";
    match value.shape() {
        Shape::Array => value.items().map(|item| text(key, item, EXPECTED)).collect(),
        _ => Ok(vec![text(key, value, EXPECTED)?]),
    }
}

/// Refuses more pieces of paths than are looked at.
fn check_pieces(texts: &[Cow<'_, str>]) -> Result<(), Denial> {
    // There are no more pieces than bytes, and the texts of nearly all calls are short.
    if texts.iter().map(|text| text.len() + 1).sum::<usize>() <= PIECES_MAX {
        return Ok(());
    }
    let pieces: usize = texts.iter().map(|text| text.bytes().filter(|byte| *byte == b'/').count() + 1).sum();
    if pieces <= PIECES_MAX {
        return Ok(());
    }
    let message = format!("Tool arguments name {pieces} pieces of paths; at most {PIECES_MAX} are looked at");
    Err(Denial::new("oap.context_too_large", message))
}

fn text<'v>(key: &str, value: Value<'v>, expected: &str) -> Result<Cow<'v, str>, Denial> {
    let text = value.as_text().ok_or_else(|| mistyped(key, value, expected))?;
    text.into_str().ok_or_else(|| Denial::new(INVALID, format!("Argument '{key}' holds half of a surrogate pair")))
}

/// Returns the denial for an argument of another type. `key` is one that a rule reads, never one that the call chose.
fn mistyped(key: &str, value: Value<'_>, expected: &str) -> Denial {
    Denial::new(INVALID, format!("Argument '{key}' is {}, expected {expected}", value.shape()))
}
