//! Canonical forms of JSON, with sorted keys, no white space and raw non-ASCII: the one that Python prints, and the one of RFC 8785 (JCS).
//!
//! The two differ in the order of keys (code points, or UTF-16 code units) and in numbers.

use smallvec::SmallVec;

use super::number::{parse_float, write_ecmascript, write_float, write_integer};
use super::text::{Text, write_text};
use super::unescape::copy_canonical;
use super::value::{Kind, Siblings, Value};

/// How many open containers, and how many keys out of order, need no memory of their own. The arguments of most calls have fewer.
const OPEN_INLINE: usize = 6;
const SORTED_INLINE: usize = 24;

/// The canonical form to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Python,
    Jcs,
}

/// Appends `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)` in UTF-8 with `surrogatepass`.
pub fn write(value: Value<'_>, out: &mut Vec<u8>) {
    write_as(Form::Python, value, out);
}

/// Appends the form of RFC 8785. It is defined for what I-JSON allows: no repeated keys, no lone surrogates, and numbers that a double can
/// hold. A caller that needs the standard's form rules the rest out beforehand. Here repeated keys collapse to the last, and an infinite
/// number is written as null, as ECMAScript does.
pub fn write_jcs(value: Value<'_>, out: &mut Vec<u8>) {
    write_as(Form::Jcs, value, out);
}

fn write_as(form: Form, value: Value<'_>, out: &mut Vec<u8>) {
    let mut writer = Writer { form, out, open: SmallVec::new(), sorted: SmallVec::new() };
    writer.value(value);
    while writer.write_next() {}
}

/// Writes values with a stack of open containers instead of recursion.
struct Writer<'o, 'd> {
    form: Form,
    out: &'o mut Vec<u8>,
    open: SmallVec<[Container<'d>; OPEN_INLINE]>,
    /// The sorted keys of those open objects whose keys were not in order.
    sorted: SmallVec<[Value<'d>; SORTED_INLINE]>,
}

/// A container that is being written.
struct Container<'d> {
    is_object: bool,
    is_empty: bool,
    /// Its items, or its keys, each followed by its value.
    children: Children<'d>,
}

enum Children<'d> {
    /// The children in the order of the source.
    AsTheyCome(Siblings<'d>),
    /// The keys in [`Writer::sorted`] from `first` on.
    Sorted { first: usize, next: usize },
}

impl<'d> Writer<'_, 'd> {
    /// Writes the next child of the innermost container, or closes the container. Returns whether a container was open.
    fn write_next(&mut self) -> bool {
        let Some(container) = self.open.last_mut() else { return false };
        let child = match &mut container.children {
            Children::AsTheyCome(siblings) => siblings.next().map(|child| (child, container.is_object.then(|| siblings.next()).flatten())),
            Children::Sorted { next, .. } => {
                let key = self.sorted.get(*next).copied();
                *next += 1;
                key.map(|key| (key, key.next_sibling()))
            }
        };
        let Some((child, member)) = child else {
            self.out.push(if container.is_object { b'}' } else { b']' });
            if let Some(Container { children: Children::Sorted { first, .. }, .. }) = self.open.pop() {
                self.sorted.truncate(first);
            }
            return true;
        };
        if !std::mem::replace(&mut container.is_empty, false) {
            self.out.push(b',');
        }
        self.value(child);
        if let Some(member) = member {
            self.out.push(b':');
            self.value(member);
        }
        true
    }

    /// Writes a value. Of a container it writes the beginning and opens it.
    fn value(&mut self, value: Value<'d>) {
        let out = &mut *self.out;
        match value.node().kind {
            Kind::Null => out.extend_from_slice(b"null"),
            Kind::True => out.extend_from_slice(b"true"),
            Kind::False => out.extend_from_slice(b"false"),
            Kind::Integer | Kind::Float if self.form == Form::Jcs => match parse_float(value.source()) {
                number if number.is_finite() => write_ecmascript(number, out),
                _ => out.extend_from_slice(b"null"),
            },
            Kind::Integer => write_integer(value.source(), out),
            Kind::Float => write_float(parse_float(value.source()), out),
            // A source without escapes contains nothing that has to be escaped: the parser refused raw control characters.
            Kind::Text => {
                out.push(b'"');
                out.extend_from_slice(value.source());
                out.push(b'"');
            }
            Kind::EscapedText => {
                out.push(b'"');
                if copy_canonical(value.source(), out) {
                    out.push(b'"');
                } else {
                    out.pop();
                    write_text(Text::escaped(value.source()).as_bytes(), out);
                }
            }
            Kind::Array => {
                out.push(b'[');
                self.open.push(Container { is_object: false, is_empty: true, children: Children::AsTheyCome(value.children()) });
            }
            Kind::Object => {
                out.push(b'{');
                let children = self.members(value);
                self.open.push(Container { is_object: true, is_empty: true, children });
            }
        }
    }

    fn members(&mut self, object: Value<'d>) -> Children<'d> {
        if is_in_order(self.form, object) {
            return Children::AsTheyCome(object.children());
        }
        let first = self.sorted.len();
        self.sorted.extend(object.members().map(|(key, _)| key));
        if !sort_plain(self.form, self.sorted.get_mut(first..).unwrap_or_default()) {
            self.sorted.truncate(first);
            self.sorted.extend(sorted_keys(self.form, object));
        }
        Children::Sorted { first, next: first }
    }
}

/// Returns whether an object's keys are in order, unique, and without escapes, which would have to be decoded for the comparison.
fn is_in_order(form: Form, object: Value<'_>) -> bool {
    let mut keys = object.members().map(|(key, _)| (key.node().kind == Kind::Text).then(|| key.source()));
    let Some(mut before) = keys.next() else { return true };
    keys.all(|key| {
        let is_greater = before.zip(key).is_some_and(|(before, key)| order(form, before, key).is_lt());
        before = key;
        is_greater
    })
}

/// Sorts keys without escapes. Returns `false` if a key has escapes or two keys are equal.
fn sort_plain(form: Form, keys: &mut [Value<'_>]) -> bool {
    if !keys.iter().all(|key| key.node().kind == Kind::Text) {
        return false;
    }
    keys.sort_unstable_by(|left, right| order(form, left.source(), right.source()));
    keys.windows(2).all(|pair| matches!(pair, [left, right] if left.source() != right.source()))
}

/// Returns the keys of an object in the form's order. Of equal keys it returns the last.
fn sorted_keys<'d>(form: Form, object: Value<'d>) -> impl Iterator<Item = Value<'d>> {
    let mut keys: Vec<_> = object.members().map(|(key, _)| (key.as_text().unwrap_or(Text::plain(b"")), key)).collect();
    // The sort is stable, so the last of equal keys comes last. In reverse it comes first, and `dedup_by` keeps it.
    keys.sort_by(|(left, _), (right, _)| order(form, left.as_bytes(), right.as_bytes()));
    keys.reverse();
    keys.dedup_by(|(left, _), (right, _)| left == right);
    keys.into_iter().rev().map(|(_, key)| key)
}

fn order(form: Form, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
    match form {
        // The byte order of UTF-8 is that of code points.
        Form::Python => left.cmp(right),
        Form::Jcs => utf16_order(left, right),
    }
}

/// Compares texts by their UTF-16 code units. This differs from comparing bytes only where a character beyond the basic plane (first byte
/// 0xf0 and up) meets one from U+E000 to U+FFFF (first byte 0xee or 0xef): as surrogates the former comes first.
fn utf16_order(left: &[u8], right: &[u8]) -> std::cmp::Ordering {
    let unequal = left.iter().zip(right).find(|(left, right)| left != right);
    match unequal {
        Some((0xf0.., 0xee..=0xef)) => std::cmp::Ordering::Less,
        Some((0xee..=0xef, 0xf0..)) => std::cmp::Ordering::Greater,
        _ => left.cmp(right),
    }
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

    /// The examples are from RFC 8785, sections 3.2.2 to 3.2.4.
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
