//! Restoring a partition: the newest record of every key, gathered from the records of its state partition in order, gives its state.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::event::record::Offset;

use super::{KeyedState, PartitionState, RekeyMark, StateError, StateKey, StateOwner, read_partition, read_rekey};

/// A restore that is under way. It is fed every record of a state partition, from its beginning.
#[derive(Debug)]
pub struct Restore<K: KeyedState>(Latest<K::Entry>);

/// The state of a partition as its records leave it.
#[derive(Debug)]
pub struct Restored<K> {
    /// The first event that is not in the state.
    pub next: Offset,
    /// The stage's state.
    pub state: K,
}

impl<K: KeyedState> Default for Restore<K> {
    fn default() -> Self {
        Self(Latest::default())
    }
}

impl<K: KeyedState> Restore<K> {
    /// Takes the record at an offset of the state topic.
    pub fn take(&mut self, offset: Offset, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.0.take::<K>(offset, key, value, |_, _, entry| entry);
    }

    /// Returns how many entries were read so far.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.0.entries.len()
    }

    /// Returns the state, or `None` if there are no records. `owner` is the owner that the state must name, with the number of partitions
    /// that it must be keyed for. State that does not say for how many it is keyed is taken.
    ///
    /// # Errors
    /// [`StateError`], with the offset of the record in the state topic if it is about a record.
    pub fn finish<'o>(
        self,
        owner: impl Into<StateOwner<'o>>,
        limits: K::Limits,
    ) -> Result<Option<Restored<K>>, (Option<Offset>, StateError)> {
        let Self(mut latest) = self;
        let owner: StateOwner<'_> = owner.into();
        if let Some((offset, error)) = latest.take_unreadable().into_iter().next() {
            return Err((Some(offset), error));
        }
        let Latest { entries, partition, mark, .. } = latest;
        if let Some(RekeyMark { from, to, .. }) = mark {
            return Err((None, StateError::Rekeying { from, to }));
        }
        let Some(PartitionState { owner: found, next, clock, partitions }) = partition else {
            return match entries.len() {
                0 => Ok(None),
                entries => Err((None, StateError::NoPartition { entries, kind: K::KIND })),
            };
        };
        if found != owner.name {
            return Err((None, StateError::Foreign { found, wanted: owner.name.to_owned() }));
        }
        if let (Some(found), Some(wanted)) = (partitions, owner.partitions)
            && found != wanted
        {
            return Err((None, StateError::OtherPartitions { found, wanted }));
        }
        if let Some(applied) = entries.values().map(K::applied).max().filter(|applied| *applied >= next) {
            return Err((None, StateError::Ahead { kind: K::KIND, applied, next }));
        }
        Ok(Some(Restored { next, state: K::restored(limits, clock, entries) }))
    }
}

/// What the newest record of every key of a state partition says. It is fed all records from the beginning, and the reader chooses what it
/// keeps of each entry.
#[derive(Debug)]
pub struct Latest<T> {
    /// What the reader keeps of each entry that exists, by key, in about the order in which the keys came. Keys are not ours, so their hash
    /// is keyed.
    pub entries: IndexMap<Box<str>, T>,
    /// The partition's own record, if there is one.
    pub partition: Option<PartitionState>,
    /// The note that the entries are being moved, if there is one.
    pub mark: Option<RekeyMark>,
    /// Records that cannot be read, by key, with their offsets. A record that is written over is removed from here.
    unreadable: BTreeMap<Vec<u8>, (Offset, StateError)>,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self { entries: IndexMap::new(), partition: None, mark: None, unreadable: BTreeMap::new() }
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
                let entry = K::decode(value).inspect_err(|_| _ = self.entries.swap_remove(id))?;
                self.entries.insert(id.into(), map(id, bytes, entry));
            }
            (Ok(StateKey::Entry(id)), None) => _ = self.entries.swap_remove(id),
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
