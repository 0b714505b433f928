//! Reading and writing RFC 3339 timestamps.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Returns the milliseconds since the epoch of an RFC 3339 timestamp, or `None` if it is not one.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    i64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

/// Returns a time as RFC 3339 writes it; `None` if its year does not have four digits.
#[must_use]
pub fn rfc_3339(time_ms: i64) -> Option<String> {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000)
        .ok()
        .filter(|time| (0..=9_999).contains(&time.year()))?;
    let (date, month) = (time.date(), u8::from(time.month()));
    let (hour, minute, second, millisecond) = time.time().as_hms_milli();
    Some(format!("{:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z", date.year(), date.day()))
}

#[cfg(test)]
mod tests {
    use super::{parse_timestamp, rfc_3339};

    #[test]
    fn a_written_time_is_the_one_that_was_read() {
        for text in ["2026-01-31T02:05:09.007Z", "1969-12-31T23:59:59.999Z", "0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"] {
            assert_eq!(parse_timestamp(text).and_then(rfc_3339).as_deref(), Some(text));
        }
        // One millisecond outside of the years with four digits, and what is no time at all.
        for time_ms in [-62_167_219_200_001, 253_402_300_800_000, i64::MAX, i64::MIN] {
            assert_eq!(rfc_3339(time_ms), None, "{time_ms}");
        }
    }

    #[test]
    fn rfc_3339_and_nothing_else() {
        for (text, expected) in [
            ("2026-01-01T00:00:00Z", Some(1_767_225_600_000)),
            ("2026-01-01T01:00:00.1234567+01:00", Some(1_767_225_600_123)),
            ("1969-12-31T23:59:59.999Z", Some(-1)),
            ("2026-01-01", None),
            ("2026-01-01T00:00:00", None),
            ("1767225600", None),
            ("2026-13-01T00:00:00Z", None),
            ("", None),
        ] {
            assert_eq!(parse_timestamp(text), expected, "{text}");
        }
    }
}
