//! The short way through a captured record: its line exactly as `tollgate capture` writes it.
//!
//! Nearly every line of a capture is one, and the table that the parser builds for any JSON costs more than the record itself. Whatever is
//! not to the letter of this form is left to [`wrapped`](super::wrapped), which reads the same record from it, or says what is wrong.

use std::borrow::Cow;

use tollgate_json::decode_string;

use super::Captured;

/// The digits that every number of 64 bits has room for.
const DIGITS_MAX: usize = 18;

/// Reads the record of a line, if the line has the form `{"topic":…,"partition":…,"offset":…,"timestamp":…,"key":…,"headers":[],"value":…}`
/// with nothing that takes a closer look: no space, no header, no base64, no escape but in the value, whose text goes to `value`.
pub(super) fn read<'l>(line: &'l [u8], value: &'l mut Vec<u8>) -> Option<Captured<'l>> {
    let rest = line.strip_prefix(br#"{"topic":"#)?;
    let (topic, rest) = plain_string(rest)?;
    let (partition, rest) = number(rest.strip_prefix(br#","partition":"#)?)?;
    let (offset, rest) = number(rest.strip_prefix(br#","offset":"#)?)?;
    let (timestamp_ms, rest) = or_null(rest.strip_prefix(br#","timestamp":"#)?, number)?;
    let (key, rest) = or_null(rest.strip_prefix(br#","key":"#)?, plain_string)?;
    let rest = rest.strip_prefix(br#","headers":[],"value":"#)?;
    let redacted = rest.strip_suffix(br#","redacted":true}"#);
    let end = redacted.or_else(|| rest.strip_suffix(b"}"))?;
    let value = match end {
        b"null" => None,
        quoted => Some(text(quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?, value)?),
    };
    Some(Captured {
        topic: Some(Cow::Borrowed(std::str::from_utf8(topic).ok()?)),
        partition: Some(i32::try_from(partition).ok()?),
        offset: Some(offset),
        timestamp_ms,
        key: key.map(Cow::Borrowed),
        value: value.map(Cow::Borrowed),
        is_redacted: redacted.is_some(),
        headers: Vec::new(),
    })
}

/// Returns the text of a string's source: the source itself, if it has no escapes.
fn text<'l>(source: &'l [u8], out: &'l mut Vec<u8>) -> Option<&'l [u8]> {
    out.clear();
    decode_string(source, out).then_some(if out.len() == source.len() { source } else { out })
}

/// Splits off a string without escapes.
fn plain_string(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = rest.strip_prefix(b"\"")?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20)).filter(|end| rest.get(*end) == Some(&b'"'))?;
    Some((rest.get(..end)?, rest.get(end + 1..)?))
}

/// Splits off a whole number as JSON writes it, of 0 or more.
fn number(rest: &[u8]) -> Option<(i64, &[u8])> {
    let count = rest.iter().take(DIGITS_MAX + 1).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, behind) = rest.split_at_checked(count)?;
    let is_number = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && count <= DIGITS_MAX;
    is_number.then(|| (digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')), behind))
}

/// Splits off what `read` does, or null.
fn or_null<'l, T>(rest: &'l [u8], read: impl FnOnce(&'l [u8]) -> Option<(T, &'l [u8])>) -> Option<(Option<T>, &'l [u8])> {
    match rest.strip_prefix(b"null") {
        Some(behind) => Some((None, behind)),
        None => read(rest).map(|(found, behind)| (Some(found), behind)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wrapped;
    use super::*;
    use proptest::prelude::*;
    use tollgate_json::Parser;

    /// Asserts that the long way reads the same, and returns whether the short way read the line at all.
    fn is_read_alike(line: &[u8]) -> bool {
        let (mut buffer, mut parser) = (Vec::new(), Parser::new());
        let Some(short) = read(line, &mut buffer) else { return false };
        assert_eq!(wrapped::read(line, &wrapped::ENVELOPE, &mut parser).as_ref(), Ok(&short), "{}", String::from_utf8_lossy(line));
        true
    }

    const LINE: &str =
        r#"{"topic":"t","partition":12,"offset":0,"timestamp":1700000000000,"key":"k","headers":[],"value":"{\"a\":\"\\n\\u00e9 b\"}"}"#;

    #[test]
    fn what_capture_writes_is_read_this_way() {
        for line in [
            LINE.to_owned(),
            LINE.replace(r#""key":"k""#, r#""key":null"#),
            LINE.replace("1700000000000", "null"),
            LINE.replace(r#"\"a\""#, "ä😀"),
            format!("{},\"redacted\":true}}", LINE.strip_suffix('}').unwrap()),
            r#"{"topic":"","partition":0,"offset":999999999999999999,"timestamp":0,"key":"","headers":[],"value":null}"#.to_owned(),
        ] {
            assert!(is_read_alike(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn whatever_takes_a_closer_look_is_left_to_the_parser() {
        for (from, to) in [
            ("\"t\"", "\"\\u0074\""),
            ("\"t\"", "\"t\u{1}\""),
            ("12", "012"),
            ("12", "2147483648"),
            (":0,", ":-1,"),
            (":0,", ":1000000000000000000,"),
            (":0,", ":,"),
            ("1700000000000", "-1"),
            ("1700000000000", "1.5"),
            ("[]", "[[\"a\",\"b\"]]"),
            ("\\\\n", "\\x"),
            ("\\\\n", "\u{1}"),
            ("}\"}", "}\" }"),
            ("\\\"a\\\"", "\"a\""),
            ("b\\\"}\"}", "b\\\\\"}\"}\"}"),
        ] {
            assert!(LINE.contains(from), "{from}");
            assert!(!is_read_alike(LINE.replacen(from, to, 1).as_bytes()), "{from} by {to}");
        }
    }

    proptest! {
        /// Lines with a few bytes changed: what is still read this way, the parser reads alike.
        #[test]
        fn no_line_is_read_otherwise_than_by_the_parser(
            changes in proptest::collection::vec((0..LINE.len(), prop_oneof![any::<u8>(), "[\"\\\\{},:0-9u]".prop_map(|c| c.as_bytes()[0])]), 0..4),
        ) {
            let mut line = LINE.as_bytes().to_vec();
            for (place, byte) in changes {
                line[place] = byte;
            }
            is_read_alike(&line);
        }
    }
}
