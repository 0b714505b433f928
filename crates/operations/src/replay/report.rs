//! What a replay did.

use serde::Serialize;
use tollgate_recordings::replay::{Awaiting, Percentiles};

/// What a replay did.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The file or the topic that records came from.
    pub source: String,
    /// The topic that records went to.
    pub target: String,
    /// Records that were taken from the source, in all rounds.
    pub records: u64,
    /// Records that were handed over, copies included.
    pub sent: u64,
    /// Records that the brokers acknowledged.
    pub acknowledged: u64,
    /// Records that the target refused.
    pub refused: u64,
    /// Lines or offsets without a record that could be sent.
    pub faults: u64,
    /// Bytes of the values that were sent.
    pub bytes: u64,
    /// From when the first record was due until the last acknowledgement.
    pub seconds: f64,
    /// Acknowledged records in a second.
    pub acknowledged_per_second: f64,
    /// How long after they were due records were handed over, in milliseconds; nothing is due at `--rate max`.
    pub late_ms: Option<Percentiles>,
    /// Records with an earlier time than one before them, which were sent at once.
    pub backwards: u64,
    /// Records without a time, which were sent with the one before them.
    pub timeless: u64,
    /// Whether a signal ended the replay.
    pub is_interrupted: bool,
    /// The verdicts that were awaited.
    pub verdicts: Option<Verdicts>,
}

/// The verdicts that were awaited.
#[derive(Debug, Serialize)]
pub struct Verdicts {
    /// Events that have a verdict.
    pub answered: u64,
    /// Events that have no verdict.
    pub unanswered: u64,
    /// Verdicts beyond one for each time that an event was sent.
    pub duplicates: u64,
    /// From when events were due to their verdicts, in milliseconds.
    pub latency_ms: Percentiles,
    /// The verdicts by action and code, the most frequent first.
    pub by: Vec<Kind>,
    /// The digest of all verdicts.
    pub digest: String,
}

/// The verdicts of one action and code.
#[derive(Debug, Serialize)]
pub struct Kind {
    /// The action.
    pub action: String,
    /// The code.
    pub code: String,
    /// How many verdicts have them.
    pub count: u64,
}

impl Verdicts {
    /// Returns the results so far.
    pub(super) fn of(awaiting: &Awaiting) -> Self {
        let kind = |((action, code), count): (&(String, String), &u64)| Kind { action: action.clone(), code: code.clone(), count: *count };
        let mut by: Vec<_> = awaiting.verdicts.iter().map(kind).collect();
        by.sort_by_key(|kind| std::cmp::Reverse(kind.count));
        Self {
            answered: awaiting.answered,
            unanswered: awaiting.unanswered(),
            duplicates: awaiting.duplicates,
            latency_ms: awaiting.latency.percentiles(),
            by,
            digest: awaiting.distinct.digest().to_string(),
        }
    }
}
