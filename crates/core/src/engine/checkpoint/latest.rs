//! The newest record of every key of a state partition, gathered from its records in order.

use std::collections::{BTreeMap, HashMap};

use crate::event::record::Offset;

use super::{KeyedState, PartitionState, RekeyMark, StateError, StateKey, read_partition, read_rekey};

/// What the newest record of every key of a state partition says. It is fed all records from the beginning, and the reader chooses what it
/// keeps of each entry.
#[derive(Debug)]
pub struct Latest<T> {
    /// What the reader keeps of each entry that exists, by key. Keys are not ours, so their hash is keyed.
    pub entries: HashMap<Box<str>, T>,
    /// The partition's own record, if there is one.
    pub partition: Option<PartitionState>,
    /// The note that the entries are being moved, if there is one.
    pub mark: Option<RekeyMark>,
    /// Records that cannot be read, by key, with their offsets. A record that is written over is removed from here.
    unreadable: BTreeMap<Vec<u8>, (Offset, StateError)>,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), partition: None, mark: None, unreadable: BTreeMap::new() }
    }
}

impl<T> Latest<T> {
    /// Takes the record at an offset of the state topic. `map` gets an entry's key, the bytes of its record and the entry, and returns what
    /// is kept of it.
    pub fn take<K: KeyedState>(
        &mut self,
        offset: Offset,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        map: impl FnOnce(&str, usize, K::Entry) -> T,
    ) {
        let taken = self.try_take::<K>(key, value, map);
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
        map: impl FnOnce(&str, usize, K::Entry) -> T,
    ) -> Result<(), StateError> {
        match (StateKey::read(key, K::KIND), value) {
            (Ok(StateKey::Entry(id)), Some(value)) => {
                let bytes = key.map_or(0, <[u8]>::len) + value.len();
                // An earlier record of the key no longer holds, whether this one can be read or not.
                let entry = K::decode(value).inspect_err(|_| _ = self.entries.remove(id))?;
                self.entries.insert(id.into(), map(id, bytes, entry));
            }
            (Ok(StateKey::Entry(id)), None) => _ = self.entries.remove(id),
            (Ok(StateKey::Partition), value) => self.partition = value.map(read_partition).transpose()?,
            (Ok(StateKey::Rekey), value) => self.mark = value.map(read_rekey).transpose()?,
            // A tombstone removes the record, so its key does not matter.
            (Err(_), None) => {}
            (Err(error), Some(_)) => return Err(error),
        }
        Ok(())
    }

    /// Returns the records that cannot be read, in order of their offsets.
    pub fn take_unreadable(&mut self) -> Vec<(Offset, StateError)> {
        let mut unreadable: Vec<_> = std::mem::take(&mut self.unreadable).into_values().collect();
        unreadable.sort_by_key(|(offset, _)| *offset);
        unreadable
    }
}
