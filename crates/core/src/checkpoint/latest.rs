//! The records of a state partition, in order → what they say last of every key.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::record::Offset;

use super::{KeyedState, PartitionState, StateError, StateKey, read_partition};

/// What the records of a state partition, fed from its beginning, say last of every key: of each entry, what its reader makes of it.
#[derive(Debug)]
pub struct Latest<T> {
    /// What is kept of the entries that are there.
    pub entries: FxHashMap<Box<str>, T>,
    /// What the partition says of itself.
    pub partition: Option<PartitionState>,
    /// Records that cannot be read, by key, with their offsets. One that is written over is of no account.
    unreadable: BTreeMap<Vec<u8>, (Offset, StateError)>,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self { entries: FxHashMap::default(), partition: None, unreadable: BTreeMap::new() }
    }
}

impl<T> Latest<T> {
    /// Takes a record, which stands at an offset of the state topic. `keep` is told an entry's key, the bytes of its record and the entry.
    pub fn take<K: KeyedState>(
        &mut self,
        offset: Offset,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        keep: impl FnOnce(&str, usize, K::Entry) -> T,
    ) {
        let taken = self.try_take::<K>(key, value, keep);
        let key = key.unwrap_or_default();
        match taken {
            Ok(()) if self.unreadable.is_empty() => {}
            Ok(()) => _ = self.unreadable.remove(key),
            Err(error) => _ = self.unreadable.insert(key.to_vec(), (offset, error)),
        }
    }

    fn try_take<K: KeyedState>(
        &mut self,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        keep: impl FnOnce(&str, usize, K::Entry) -> T,
    ) -> Result<(), StateError> {
        match (StateKey::read(key, K::KIND), value) {
            (Ok(StateKey::Entry(id)), Some(value)) => {
                let bytes = key.map_or(0, <[u8]>::len) + value.len();
                // What an earlier record says is no longer so, whether this one can be read or not.
                let entry = K::decode(value).inspect_err(|_| _ = self.entries.remove(id))?;
                self.entries.insert(id.into(), keep(id, bytes, entry));
            }
            (Ok(StateKey::Entry(id)), None) => _ = self.entries.remove(id),
            (Ok(StateKey::Partition), value) => self.partition = value.map(read_partition).transpose()?,
            // Whatever it was, it is gone.
            (Err(_), None) => {}
            (Err(error), Some(_)) => return Err(error),
        }
        Ok(())
    }

    /// Returns the records that cannot be read, in order.
    pub fn take_unreadable(&mut self) -> Vec<(Offset, StateError)> {
        let mut unreadable: Vec<_> = std::mem::take(&mut self.unreadable).into_values().collect();
        unreadable.sort_by_key(|(offset, _)| *offset);
        unreadable
    }
}
