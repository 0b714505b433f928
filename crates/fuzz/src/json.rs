//! Fuzzes the JSON parser and its canonical forms.

use std::collections::BTreeMap;

use tollgate_json::canonical::{write, write_jcs};
use tollgate_json::number::parse_float;
use tollgate_json::{DEPTH_MAX, ObjectWriter, Parser, Shape, SyntaxErrorKind, Text, Value};

/// How many containers `serde_json` lets be open at once.
const SERDE_DEPTH_MAX: usize = 127;

/// Checks that a text is read as `serde_json` reads it, apart from what only Python's dialect has, and that canonical forms are stable.
pub fn check(input: &[u8]) {
    let mut parser = Parser::new();
    let theirs = serde_json::from_slice::<serde_json::Value>(input);
    match parser.parse(input, DEPTH_MAX) {
        Ok(value) => {
            check_forms(value);
            check_texts(value);
            match &theirs {
                Ok(theirs) => check_agreement(value, theirs),
                Err(error) => assert!(is_python_only(input, value), "serde_json refuses this: {error}"),
            }
        }
        Err(error) => {
            assert!(error.at <= input.len(), "an error behind the end: {error}");
            let is_limit = matches!(error.kind, SyntaxErrorKind::IntegerTooLong | SyntaxErrorKind::TooLong);
            assert!(theirs.is_err() || is_limit, "serde_json reads this: {error}");
        }
    }
    check_reuse(input, &mut parser);
    check_depth(input);
}

/// Checks that the canonical form of a value's canonical form is the same.
fn check_forms(value: Value<'_>) {
    for (form, is_jcs) in [(write as Form, false), (write_jcs, true)] {
        let once = formed(value, form);
        let mut parser = Parser::new();
        let read = parser.parse(&once, DEPTH_MAX).unwrap_or_else(|error| panic!("a canonical form is not JSON: {error}"));
        let shape = if is_jcs && is_infinite(value) { Shape::Null } else { value.shape() };
        assert_eq!(read.shape(), shape, "a canonical form has another shape");
        assert!(!read.has_repeated_keys(), "a canonical form repeats a key");
        assert_eq!(formed(read, form), once, "a canonical form is not stable");
    }
}

type Form = fn(Value<'_>, &mut Vec<u8>);

fn formed(value: Value<'_>, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    form(value, &mut out);
    out
}

/// Checks that every string can be written and read again, and that its beginning is a part of it.
fn check_texts(value: Value<'_>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        open.extend(value.items());
        open.extend(value.members().flat_map(|(key, member)| [key, member]));
        let Some(text) = value.as_text() else { continue };
        for bytes in [0, 1, 7] {
            let fresh = value.as_text().unwrap_or(Text::plain(b""));
            assert!(text.as_bytes().starts_with(&fresh.beginning(bytes)), "a beginning is not one");
        }
        let Some(whole) = value.as_text().and_then(Text::into_str) else { continue };
        let mut written = Vec::new();
        let mut object = ObjectWriter::begin(&mut written);
        object.text("text", &whole);
        object.end();
        let mut parser = Parser::new();
        let again = parser.parse(&written, 1).unwrap_or_else(|error| panic!("a written string is not JSON: {error}"));
        assert!(again.get("text").is_some_and(|again| again.is_text(&whole)), "a written string is another");
    }
}

/// Returns whether a text that `serde_json` refuses may be one that Python reads: numbers that no double holds, lone surrogates, bytes that
/// are no UTF-8 (which is checked elsewhere) and deeper nesting.
fn is_python_only(input: &[u8], value: Value<'_>) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        if matches!(value.shape(), Shape::Array | Shape::Object) && depth >= SERDE_DEPTH_MAX {
            return true;
        }
        // `serde_json` calls the largest numbers out of range as well.
        let is_large = || parse_float(value.source()).abs() >= 1e308;
        if value.shape() == Shape::Number && (is_infinite(value) || is_large()) {
            return true;
        }
        if value.as_text().is_some_and(|text| text.into_str().is_none()) {
            return true;
        }
        open.extend(value.items().map(|item| (item, depth + 1)));
        open.extend(value.members().flat_map(|(key, member)| [(key, depth), (member, depth + 1)]));
    }
    std::str::from_utf8(input).is_err()
}

fn is_infinite(value: Value<'_>) -> bool {
    value.shape() == Shape::Number && !parse_float(value.source()).is_finite()
}

/// Checks that both parsers read the same value.
fn check_agreement(ours: Value<'_>, theirs: &serde_json::Value) {
    let mut open = vec![(ours, theirs)];
    while let Some((ours, theirs)) = open.pop() {
        match theirs {
            serde_json::Value::Null => assert!(ours.is_null()),
            serde_json::Value::Bool(flag) => assert_eq!(ours.as_bool(), Some(*flag)),
            serde_json::Value::Number(number) => {
                assert_eq!(ours.shape(), Shape::Number);
                let (left, right) = (parse_float(ours.source()), number.as_f64().unwrap_or(f64::NAN));
                // `serde_json` may be off in the last digits, and in all digits of the smallest numbers.
                assert!((left - right).abs() <= left.abs() * 1e-14 + 1e-300, "{left} and {right}");
            }
            serde_json::Value::String(text) => {
                assert_eq!(ours.as_text().and_then(Text::into_str).as_deref(), Some(text.as_str()));
            }
            serde_json::Value::Array(items) => {
                assert_eq!(ours.shape(), Shape::Array);
                assert_eq!(ours.items().count(), items.len());
                open.extend(ours.items().zip(items));
            }
            serde_json::Value::Object(members) => {
                assert!(ours.is_object());
                let keys = ours.members().filter_map(|(key, member)| Some((key.as_text()?.into_str()?, member)));
                // Of equal keys the last one counts.
                let last: BTreeMap<_, _> = keys.collect();
                assert_eq!(last.len(), members.len());
                for (key, theirs) in members {
                    let ours = last.get(key.as_str()).unwrap_or_else(|| panic!("a member is missing"));
                    open.push((*ours, theirs));
                }
            }
        }
    }
}

/// Checks that a parser that has read something else before reads the same.
fn check_reuse(input: &[u8], used: &mut Parser) {
    let mut fresh = Parser::new();
    let again = used.parse(input, DEPTH_MAX).map(|value| formed(value, write));
    assert_eq!(again, fresh.parse(input, DEPTH_MAX).map(|value| formed(value, write)), "a used parser reads something else");
}

/// Checks that what is read under a small limit of depth is read the same under any greater one.
fn check_depth(input: &[u8]) {
    let (mut shallow, mut deep) = (Parser::new(), Parser::new());
    let shallow = shallow.parse(input, 2).map(|value| formed(value, write));
    let deep = deep.parse(input, DEPTH_MAX).map(|value| formed(value, write));
    let is_too_deep = shallow.as_ref().is_err_and(|error| error.kind == SyntaxErrorKind::TooDeep);
    assert!(is_too_deep || shallow == deep, "a depth that is not reached matters");
}
