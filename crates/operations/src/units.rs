//! Times, sizes and counts as people read them.

use tollgate_json::time::rfc_3339;

/// Returns the exact time as RFC 3339, in UTC; a dash if its year does not have four digits. `time_ms` is in milliseconds since the epoch.
/// Milliseconds are always written, so that times sort as texts.
#[must_use]
pub fn stamp(time_ms: i64) -> String {
    rfc_3339(time_ms).unwrap_or_else(|| "-".to_owned())
}

/// Returns a size in its largest unit: `1.2 KiB`.
pub fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", value / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", value / 1_048_576.0),
        _ => format!("{:.1} GiB", value / 1_073_741_824.0),
    }
}

/// Returns a count or a rate in about three digits: `0.25`, `7`, `850`, `12.3k`, `4.5M`.
pub fn count(count: f64) -> String {
    match count {
        1_000_000.0.. => format!("{:.1}M", count / 1e6),
        10_000.0.. => format!("{:.1}k", count / 1e3),
        10.0.. => format!("{count:.0}"),
        _ if count.fract() == 0.0 => format!("{count:.0}"),
        1.0.. => format!("{count:.1}"),
        _ => format!("{count:.2}"),
    }
}

/// Returns a duration in its unit: `850 µs`, `3.2 ms`, `1.5 s`, `4 min`.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        90.0.. => format!("{:.0} min", seconds / 60.0),
        1.0.. => format!("{seconds:.1} s"),
        0.001.. => format!("{:.1} ms", seconds * 1e3),
        _ if seconds <= 0.0 => "0".to_owned(),
        _ => format!("{:.0} µs", seconds * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_sort_as_texts() {
        let times = [0, 1, 10, 100, 999, 1_000, 1_760, 1_768].map(stamp);
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!((times[0].as_str(), stamp(i64::MAX)), ("1970-01-01T00:00:00.000Z", "-".to_owned()));
    }

    #[test]
    fn numbers_have_their_units() {
        assert_eq!([0, 1_023, 1_024, 1_500_000, 3_000_000_000].map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.4 MiB", "2.8 GiB"]);
        assert_eq!(
            [0.0, 0.25, 3.0, 3.25, 850.4, 9_999.0, 12_345.0, 4.5e6].map(count),
            ["0", "0.25", "3", "3.2", "850", "9999", "12.3k", "4.5M"]
        );
        assert_eq!([0.0, 0.000_85, 0.003_2, 1.5, 240.0].map(seconds), ["0", "850 µs", "3.2 ms", "1.5 s", "4 min"]);
    }
}
