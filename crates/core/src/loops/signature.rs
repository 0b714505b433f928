//! The identity of a call and of a result: digests of their canonical forms.

use std::cell::OnceCell;

use crate::decode::ToolInput;
use crate::digest::{Digest, Fingerprint};
use crate::json::{DEPTH_MAX, Parser, Text, Value, canonical};

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

/// Returns the digest of a call's arguments. Anything but an object, and text that is not JSON, counts as `{}`.
#[must_use]
pub fn arguments_digest(input: &ToolInput<'_>) -> Digest {
    match input {
        ToolInput::Value(value) => digest_of_object(Some(*value)),
        ToolInput::Encoded(text) => digest_of_object(Parser::new().parse(text.as_bytes(), DEPTH_MAX).ok()),
        ToolInput::Absent { .. } => digest_of_object(None),
    }
}

fn digest_of_object(value: Option<Value<'_>>) -> Digest {
    match value.filter(Value::is_object) {
        Some(object) => digest_of_value(object),
        None => Digest::of(b"{}"),
    }
}

fn digest_of_value(value: Value<'_>) -> Digest {
    let mut bytes = Vec::with_capacity(value.source().len());
    canonical::write(value, &mut bytes);
    Digest::of(&bytes)
}

/// Returns the digest of a result. It is that of the canonical form if the result is JSON other than `null`, otherwise that of the text
/// itself. Null counts as "".
#[must_use]
pub fn result_digest(result: Option<&Text<'_>>) -> Digest {
    let text = result.map_or(b"".as_slice(), Text::as_bytes);
    match Parser::new().parse(text, DEPTH_MAX) {
        Ok(value) if !value.is_null() => digest_of_value(value),
        _ => Digest::of(text),
    }
}

/// A result as a controller observes it. Its digest is computed on first use.
#[derive(Debug)]
pub struct Observation<'a> {
    /// Whether the call failed, as the event says or as its result was classified.
    pub failed: bool,
    result: Option<&'a Text<'a>>,
    digest: OnceCell<Digest>,
}

impl<'a> Observation<'a> {
    /// Returns the observation of a result.
    #[must_use]
    pub fn new(failed: bool, result: Option<&'a Text<'a>>) -> Self {
        Self { failed, result, digest: OnceCell::new() }
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
        arguments_digest(&ToolInput::Encoded(Text::plain(text.as_bytes())))
    }

    fn result(text: &str) -> Digest {
        result_digest(Some(&Text::plain(text.as_bytes())))
    }

    #[test]
    fn anything_but_an_object_shares_one_signature() {
        for text in ["null", "[1]", "\"s\"", "5", "true", "{}", "not json", "", "[[[["] {
            assert_eq!(args(text), Digest::of(b"{}"), "{text}");
        }
        assert_eq!(arguments_digest(&ToolInput::Absent { null: false }), Digest::of(b"{}"));
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
