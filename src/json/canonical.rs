//! Canonical forms: sorted keys, no white space, raw non-ASCII; as Python prints it, and as RFC 8785 (JCS) wants it.
//!
//! The two differ in the order of keys (code points, or UTF-16 code units) and in numbers.

use super::number::{parse_float, write_ecmascript, write_float, write_integer};
use super::text::Text;
use super::value::{Kind, Value};

/// What is still to be written. A stack of these replaces recursion.
#[derive(Debug)]
enum Step<'d> {
    Value(Value<'d>),
    Byte(u8),
}

/// Whose canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Python,
    Jcs,
}

/// Appends `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)` in UTF-8 with `surrogatepass`.
pub fn write(value: Value<'_>, out: &mut Vec<u8>) {
    write_as(Form::Python, value, out);
}

/// Appends the form of RFC 8785. It is defined for what I-JSON allows: no repeated keys, no lone surrogates, and numbers that a double
/// can hold. Whoever needs the standard's form rules the rest out beforehand; here repeated keys collapse to the last, and an infinite
/// number is written as null, as ECMAScript does.
pub fn write_jcs(value: Value<'_>, out: &mut Vec<u8>) {
    write_as(Form::Jcs, value, out);
}

fn write_as(form: Form, value: Value<'_>, out: &mut Vec<u8>) {
    let mut steps = vec![Step::Value(value)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Byte(byte) => out.push(byte),
            Step::Value(value) => write_one(form, value, out, &mut steps),
        }
    }
}

fn write_one<'d>(form: Form, value: Value<'d>, out: &mut Vec<u8>, steps: &mut Vec<Step<'d>>) {
    match value.node().kind {
        Kind::Null => out.extend_from_slice(b"null"),
        Kind::True => out.extend_from_slice(b"true"),
        Kind::False => out.extend_from_slice(b"false"),
        Kind::Integer | Kind::Float if form == Form::Jcs => match parse_float(value.source()) {
            number if number.is_finite() => write_ecmascript(number, out),
            _ => out.extend_from_slice(b"null"),
        },
        Kind::Integer => write_integer(value.source(), out),
        Kind::Float => write_float(parse_float(value.source()), out),
        // Without escapes the source holds nothing that has to be escaped: the parser refused raw control characters.
        Kind::Text => {
            out.push(b'"');
            out.extend_from_slice(value.source());
            out.push(b'"');
        }
        Kind::EscapedText => write_text(Text::unescape(value.source()).as_bytes(), out),
        Kind::Array => {
            out.push(b'[');
            let bottom = steps.len();
            for (index, item) in value.items().enumerate() {
                if index > 0 {
                    steps.push(Step::Byte(b','));
                }
                steps.push(Step::Value(item));
            }
            steps.push(Step::Byte(b']'));
            reverse_above(steps, bottom);
        }
        Kind::Object => {
            out.push(b'{');
            let bottom = steps.len();
            for (index, (key, member)) in sorted_members(form, value).into_iter().enumerate() {
                if index > 0 {
                    steps.push(Step::Byte(b','));
                }
                steps.push(Step::Value(key));
                steps.push(Step::Byte(b':'));
                steps.push(Step::Value(member));
            }
            steps.push(Step::Byte(b'}'));
            reverse_above(steps, bottom);
        }
    }
}

/// Members by key in the form's order; of equal keys the last.
fn sorted_members<'d>(form: Form, object: Value<'d>) -> Vec<(Value<'d>, Value<'d>)> {
    let mut members: Vec<_> = object.members().map(|(key, value)| (key.as_text().unwrap_or(Text::plain(b"")), key, value)).collect();
    let order = |left: &Text<'_>, right: &Text<'_>| match form {
        // UTF-8's byte order is that of code points.
        Form::Python => left.cmp(right),
        Form::Jcs => utf16_order(left.as_bytes(), right.as_bytes()),
    };
    if !members.is_sorted_by(|(left, ..), (right, ..)| order(left, right).is_lt()) {
        // The sort is stable, so the last of equal keys comes last; reversed, it is the one that `dedup_by` keeps.
        members.sort_by(|(left, ..), (right, ..)| order(left, right));
        members.reverse();
        members.dedup_by(|(left, ..), (right, ..)| left == right);
        members.reverse();
    }
    members.into_iter().map(|(_, key, value)| (key, value)).collect()
}

/// The order of the texts' UTF-16 code units. It differs from the order of bytes only where a character beyond the basic plane (first
/// byte 0xf0 and up) meets one from U+E000 to U+FFFF (first byte 0xee or 0xef): as surrogates it comes first.
fn utf16_order(left: &[u8], right: &[u8]) -> std::cmp::Ordering {
    let unequal = left.iter().zip(right).find(|(left, right)| left != right);
    match unequal {
        Some((0xf0.., 0xee..=0xef)) => std::cmp::Ordering::Less,
        Some((0xee..=0xef, 0xf0..)) => std::cmp::Ordering::Greater,
        _ => left.cmp(right),
    }
}

fn reverse_above(steps: &mut [Step<'_>], bottom: usize) {
    if let Some(top) = steps.get_mut(bottom..) {
        top.reverse();
    }
}

/// Appends a decoded string with its quotes; only `"`, `\` and what is below 0x20 are escaped.
fn write_text(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in text {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x00..0x20 => {
                let low = HEX.get(usize::from(byte & 0x0f)).copied().unwrap_or(b'0');
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), low]);
                continue;
            }
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::super::{DEPTH_MAX, Parser};

    fn canonical(text: &str) -> String {
        let mut out = Vec::new();
        super::write(Parser::new().parse(text.as_bytes(), DEPTH_MAX).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keys_are_sorted_by_code_point_and_the_last_wins() {
        assert_eq!(canonical(r#"{"a":1,"b":2,"a":3}"#), r#"{"a":3,"b":2}"#);
        assert_eq!(
            canonical(r#"{"é":1,"z":2,"Z":3,"𝄞":4,"\uffff":5,"":6,"a":7,"10":8,"9":{"b":1,"a":[ ]}}"#),
            "{\"\":6,\"10\":8,\"9\":{\"a\":[],\"b\":1},\"Z\":3,\"a\":7,\"z\":2,\"é\":1,\"\u{ffff}\":5,\"𝄞\":4}"
        );
    }

    fn jcs(text: &str) -> String {
        let mut out = Vec::new();
        super::write_jcs(Parser::new().parse(text.as_bytes(), DEPTH_MAX).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The examples of RFC 8785, sections 3.2.2 to 3.2.4.
    #[test]
    fn the_form_of_rfc_8785() {
        let input = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let expected =
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(jcs(input), expected);
        let unsorted = r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
            "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}"#;
        let sorted = serde_json::from_str::<serde_json::Value>(unsorted).unwrap();
        let keys = ["\r", "1", "\u{80}", "ö", "€", "😀", "\u{fb33}"];
        let members = keys.map(|key| format!("{}:{}", serde_json::Value::from(key), sorted[key]));
        assert_eq!(jcs(unsorted), format!("{{{}}}", members.join(",")));
        assert_eq!(jcs("[0, -0, -0.0, 9007199254740993, 18446744073709551616]"), "[0,0,0,9007199254740992,18446744073709552000]");
    }

    #[test]
    fn only_what_must_be_escaped_is_escaped() {
        assert_eq!(
            canonical(r#""\u00e9\/\u001f\u007f\u2028\"\\\b\f\n\r\t\u0000""#),
            "\"é/\\u001f\u{7f}\u{2028}\\\"\\\\\\b\\f\\n\\r\\t\\u0000\""
        );
        assert_eq!(canonical(r#""\ud83d\ude00""#), "\"😀\"");
    }

    #[test]
    fn deep_nesting_is_printed_without_recursion() {
        let text = format!("{}1{}", "[".repeat(1_000), "]".repeat(1_000));
        assert_eq!(canonical(&text), text);
        let text = format!("{}1{}", "{\"b\":0,\"a\":".repeat(500), "}".repeat(500));
        assert!(canonical(&text).starts_with("{\"a\":{\"a\":"));
    }
}
