//! Times as people read them.

use std::time::Duration;
use tollgate_worker::host_time::now_ms;

use time::OffsetDateTime;
use tollgate_json::time::parse_timestamp;

const DAY_MS: i64 = 86_400_000;

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

/// Reads a time in the past: a duration before now such as `90s`, `10m`, `2h`, `1d`, a time of day in UTC such as `03:12`, which is the last
/// one that has come, or RFC 3339. It returns milliseconds since 1970.
pub(crate) fn read_since(text: &str) -> Result<i64, String> {
    read_moment(text, Direction::Back, now_ms())
}

/// Reads a time to come: a duration from now such as `90s`, `10m`, `2h`, `1d`, a time of day in UTC, which is the next one, or RFC 3339. It
/// returns milliseconds since 1970.
pub(crate) fn read_until(text: &str) -> Result<i64, String> {
    read_moment(text, Direction::Ahead, now_ms())
}

/// On which side of now a time is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Back,
    Ahead,
}

/// Reads RFC 3339, or a time of day or a duration on one side of now.
fn read_moment(text: &str, direction: Direction, now_ms: i64) -> Result<i64, String> {
    const FIX: &str =
        "write a duration such as 90s, 10m, 2h or 1d, a time of day in UTC such as 03:12, or a time such as 2026-01-01T00:00:00Z";
    if let Some(time) = parse_timestamp(text) {
        return Ok(time);
    }
    if let Some(of_day_ms) = time_of_day(text) {
        let today_ms = now_ms - now_ms.rem_euclid(DAY_MS) + of_day_ms;
        return Ok(match direction {
            Direction::Back if today_ms > now_ms => today_ms - DAY_MS,
            Direction::Ahead if today_ms <= now_ms => today_ms + DAY_MS,
            _ => today_ms,
        });
    }
    let duration = duration_ms(text).map_err(|fault| match fault {
        DurationFault::Form if is_date(text) => format!("a date alone is no time; write {text}T00:00:00Z for its beginning in UTC"),
        DurationFault::Form => format!("it is neither a duration, nor a time of day, nor RFC 3339; {FIX}"),
        fault => format!("{fault}; {FIX}"),
    })?;
    let duration = if direction == Direction::Back { -duration } else { duration };
    Ok(now_ms.saturating_add(duration).max(0))
}

/// Reads a time of day such as `03:12` or `03:12:07`, in milliseconds since midnight.
fn time_of_day(text: &str) -> Option<i64> {
    let seconds = match text.len() {
        5 => ":00",
        8 => "",
        _ => return None,
    };
    parse_timestamp(&format!("1970-01-01T{text}{seconds}Z"))
}

/// Returns whether a text is a date without a time of day, such as `2026-01-31`.
fn is_date(text: &str) -> bool {
    parse_timestamp(&format!("{text}T00:00:00Z")).is_some()
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
    fn a_time_of_day_is_the_last_or_the_next_one() {
        let at = |text: &str| parse_timestamp(text).unwrap();
        let now_ms = at("2026-11-22T10:36:49.768Z");
        for (text, back, ahead) in [
            ("03:12", "2026-11-22T03:12:00Z", "2026-11-23T03:12:00Z"),
            ("10:36:49", "2026-11-22T10:36:49Z", "2026-11-23T10:36:49Z"),
            ("10:36:50", "2026-11-21T10:36:50Z", "2026-11-22T10:36:50Z"),
            ("23:59", "2026-11-21T23:59:00Z", "2026-11-22T23:59:00Z"),
        ] {
            assert_eq!(read_moment(text, Direction::Back, now_ms), Ok(at(back)), "{text}");
            assert_eq!(read_moment(text, Direction::Ahead, now_ms), Ok(at(ahead)), "{text}");
        }
        for text in ["24:00", "3:12", "03:60", "0312", "03:12Z", "03-12", "aa:bb", "03:12:61", "日:12"] {
            assert!(read_moment(text, Direction::Back, now_ms).unwrap_err().contains("such as 03:12"), "{text}");
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
