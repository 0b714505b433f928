//! Parsing a passport's text into one JSON object in which nothing can be read in two ways.
//!
//! The rules are those of I-JSON, on which RFC 8785 builds: UTF-8, no repeated keys, no lone surrogates, finite numbers. A byte order mark
//! at the start is skipped.

use std::borrow::Cow;
use std::collections::HashSet;

use tollgate_json::{Parser, Shape, SyntaxErrorKind, Value, number};

use super::fields::{item_path, member_path};

/// How many containers may be open at once in a passport.
const DEPTH_MAX: usize = 64;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The reason why a text is not a passport at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PassportFault {
    /// The text is empty.
    #[error("the text is empty")]
    Empty,
    /// The text is not UTF-8.
    #[error("not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// The offset of the first byte that is not UTF-8.
        at: usize,
    },
    /// The text is not JSON.
    #[error("not JSON: {kind} at line {line}, column {column}")]
    NotJson {
        /// What is wrong there.
        kind: SyntaxErrorKind,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
    },
    /// The text is JSON, but not an object.
    #[error("{0}, where an object is expected")]
    NotAnObject(Shape),
    /// A key is repeated in one object, so that two readers could understand it differently.
    #[error("{path} is there more than once")]
    RepeatedKey {
        /// The path of the key.
        path: String,
    },
    /// A string holds half a surrogate pair, which has no canonical form.
    #[error("{path} holds half of a surrogate pair")]
    LoneSurrogate {
        /// The path of the value, or of the object whose key it is.
        path: String,
    },
    /// The record that sets the passport for its agent cannot be read.
    #[error("its control record cannot be read ({code})")]
    Record {
        /// The code of the rejection.
        code: &'static str,
    },
    /// A number is infinite or not a number.
    #[error("{path} is a number that JSON cannot hold")]
    NotANumber {
        /// The path of the number.
        path: String,
    },
}

/// Parses a passport's text.
pub(super) fn read<'d>(parser: &'d mut Parser, text: &'d [u8]) -> Result<Value<'d>, PassportFault> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Err(PassportFault::Empty);
    }
    std::str::from_utf8(text).map_err(|error| PassportFault::NotUtf8 { at: error.valid_up_to() })?;
    let root = parser.parse(text, DEPTH_MAX).map_err(|error| {
        let (line, column) = position(text, error.at);
        PassportFault::NotJson { kind: error.kind, line, column }
    })?;
    if !root.is_object() {
        return Err(PassportFault::NotAnObject(root.shape()));
    }
    check(root)?;
    Ok(root)
}

/// Returns the line and column of a byte, in characters and from 1.
fn position(text: &[u8], at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let is_character_start = |byte: &&u8| **byte & 0xc0 != 0x80;
    (line, 1 + before.get(start..).unwrap_or_default().iter().filter(is_character_start).count())
}

/// The place of a value in the document.
enum Place<'d> {
    Root,
    Item(usize),
    Member(Cow<'d, str>),
}

/// The places that were come to, each with that of the object or list around it. A path is written only for a fault: the paths of all values
/// together may be far longer than the document.
struct Places<'d>(Vec<(usize, Place<'d>)>);

impl<'d> Places<'d> {
    fn add(&mut self, around: usize, place: Place<'d>) -> usize {
        self.0.push((around, place));
        self.0.len() - 1
    }

    fn path(&self, mut at: usize) -> String {
        let mut steps = Vec::new();
        while let Some((around, place)) = self.0.get(at).filter(|(_, place)| !matches!(place, Place::Root)) {
            steps.push(place);
            at = *around;
        }
        steps.iter().rev().fold(String::new(), |path, place| match place {
            Place::Root => path,
            Place::Item(index) => item_path(&path, *index),
            Place::Member(key) => member_path(&path, key),
        })
    }
}

/// Checks that nothing has two readings. The parser limits the depth, but the walk still uses its own stack instead of recursion.
fn check(root: Value<'_>) -> Result<(), PassportFault> {
    let mut places = Places(vec![(0, Place::Root)]);
    let mut open = vec![(root, 0)];
    while let Some((value, at)) = open.pop() {
        match value.shape() {
            Shape::String if value.as_text().and_then(tollgate_json::Text::into_str).is_none() => {
                return Err(PassportFault::LoneSurrogate { path: places.path(at) });
            }
            Shape::Number if !number::parse_float(value.source()).is_finite() => {
                return Err(PassportFault::NotANumber { path: places.path(at) });
            }
            _ => {}
        }
        let start = open.len();
        open.extend(value.items().enumerate().map(|(index, item)| (item, places.add(at, Place::Item(index)))));
        let mut seen = HashSet::new();
        for (key, member) in value.members() {
            let Some(key) = key.as_text().and_then(tollgate_json::Text::into_str) else {
                let path = places.path(at);
                return Err(PassportFault::LoneSurrogate { path: if path.is_empty() { "a key".to_owned() } else { path } });
            };
            let is_new = seen.insert(key.clone());
            let place = places.add(at, Place::Member(key));
            if !is_new {
                return Err(PassportFault::RepeatedKey { path: places.path(place) });
            }
            open.push((member, place));
        }
        // Children are visited in the order of the text, so that the first fault is reported.
        if let Some(children) = open.get_mut(start..) {
            children.reverse();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &[u8]) -> String {
        read(&mut Parser::new(), text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_passport_says_where_it_fails() {
        for (text, expected) in [
            ("", "the text is empty"),
            (" \n", "the text is empty"),
            ("not json", "not JSON: unexpected character at line 1, column 1"),
            ("{\n  \"é\": tru}", "not JSON: unexpected character at line 2, column 8"),
            ("{\"a\": 1", "not JSON: unexpected end of text at line 1, column 8"),
            ("null", "null, where an object is expected"),
            ("[]", "an array, where an object is expected"),
            ("{\"status\": \"suspended\", \"status\": \"active\"}", "status is there more than once"),
            ("{\"status\": 1, \"st\\u0061tus\": 2}", "status is there more than once"),
            ("{\"limits\": {\"a.b\": [{\"x\": 1, \"x\": 1}]}}", "limits[\"a.b\"][0].x is there more than once"),
            ("{\"a\": [\"\\ud800\"]}", "a[0] holds half of a surrogate pair"),
            ("{\"\\ud800\": 1}", "a key holds half of a surrogate pair"),
            ("{\"a\": NaN}", "a is a number that JSON cannot hold"),
            ("{\"a\": 1e400}", "a is a number that JSON cannot hold"),
        ] {
            assert_eq!(fault(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(fault(b"{\"a\": \"\xff\"}"), "not UTF-8 from byte 7 on");
        assert!(fault(format!("{{\"a\":{}", "[".repeat(100_000)).as_bytes()).starts_with("not JSON: nested too deep"));
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        assert!(read(&mut Parser::new(), b"\xef\xbb\xbf{}").is_ok());
    }

    /// The paths of all items together would be 125 GB.
    #[test]
    fn items_below_a_long_key_take_no_memory_for_its_length() {
        let text = format!("{{\"{}\": [{}1]}}", "a".repeat(500_000), "1,".repeat(250_000));
        assert!(read(&mut Parser::new(), text.as_bytes()).is_ok());
        assert_eq!(
            fault(text.replace(",1]", ",NaN]").as_bytes()),
            format!("{}…[250000] is a number that JSON cannot hold", "a".repeat(80))
        );
    }
}
