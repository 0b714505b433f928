//! Durations as people write them: a whole number and a unit.

/// What a duration looks like, as a regular expression.
pub const DURATION_PATTERN: &str = "^[0-9]{1,9}[smhd]$";

/// The most digits of a duration's number.
const DIGITS_MAX: usize = 9;

/// The units with their lengths in milliseconds, the longest first.
const UNITS: [(char, i64); 4] = [('d', 86_400_000), ('h', 3_600_000), ('m', 60_000), ('s', 1_000)];

/// Returns the milliseconds of a duration such as `90s`, `15m`, `2h` or `7d`, or `None` if it is none.
#[must_use]
pub fn parse_duration(text: &str) -> Option<i64> {
    let (unit, length_ms) = UNITS.iter().find(|(unit, _)| text.ends_with(*unit))?;
    let digits = text.strip_suffix(*unit)?;
    if digits.len() > DIGITS_MAX || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i64>().ok()?.checked_mul(*length_ms)
}

/// Returns a duration in the largest unit that it is a whole number of. What is less than a second is left out.
#[must_use]
pub fn duration_text(duration_ms: i64) -> String {
    let whole = UNITS.iter().find(|(_, length_ms)| duration_ms != 0 && duration_ms % length_ms == 0);
    let (unit, length_ms) = whole.copied().unwrap_or(('s', 1_000));
    format!("{}{unit}", duration_ms / length_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, expected_ms, written) in [
            ("90s", 90_000, "90s"),
            ("15m", 900_000, "15m"),
            ("60m", 3_600_000, "1h"),
            ("48h", 172_800_000, "2d"),
            ("0s", 0, "0s"),
            ("999999999d", 86_399_999_913_600_000, "999999999d"),
        ] {
            assert_eq!(parse_duration(text), Some(expected_ms), "{text}");
            assert_eq!(duration_text(expected_ms), written);
        }
        for bad in ["", "s", "15", "15 m", "-1s", "+1s", "1.5h", "1w", "1M", "1000000000s", "1h30m", "é"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}
