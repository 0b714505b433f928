//! Times as RFC 3339.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Returns the exact time as RFC 3339, in UTC; `None` if its year does not have four digits. `time_ms` is in milliseconds since the epoch.
#[must_use]
pub fn stamp(time_ms: i64) -> Option<String> {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000).ok()?;
    time.format(&Rfc3339).ok()
}
