//! The index of a store: slots by the hash of their thread's id.
//!
//! Whoever sends events chooses thread ids. So the hash is keyed, with a key that each process draws for itself: nobody can choose ids that
//! fall on one place and have to be compared one by one. Nothing that leaves a store depends on the key: the index is asked and never
//! listed. Ids of usual length lie within the slot, so that looking at a thread needs no second memory access for its id.

use std::hash::{BuildHasher, Hasher, RandomState};

use hashbrown::HashTable;

use super::id::{Id, Key};
use super::order::SlotKey;

/// Slots by the hash of their thread's id. The id itself is in the slot alone.
#[derive(Debug, Default)]
pub(super) struct Index {
    slots: HashTable<SlotKey>,
    hasher: RandomState,
}

impl Index {
    /// Returns the slot of an id. `is_it` says whether a slot is the one of that id.
    pub(super) fn find(&self, id: &Key<'_>, is_it: impl FnMut(&SlotKey) -> bool) -> Option<SlotKey> {
        self.slots.find(self.hash(id), is_it).copied()
    }

    /// Returns an index that has room for so many slots. An index that grows hashes every id again.
    pub(super) fn with_capacity(slots: usize) -> Self {
        Self { slots: HashTable::with_capacity(slots), hasher: RandomState::new() }
    }

    /// Adds a slot, which must not be there yet. `id_of` returns the id of another slot.
    pub(super) fn insert<'s>(&mut self, id: &Key<'_>, key: SlotKey, id_of: impl Fn(&SlotKey) -> Option<&'s Id>) {
        let (place, hasher) = (self.hash(id), &self.hasher);
        self.slots.insert_unique(place, key, |key| id_of(key).map_or(0, |id| hash(hasher, &id.key())));
    }

    /// Removes the slot of an id.
    pub(super) fn remove(&mut self, id: &Id, key: SlotKey) {
        if let Ok(entry) = self.slots.find_entry(self.hash(&id.key()), |indexed| *indexed == key) {
            entry.remove();
        }
    }

    fn hash(&self, id: &Key<'_>) -> u64 {
        hash(&self.hasher, id)
    }
}

/// Returns the hash of an id. Nothing else is hashed with it, so its length need not be.
fn hash(hasher: &RandomState, id: &Key<'_>) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(id.bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_hash::FxBuildHasher;
    use std::cell::Cell;
    use std::collections::HashSet;

    /// Returns ids that differ and have the same hash under a function without a key. Its third step multiplies by what the first one left,
    /// less eight bytes of the id: where these are the same, the eight bytes behind them count for nothing.
    fn colliding(count: usize) -> Vec<String> {
        const SEED: u64 = 0x243f_6a88_85a3_08d3;
        const GUARD: u64 = 0xa409_3822_299f_31d0;
        let word = |text: &str| u64::from_le_bytes(text.as_bytes().try_into().unwrap());
        let left = |x: &str, y: &str| {
            let product = u128::from(SEED ^ word(x)) * u128::from(GUARD ^ word(y));
            (product as u64) ^ ((product >> 64) as u64)
        };
        let first = (0..).map(|n| format!("{n:08}"));
        let (y, left) = first.map(|y| (y.clone(), left("attacker", &y).to_le_bytes())).find(|(_, left)| left.is_ascii()).unwrap();
        let left = str::from_utf8(&left).unwrap().to_owned();
        (0..count).map(|n| format!("attacker{y}----------------{left}{n:08}----------------")).collect()
    }

    /// Returns how many ids are compared while all of them are added and then found.
    fn comparisons(ids: &[String]) -> usize {
        let (mut index, compared) = (Index::default(), Cell::new(0));
        let stored: Vec<_> = ids.iter().map(|id| Id::from(id.as_str())).collect();
        let is_it = |id: &Key<'_>, key: &SlotKey| {
            compared.set(compared.get() + 1);
            stored[key.at()].key() == *id
        };
        for (at, id) in ids.iter().map(|id| Key::of(id)).enumerate() {
            assert!(index.find(&id, |key| is_it(&id, key)).is_none());
            index.insert(&id, SlotKey::new(at), |key| stored.get(key.at()));
        }
        for (at, id) in ids.iter().map(|id| Key::of(id)).enumerate() {
            assert_eq!(index.find(&id, |key| is_it(&id, key)), Some(SlotKey::new(at)));
        }
        compared.get()
    }

    #[test]
    fn ids_that_collide_on_purpose_cost_no_more_than_others() {
        let ids = colliding(4_000);
        let hashes: HashSet<u64> = ids.iter().map(|id| FxBuildHasher.hash_one(id.as_bytes())).collect();
        assert_eq!((hashes.len(), ids.iter().collect::<HashSet<_>>().len()), (1, 4_000), "the ids do not collide where there is no key");
        let others: Vec<String> = (0..4_000).map(|n| format!("{n:064}")).collect();
        let (ours, theirs) = (comparisons(&ids), comparisons(&others));
        assert!(ours < 8_000 && theirs < 8_000, "{ours} comparisons instead of {theirs}");
    }

    #[test]
    fn what_was_removed_is_not_found() {
        let ids = ["a", "b"].map(Id::from);
        let mut index = Index::default();
        for (at, id) in ids.iter().enumerate() {
            index.insert(&id.key(), SlotKey::new(at), |key| ids.get(key.at()));
        }
        index.remove(&ids[0], SlotKey::new(0));
        let find = |id: &str| index.find(&Key::of(id), |key| ids[key.at()].is(id));
        assert_eq!((find("a"), find("b")), (None, Some(SlotKey::new(1))));
    }
}
