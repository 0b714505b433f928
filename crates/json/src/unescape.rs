//! Decoding the escapes of JSON strings.

use super::find::{PIECE, stops_of};

/// Returns whether every escape of a string is one that the canonical form writes too, and in the same way.
pub(super) fn has_short_escapes(source: &[u8]) -> bool {
    let mut rest = source;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        match rest.get(at..).and_then(<[u8]>::split_first_chunk) {
            Some((escape, behind)) if is_short(*escape) => rest = behind,
            _ => return false,
        }
    }
    true
}

/// Appends the text of a string, given by the source between its quotes, which nobody has looked at yet. Returns whether it is the source
/// of one string, and otherwise leaves something unfinished in `out`: there is a quote or a control character in it, or a backslash that
/// begins no escape.
///
/// It accepts and decodes what [`Parser`](super::Parser) and [`Text`](super::Text) do, in one pass over the source in place of two.
#[must_use]
pub fn decode_string(source: &[u8], out: &mut Vec<u8>) -> bool {
    let has_control = source.iter().fold(false, |found, byte| found | (*byte < 0x20));
    !has_control && copy_with(source, usize::MAX, out, checked_escape)
}

/// Decodes escapes until there are `bytes_max` bytes. The last piece may go beyond that.
pub(super) fn unescape(source: &[u8], bytes_max: usize) -> Vec<u8> {
    let mut out = Vec::new();
    copy_with(source, bytes_max, &mut out, |escape, out| Some(decode_escape(escape, out)));
    out
}

/// Appends a string's source as it is, if all its escapes are spelled as the canonical form spells them. Otherwise it returns `false`, and
/// `out` is as it was.
pub(super) fn copy_canonical(source: &[u8], out: &mut Vec<u8>) -> bool {
    let before = out.len();
    let is_canonical = copy_with(source, usize::MAX, out, |escape, out| {
        let (spelling, behind) = escape.split_first_chunk::<2>().filter(|(spelling, _)| is_short(**spelling))?;
        out.extend_from_slice(spelling);
        Some(behind)
    });
    if !is_canonical {
        out.truncate(before);
    }
    is_canonical
}

/// Returns whether an escape is one that the canonical form writes too, and in the same way.
fn is_short(escape: [u8; 2]) -> bool {
    matches!(escape, [b'\\', b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't'])
}

/// Appends the source of a string until `out` has `bytes_max` bytes or a piece more. `escape` appends what a quote or backslash at the start
/// of a source stands for, and returns what follows it. Returns `false` once `escape` returns `None`.
#[inline]
fn copy_with<'s>(
    source: &'s [u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
    mut escape: impl FnMut(&'s [u8], &mut Vec<u8>) -> Option<&'s [u8]>,
) -> bool {
    // A piece is appended whole, and cut behind.
    out.reserve(source.len().min(bytes_max).saturating_add(PIECE));
    let mut rest = source;
    while out.len() < bytes_max
        && let Some((piece, behind)) = rest.split_first_chunk()
    {
        // A copy of a fixed length costs less than one of just the bytes before the stop.
        out.extend_from_slice(piece);
        let stops = stops_of(*piece);
        if stops == 0 {
            rest = behind;
            continue;
        }
        let run = stops.trailing_zeros() as usize;
        out.truncate(out.len() - (PIECE - run));
        match escape(rest.get(run..).unwrap_or_default(), out) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    while out.len() < bytes_max
        && let Some((byte, behind)) = rest.split_first()
    {
        rest = match byte {
            b'"' | b'\\' => match escape(rest, out) {
                Some(behind) => behind,
                None => return false,
            },
            plain => {
                out.push(*plain);
                behind
            }
        };
    }
    true
}

/// Decodes what stands at a quote or backslash into `out` and returns what follows it; `None` if it is no escape.
fn checked_escape<'s>(source: &'s [u8], out: &mut Vec<u8>) -> Option<&'s [u8]> {
    let is_escape = match source {
        [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => true,
        [b'\\', b'u', digits @ ..] => digits.get(..4).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
        _ => false,
    };
    is_escape.then(|| decode_escape(source, out))
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

/// Returns the value of a `\uXXXX` escape at the start of `source`.
fn code_unit(source: &[u8]) -> Option<u32> {
    let digits = source.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn push_code_point(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        // Only a surrogate is not a `char`. Its generalised UTF-8 form has three bytes.
        None => out.extend([0xe0 | (code >> 12) as u8, 0x80 | (code >> 6 & 0x3f) as u8, 0x80 | (code & 0x3f) as u8]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Parser;
    use super::*;
    use proptest::prelude::*;

    /// What the parser and its text make of the same source.
    fn parsed(source: &[u8]) -> Option<Vec<u8>> {
        let quoted = [b"\"", source, b"\""].concat();
        let mut parser = Parser::new();
        let value = parser.parse(&quoted, 1).ok()?;
        Some(value.as_text()?.into_bytes().into_owned())
    }

    fn decoded(source: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"kept".to_vec();
        decode_string(source, &mut out).then(|| out.split_off(4))
    }

    #[test]
    fn every_byte_means_the_same_as_to_the_parser_wherever_it_stands() {
        for place in 0..18 {
            for first in 0..=u8::MAX {
                for second in [b'x', b'"', b'\\', b'u', b'n'] {
                    let mut source = *b"..................";
                    source[place] = first;
                    if let Some(next) = source.get_mut(place + 1) {
                        *next = second;
                    }
                    assert_eq!(decoded(&source), parsed(&source), "{first} and {second} at {place}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_source_means_the_same_as_to_the_parser(source in r#"([ -~]|\\["\\/bfnrt]|\\u[dD][89abcdefABCDEF][0-9]{2}|\\u[0-9a-f]{4}|é|😀|\\){0,40}"#) {
            prop_assert_eq!(decoded(source.as_bytes()), parsed(source.as_bytes()));
        }
    }
}
