//! Decoded JSON strings.

use std::borrow::Cow;

/// A string as JSON can spell it: UTF-8 in which a lone surrogate stands as its three-byte form (WTF-8). That is the byte
/// sequence that Python's `surrogatepass` encodes, and its byte order is code-point order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text<'d>(Cow<'d, [u8]>);

impl<'d> Text<'d> {
    /// Text that needs no decoding.
    #[must_use]
    pub fn plain(bytes: &'d [u8]) -> Self {
        Self(Cow::Borrowed(bytes))
    }

    /// Decodes the escapes of a string whose grammar the parser has checked. A high surrogate directly followed by a low one is
    /// one character, any other surrogate stays alone.
    pub(super) fn unescape(source: &[u8]) -> Text<'static> {
        let mut out = Vec::with_capacity(source.len());
        let mut rest = source;
        while let Some(run) = memchr::memchr(b'\\', rest) {
            let (plain, escape) = rest.split_at(run);
            out.extend_from_slice(plain);
            rest = decode_escape(escape, &mut out);
        }
        out.extend_from_slice(rest);
        Text(Cow::Owned(out))
    }

    /// The bytes: UTF-8 but for lone surrogates.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text as a `str`, unless it holds a lone surrogate (or the source was not UTF-8).
    #[must_use]
    pub fn into_str(self) -> Option<Cow<'d, str>> {
        match self.0 {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
        }
    }
}

/// Decodes the escape at the start of `source` into `out` and returns what follows it.
fn decode_escape<'s>(source: &'s [u8], out: &mut Vec<u8>) -> &'s [u8] {
    let plain = match source.get(1) {
        Some(b'u') => return decode_unicode_escape(source, out),
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(other) => *other,
        None => return &[],
    };
    out.push(plain);
    source.get(2..).unwrap_or_default()
}

fn decode_unicode_escape<'s>(source: &'s [u8], out: &mut Vec<u8>) -> &'s [u8] {
    let first = code_unit(source).unwrap_or_default();
    let rest = source.get(6..).unwrap_or_default();
    if let (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) = (first, code_unit(rest)) {
        push_code_point(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), out);
        return rest.get(6..).unwrap_or_default();
    }
    push_code_point(first, out);
    rest
}

/// The value of a `\uXXXX` escape at the start of `source`.
fn code_unit(source: &[u8]) -> Option<u32> {
    let digits = source.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn push_code_point(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        // Only a surrogate is no `char`: its generalised UTF-8 form has three bytes.
        None => out.extend([0xe0 | (code >> 12) as u8, 0x80 | (code >> 6 & 0x3f) as u8, 0x80 | (code & 0x3f) as u8]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_surrogates() {
        for (source, expected) in [
            (r#"a\"\\\/\b\f\n\r\tz"#, b"a\"\\/\x08\x0c\n\r\tz".as_slice()),
            (r"\u00e9\u2028", "é\u{2028}".as_bytes()),
            (r"\ud83d\ude00", "😀".as_bytes()),
            (r"\ud83d", b"\xed\xa0\xbd".as_slice()),
            (r"\ude00\ud83d", b"\xed\xb8\x80\xed\xa0\xbd".as_slice()),
            (r"\ud83dx", b"\xed\xa0\xbdx".as_slice()),
            (r"\u0000", b"\0".as_slice()),
        ] {
            assert_eq!(Text::unescape(source.as_bytes()).as_bytes(), expected, "{source}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_no_str() {
        assert_eq!(Text::unescape(br"\ud83d").into_str(), None);
        assert_eq!(Text::unescape(br"\u00e9").into_str().as_deref(), Some("é"));
    }
}
