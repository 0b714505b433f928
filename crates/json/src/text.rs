//! Decoded JSON strings.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::find::next_special;
use super::unescape::{has_short_escapes, unescape};

/// A string as JSON can express it: UTF-8 in which a lone surrogate has its three-byte form (WTF-8). These are the bytes that Python's
/// `surrogatepass` encodes, and their order is code-point order.
///
/// Escapes are decoded on first use: of most results no more than the beginning is read.
#[derive(Debug, Clone)]
pub struct Text<'d> {
    source: &'d [u8],
    /// The decoded text, if the source has escapes.
    decoded: Option<OnceCell<Vec<u8>>>,
}

impl<'d> Text<'d> {
    /// Returns a text that needs no decoding.
    #[must_use]
    pub fn plain(bytes: &'d [u8]) -> Self {
        Self { source: bytes, decoded: None }
    }

    /// Returns the text of a string with escapes, from its source, whose grammar the parser has checked. A high surrogate directly followed
    /// by a low one is one character; any other surrogate stays alone.
    pub(super) fn escaped(source: &'d [u8]) -> Self {
        Self { source, decoded: Some(OnceCell::new()) }
    }

    /// Returns the text as its document spells it, with escapes that are not decoded.
    #[must_use]
    pub fn source(&self) -> &'d [u8] {
        self.source
    }

    /// Returns whether every escape of its source is a letter's, a quote's or a backslash's. The text then determines its source.
    #[must_use]
    pub fn has_short_escapes(&self) -> bool {
        has_short_escapes(self.source)
    }

    /// Returns how many bytes the text has with its escapes: as many as it has without them, or more.
    #[must_use]
    pub fn source_len(&self) -> usize {
        self.source.len()
    }

    /// Returns the text's bytes, which are UTF-8 except for lone surrogates.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.decoded {
            None => self.source,
            Some(decoded) => decoded.get_or_init(|| unescape(self.source, usize::MAX)),
        }
    }

    /// Returns the beginning of the text: at least `bytes` bytes of it and perhaps a few more, or all if there are fewer.
    #[must_use]
    pub fn beginning(&self, bytes: usize) -> Cow<'_, [u8]> {
        match &self.decoded {
            // Of a text that is not much longer the rest is asked for too, more often than not.
            Some(decoded) if decoded.get().is_none() && self.source.len() / 2 > bytes => Cow::Owned(unescape(self.source, bytes)),
            _ => {
                let all = self.as_bytes();
                Cow::Borrowed(all.get(..bytes).unwrap_or(all))
            }
        }
    }

    /// Returns the text's bytes, as [`Text::as_bytes`] does, without a copy where nothing has to be decoded.
    #[must_use]
    pub fn into_bytes(self) -> Cow<'d, [u8]> {
        match self.decoded {
            None => Cow::Borrowed(self.source),
            Some(decoded) => Cow::Owned(decoded.into_inner().unwrap_or_else(|| unescape(self.source, usize::MAX))),
        }
    }

    /// Returns the text as a `str`, unless it holds a lone surrogate (or the source was not UTF-8).
    #[must_use]
    pub fn into_str(self) -> Option<Cow<'d, str>> {
        match self.decoded {
            None => std::str::from_utf8(self.source).ok().map(Cow::Borrowed),
            Some(decoded) => {
                let bytes = decoded.into_inner().unwrap_or_else(|| unescape(self.source, usize::MAX));
                String::from_utf8(bytes).ok().map(Cow::Owned)
            }
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text<'_> {}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

/// Appends a decoded string as JSON. Only `"`, `\` and characters below 0x20 are escaped, as Python and `serde_json` do.
pub fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(run) = next_special(rest) {
        let (plain, special) = rest.split_at(run);
        out.extend_from_slice(plain);
        if let Some((byte, behind)) = special.split_first() {
            write_escape(*byte, out);
            rest = behind;
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Returns the letter of a byte's escape: `u` if it has no letter of its own, `None` if it is not escaped.
pub(super) fn escape_of(byte: u8) -> Option<u8> {
    match byte {
        b'"' | b'\\' => Some(byte),
        0x08 => Some(b'b'),
        0x0c => Some(b'f'),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        0x00..0x20 => Some(b'u'),
        _ => None,
    }
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match escape_of(byte) {
        Some(b'u') => {
            let low = HEX.get(usize::from(byte & 0x0f)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), low]);
        }
        Some(letter) => out.extend_from_slice(&[b'\\', letter]),
        None => out.push(byte),
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
            assert_eq!(Text::escaped(source.as_bytes()).as_bytes(), expected, "{source}");
        }
    }

    #[test]
    fn no_more_is_decoded_than_is_looked_at() {
        let source = format!("{}{}", "ab\\n".repeat(10), "x".repeat(100));
        let text = Text::escaped(source.as_bytes());
        assert_eq!(text.beginning(7).as_ref(), b"ab\nab\nab\n");
        assert_eq!(text.beginning(1_000).len(), 130);
        assert_eq!(text.as_bytes().len(), 130);
        assert_eq!(text.beginning(7).as_ref(), b"ab\nab\na");
        assert_eq!(Text::plain(b"abc").beginning(2).as_ref(), b"ab");
        assert_eq!(Text::plain(b"abc").beginning(4).as_ref(), b"abc");
    }

    #[test]
    fn a_lone_surrogate_is_no_str() {
        assert_eq!(Text::escaped(br"\ud83d").into_str(), None);
        assert_eq!(Text::escaped(br"\u00e9").into_str().as_deref(), Some("é"));
    }
}
