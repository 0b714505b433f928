//! The records of a state partition, in order → the state that they leave.

use crate::record::Offset;
use crate::thread::{StoreLimits, StoredThread, ThreadStore};

use super::{Latest, PartitionState, StateError};

/// Restoring: fed every record of a state partition, from its beginning.
#[derive(Debug, Default)]
pub struct Restore(Latest<StoredThread>);

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
        self.0.take(offset, key, value, |_, _, stored| stored);
    }

    /// How many threads there are so far.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.0.threads.len()
    }

    /// The state, if there is any; `owner` is whose it must be.
    ///
    /// # Errors
    /// [`StateError`], with the offset of the record in the state topic where it is about one.
    pub fn finish(self, owner: &str, limits: StoreLimits) -> Result<Option<Restored>, (Option<Offset>, StateError)> {
        let Self(mut latest) = self;
        if let Some((offset, error)) = latest.take_unreadable().into_iter().next() {
            return Err((Some(offset), error));
        }
        let Latest { threads, partition, .. } = latest;
        let Some(PartitionState { owner: found, next, clock }) = partition else {
            return match threads.len() {
                0 => Ok(None),
                threads => Err((None, StateError::NoPartition { threads })),
            };
        };
        if found != owner {
            return Err((None, StateError::Foreign { found, wanted: owner.to_owned() }));
        }
        if let Some(applied) = threads.values().map(|stored| stored.applied).max().filter(|applied| *applied >= next) {
            return Err((None, StateError::Ahead { applied, next }));
        }
        Ok(Some(Restored { next, threads: ThreadStore::restored(limits, clock, threads) }))
    }
}
