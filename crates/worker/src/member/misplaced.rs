//! Records on other partitions than their keys hash to: one warning a minute, with a sample.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tollgate_core::event::record::{Partition, Record, partition_of};

/// How often is warned at most.
const INTERVAL: Duration = Duration::from_secs(60);
/// How much of a key is shown, in bytes. A thread's id is no secret, but keys may be longer than any id.
const KEY_BYTES_MAX: usize = 64;

/// The misplaced records of a process, which its members share.
#[derive(Debug)]
pub struct MisplacedRecords {
    started: Instant,
    /// When the next warning is due, in milliseconds since the start.
    due_ms: AtomicU64,
    /// How many there were since the last warning.
    count: AtomicU64,
}

impl Default for MisplacedRecords {
    fn default() -> Self {
        Self { started: Instant::now(), due_ms: AtomicU64::new(0), count: AtomicU64::new(0) }
    }
}

/// What a warning says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sample {
    /// The beginning of the key, escaped.
    key: String,
    came_on: Partition,
    belongs_on: Partition,
    /// How many misplaced records there were since the last warning.
    count: u64,
}

impl MisplacedRecords {
    /// Takes a record of a topic with so many partitions. Returns whether it is misplaced, and warns of it if a warning is due. The key is
    /// shown only if it is a thread's id.
    pub fn take(&self, record: &Record<'_>, partition_count: u32, is_keyed_by_thread: bool) -> bool {
        let Some(key) = record.key else { return false };
        let belongs_on = partition_of(key, partition_count);
        if belongs_on == record.partition {
            return false;
        }
        if let Some(Sample { key, came_on, belongs_on, count }) =
            self.note(key, record.partition, belongs_on, is_keyed_by_thread, self.started.elapsed())
        {
            tracing::warn!(
                topic = record.topic, key, %came_on, %belongs_on, partition_count, count,
                "records are on other partitions than their keys hash to, so a thread may be split in two: give their producer \
                 partitioner=murmur2_random (librdkafka's default is another one), or restart the workers if the topic has got more partitions"
            );
        }
        true
    }

    fn note(&self, key: &[u8], came_on: Partition, belongs_on: Partition, is_shown: bool, now: Duration) -> Option<Sample> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let due_ms = self.due_ms.load(Ordering::Relaxed);
        let next_ms = now_ms.saturating_add(u64::try_from(INTERVAL.as_millis()).unwrap_or(u64::MAX));
        let is_due = now_ms >= due_ms && self.due_ms.compare_exchange(due_ms, next_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let key = || if is_shown { shown(key) } else { format!("[{} bytes]", key.len()) };
        is_due.then(|| Sample { key: key(), came_on, belongs_on, count: self.count.swap(0, Ordering::Relaxed) })
    }
}

/// Returns a key for people: its beginning, with everything escaped that is no printable ASCII.
fn shown(key: &[u8]) -> String {
    match key.get(..KEY_BYTES_MAX) {
        Some(beginning) if beginning.len() < key.len() => format!("{}…", beginning.escape_ascii()),
        _ => key.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_a_minute_has_a_sample_and_the_count() {
        let misplaced = MisplacedRecords::default();
        let note = |key: &[u8], seconds| misplaced.note(key, Partition(3), Partition(5), key != b"bob", Duration::from_secs(seconds));
        let first = note(b"t1", 0).unwrap();
        assert_eq!(first, Sample { key: "t1".to_owned(), came_on: Partition(3), belongs_on: Partition(5), count: 1 });
        assert_eq!((note(b"t2", 1), note(b"t3", 59)), (None, None));
        assert_eq!(note(b"t4", 60).map(|sample| (sample.key, sample.count)), Some(("t4".to_owned(), 3)));
        assert_eq!(note(b"t5", 119), None);
        assert_eq!(note(b"bob", 120).map(|sample| (sample.key, sample.count)), Some(("[3 bytes]".to_owned(), 2)));
    }

    #[test]
    fn keys_are_cut_and_escaped() {
        assert_eq!(shown(b"a\nb\x1b[31m\xff\"'"), "a\\nb\\x1b[31m\\xff\\\"\\'");
        assert_eq!(shown(&[b'x'; 64]), "x".repeat(64));
        assert_eq!(shown(&[b'x'; 65]), "x".repeat(64) + "…");
        assert!(shown(&[0; 100_000]).len() < 300);
    }
}
