//! Finding the next byte that needs attention in a text. Nearly all that a gate reads is text, so most of its time is spent here.

use wide::u8x16;

/// How many bytes are looked at together.
pub(super) const PIECE: usize = 16;
/// How many pieces are looked at one by one. Most strings are names and end within them, where a function call would cost more.
const PIECES_MAX: usize = 4;

const QUOTE: u8x16 = u8x16::new([b'"'; PIECE]);
const BACKSLASH: u8x16 = u8x16::new([b'\\'; PIECE]);
const LAST_CONTROL: u8x16 = u8x16::new([0x1f; PIECE]);

/// Returns the distance to the next quote or backslash, where a string ends or an escape begins, and whether it is a quote.
#[inline]
pub(super) fn next_stop(rest: &[u8]) -> Option<(usize, bool)> {
    let (pieces, _) = rest.as_chunks();
    for (index, piece) in pieces.iter().take(PIECES_MAX).enumerate() {
        // To read the byte again would cost more than to keep both.
        let piece = u8x16::new(*piece);
        let quotes = piece.simd_eq(QUOTE).to_bitmask();
        let stops = quotes | piece.simd_eq(BACKSLASH).to_bitmask();
        if stops != 0 {
            let run = stops.trailing_zeros();
            return Some((index * PIECE + run as usize, quotes >> run & 1 == 1));
        }
    }
    let seen = pieces.len().min(PIECES_MAX) * PIECE;
    let run = seen + memchr::memchr2(b'"', b'\\', rest.get(seen..).unwrap_or_default())?;
    Some((run, rest.get(run) == Some(&b'"')))
}

/// Returns which bytes of a piece are quotes or backslashes: a bit for each byte, the lowest for the first.
#[inline]
pub(super) fn stops_of(piece: [u8; PIECE]) -> u32 {
    let piece = u8x16::new(piece);
    (piece.simd_eq(QUOTE) | piece.simd_eq(BACKSLASH)).to_bitmask()
}

/// Returns the distance to the next byte that has to be escaped.
#[inline]
pub(super) fn next_special(text: &[u8]) -> Option<usize> {
    let (pieces, rest) = text.as_chunks();
    for (index, piece) in pieces.iter().enumerate() {
        let specials = specials_of(*piece);
        if specials != 0 {
            return Some(index * PIECE + specials.trailing_zeros() as usize);
        }
    }
    // Most texts are short. Behind their end stands what need not be escaped.
    let mut last = [b'.'; PIECE];
    last.get_mut(..rest.len())?.copy_from_slice(rest);
    let specials = specials_of(last);
    (specials != 0).then(|| pieces.len() * PIECE + specials.trailing_zeros() as usize)
}

fn specials_of(piece: [u8; PIECE]) -> u32 {
    let piece = u8x16::new(piece);
    let is_control = piece.min(LAST_CONTROL).simd_eq(piece);
    (is_control | piece.simd_eq(QUOTE) | piece.simd_eq(BACKSLASH)).to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::super::text::escape_of;
    use super::*;

    /// More than the pieces that are looked at one by one.
    const SIZE: usize = (PIECES_MAX + 2) * PIECE + 3;

    /// Every byte is tried at every place of a text that is longer than any piece, and the result is compared with a plain search.
    #[test]
    fn every_byte_is_found_where_it_stands() {
        for place in 0..SIZE {
            for byte in 0..=u8::MAX {
                let mut text = [b'.'; SIZE];
                text[place] = byte;
                let stop = text.iter().position(|byte| matches!(byte, b'"' | b'\\')).map(|at| (at, byte == b'"'));
                assert_eq!(next_stop(&text), stop, "{byte} at {place}");
                assert_eq!(next_special(&text), text.iter().position(|byte| escape_of(*byte).is_some()), "{byte} at {place}");
            }
        }
        for length in 0..SIZE {
            let text = vec![b'!'; length];
            assert_eq!((next_stop(&text), next_special(&text)), (None, None));
        }
    }
}
