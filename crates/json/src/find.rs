//! Finding the next byte that needs attention in a text. Nearly all that a gate reads is text, so most of its time is spent here.

use super::text::escape_of;

/// How many words of eight bytes are checked one by one. Most strings are names and end within them, where a function call would cost more.
const WORDS_MAX: usize = 2;

/// Returns the distance to the next quote or backslash, where a string ends or an escape begins.
pub(super) fn next_stop(rest: &[u8]) -> Option<usize> {
    let (words, _) = rest.as_chunks::<8>();
    for (index, word) in words.iter().take(WORDS_MAX).enumerate() {
        let stops = stops_of(*word);
        if stops != 0 {
            return Some(index * 8 + (stops.trailing_zeros() / 8) as usize);
        }
    }
    let seen = words.len().min(WORDS_MAX) * 8;
    memchr::memchr2(b'"', b'\\', rest.get(seen..).unwrap_or_default()).map(|run| seen + run)
}

/// Returns a number whose lowest set bit is the highest bit of the first quote or backslash among eight bytes; zero if there is none.
pub(super) fn stops_of(word: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(word);
    bytes_equal_to(word, b'"') | bytes_equal_to(word, b'\\')
}

/// Returns a word whose lowest set bit is the highest bit of the first byte that equals `byte`; zero if no byte does.
fn bytes_equal_to(word: u64, byte: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let difference = word ^ (ONES * u64::from(byte));
    difference.wrapping_sub(ONES) & !difference & (ONES << 7)
}

/// Returns the distance to the next byte that has to be escaped. Pieces without any, which are most, are skipped without a branch per byte.
pub(super) fn next_special(text: &[u8]) -> Option<usize> {
    let is_plain = |piece: &&[u8; 16]| !piece.iter().fold(false, |found, byte| found | (*byte < 0x20) | matches!(byte, b'"' | b'\\'));
    let (pieces, _) = text.as_chunks::<16>();
    let plain = pieces.iter().take_while(is_plain).count() * 16;
    let rest = text.get(plain..).unwrap_or_default();
    rest.iter().position(|byte| escape_of(*byte).is_some()).map(|run| plain + run)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte is tried at every place of a text that is longer than any piece, and the result is compared with a plain search.
    #[test]
    fn every_byte_is_found_where_it_stands() {
        for place in 0..48 {
            for byte in 0..=u8::MAX {
                let mut text = [b'.'; 48];
                text[place] = byte;
                assert_eq!(next_stop(&text), text.iter().position(|byte| matches!(byte, b'"' | b'\\')), "{byte} at {place}");
                assert_eq!(next_special(&text), text.iter().position(|byte| escape_of(*byte).is_some()), "{byte} at {place}");
            }
        }
        for length in 0..48 {
            let text = vec![b'!'; length];
            assert_eq!((next_stop(&text), next_special(&text)), (None, None));
        }
    }
}
