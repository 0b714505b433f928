//! Parsing RFC 3339 timestamps.

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
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000).ok().filter(|time| time.year() >= 0)?;
    let (date, month) = (time.date(), u8::from(time.month()));
    let (hour, minute, second, millisecond) = time.time().as_hms_milli();
    Some(format!("{:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z", date.year(), date.day()))
}

#[cfg(test)]
mod tests {
    use super::parse_timestamp;

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
