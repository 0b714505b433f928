//! The canonical form: sorted keys, no white space, raw non-ASCII, exactly as Python prints it.

use super::number::{parse_float, write_float, write_integer};
use super::text::Text;
use super::value::{Kind, Value};

/// What is still to be written. A stack of these replaces recursion.
#[derive(Debug)]
enum Step<'d> {
    Value(Value<'d>),
    Byte(u8),
}

/// Appends `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)` in UTF-8 with `surrogatepass`.
pub fn write(value: Value<'_>, out: &mut Vec<u8>) {
    let mut steps = vec![Step::Value(value)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Byte(byte) => out.push(byte),
            Step::Value(value) => write_one(value, out, &mut steps),
        }
    }
}

fn write_one<'d>(value: Value<'d>, out: &mut Vec<u8>, steps: &mut Vec<Step<'d>>) {
    match value.node().kind {
        Kind::Null => out.extend_from_slice(b"null"),
        Kind::True => out.extend_from_slice(b"true"),
        Kind::False => out.extend_from_slice(b"false"),
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
            for (index, (key, member)) in sorted_members(value).into_iter().enumerate() {
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

/// Members by key in code-point order (which is UTF-8 byte order); of equal keys the last.
fn sorted_members<'d>(object: Value<'d>) -> Vec<(Value<'d>, Value<'d>)> {
    let mut members: Vec<_> = object.members().map(|(key, value)| (key.as_text().unwrap_or(Text::plain(b"")), key, value)).collect();
    if !members.is_sorted_by(|(left, ..), (right, ..)| left < right) {
        // The sort is stable, so the last of equal keys comes last; reversed, it is the one that `dedup_by` keeps.
        members.sort_by(|(left, ..), (right, ..)| left.cmp(right));
        members.reverse();
        members.dedup_by(|(left, ..), (right, ..)| left == right);
        members.reverse();
    }
    members.into_iter().map(|(_, key, value)| (key, value)).collect()
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
