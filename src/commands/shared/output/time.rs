//! Times as people read them.

use std::time::Duration;
use tollgate_worker::host_time::now_ms;

use time::OffsetDateTime;

/// Returns the time of day in UTC, as `14:03:07`.
pub(crate) fn clock(time_ms: i64) -> String {
    let Some(time) = date_time(time_ms) else { return "-".to_owned() };
    let (hour, minute, second) = time.to_hms();
    format!("{hour:02}:{minute:02}:{second:02}")
}

/// Returns how long ago a time is, in its largest unit: `3 min ago`.
pub(crate) fn ago(time_ms: i64, now_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(time_ms) / 1_000;
    let (count, unit) = match seconds.unsigned_abs() {
        0 => return "now".to_owned(),
        seconds @ 1..=59 => (seconds, "s"),
        seconds @ 60..=3_599 => (seconds / 60, "min"),
        seconds @ 3_600..=86_399 => (seconds / 3_600, "h"),
        seconds => (seconds / 86_400, "d"),
    };
    if seconds < 0 { format!("in {count} {unit}") } else { format!("{count} {unit} ago") }
}

/// Reads a time in the past: a duration before now such as `90s`, `10m`, `2h`, `1d`, or RFC 3339. It returns milliseconds since 1970.
pub(crate) fn read_since(text: &str) -> Result<i64, String> {
    read_moment(text, -1)
}

/// Reads a time to come: a duration from now such as `90s`, `10m`, `2h`, `1d`, or RFC 3339. It returns milliseconds since 1970.
pub(crate) fn read_until(text: &str) -> Result<i64, String> {
    read_moment(text, 1)
}

/// Reads RFC 3339, or a duration, which is added to the time now as often as `times` says.
fn read_moment(text: &str, times: i64) -> Result<i64, String> {
    const FIX: &str = "write a duration such as 90s, 10m, 2h or 1d, or a time such as 2026-01-01T00:00:00Z";
    if let Some(time) = tollgate_json::time::parse_timestamp(text) {
        return Ok(time);
    }
    let duration = duration_ms(text).map_err(|fault| match fault {
        DurationFault::Form if is_date(text) => format!("a date alone is no time; write {text}T00:00:00Z for its beginning in UTC"),
        DurationFault::Form => format!("it is neither a duration nor RFC 3339; {FIX}"),
        fault => format!("{fault}; {FIX}"),
    })?;
    Ok(now_ms().saturating_add(duration.saturating_mul(times)).max(0))
}

/// Returns whether a text is a date without a time of day, such as `2026-01-31`.
fn is_date(text: &str) -> bool {
    tollgate_json::time::parse_timestamp(&format!("{text}T00:00:00Z")).is_some()
}

/// Reads a duration such as `90s`, `10m`, `2h` or `1d`.
pub(crate) fn read_duration(text: &str) -> Result<Duration, String> {
    let milliseconds = duration_ms(text).map_err(|fault| format!("{fault}; write a duration such as 90s, 10m, 2h or 1d"))?;
    Ok(Duration::from_millis(milliseconds.unsigned_abs()))
}

/// Why a text is no duration.
#[derive(Debug, thiserror::Error)]
enum DurationFault {
    #[error("it is no duration")]
    Form,
    #[error("it is no whole number of units")]
    Count,
    #[error("it is too long")]
    TooLong,
}

/// Reads a duration in milliseconds, which is never negative.
fn duration_ms(text: &str) -> Result<i64, DurationFault> {
    let split = text.len().checked_sub(1).and_then(|at| text.split_at_checked(at));
    let (count, unit) = split.ok_or(DurationFault::Form)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(DurationFault::Form),
    };
    let count: i64 = count.parse().ok().filter(|count| *count >= 0).ok_or(DurationFault::Count)?;
    count.checked_mul(seconds * 1_000).ok_or(DurationFault::TooLong)
}

fn date_time(time_ms: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_operations::units::stamp;

    #[test]
    fn times_are_shown_in_their_largest_unit() {
        let shown = [0, 999, 1_000, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000, 260_000_000]
            .map(|age| ago(1_000_000_000, 1_000_000_000 + age));
        assert_eq!(shown, ["now", "now", "1 s ago", "59 s ago", "1 min ago", "59 min ago", "1 h ago", "1 d ago", "3 d ago"]);
        assert_eq!(ago(1_000_000_000, 999_940_000), "in 1 min");
        assert_eq!((clock(1_795_343_809_768), stamp(1_795_343_809_768)), ("10:36:49".to_owned(), "2026-11-22T10:36:49.768Z".to_owned()));
        assert_eq!((clock(i64::MAX), stamp(i64::MIN)), ("-".to_owned(), "-".to_owned()));
    }

    #[test]
    fn a_start_is_a_duration_or_a_time() {
        assert_eq!(read_since("2026-11-22T10:36:49.768Z"), Ok(1_795_343_809_768));
        for (text, age_ms) in [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("1d", 86_400_000), ("0s", 0)] {
            let (before, read, after) = (now_ms(), read_since(text).unwrap(), now_ms());
            assert!((before - age_ms..=after - age_ms).contains(&read), "{text}");
            let (before, read, after) = (now_ms(), read_until(text).unwrap(), now_ms());
            assert!((before + age_ms..=after + age_ms).contains(&read), "{text}");
        }
        assert_eq!(read_until("2999-01-01T00:00:00Z"), read_since("2999-01-01T00:00:00Z"));
        assert!(read_since("2026-11-22").unwrap_err().contains("write 2026-11-22T00:00:00Z"));
        for text in ["", "10", "10x", "m", "-3m", "1.5h", "3 m", "日", "9999999999999999d", "yesterday"] {
            assert!(read_since(text).unwrap_err().contains("10m") && read_until(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        let read = ["90s", "10m", "2h", "1d", "0s"].map(|text| read_duration(text).unwrap().as_secs());
        assert_eq!(read, [90, 600, 7_200, 86_400, 0]);
        for text in ["", "10", "-3m", "1.5h", "日", "9999999999999999d", "2026-01-01T00:00:00Z"] {
            assert!(read_duration(text).unwrap_err().contains("10m"), "{text}");
        }
    }
}
