//! Stand-ins for texts, and how they are spelled in JSON.

use super::Unkept;
use super::alphabet::{character_at, characters, digit_of, write_characters};
use super::permutation::Permutation;

/// How often a text is permuted at most until it has what has to stay the same. Nearly always once is enough; a text of a few characters may
/// need some more.
const STEPS_MAX: usize = 100_000;

/// Returns the stand-in of a text: as many characters, each of as many bytes, and different for different texts.
///
/// `kept` says which characters stay (no list is none of them), and `is_like` whether a text may stand in for this one. Both have to depend
/// on nothing but the text and its place, and `is_like` has to hold for the text itself. The text is then permuted again and again until a
/// text is reached that keeps the same characters and is like it. That ends, because the way leads back to the text itself, and no two
/// texts end at the same one.
pub(super) fn stand_in(
    permutation: &Permutation,
    text: &[u8],
    kept: impl Fn(&[u32]) -> Vec<bool>,
    is_like: impl Fn(&[u8]) -> bool,
) -> Result<Vec<u8>, Unkept> {
    let mut codes = characters(text);
    let stays = kept(&codes);
    let is_kept = |at: usize| stays.get(at).copied().unwrap_or(false);
    let places: Vec<_> =
        codes.iter().enumerate().filter(|(at, _)| !is_kept(*at)).filter_map(|(at, code)| Some((at, digit_of(*code)?))).collect();
    let (places, mut digits): (Vec<usize>, Vec<_>) = places.into_iter().unzip();
    if digits.is_empty() {
        return Ok(text.to_vec());
    }
    let mut out = Vec::with_capacity(text.len());
    for _ in 0..STEPS_MAX {
        permutation.apply(&mut digits);
        for (at, digit) in places.iter().zip(&digits) {
            codes.get_mut(*at).into_iter().for_each(|code| *code = character_at(*code, digit.value));
        }
        out.clear();
        write_characters(&codes, &mut out);
        if is_like(&out) && kept(&codes) == stays {
            return Ok(out);
        }
    }
    Err(Unkept::Text)
}

/// Keeps no character.
pub(super) fn none(_: &[u32]) -> Vec<bool> {
    Vec::new()
}

/// Returns the source of a JSON string with another text in it, which has a character of the same kind in the place of each. Every character
/// is spelled as the one before it was: as it is, or as an escape of the same length.
pub(super) fn respell(source: &[u8], text: &[u8]) -> Vec<u8> {
    if !source.contains(&b'\\') {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(source.len());
    let mut rest = source;
    for code in characters(text) {
        let length = match rest {
            [b'\\', b'u', ..] => write_escapes(code, rest, &mut out),
            [b'\\', ..] => {
                // Characters with an escape of their own stay.
                out.extend_from_slice(rest.get(..2).unwrap_or_default());
                2
            }
            _ => {
                let before = out.len();
                write_characters(&[code], &mut out);
                out.len() - before
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// Writes a character as one escape, or as the two of a surrogate pair, and returns how many bytes they take.
fn write_escapes(code: u32, spelled: &[u8], out: &mut Vec<u8>) -> usize {
    let mut units = [0; 2];
    let units = match char::from_u32(code) {
        Some(character) => &*character.encode_utf16(&mut units),
        None => {
            units = [u16::try_from(code).unwrap_or_default(), 0];
            units.get(..1).unwrap_or_default()
        }
    };
    for (at, unit) in units.iter().enumerate() {
        let before = spelled.get(at * 6 + 2..at * 6 + 6).unwrap_or_default();
        let is_upper = before.iter().any(u8::is_ascii_uppercase);
        let hex = if is_upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
        // What stays keeps its spelling, in which letters of both cases may stand.
        let is_same = before.eq_ignore_ascii_case(hex.as_bytes().get(2..).unwrap_or_default());
        out.extend_from_slice(if is_same { spelled.get(at * 6..at * 6 + 6).unwrap_or_default() } else { hex.as_bytes() });
    }
    units.len() * 6
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::{Parser, Text};

    fn decoded(source: &str) -> Vec<u8> {
        let text = format!("\"{source}\"");
        let mut parser = Parser::new();
        parser.parse(text.as_bytes(), 1).unwrap().as_text().map(|text: Text<'_>| text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn a_text_keeps_its_length_its_kinds_of_characters_and_its_spelling() {
        let permutation = Permutation::new(b"key", "test");
        for source in [
            "",
            "a",
            "Hello, world",
            r"a\nb\t\u0041\u00e9\u20ac",
            r#"\ud83d\ude00 \ud83d x \/ \" \\ \u000a\u2028"#,
            "é😀 ß\u{3000}",
            r"\uD83D\uDE00\u00E9\u00FF",
        ] {
            let text = decoded(source);
            let image = stand_in(&permutation, &text, none, |_| true).unwrap();
            let spelled = respell(source.as_bytes(), &image);
            assert_eq!(spelled.len(), source.len(), "{source}");
            assert_eq!(decoded(std::str::from_utf8(&spelled).unwrap()), image, "{source}");
            let stays = |text: &[u8]| characters(text).into_iter().map(|code| digit_of(code).map_or(code, |_| 0)).collect::<Vec<_>>();
            assert_eq!(stays(&image), stays(&text), "{source}");
            assert!(source.len() < 8 || image != text, "{source}");
        }
        assert_eq!(respell(br"\u00eB\n", "ë\n".as_bytes()), br"\u00eB\n");
    }

    #[test]
    fn texts_of_a_kind_are_permuted_among_themselves() {
        let permutation = Permutation::new(b"key", "test");
        let is_number = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        let all: Vec<Vec<u8>> = (0x21_u8..0x7f).flat_map(|a| [vec![a], vec![a, b'7'], vec![a, b'z']]).collect();
        let mut images: Vec<_> = all
            .iter()
            .map(|text| {
                let image = stand_in(&permutation, text, none, |image| is_number(image) == is_number(text)).unwrap();
                assert_eq!(is_number(&image), is_number(text));
                image
            })
            .collect();
        images.sort();
        images.dedup();
        assert_eq!(images.len(), all.len());
    }

    #[test]
    fn a_text_that_nothing_is_like_is_given_up() {
        let permutation = Permutation::new(b"key", "test");
        assert_eq!(stand_in(&permutation, b"a", none, |_| false), Err(Unkept::Text));
    }
}
