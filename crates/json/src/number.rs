//! Writing numbers as Python prints them, and as ECMAScript does.

/// Appends the canonical form of an integer literal: its digits as they are, except that `-0` becomes `0`, since Python's integers have one
/// zero.
pub fn write_integer(source: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(if source == b"-0" { b"0" } else { source });
}

/// Appends `repr(float)`: the shortest digits that read back as the same value, positional from 1e-4 up to 1e16, with a
/// two-digit exponent elsewhere, and `NaN`, `Infinity` and `-Infinity` as `json.dumps` spells them.
pub fn write_float(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        out.extend_from_slice(match value {
            _ if value.is_nan() => b"NaN",
            _ if value > 0.0 => b"Infinity",
            _ => b"-Infinity",
        });
        return;
    }
    let (sign, digits, exponent) = shortest(value);
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(python_notation(&digits, exponent).as_bytes());
}

/// Appends a finite number as ECMAScript prints it, which RFC 8785 requires: the shortest digits that read back as the same value,
/// positional from 1e-6 up to 1e21, with a single zero.
pub(super) fn write_ecmascript(value: f64, out: &mut Vec<u8>) {
    if value == 0.0 {
        out.push(b'0');
        return;
    }
    let (sign, digits, exponent) = shortest(value);
    out.extend_from_slice(sign.as_bytes());
    let text = if (-6..21).contains(&exponent) { positional(&digits, exponent, "") } else { scientific(&digits, exponent, 1) };
    out.extend_from_slice(text.as_bytes());
}

/// Returns the shortest digits that read back as a finite value, as sign, digits and the exponent of the first digit. Of several with as few
/// digits they are the closest to the value, as in Python and ECMAScript.
pub fn shortest(value: f64) -> (&'static str, String, i32) {
    let mut buffer = zmij::Buffer::new();
    // It is printed as `12.5`, `0.05` or `1.25e-7`.
    let printed = buffer.format_finite(value);
    let (sign, printed) = printed.strip_prefix('-').map_or(("", printed), |rest| ("-", rest));
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((printed, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let all: String = [whole, fraction].concat();
    let digits = all.trim_start_matches('0');
    let zeros = all.len() - digits.len();
    let digits = match digits.trim_end_matches('0') {
        // Zero has one digit, at its own place.
        "" => return (sign, "0".to_owned(), 0),
        digits => digits.to_owned(),
    };
    let first = i32::try_from(whole.len()).unwrap_or_default() - 1 - i32::try_from(zeros).unwrap_or_default();
    (sign, digits, exponent + first)
}

/// Reads a float literal of the grammar. A value out of range becomes infinite or zero, as in Python.
#[must_use]
pub fn parse_float(source: &[u8]) -> f64 {
    // Rust reads `NaN`, `Infinity` and `-Infinity` too.
    std::str::from_utf8(source).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// Returns `d.ddd × 10^exponent` in Python's notation, from its digits without the point.
fn python_notation(digits: &str, exponent: i32) -> String {
    if (-4..16).contains(&exponent) { positional(digits, exponent, ".0") } else { scientific(digits, exponent, 2) }
}

fn scientific(digits: &str, exponent: i32, exponent_digits: usize) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{rest}e{sign}{:0exponent_digits$}", exponent.unsigned_abs())
}

/// Returns digits in positional notation. `whole_suffix` follows a number without a fraction.
fn positional(digits: &str, exponent: i32, whole_suffix: &str) -> String {
    let Ok(whole) = usize::try_from(exponent + 1) else {
        return format!("0.{}{digits}", "0".repeat((-1 - exponent).unsigned_abs() as usize));
    };
    match whole {
        0 => format!("0.{digits}"),
        _ if whole >= digits.len() => format!("{digits}{}{whole_suffix}", "0".repeat(whole - digits.len())),
        _ => {
            let (integer, fraction) = digits.split_at(whole);
            format!("{integer}.{fraction}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repr(source: &str) -> String {
        let mut out = Vec::new();
        write_float(parse_float(source.as_bytes()), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The rows are those of the reference's table.
    #[test]
    fn floats_as_python_prints_them() {
        for row in include_str!("../tests/fixtures/floats_of_python.txt").lines() {
            let (source, expected) = row.split_once(' ').unwrap();
            assert_eq!(repr(source), expected, "{source}");
        }
    }

    /// The samples are those of RFC 8785, appendix B, by the bits of the double.
    #[test]
    fn numbers_as_ecmascript_prints_them() {
        for row in include_str!("../tests/fixtures/floats_of_ecmascript.txt").lines() {
            let (bits, expected) = row.split_once(' ').unwrap();
            let mut out = Vec::new();
            write_ecmascript(f64::from_bits(u64::from_str_radix(bits, 16).unwrap()), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{bits}");
        }
    }

    /// The digits are compared with those of Rust's own printing, rounded to as few as read back as the value. Rust may choose others of as
    /// few, so that is how the closest are found.
    fn check_shortest(value: f64) {
        let shortest_of_rust = format!("{value:e}");
        let count = shortest_of_rust.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
        let closest = format!("{value:.*e}", count - 1);
        let expected = if closest.parse() == Ok(value) { closest } else { shortest_of_rust };
        let (mantissa, exponent) = expected.split_once('e').unwrap();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let sign = if value.is_sign_negative() { "-" } else { "" };
        assert_eq!(shortest(value), (sign, digits, exponent.parse().unwrap()), "{value:e}");
    }

    #[test]
    fn powers_of_two_and_of_ten_and_their_neighbours_have_the_digits_that_rust_finds() {
        let powers = (-1_074..1_024).map(|power| 2_f64.powi(power)).chain((-323..309).map(|power| format!("1e{power}").parse().unwrap()));
        powers.flat_map(|value| [value.next_down(), value, value.next_up()]).filter(|value| value.is_finite()).for_each(check_shortest);
    }

    proptest::proptest! {
        #[test]
        fn any_value_has_the_digits_that_rust_finds(bits in proptest::num::u64::ANY) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                check_shortest(value);
            }
        }
    }

    #[test]
    fn integers_keep_their_digits() {
        for (source, expected) in
            [("-0", "0"), ("0", "0"), ("18446744073709551616", "18446744073709551616"), ("-9223372036854775809", "-9223372036854775809")]
        {
            let mut out = Vec::new();
            write_integer(source.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
