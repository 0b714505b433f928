//! How a plain object is written, apart from its canonical form: the order of its members, and the space between them.
//!
//! Both together determine its source. So whoever has the digest of the canonical form needs no second one of the source, which would cost
//! as much again. Most tool arguments are plain: a few members with names and texts, whose values are written as the canonical form writes
//! them. Anything else has no arrangement here.

use super::value::{Kind, Value};

/// The most members of an object that has an arrangement.
const MEMBERS_MAX: usize = 15;

/// What stands between members, and between a name and its value: compact, or as Python writes by default.
const SPACINGS: [(&[u8], &[u8]); 2] = [(b",", b":"), (b", ", b": ")];

/// The arrangement of an object's members: the spacing, and for each member in order of the source its place in the canonical form, both
/// counted from 1.
pub type Arrangement = [u8; MEMBERS_MAX + 1];

/// Returns the arrangement of an object, or `None` if it is not plain. Two objects with the same arrangement and the same canonical form
/// have the same source.
#[must_use]
pub fn arrangement(object: Value<'_>) -> Option<Arrangement> {
    let mut keys: [&[u8]; MEMBERS_MAX] = Default::default();
    let mut count = 0;
    for (key, value) in object.members() {
        *keys.get_mut(count)? = (key.node().kind == Kind::Text && is_canonical(value)).then(|| key.source())?;
        count += 1;
    }
    let (keys, mut arrangement) = (keys.get(..count)?, Arrangement::default());
    let (spacing, places) = arrangement.split_first_mut()?;
    *spacing = (1..).zip(SPACINGS).find(|(_, (comma, colon))| is_written_with(object, comma, colon))?.0;
    for ((at, key), place) in keys.iter().enumerate().zip(places) {
        *place = 1;
        for (other_at, other) in keys.iter().enumerate() {
            match other.cmp(key) {
                // The canonical form has only one of them.
                std::cmp::Ordering::Equal if other_at != at => return None,
                std::cmp::Ordering::Less => *place += 1,
                _ => {}
            }
        }
    }
    Some(arrangement)
}

/// Returns whether a value's source is also its canonical form, as far as that is plain to see.
fn is_canonical(value: Value<'_>) -> bool {
    match value.node().kind {
        Kind::Null | Kind::True | Kind::False | Kind::Text => true,
        Kind::Integer => value.source() != b"-0",
        Kind::EscapedText => has_short_escapes(value.source()),
        Kind::Float | Kind::Array | Kind::Object => false,
    }
}

/// Returns whether every escape of a string is one that the canonical form writes too, and in the same way.
pub(super) fn has_short_escapes(source: &[u8]) -> bool {
    let mut rest = source;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        if !matches!(rest.get(at + 1), Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't')) {
            return false;
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    true
}

/// Returns whether an object of plain members is written with these between them, and with nothing else.
fn is_written_with(object: Value<'_>, comma: &[u8], colon: &[u8]) -> bool {
    behind_members(object, comma, colon).is_some_and(|rest| rest == b"}")
}

/// Returns what is left of an object's source behind its members, if they are written with these between them.
fn behind_members<'d>(object: Value<'d>, comma: &[u8], colon: &[u8]) -> Option<&'d [u8]> {
    let mut rest = object.source().strip_prefix(b"{")?;
    for (at, (key, value)) in object.members().enumerate() {
        rest = if at > 0 { rest.strip_prefix(comma)? } else { rest };
        rest = rest.strip_prefix(b"\"")?.strip_prefix(key.source())?.strip_prefix(b"\"")?.strip_prefix(colon)?;
        rest = match value.node().kind {
            Kind::Text | Kind::EscapedText => rest.strip_prefix(b"\"")?.strip_prefix(value.source())?.strip_prefix(b"\"")?,
            _ => rest.strip_prefix(value.source())?,
        };
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{Parser, canonical};
    use super::*;

    fn of(text: &str) -> Option<Arrangement> {
        arrangement(Parser::new().parse(text.as_bytes(), 8).unwrap())
    }

    fn canonical_of(text: &str) -> Vec<u8> {
        let (mut parser, mut out) = (Parser::new(), Vec::new());
        canonical::write(parser.parse(text.as_bytes(), 8).unwrap(), &mut out);
        out
    }

    #[test]
    fn plain_objects_have_an_arrangement() {
        let of_places = |spacing: u8, places: &[u8]| {
            let mut expected = Arrangement::default();
            expected[0] = spacing;
            expected[1..=places.len()].copy_from_slice(places);
            Some(expected)
        };
        assert_eq!(of(r#"{"b":1,"c":"x","a":null}"#), of_places(1, &[2, 3, 1]));
        assert_eq!(of(r#"{"b": 1, "c": "x\n\"y\"", "a": true}"#), of_places(2, &[2, 3, 1]));
        assert_eq!(of("{}"), of_places(1, &[]));
        let members = |count: usize| (0..count).map(|n| format!("\"{n:02}\":{n}")).collect::<Vec<_>>().join(",");
        assert!(of(&format!("{{{}}}", members(MEMBERS_MAX))).is_some());
        assert_eq!(of(&format!("{{{}}}", members(MEMBERS_MAX + 1))), None);
    }

    #[test]
    fn what_the_canonical_form_would_write_otherwise_has_none() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":-0}"#,
            r#"{"a":1.0}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u0041"}"#,
            r#"{"a":"\\\/"}"#,
            r#"{"\u0061":1}"#,
            r#"{"a":[]}"#,
            r#"{"a":{}}"#,
            r#"{"a" :1}"#,
            r#"{"a":1 }"#,
            r#"{ "a":1}"#,
            r#"{"a":	1}"#,
            r#"{"a":1, "b":2}"#,
            r#"{"a": 1,"b": 2}"#,
            "{ }",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    /// Returns the text of a small object, so small that two of them often mean the same.
    fn object() -> impl Strategy<Value = String> {
        let key = prop::sample::select(vec![r#""a""#, r#""b""#, r#""\u0061""#, r#""aa""#]);
        let value =
            prop::sample::select(vec!["1", "-0", "0", "0.0", r#""x""#, r#""\u0078""#, r#""\n""#, r#""\u000a""#, "null", "[]", "[ ]"]);
        let comma = prop::sample::select(vec![",", ", ", " ,"]);
        let colon = prop::sample::select(vec![":", ": ", ":\t"]);
        (vec((key, value), 0..4), comma, colon).prop_map(|(members, comma, colon)| {
            let members: Vec<_> = members.iter().map(|(key, value)| format!("{key}{colon}{value}")).collect();
            format!("{{{}}}", members.join(comma))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn arrangement_and_canonical_form_determine_the_source(texts in vec(object(), 12)) {
            for (at, one) in texts.iter().enumerate() {
                for other in texts.iter().skip(at + 1) {
                    if of(one).is_some() && of(one) == of(other) && canonical_of(one) == canonical_of(other) {
                        prop_assert_eq!(one, other);
                    }
                }
            }
        }
    }
}
