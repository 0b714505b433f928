//! The time of the host. It is shown, compared with timestamps and written to logs; nothing is decided by it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time of the host, in milliseconds since the epoch; 0 before it.
#[must_use]
pub fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
