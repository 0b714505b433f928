//! Counts of what the bounded state of a partition has let go of.

/// What the state of a partition has let go of to keep within its limits, since it was made. It is counted for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departures {
    /// Entries that were dropped because they were idle for too long.
    pub expired: u64,
    /// Entries that were dropped to make room for others.
    pub evicted: u64,
    /// Entries that were not taken in, because nothing could make room for them.
    pub refused: u64,
}
