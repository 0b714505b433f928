//! Seconds and minutes at which something is due.

/// The second that nothing is looked at any more: a time as far ahead is forged, and what would wait for it waits for nothing.
pub(super) const NEVER_S: u32 = u32::MAX;

/// Returns the first whole second since the epoch that is not before a time, or [`NEVER_S`].
pub(super) fn second_of(time_ms: i64) -> u32 {
    let second = time_ms.div_euclid(1_000).saturating_add(i64::from(time_ms.rem_euclid(1_000) > 0));
    u32::try_from(second.max(1)).unwrap_or(NEVER_S)
}

/// Returns a second as milliseconds since the epoch.
pub(super) fn time_of(second: u32) -> i64 {
    i64::from(second) * 1_000
}

/// Returns the earlier of two times, either of which may be missing.
pub(super) fn earlier(one_ms: Option<i64>, other_ms: Option<i64>) -> Option<i64> {
    match (one_ms, other_ms) {
        (Some(one_ms), Some(other_ms)) => Some(one_ms.min(other_ms)),
        (one_ms, other_ms) => one_ms.or(other_ms),
    }
}

/// Returns the first whole minute that is not before a time. What is merely dropped is dropped by the minute, so that there are fewer
/// entries.
pub(super) fn whole_minute(time_ms: i64) -> i64 {
    let minute = time_ms.div_euclid(60_000).saturating_add(i64::from(time_ms.rem_euclid(60_000) > 0));
    minute.saturating_mul(60_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_never_looked_at_too_early() {
        assert_eq!([1_000, 1_001, 2_000, -5, i64::MAX].map(second_of), [1, 2, 2, 1, u32::MAX]);
        assert_eq!([60_000, 60_001, -1].map(whole_minute), [60_000, 120_000, 0]);
        assert_eq!(time_of(second_of(1_500)), 2_000);
        assert_eq!(
            [earlier(Some(2), Some(1)), earlier(None, Some(3)), earlier(Some(4), None), earlier(None, None)],
            [Some(1), Some(3), Some(4), None]
        );
    }
}
