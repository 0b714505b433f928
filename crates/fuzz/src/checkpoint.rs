//! Fuzzes the reader of checkpoints: values of any bytes, and records of a state partition in any order.

use std::collections::BTreeMap;

use tollgate_core::decide::thread::{StoreLimits, StoredThread, ThreadLimits, ThreadStore};
use tollgate_core::decide::thread::{ThreadView, read_thread};
use tollgate_core::engine::checkpoint::{KeyedState, PartitionState, Restore, StateKey, StateRecord, read_partition};
use tollgate_core::event::record::{Offset, Partition};

/// The separator of an input's records. The text before the first `=` of a record is its key; a record without a `=` is a tombstone.
pub const SEPARATOR: &[u8] = b"\n--\n";

/// The owner of the state: the one in the goldens of the state format, with which the corpus began.
pub const OWNER: &str = "tollgate-golden";

/// The limits of the restored store; no input has as many threads.
const LIMITS: StoreLimits = StoreLimits {
    threads_max: 1_000_000,
    tenant_stops_max: 1_000_000,
    thread: ThreadLimits { idle_ms_max: i64::MAX, turn_idle_ms_max: i64::MAX, bytes_max: 1_000_000 },
};

/// A record of the state topic: its offset there, key and value.
type Record<'i> = (Offset, &'i [u8], Option<&'i [u8]>);

/// Checks that every value is refused or read and written again as it was, and that compaction of the records changes nothing.
pub fn check(input: &[u8]) {
    let records: Vec<Record<'_>> = (0..).map(Offset).zip(split(input)).map(|(offset, (key, value))| (offset, key, value)).collect();
    records.iter().filter_map(|(_, key, value)| Some((*key, (*value)?))).for_each(|(key, value)| check_value(key, value));
    let restored = restore(&records);
    assert_eq!(restore(&records), restored, "the same records leave another state");
    // Compaction keeps the last record of a key, where it stood.
    let last: BTreeMap<&[u8], Offset> = records.iter().map(|(offset, key, _)| (*key, *offset)).collect();
    let compacted: Vec<_> = records.iter().filter(|(offset, key, _)| last.get(key) == Some(offset)).copied().collect();
    assert_eq!(restore(&compacted), restored, "compacted records leave another state");
}

fn split(input: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    let mut rest = Some(input);
    std::iter::from_fn(move || {
        let text = rest?;
        let at = text.windows(SEPARATOR.len()).position(|bytes| bytes == SEPARATOR);
        rest = at.and_then(|at| text.get(at + SEPARATOR.len()..));
        let record = at.and_then(|at| text.get(..at)).unwrap_or(text);
        Some(match record.iter().position(|byte| *byte == b'=') {
            Some(at) => (record.get(..at).unwrap_or_default(), record.get(at + 1..)),
            None => (record, None),
        })
    })
}

/// Checks that a value is refused, or means the same when it is written again.
fn check_value(key: &[u8], value: &[u8]) {
    let thread = read_thread(value);
    assert_eq!(read_thread(value), thread, "a value is read as something else the second time");
    let partition = read_partition(value);
    if let Ok(thread) = &thread {
        let written = StateRecord::entry::<ThreadStore>("t", Some(thread)).value.unwrap_or_default();
        assert_eq!(read_thread(&written).as_ref(), Ok(thread), "a thread is another when it is written and read again");
        let state = PartitionState { owner: OWNER.to_owned(), next: Offset(0), ..PartitionState::default() };
        let view = ThreadView::new("t", Partition(0), value.len(), thread, &state);
        serde_json::to_string(&view).unwrap_or_else(|error| panic!("a thread cannot be shown: {error}"));
    }
    if let Ok(partition) = &partition {
        let written = StateRecord::partition(partition).value.unwrap_or_default();
        assert_eq!(read_partition(&written).as_ref(), Ok(partition), "a partition is another when it is written and read again");
    }
    // A key is read or refused, whatever it is the key of.
    if let Ok(StateKey::Entry(id)) = StateKey::read(Some(key), ThreadStore::KIND) {
        assert_eq!(StateRecord::entry::<ThreadStore>(id, None).key.as_bytes(), key, "a thread's key is another when it is written again");
    }
}

/// The state that records leave, or why there is none.
type Left = Result<Option<(Offset, BTreeMap<String, StoredThread>)>, String>;

fn restore(records: &[Record<'_>]) -> Left {
    let mut restore = Restore::<ThreadStore>::default();
    for (offset, key, value) in records {
        restore.take(*offset, Some(key), *value);
    }
    match restore.finish(OWNER, LIMITS) {
        Ok(restored) => Ok(restored.map(|restored| {
            let threads = restored.state.iter().map(|(id, stored)| (id.to_string(), stored.clone())).collect();
            (restored.next, threads)
        })),
        Err((offset, error)) => Err(format!("{offset:?}: {error}")),
    }
}
