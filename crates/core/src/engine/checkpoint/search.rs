//! Finding committed checkpoints among all records of a state partition, those of aborted transactions included.
//!
//! The offset of a checkpoint is committed in the transaction that writes its records, so whoever finds the offset committed knows that the
//! records are valid. Brokers can fail to mark them so: a coordinator that ends a transaction while a partition has no leader takes the
//! partition for deleted, and forgets it (`TransactionMarkerChannelManager` of Kafka 4). Readers of what is committed then do not see the
//! records, though they are in the log.
//!
//! More than one checkpoint in a row may be lost. So all of them count that reach beyond what is seen, up to the committed offset. An attempt
//! among them that was refused does no harm: the checkpoint after it has the same keys, with later entries.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use crate::event::record::Offset;

use super::{FILLER_KEY, KeyedState, PARTITION_KEY, StateKey, StateRecord, read_partition};

/// A search for the checkpoints that lead to a committed offset. It is fed every record of a state partition in order, whatever became of its
/// transaction.
#[derive(Debug)]
pub struct CheckpointSearch<K> {
    /// What is seen without the search: it is as of this offset.
    seen: Option<Offset>,
    committed: Offset,
    /// The records since the last checkpoint or the end of a transaction.
    open: Vec<StateRecord>,
    last: Option<Offset>,
    /// The last record of each key in the checkpoints that were found.
    found: BTreeMap<String, Option<Vec<u8>>>,
    is_complete: bool,
    kind: PhantomData<K>,
}

impl<K: KeyedState> CheckpointSearch<K> {
    /// Returns a search for what is missing between state as of `seen`, if there is any, and an offset that was committed with state.
    #[must_use]
    pub fn new(seen: Option<Offset>, committed: Offset) -> Self {
        Self { seen, committed, open: Vec::new(), last: None, found: BTreeMap::new(), is_complete: false, kind: PhantomData }
    }

    /// Takes the record at an offset of the state topic.
    pub fn take(&mut self, offset: Offset, key: Option<&[u8]>, value: Option<&[u8]>) {
        // The end of a transaction takes an offset too, so a checkpoint has no gaps and two transactions have one between them.
        if self.last.replace(offset).is_some_and(|last| last.0 + 1 != offset.0) {
            self.open.clear();
        }
        // A filler is a transaction of its own.
        let Some(key) = key.and_then(|key| std::str::from_utf8(key).ok()).filter(|key| *key != FILLER_KEY) else {
            return self.open.clear();
        };
        self.open.push(StateRecord { key: key.to_owned(), value: value.map(<[u8]>::to_vec) });
        match StateKey::read(Some(key.as_bytes()), K::KIND) {
            // A partition's own record is the last of a checkpoint.
            Ok(StateKey::Partition) => {
                let records = std::mem::take(&mut self.open);
                if let Some(next) = next_of::<K>(&records).filter(|next| self.seen < Some(*next) && *next <= self.committed) {
                    self.found.extend(records.into_iter().map(|StateRecord { key, value }| (key, value)));
                    self.is_complete |= next == self.committed;
                }
            }
            // What came before a move of the entries to other partitions is not the state any more.
            Ok(StateKey::Rekey) => {
                self.open.clear();
                self.found.clear();
                self.is_complete = false;
            }
            Ok(StateKey::Entry(_)) | Err(_) => {}
        }
    }

    /// Returns the records that are missing, the partition's own last; `None` if the checkpoint that reaches the committed offset is not
    /// there.
    #[must_use]
    pub fn finish(mut self) -> Option<Vec<StateRecord>> {
        let own = self.found.remove(PARTITION_KEY).filter(|_| self.is_complete)?;
        let entries = self.found.into_iter().map(|(key, value)| StateRecord { key, value });
        Some(entries.chain([StateRecord { key: PARTITION_KEY.to_owned(), value: own }]).collect())
    }
}

/// Returns the offset that these records reach if they are one checkpoint and nothing else. Where the end of an earlier attempt is missing,
/// its records lie before those of the checkpoint; an entry that includes a later event shows it.
fn next_of<K: KeyedState>(records: &[StateRecord]) -> Option<Offset> {
    let (own, entries) = records.split_last()?;
    let next = read_partition(own.value.as_deref()?).ok()?.next;
    let are_all_before = entries.iter().all(|StateRecord { key, value }| match (StateKey::read(Some(key.as_bytes()), K::KIND), value) {
        (Ok(StateKey::Entry(_)), Some(value)) => K::decode(value).is_ok_and(|entry| K::applied(&entry) < next),
        (Ok(StateKey::Entry(_)), None) => true,
        (Ok(StateKey::Partition | StateKey::Rekey) | Err(_), _) => false,
    });
    are_all_before.then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::thread::{StoredThread, ThreadStore};
    use crate::engine::checkpoint::PartitionState;

    fn own(next: i64) -> StateRecord {
        StateRecord::partition(&PartitionState { next: Offset(next), ..PartitionState::default() })
    }

    fn thread(id: &str, applied: i64) -> StateRecord {
        StateRecord::entry::<ThreadStore>(id, Some(&StoredThread { applied: Offset(applied), ..StoredThread::default() }))
    }

    fn gone(id: &str) -> StateRecord {
        StateRecord::entry::<ThreadStore>(id, None)
    }

    /// Searches in records that lie side by side, with state as of `seen`; `None` is the end of a transaction.
    fn find(seen: i64, committed: i64, log: &[Option<StateRecord>]) -> Option<Vec<StateRecord>> {
        let mut search = CheckpointSearch::<ThreadStore>::new(Some(Offset(seen)), Offset(committed));
        for (offset, record) in (0..).map(Offset).zip(log) {
            if let Some(StateRecord { key, value }) = record {
                search.take(offset, Some(key.as_bytes()), value.as_deref());
            }
        }
        search.finish()
    }

    #[test]
    fn a_checkpoint_is_what_lies_before_its_own_record_in_one_transaction() {
        let log = [Some(thread("a", 1)), Some(own(2)), None, Some(gone("a")), Some(thread("b", 3)), Some(own(4)), None, Some(own(6))];
        assert_eq!(find(2, 4, &log), Some(vec![gone("a"), thread("b", 3), own(4)]));
        assert_eq!(find(4, 6, &log), Some(vec![own(6)]));
        assert_eq!(find(2, 5, &log), None, "the one that reaches the committed offset is not there");
    }

    #[test]
    fn what_was_cut_off_is_no_part_of_the_next_one() {
        let log = [Some(thread("a", 8)), None, Some(thread("b", 3)), Some(own(4))];
        assert_eq!(find(2, 4, &log), Some(vec![thread("b", 3), own(4)]));
        // Without an end, it may have removed what the checkpoint has not.
        let log = [Some(thread("a", 8)), Some(gone("c")), Some(thread("b", 3)), Some(own(4))];
        assert_eq!(find(2, 4, &log), None);
    }

    #[test]
    fn the_last_of_several_attempts_counts_and_foreign_records_are_none() {
        let log = [Some(thread("a", 1)), Some(own(4)), None, Some(thread("a", 2)), Some(own(4))];
        assert_eq!(find(0, 4, &log), Some(vec![thread("a", 2), own(4)]));
        assert_eq!(find(0, 4, &[Some(StateRecord::filler()), Some(own(4))]), Some(vec![own(4)]));
        let foreign = StateRecord { key: "other".to_owned(), value: Some(vec![1]) };
        assert_eq!(find(0, 4, &[Some(foreign), Some(own(4))]), None);
    }

    #[test]
    fn what_lies_before_a_move_to_other_partitions_is_over() {
        let log = [Some(thread("a", 1)), Some(own(4)), None, Some(StateRecord::rekey(None)), None];
        assert_eq!(find(0, 4, &log), None);
    }
}
