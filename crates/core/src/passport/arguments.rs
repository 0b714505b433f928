//! Reading a call's arguments for the rules. Nothing with two readings is accepted, and a value of another type never counts as missing.

use std::borrow::Cow;

use crate::decode::ToolInput;
use crate::json::{DEPTH_MAX, Parser, Shape, Text, Value};

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
        let mut keys: Vec<Text<'_>> = root.members().filter_map(|(key, _)| key.as_text()).collect();
        keys.sort_unstable();
        if keys.windows(2).any(|pair| matches!(pair, [left, right] if left == right)) {
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
        const EXPECTED: &str = "a string or an array of strings";
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(value) if value.shape() == Shape::Array => value.items().map(|item| text(key, item, EXPECTED)).collect(),
            Some(value) => Ok(vec![text(key, value, EXPECTED)?]),
        }
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

    /// Returns the number under a key, which must be 0 or more, or `None` if it is missing.
    pub(super) fn number(&self, key: &str) -> Result<Option<Amount>, Denial> {
        let read = |value: Value<'_>| Amount::read(value).ok_or_else(|| mistyped(key, value, "a number of 0 or more"));
        self.value(key).map(read).transpose()
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
