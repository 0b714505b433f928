//! The index of a store: slots by the hash of their thread's id.
//!
//! Whoever sends events chooses thread ids. So the hash is keyed, with a key that each process draws for itself: nobody can choose ids that
//! fall on one place and have to be compared one by one. Nothing that leaves a store depends on the key: the index is asked and never
//! listed. Ids of usual length lie within the slot, so that looking at a thread needs no second memory access for its id.

use std::hash::{BuildHasher, Hasher, RandomState};

use hashbrown::HashTable;

use super::order::SlotKey;

/// Slots by the hash of their thread's id. The id itself is in the slot alone.
#[derive(Debug, Default)]
pub(super) struct Index {
    slots: HashTable<SlotKey>,
    hasher: RandomState,
}

impl Index {
    /// Returns the slot of an id. `is_it` says whether a slot is the one of that id.
    pub(super) fn find(&self, id: &str, is_it: impl FnMut(&SlotKey) -> bool) -> Option<SlotKey> {
        self.slots.find(self.hash(id.as_bytes()), is_it).copied()
    }

    /// Adds a slot, which must not be there yet. `id_of` returns the id of another slot.
    pub(super) fn insert<'s>(&mut self, id: &str, key: SlotKey, id_of: impl Fn(&SlotKey) -> Option<&'s ThreadId>) {
        let (place, hasher) = (self.hash(id.as_bytes()), &self.hasher);
        self.slots.insert_unique(place, key, |key| id_of(key).map_or(0, |id| hash(hasher, id.as_bytes())));
    }

    /// Removes the slot of an id.
    pub(super) fn remove(&mut self, id: &ThreadId, key: SlotKey) {
        if let Ok(entry) = self.slots.find_entry(self.hash(id.as_bytes()), |indexed| *indexed == key) {
            entry.remove();
        }
    }

    fn hash(&self, id: &[u8]) -> u64 {
        hash(&self.hasher, id)
    }
}

/// Returns the hash of an id. Nothing else is hashed with it, so its length need not be.
fn hash(hasher: &RandomState, id: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(id);
    hasher.finish()
}

/// The length of the longest id that lies within the slot, in bytes: a UUID and some more.
const INLINE_BYTES: usize = 46;

/// A thread's id.
#[derive(Debug, Clone)]
pub(super) struct ThreadId(Spelling);

#[derive(Debug, Clone)]
enum Spelling {
    Inline { length: u8, bytes: [u8; INLINE_BYTES] },
    Boxed(Box<str>),
}

impl ThreadId {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Spelling::Inline { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Spelling::Boxed(text) => text.as_bytes(),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        match &self.0 {
            // The bytes were copied from a `str`, so they are UTF-8.
            Spelling::Inline { .. } => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Spelling::Boxed(text) => text,
        }
    }

    /// Returns how many bytes it takes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Spelling::Inline { .. } => 0,
            Spelling::Boxed(text) => text.len(),
        }
    }
}

impl From<&str> for ThreadId {
    fn from(text: &str) -> Self {
        let mut inline = [0; INLINE_BYTES];
        match (inline.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(text.as_bytes());
                Self(Spelling::Inline { length, bytes: inline })
            }
            _ => Self(Spelling::Boxed(text.into())),
        }
    }
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
        let stored: Vec<_> = ids.iter().map(|id| ThreadId::from(id.as_str())).collect();
        let is_it = |id: &str, key: &SlotKey| {
            compared.set(compared.get() + 1);
            stored[key.at()].as_str() == id
        };
        for (at, id) in ids.iter().enumerate() {
            assert!(index.find(id, |key| is_it(id, key)).is_none());
            index.insert(id, SlotKey::new(at), |key| stored.get(key.at()));
        }
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(index.find(id, |key| is_it(id, key)), Some(SlotKey::new(at)));
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
        let ids = ["a", "b"].map(ThreadId::from);
        let mut index = Index::default();
        for (at, id) in ids.iter().enumerate() {
            index.insert(id.as_str(), SlotKey::new(at), |key| ids.get(key.at()));
        }
        index.remove(&ids[0], SlotKey::new(0));
        let find = |id: &str| index.find(id, |key| ids[key.at()].as_str() == id);
        assert_eq!((find("a"), find("b")), (None, Some(SlotKey::new(1))));
    }

    #[test]
    fn an_id_of_any_length_is_what_it_was() {
        for length in [0, 1, INLINE_BYTES - 1, INLINE_BYTES, INLINE_BYTES + 1, 300] {
            let text: String = "é-"
                .chars()
                .cycle()
                .scan(0, |bytes, c| {
                    *bytes += c.len_utf8();
                    (*bytes <= length).then_some(c)
                })
                .collect();
            let id = ThreadId::from(text.as_str());
            assert_eq!((id.as_str(), id.as_bytes()), (text.as_str(), text.as_bytes()));
            assert_eq!(id.heap_bytes() > 0, text.len() > INLINE_BYTES, "{length}");
        }
        assert_eq!(size_of::<ThreadId>(), 48);
    }
}
