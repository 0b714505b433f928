//! What is known while one record is folded.

use tollgate_core::decide::signal::TIME_OFF_MS_MAX;
use tollgate_core::event::record::{Offset, Partition, Record};

use super::outcome::Folded;

/// The record that is being folded, and what follows from it.
#[derive(Debug)]
pub(super) struct FoldContext {
    /// The partition of the signals topic.
    pub partition: Partition,
    /// The record's offset.
    pub offset: Offset,
    /// The record's own timestamp, in milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    /// The latest timestamp of any record so far, this one included.
    pub log_ms: Option<i64>,
    /// The partition's time before the record, in milliseconds since the epoch.
    pub now_ms: Option<i64>,
    /// What follows from it.
    pub folded: Folded,
}

impl FoldContext {
    /// Returns the time at which a signal counts: its own, or that of the log if it is too far ahead of it, see [`TIME_OFF_MS_MAX`].
    pub(super) fn counted_ms(&self, time_ms: i64) -> i64 {
        self.log_ms.filter(|log_ms| time_ms > log_ms.saturating_add(TIME_OFF_MS_MAX)).unwrap_or(time_ms)
    }

    pub(super) fn new(record: &Record<'_>) -> Self {
        let Record { partition, offset, timestamp_ms, .. } = *record;
        Self { partition, offset, timestamp_ms, log_ms: timestamp_ms, now_ms: None, folded: Folded::default() }
    }
}
