//! Stand-ins for numbers: the significant digits are replaced, while sign, magnitude, zeros at both ends and notation stay. So zero stays
//! zero, and two spellings of one number get two spellings of one number.

use super::Unkept;
use super::permutation::{Digit, Permutation};
use tollgate_json::number::{parse_float, shortest};

/// How often a float's digits are permuted at most until they are again the digits with which a double is printed.
const STEPS_MAX: usize = 100_000;

/// Returns the stand-in of a number's source, in as many bytes. `NaN` and infinities stay.
///
/// # Errors
/// [`Unkept::Number`] for a float whose digits no other double of its magnitude has.
pub(super) fn stand_in(permutation: &Permutation, source: &[u8]) -> Result<Vec<u8>, Unkept> {
    let places = significant(source);
    if places.is_empty() {
        return Ok(source.to_vec());
    }
    let is_float = source.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if !is_float {
        let mut digits = digits_at(source, &places);
        permutation.apply(&mut digits);
        return Ok(with_digits(source, &places, &digits));
    }
    if is_shortest(source, &places) { permuted(permutation, source, &places) } else { respelled(permutation, source, &places) }
}

/// Returns the places of the digits between the first and the last of the mantissa that are not zero, those included.
fn significant(source: &[u8]) -> Vec<usize> {
    let mantissa = source.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(source.len());
    let digits = source.iter().enumerate().take(mantissa).filter(|(_, byte)| byte.is_ascii_digit());
    let is_zero = |place: &(usize, &u8)| *place.1 == b'0';
    let mut places: Vec<_> = digits.skip_while(is_zero).collect();
    let zeros = places.iter().rev().take_while(|place| is_zero(place)).count();
    places.truncate(places.len() - zeros);
    places.into_iter().map(|(at, _)| at).collect()
}

/// Returns the digits at some places, as numbers that may be permuted: the first and the last are not zero.
fn digits_at(source: &[u8], places: &[usize]) -> Vec<Digit> {
    let ends = [places.first(), places.last()];
    let digit = |at: &usize| u32::from(source.get(*at).copied().unwrap_or(b'1').saturating_sub(b'0'));
    places
        .iter()
        .map(|at| {
            if ends.contains(&Some(at)) {
                Digit { value: digit(at).saturating_sub(1), radix: 9 }
            } else {
                Digit { value: digit(at), radix: 10 }
            }
        })
        .collect()
}

fn with_digits(source: &[u8], places: &[usize], digits: &[Digit]) -> Vec<u8> {
    let mut out = source.to_vec();
    for (at, digit) in places.iter().zip(digits) {
        let shown = if digit.radix == 9 { digit.value + 1 } else { digit.value };
        out.get_mut(*at).into_iter().for_each(|byte| *byte = b'0' + u8::try_from(shown).unwrap_or_default());
    }
    out
}

/// Returns whether a float's significant digits are those with which its double is printed. Different digits are different doubles then.
fn is_shortest(source: &[u8], places: &[usize]) -> bool {
    let value = parse_float(source);
    if !value.is_finite() || value == 0.0 {
        return false;
    }
    let (_, digits, _) = shortest(value);
    digits.bytes().eq(places.iter().filter_map(|at| source.get(*at)).copied())
}

/// Permutes the digits of a float until they are again the digits of a double.
fn permuted(permutation: &Permutation, source: &[u8], places: &[usize]) -> Result<Vec<u8>, Unkept> {
    // Powers of ten stay: numbers with more digits than a double holds may be rounded up to one, and their digits cannot show another.
    if is_one(source, places) {
        return Ok(source.to_vec());
    }
    let mut digits = digits_at(source, places);
    for _ in 0..STEPS_MAX {
        permutation.apply(&mut digits);
        let out = with_digits(source, places, &digits);
        if is_shortest(&out, places) && !is_one(&out, places) {
            return Ok(out);
        }
    }
    Err(Unkept::Number)
}

/// Returns whether a single 1 is all that is not zero.
fn is_one(source: &[u8], places: &[usize]) -> bool {
    matches!(places, [at] if source.get(*at) == Some(&b'1'))
}

/// Returns the stand-in of a float with digits that its double does not keep: the stand-in of the double, with zeros behind it.
fn respelled(permutation: &Permutation, source: &[u8], places: &[usize]) -> Result<Vec<u8>, Unkept> {
    let value = parse_float(source);
    let fill = |digits: &[u8]| {
        let mut out = source.to_vec();
        let digits = digits.iter().copied().chain(std::iter::repeat(b'0'));
        for (at, digit) in places.iter().zip(digits) {
            out.get_mut(*at).into_iter().for_each(|byte| *byte = digit);
        }
        out
    };
    if value == 0.0 {
        return Ok(fill(b"1"));
    }
    if !value.is_finite() {
        return Ok(fill(&vec![b'9'; places.len()]));
    }
    let (sign, digits, exponent) = shortest(value);
    let (first, rest) = digits.split_at(1);
    let printed = format!("{sign}{first}.{rest}e{exponent}");
    let point = if rest.is_empty() { format!("{sign}{first}e{exponent}") } else { printed };
    let point = point.as_bytes();
    let image = permuted(permutation, point, &significant(point))?;
    let digits: Vec<u8> = significant(&image).into_iter().filter_map(|at| image.get(at)).copied().collect();
    let is_same = |out: &Vec<u8>| parse_float(out).to_bits() == parse_float(&image).to_bits();
    // Digits that are rounded up to a power of ten still are when all of them are nines.
    [fill(&digits), fill(&vec![b'9'; places.len()])].into_iter().find(is_same).ok_or(Unkept::Number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use tollgate_json::{Parser, canonical};

    fn image(source: &str) -> String {
        String::from_utf8(stand_in(&Permutation::new(b"key", "number"), source.as_bytes()).unwrap()).unwrap()
    }

    fn canonical_of(source: &str) -> Vec<u8> {
        let (mut parser, mut out) = (Parser::new(), Vec::new());
        canonical::write(parser.parse(source.as_bytes(), 1).unwrap(), &mut out);
        out
    }

    fn shape(source: &str) -> String {
        let (mantissa, exponent) = source.split_at(source.find(['e', 'E']).unwrap_or(source.len()));
        format!("{}{exponent}", mantissa.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>())
    }

    #[test]
    fn zeros_and_what_is_no_number_stay() {
        for source in ["0", "-0", "0.0", "-0.00", "0e5", "0.0E-3", "NaN", "Infinity", "-Infinity"] {
            assert_eq!(image(source), source);
        }
    }

    #[test]
    fn every_integer_of_three_digits_gets_one_of_its_own() {
        let mut images: Vec<_> = (-999..1_000).map(|number: i32| image(&number.to_string())).collect();
        assert!((-999..1_000_i32).zip(&images).all(|(number, image)| image.len() == number.to_string().len()));
        images.sort();
        images.dedup();
        assert_eq!(images.len(), 1_999);
    }

    #[test]
    fn spellings_of_one_number_stay_spellings_of_one_number() {
        for spellings in [
            &["1.5", "1.50", "0.15e1", "15e-1", "15.0E-1", "1.5000000000000000000000001"][..],
            &["100.0", "1e2", "1E+2", "1.0e2", "0.001e5"],
            &["0.1", "0.10", "0.1000000000000000055511151231257827"],
            &["1e400", "2.5e999", "17976931348623159000e300"],
            &["1e-400", "9.9e-999"],
            &["1700000000.1234567", "1700000000.12345670"],
            &["5e-324", "5.0e-324", "4.94065645841246544e-324"],
            &["1.0", "0.99999999999999999999", "0.99999999999999999998", "10e-1"],
            &["1e30", "999999999999999999999999999999.99"],
            &["9.9999999999e-324", "1e-323", "0.1e-322"],
        ] {
            let images: Vec<_> = spellings.iter().map(|source| image(source)).collect();
            let (first, rest) = images.split_first().unwrap();
            for (source, image) in spellings.iter().zip(&images) {
                assert_eq!(shape(image), shape(source));
            }
            assert!(rest.iter().all(|other| canonical_of(other) == canonical_of(first)), "{spellings:?} {images:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn floats_stay_apart(values in proptest::collection::vec(any::<f64>(), 1..20)) {
            let mut images = HashMap::new();
            for source in values.iter().filter(|value| value.is_finite()).map(|value| format!("{value:?}")) {
                let image = image(&source);
                prop_assert_eq!(shape(&image), shape(&source));
                let before = images.insert(canonical_of(&image), canonical_of(&source));
                prop_assert!(before.is_none_or(|before| before == canonical_of(&source)));
            }
        }
    }
}
