//! The characters that stand-ins are made of. A character is replaced by one that can be written in each way in which it can be written
//! itself: as it is, in the same number of bytes, or as an escape of the same length.
//!
//! Some characters stay: white space and control characters, because a text of white space alone has to stay blank; quotes, backslashes and
//! slashes, which JSON can escape with two bytes; lone surrogates, which can only be written as an escape; and two characters that become
//! ASCII in lower case.

use super::permutation::Digit;

/// A set of characters, in which each has a number.
struct Alphabet {
    first: u32,
    last: u32,
    /// The characters between the two that stay, in order.
    stay: &'static [u32],
}

/// The alphabets, by the number of bytes that UTF-8 takes for their characters.
const ALPHABETS: [Alphabet; 4] = [
    Alphabet { first: 0x21, last: 0x7e, stay: &['"' as u32, '/' as u32, '\\' as u32] },
    // From no-break space on: what is before it are control characters. U+0130 is `i` in lower case.
    Alphabet { first: 0xa1, last: 0x7ff, stay: &[0x130] },
    Alphabet { first: 0x800, last: 0xd7ff, stay: SPACES },
    Alphabet { first: 0x1_0000, last: 0x10_ffff, stay: &[] },
];

/// White space of three bytes, and the Kelvin sign, which is `k` in lower case.
const SPACES: &[u32] = &[
    0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x212a,
    0x3000,
];

/// The characters behind the surrogates, of three bytes too. The mark of byte order stays.
const BEHIND_SURROGATES: Alphabet = Alphabet { first: 0xe000, last: 0xfffd, stay: &[0xfeff] };

fn alphabet_of(code: u32) -> Option<&'static Alphabet> {
    ALPHABETS.iter().chain([&BEHIND_SURROGATES]).find(|alphabet| (alphabet.first..=alphabet.last).contains(&code))
}

/// Returns the number of a character in its alphabet, or `None` if it stays.
pub(super) fn digit_of(code: u32) -> Option<Digit> {
    let alphabet = alphabet_of(code)?;
    let before = alphabet.stay.binary_search(&code).err()?;
    let count = alphabet.last - alphabet.first + 1;
    let less = |number: usize| u32::try_from(number).unwrap_or_default();
    Some(Digit { value: code - alphabet.first - less(before), radix: count - less(alphabet.stay.len()) })
}

/// Returns the character with a number in the alphabet of `code`. A character that stays is its own.
pub(super) fn character_at(code: u32, value: u32) -> u32 {
    let Some(alphabet) = alphabet_of(code) else { return code };
    alphabet.stay.iter().fold(alphabet.first + value, |found, stays| if found >= *stays { found + 1 } else { found })
}

/// Returns the characters of a text as numbers. Lone surrogates have their three-byte form, and any byte that belongs to no character is
/// given as a number beyond all characters.
pub(super) fn characters(text: &[u8]) -> Vec<u32> {
    let mut codes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let length = match first {
            0x00..0x80 => 1,
            0xc2..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0..0xf5 => 4,
            _ => 0,
        };
        let tail = behind.get(..usize::max(length, 1) - 1).filter(|tail| length > 0 && tail.iter().all(|byte| byte & 0xc0 == 0x80));
        let Some(tail) = tail else {
            codes.push(NOT_A_CHARACTER + u32::from(*first));
            rest = behind;
            continue;
        };
        let lead = u32::from(*first) & [0x7f, 0x1f, 0x0f, 0x07].get(tail.len()).copied().unwrap_or_default();
        codes.push(tail.iter().fold(lead, |code, byte| code << 6 | u32::from(byte & 0x3f)));
        rest = behind.get(tail.len()..).unwrap_or_default();
    }
    codes
}

/// What a byte that belongs to no character is given as, plus the byte. Numbers like this have no alphabet, so they stay.
const NOT_A_CHARACTER: u32 = 0x20_0000;

/// Appends characters as [`characters`] gives them.
pub(super) fn write_characters(codes: &[u32], out: &mut Vec<u8>) {
    for code in codes {
        match char::from_u32(*code) {
            Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None if *code >= NOT_A_CHARACTER => out.extend(u8::try_from(code - NOT_A_CHARACTER)),
            None => out.extend([0xe0 | (code >> 12) as u8, 0x80 | (code >> 6 & 0x3f) as u8, 0x80 | (code & 0x3f) as u8]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_stays_or_has_a_number_of_its_own_and_a_length_that_is_kept() {
        let mut numbered = 0;
        for character in '\0'..=char::MAX {
            let code = u32::from(character);
            let Some(digit) = digit_of(code) else { continue };
            numbered += 1;
            assert!(digit.value < digit.radix);
            assert_eq!(character_at(code, digit.value), code);
            for value in [0, digit.radix / 2, digit.radix - 1] {
                let other = char::from_u32(character_at(code, value)).unwrap();
                assert_eq!(other.len_utf8(), character.len_utf8());
                assert_eq!(digit_of(u32::from(other)), Some(Digit { value, ..digit }));
            }
            assert!(!character.is_whitespace() && !character.is_control() && !"\"\\/\u{feff}".contains(character), "{character:?}");
            let is_lower_ascii = |lower: char| lower.is_ascii();
            assert!(character.is_ascii() || !character.to_lowercase().any(is_lower_ascii), "{character:?}");
        }
        assert!(numbered > 1_100_000);
    }

    #[test]
    fn texts_are_read_and_written_byte_for_byte() {
        for text in ["", "aé\u{ffff}😀\0", "\u{800}\u{7ff}"] {
            let mut out = Vec::new();
            let codes = characters(text.as_bytes());
            assert_eq!(codes, text.chars().map(u32::from).collect::<Vec<_>>());
            write_characters(&codes, &mut out);
            assert_eq!(out, text.as_bytes());
        }
        for bytes in [&b"\xed\xa0\xbd"[..], b"a\xff\x80b", b"\xc3", b"\xf0\x9f\x98", b"\xe2\x82x"] {
            let mut out = Vec::new();
            write_characters(&characters(bytes), &mut out);
            assert_eq!(out, bytes);
        }
    }
}
