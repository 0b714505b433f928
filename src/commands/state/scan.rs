//! A scan of a state partition: a summary of every thread, and the first of them in some order.

use std::cmp::Ordering;

use serde::Serialize;

use tollgate_core::decide::thread::{StoredThread, ThreadStore};
use tollgate_core::engine::checkpoint::{Latest, StateError};
use tollgate_core::event::record::{Offset, Partition};

/// The summary of one thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    pub(super) thread_id: Box<str>,
    pub(super) partition: i32,
    /// The size of its record, key and value, in bytes.
    pub(super) bytes: usize,
    pub(super) applied: i64,
    pub(super) last_event_ms: Option<i64>,
    pub(super) touched_ms: Option<i64>,
    pub(super) calls: usize,
    pub(super) holds_a_stop: bool,
}

/// The scan of one partition. It is fed every record, from the beginning, and retains only a summary of each.
#[derive(Debug)]
pub(super) struct Scan {
    partition: Partition,
    latest: Latest<Line>,
}

/// The result of the scan of a partition.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) lines: Vec<Line>,
    /// The owner of the state, if it was ever written.
    pub(super) owner: Option<String>,
    /// Records that cannot be read, in order of offsets.
    pub(super) unreadable: Vec<(Offset, StateError)>,
}

impl Scan {
    pub(super) fn new(partition: Partition) -> Self {
        Self { partition, latest: Latest::default() }
    }

    /// Takes the record at an offset of the state topic.
    pub(super) fn take(&mut self, offset: Offset, key: Option<&[u8]>, value: Option<&[u8]>) {
        let Self { partition, latest } = self;
        latest.take::<ThreadStore>(offset, key, value, |id, bytes, stored| Line::new(id, *partition, bytes, &stored));
    }

    pub(super) fn finish(self) -> Scanned {
        let Self { mut latest, .. } = self;
        let unreadable = latest.take_unreadable();
        Scanned { lines: latest.entries.into_values().collect(), owner: latest.partition.map(|state| state.owner), unreadable }
    }
}

impl Line {
    fn new(thread_id: &str, partition: Partition, bytes: usize, stored: &StoredThread) -> Self {
        let StoredThread { thread, applied, touched_ms, .. } = stored;
        Self {
            thread_id: thread_id.into(),
            partition: partition.0,
            bytes,
            applied: applied.0,
            last_event_ms: thread.last_event_ms,
            touched_ms: *touched_ms,
            calls: thread.turn.memory().calls.len(),
            holds_a_stop: thread.holds_a_stop(),
        }
    }
}

/// Which threads come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Those with the largest records come first.
    Largest,
    /// Those that were touched longest ago come first, by the time of their own partition.
    Oldest,
}

impl Order {
    fn compare(self, one: &Line, other: &Line) -> Ordering {
        let first = match self {
            Self::Largest => other.bytes.cmp(&one.bytes),
            // Threads that were touched before any event time was known are older than all that have a time.
            Self::Oldest => one.touched_ms.cmp(&other.touched_ms),
        };
        first.then_with(|| (one.partition, one.applied, &one.thread_id).cmp(&(other.partition, other.applied, &other.thread_id)))
    }
}

/// The first lines, in an order, of all that are added.
#[derive(Debug)]
pub(super) struct Selection {
    order: Order,
    count: usize,
    lines: Vec<Line>,
}

impl Selection {
    pub(super) fn new(order: Order, count: usize) -> Self {
        Self { order, count, lines: Vec::new() }
    }

    pub(super) fn add(&mut self, lines: Vec<Line>) {
        self.lines.extend(lines);
        let Self { order, count, lines } = self;
        lines.sort_unstable_by(|one, other| order.compare(one, other));
        lines.truncate(*count);
        // The memory for the lines of a whole partition must not stay reserved.
        lines.shrink_to_fit();
    }

    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::decide::thread::Thread;
    use tollgate_core::engine::checkpoint::{PartitionState, StateRecord};

    fn record(id: &str, applied: i64, touched_ms: Option<i64>, turn_id: &str) -> StateRecord {
        let mut thread = Thread::default();
        thread.turn.id = Some(turn_id.into());
        StateRecord::entry::<ThreadStore>(
            id,
            Some(&StoredThread { thread, applied: Offset(applied), touched_ms, ..StoredThread::default() }),
        )
    }

    fn scan(partition: i32, records: &[StateRecord]) -> Scanned {
        let mut scan = Scan::new(Partition(partition));
        for (offset, record) in (0..).zip(records) {
            scan.take(Offset(offset), Some(record.key.as_bytes()), record.value.as_deref());
        }
        scan.finish()
    }

    fn ids(selection: &Selection) -> Vec<&str> {
        selection.lines().iter().map(|line| &*line.thread_id).collect()
    }

    #[test]
    fn the_last_record_of_a_thread_counts() {
        let state = PartitionState { owner: "g".to_owned(), next: Offset(9), ..PartitionState::default() };
        let records = [
            record("a", 1, Some(10), "turn-1"),
            record("b", 2, Some(10), "turn-1"),
            record("a", 3, Some(20), "a turn with a longer name"),
            StateRecord::entry::<ThreadStore>("b", None),
            StateRecord::partition(&state),
        ];
        let Scanned { lines, owner, unreadable } = scan(4, &records);
        let bytes = records[2].bytes();
        let line = serde_json::json!({"thread_id": "a", "partition": 4, "bytes": bytes, "applied": 3, "last_event_ms": null,
            "touched_ms": 20, "calls": 0, "holds_a_stop": false});
        assert_eq!(serde_json::to_value(lines).unwrap(), serde_json::json!([line]));
        assert_eq!((owner.as_deref(), unreadable.len()), (Some("g"), 0));
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_goes_on() {
        let bad = |key: &str| StateRecord { key: key.to_owned(), value: Some(vec![0xff]) };
        let records =
            [bad("thread/a"), bad("thread/b"), bad("other"), record("b", 1, None, "t"), record("c", 2, None, "t"), bad("thread/c")];
        let Scanned { lines, unreadable, .. } = scan(0, &records);
        assert_eq!(lines.iter().map(|line| &*line.thread_id).collect::<Vec<_>>(), ["b"]);
        assert_eq!(unreadable.iter().map(|(offset, _)| offset.0).collect::<Vec<_>>(), [0, 2, 5]);
    }

    #[test]
    fn the_largest_and_the_oldest_come_first() {
        let partitions = [
            scan(0, &[record("small", 1, Some(30), "t"), record("large", 2, Some(20), &"t".repeat(90))]),
            scan(1, &[record("timeless", 5, None, "t"), record("middle", 9, Some(10), &"t".repeat(50))]),
        ];
        for (order, expected) in [(Order::Largest, ["large", "middle"]), (Order::Oldest, ["timeless", "middle"])] {
            let mut selection = Selection::new(order, 2);
            partitions.iter().for_each(|scanned| selection.add(scanned.lines.clone()));
            assert_eq!(ids(&selection), expected);
        }
        let mut all = Selection::new(Order::Oldest, 100);
        partitions.iter().for_each(|scanned| all.add(scanned.lines.clone()));
        assert_eq!(ids(&all), ["timeless", "middle", "large", "small"]);
    }
}
