//! How a plain object is written, apart from its canonical form: the order of its members, and the space between them.
//!
//! Both together determine its source. So whoever has the digest of the canonical form needs no second one of the source, which would cost
//! as much again. Most tool arguments are plain: a few members with names and texts, whose values are written as the canonical form writes
//! them. Anything else has no arrangement here.

use std::cmp::Ordering;

use super::unescape::has_short_escapes;
use super::value::{Kind, Value};

/// The most members of an object that has an arrangement.
const MEMBERS_MAX: usize = 15;

/// The arrangement of an object's members: the spacing, and for each member in order of the source its place in the canonical form, both
/// counted from 1.
pub type Arrangement = [u8; MEMBERS_MAX + 1];

/// Returns the arrangement of an object, or `None` if it is not plain. Two objects with the same arrangement and the same canonical form
/// have the same source.
#[must_use]
pub fn arrangement(object: Value<'_>) -> Option<Arrangement> {
    let mut keys: [&[u8]; MEMBERS_MAX] = Default::default();
    let mut arrangement = Arrangement::default();
    let (spacing, places) = arrangement.split_first_mut()?;
    *spacing = object.is_object().then(|| spacing_of(object)).flatten()?;
    for (at, (key, value)) in object.members().enumerate() {
        if key.node().kind != Kind::Text || !is_canonical(value) {
            return None;
        }
        let (before, rest) = keys.split_at_mut_checked(at)?;
        let (places_before, rest_of_places) = places.split_at_mut_checked(at)?;
        let (name, place) = (key.source(), rest_of_places.first_mut()?);
        *place = 1;
        for (other, place_of_other) in before.iter().zip(places_before) {
            match (*other).cmp(name) {
                Ordering::Less => *place += 1,
                Ordering::Greater => *place_of_other += 1,
                // The canonical form has only one of them.
                Ordering::Equal => return None,
            }
        }
        *rest.first_mut()? = name;
    }
    Some(arrangement)
}

/// Returns the number of the spacing that stands everywhere between the members of an object, and between names and values: 1 for none, 2
/// for a space behind each sign, as Python writes by default. Any other spacing has no number.
fn spacing_of(object: Value<'_>) -> Option<u8> {
    // Nodes of strings are without their quotes.
    let quote = |value: Value<'_>| u32::from(matches!(value.node().kind, Kind::Text | Kind::EscapedText));
    let gap = |start: u32, end: u32| object.document().get(start as usize..end as usize).unwrap_or_default();
    let mut end = object.node().start + 1;
    let mut spacing = None;
    for (at, (key, value)) in object.members().enumerate() {
        let before = gap(end, key.node().start - 1);
        let is_begun = if at == 0 { before.is_empty() } else { spacing == number_of(before, b',') };
        let within = number_of(gap(key.node().end + 1, value.node().start - quote(value)), b':')?;
        if !is_begun || within != *spacing.get_or_insert(within) {
            return None;
        }
        end = value.node().end + quote(value);
    }
    (end + 1 == object.node().end).then_some(spacing.unwrap_or(1))
}

fn number_of(gap: &[u8], sign: u8) -> Option<u8> {
    match gap {
        [found] if *found == sign => Some(1),
        [found, b' '] if *found == sign => Some(2),
        _ => None,
    }
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
            "[]",
            r#""""#,
            r#""xx""#,
            "12",
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
