//! The records of a state partition, in order → the state that they leave.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::decode::Offset;
use crate::thread::{StoreLimits, StoredThread, ThreadStore};

use super::{PartitionState, StateError, StateKey, read_partition, read_thread};

/// Restoring: fed every record of a state partition, from its beginning.
#[derive(Debug, Default)]
pub struct Restore {
    threads: FxHashMap<Box<str>, StoredThread>,
    partition: Option<PartitionState>,
    /// Records that cannot be read, by key, with their offsets. One that is written over is of no account.
    unreadable: BTreeMap<Vec<u8>, (Offset, StateError)>,
}

/// The state of a partition.
#[derive(Debug)]
pub struct Restored {
    /// The first event that it does not know.
    pub next: Offset,
    /// The threads.
    pub threads: ThreadStore,
}

impl Restore {
    /// Takes a record, which stands at an offset of the state topic.
    pub fn take(&mut self, offset: Offset, key: Option<&[u8]>, value: Option<&[u8]>) {
        let taken = self.try_take(key, value);
        let key = key.unwrap_or_default();
        match taken {
            Ok(()) if self.unreadable.is_empty() => {}
            Ok(()) => _ = self.unreadable.remove(key),
            Err(error) => _ = self.unreadable.insert(key.to_vec(), (offset, error)),
        }
    }

    fn try_take(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<(), StateError> {
        match (StateKey::read(key), value) {
            (Ok(StateKey::Thread(id)), Some(value)) => _ = self.threads.insert(id.into(), read_thread(value)?),
            (Ok(StateKey::Thread(id)), None) => _ = self.threads.remove(id),
            (Ok(StateKey::Partition), Some(value)) => self.partition = Some(read_partition(value)?),
            (Ok(StateKey::Partition), None) => self.partition = None,
            // Whatever it was, it is gone.
            (Err(_), None) => {}
            (Err(error), Some(_)) => return Err(error),
        }
        Ok(())
    }

    /// How many threads there are so far.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The state, if there is any; `owner` is whose it must be.
    ///
    /// # Errors
    /// [`StateError`], with the offset of the record in the state topic where it is about one.
    pub fn finish(self, owner: &str, limits: StoreLimits) -> Result<Option<Restored>, (Option<Offset>, StateError)> {
        if let Some((_, (offset, error))) = self.unreadable.into_iter().min_by_key(|(_, (offset, _))| *offset) {
            return Err((Some(offset), error));
        }
        let Some(PartitionState { owner: found, next, clock }) = self.partition else {
            return match self.threads.len() {
                0 => Ok(None),
                threads => Err((None, StateError::NoPartition { threads })),
            };
        };
        if found != owner {
            return Err((None, StateError::Foreign { found, wanted: owner.to_owned() }));
        }
        if let Some(applied) = self.threads.values().map(|stored| stored.applied).max().filter(|applied| *applied >= next) {
            return Err((None, StateError::Ahead { applied, next }));
        }
        Ok(Some(Restored { next, threads: ThreadStore::restored(limits, clock, self.threads) }))
    }
}
