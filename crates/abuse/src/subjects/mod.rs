//! The subjects of a partition, found by kind and hash, each as the bytes that its state record holds.

mod counter;
mod eviction;
mod evidence;
mod packed_id;
mod subject;
mod tenant;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use slab::Slab;

use tollgate_core::decide::signal::{KeyKind, SubjectKey};
use tollgate_json::digest::Digest;

pub(super) use counter::{Counter, Episode, Opened};
use eviction::{Candidates, Rank};
pub(super) use evidence::{EVIDENCE_MAX, Witness, bit};
pub(super) use packed_id::PackedId;
pub(super) use subject::{Stamp, Subject, Suspension};
pub(super) use tenant::TenantTag;

/// The place of a subject in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotKey(u32);

/// The closeness of a subject that must not be forgotten.
const HELD: u8 = u8::MAX;

/// A subject in the store: 56 bytes, and what is remembered of it.
#[derive(Debug)]
struct Slot {
    kind: KeyKind,
    hash: Digest,
    packed: Box<[u8]>,
    /// The second since the epoch at which the clock looks at it; 0 for never.
    due_s: u32,
    /// How close it is to any threshold, or [`HELD`].
    closeness: u8,
    /// Whether it has changed since a checkpoint last saw it.
    is_dirty: bool,
    /// Whether a checkpoint has ever seen it.
    is_known: bool,
}

/// The subjects of one partition.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    slots: Slab<Slot>,
    index: HashTable<SlotKey>,
    seeds: Seeds,
    /// Places by the second since the epoch at which the clock looks at them. A subject is in it at the second that its slot says; other
    /// entries are out of date and passed over. The clock may jump, for a source that lagged or because nothing came. Then all that was due
    /// on the way is done one after the other, as if the clock had stopped at each second. So it does not matter how often sources tell
    /// their time.
    timers: BTreeMap<u32, Vec<SlotKey>>,
    /// Who goes first when there are too many; `None` while nobody has to go.
    candidates: Option<Candidates>,
    /// Slots that have changed. An entry is stale once its slot has been dropped or shown to a checkpoint.
    dirty: Vec<SlotKey>,
    /// Subjects that a checkpoint holds and that are gone since.
    gone: Vec<SubjectKey>,
    /// The bytes of all subjects.
    packed_bytes: usize,
}

/// What subjects are hashed with in this process. Without a key for hashes, anybody can look for ids whose hashes begin alike. Nothing that
/// leaves the store depends on it: the index is asked and never listed.
#[derive(Debug)]
struct Seeds(u64, u64);

impl Default for Seeds {
    fn default() -> Self {
        let random = RandomState::new();
        Self(random.hash_one(0_u8), random.hash_one(1_u8))
    }
}

impl Seeds {
    fn hash(&self, key: &SubjectKey) -> u64 {
        let (first, second) = key.hash.first_words();
        let product = u128::from(first ^ self.0) * u128::from(second ^ self.1 ^ key.kind as u64);
        (product as u64) ^ ((product >> 64) as u64)
    }
}

impl Subjects {
    /// Returns how many subjects there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns about how many bytes they take, without what the allocator adds.
    pub(super) fn bytes(&self) -> usize {
        let candidates = self.candidates.as_ref().map_or(0, Candidates::bytes);
        self.slots.len() * (size_of::<Slot>() + 4 * size_of::<SlotKey>()) + candidates + self.packed_bytes
    }

    /// Returns the place of a subject.
    pub(super) fn find(&self, key: &SubjectKey) -> Option<SlotKey> {
        let is_it = |slot: &SlotKey| self.slots.get(slot.at()).is_some_and(|slot| slot.key() == *key);
        self.index.find(self.seeds.hash(key), is_it).copied()
    }

    /// Returns the places of several subjects, as far as they are there, and has the processor fetch what is remembered of them. Subjects
    /// lie far apart in memory. Looked up together they are fetched at the same time; one by one, each would be waited for.
    pub(super) fn find_all(&self, keys: impl Iterator<Item = SubjectKey>, places: &mut Vec<Option<SlotKey>>) {
        places.clear();
        places.extend(keys.map(|key| self.find(&key)));
        let packed = places.iter().flatten().map(|at| self.packed(*at));
        std::hint::black_box(packed.fold(0, |all, packed| all ^ packed.first().unwrap_or(&0) ^ packed.last().unwrap_or(&0)));
    }

    /// Returns the place of a subject, which may be one where it was found earlier.
    pub(super) fn find_from(&self, earlier: Option<SlotKey>, key: &SubjectKey) -> Option<SlotKey> {
        let is_there = |at: &SlotKey| self.slots.get(at.at()).is_some_and(|slot| slot.key() == *key);
        earlier.filter(is_there).or_else(|| self.find(key))
    }

    /// Returns the place of a new subject, which has nothing in it yet.
    pub(super) fn insert(&mut self, key: SubjectKey) -> SlotKey {
        let SubjectKey { kind, hash } = key;
        let slot = Slot { kind, hash, packed: Box::default(), due_s: 0, closeness: HELD, is_dirty: false, is_known: false };
        let at = SlotKey(u32::try_from(self.slots.insert(slot)).unwrap_or(u32::MAX));
        let (slots, seeds) = (&self.slots, &self.seeds);
        let rehash = |slot: &SlotKey| slots.get(slot.at()).map_or(0, |slot| seeds.hash(&slot.key()));
        self.index.insert_unique(seeds.hash(&key), at, rehash);
        at
    }

    /// Returns who is at a place.
    pub(super) fn key(&self, at: SlotKey) -> Option<SubjectKey> {
        self.slots.get(at.at()).map(Slot::key)
    }

    /// Takes the bytes out of a place, to be worked on. [`Subjects::put`] has to follow.
    pub(super) fn take(&mut self, at: SlotKey) -> Box<[u8]> {
        self.slots.get_mut(at.at()).map(|slot| std::mem::take(&mut slot.packed)).unwrap_or_default()
    }

    /// Puts a subject into its place, whose bytes are in a buffer. `before` is what was taken out: if nothing has changed, no checkpoint has
    /// to hold it again. A subject of which nothing is left is removed.
    pub(super) fn put(&mut self, at: SlotKey, before: Box<[u8]>, stamp: Stamp, buffer: &[u8]) {
        self.packed_bytes = self.packed_bytes.saturating_sub(before.len());
        if stamp.is_empty {
            return self.remove(at);
        }
        let Some(slot) = self.slots.get_mut(at.at()) else { return };
        let closeness = stamp.closeness.unwrap_or(HELD);
        // Who comes farther from a threshold goes sooner than its candidacy says. All others are looked at when it is their turn.
        if let Some(candidates) = self.candidates.as_mut().filter(|_| slot.closeness > closeness) {
            candidates.push(Rank { closeness, applied: stamp.applied, tie: tie_of(&slot.hash) }, at);
        }
        slot.closeness = closeness;
        self.packed_bytes += buffer.len();
        if *before == *buffer {
            slot.packed = before;
            return;
        }
        slot.packed = replaced(before, buffer);
        self.mark_dirty(at);
        self.candidates.take_if(|candidates| candidates.is_stale(self.slots.len()));
    }

    /// Puts back what was taken out of a place, with nothing changed.
    pub(super) fn give_back(&mut self, at: SlotKey, before: Box<[u8]>) {
        if let Some(slot) = self.slots.get_mut(at.at()) {
            slot.packed = before;
        }
    }

    /// Puts a subject of a checkpoint into the store.
    pub(super) fn restore(&mut self, key: SubjectKey, packed: Box<[u8]>) {
        let at = self.insert(key);
        self.packed_bytes += packed.len();
        if let Some(slot) = self.slots.get_mut(at.at()) {
            (slot.packed, slot.is_known) = (packed, true);
        }
    }

    /// Notes how close a subject of a checkpoint is to a threshold.
    pub(super) fn rank(&mut self, at: SlotKey, stamp: Stamp) {
        let Some(slot) = self.slots.get_mut(at.at()) else { return };
        slot.closeness = stamp.closeness.unwrap_or(HELD);
        if let Some(candidates) = self.candidates.as_mut().filter(|_| slot.closeness != HELD) {
            candidates.push(Rank { closeness: slot.closeness, applied: stamp.applied, tie: tie_of(&slot.hash) }, at);
        }
    }

    /// Returns every place.
    pub(super) fn places(&self) -> Vec<SlotKey> {
        places_in(&self.slots).collect()
    }

    /// Returns the bytes at a place.
    pub(super) fn packed(&self, at: SlotKey) -> &[u8] {
        self.slots.get(at.at()).map(|slot| &*slot.packed).unwrap_or_default()
    }

    /// Returns who is farthest from any threshold, and among equals who was heard of longest ago, as of the records of signals; of those in one
    /// record any, but always the same. `None` if everybody is on a ladder, or is the one to be spared.
    pub(super) fn farthest(&mut self, spared: SlotKey) -> Option<SlotKey> {
        let Self { slots, candidates, .. } = self;
        let candidacy = |at| Self::candidacy(slots, at);
        let order = |at: SlotKey| slots.get(at.at()).map(|slot| (slot.kind as u8, slot.hash.first_words()));
        candidates.get_or_insert_with(|| Candidates::of(places_in(slots), candidacy)).first(spared, candidacy, order)
    }

    /// Removes a subject.
    pub(super) fn remove(&mut self, at: SlotKey) {
        let Some(slot) = self.slots.try_remove(at.at()) else { return };
        if let Ok(entry) = self.index.find_entry(self.seeds.hash(&slot.key()), |other| *other == at) {
            entry.remove();
        }
        self.packed_bytes = self.packed_bytes.saturating_sub(slot.packed.len());
        if slot.is_known {
            self.gone.push(slot.key());
        }
    }

    /// Has the clock look at a place at a second since the epoch, unless it looks there earlier.
    pub(super) fn expect(&mut self, at: SlotKey, second: u32) {
        let Some(slot) = self.slots.get_mut(at.at()) else { return };
        if slot.due_s == 0 || second < slot.due_s {
            slot.due_s = second;
            self.timers.entry(second).or_default().push(at);
        }
    }

    /// Returns the next second since the epoch at which the clock may have something to look at.
    pub(super) fn next_due(&self) -> Option<u32> {
        self.timers.first_key_value().map(|(second, _)| *second)
    }

    /// Returns whom the clock looks at at a second since the epoch, in their order, and notes that it does.
    pub(super) fn take_due(&mut self, second: u32) -> Vec<(SubjectKey, SlotKey)> {
        let mut subjects = Vec::new();
        for at in self.timers.remove(&second).unwrap_or_default() {
            if let Some(slot) = self.slots.get_mut(at.at()).filter(|slot| slot.due_s == second) {
                slot.due_s = 0;
                subjects.push((slot.key(), at));
            }
        }
        subjects.sort_unstable_by_key(|(key, _)| (key.kind as u8, key.hash.hex()));
        subjects
    }

    /// Calls `show` for every change since the last time: first for subjects that are gone, then for those that have changed.
    pub(super) fn take_changes(&mut self, mut show: impl FnMut(SubjectKey, Option<&[u8]>)) {
        for key in std::mem::take(&mut self.gone) {
            // One that has come back is shown below.
            if self.find(&key).is_none() {
                show(key, None);
            }
        }
        for at in std::mem::take(&mut self.dirty) {
            let Some(slot) = self.slots.get_mut(at.at()).filter(|slot| slot.is_dirty) else { continue };
            (slot.is_dirty, slot.is_known) = (false, true);
            show(slot.key(), Some(&slot.packed));
        }
    }

    /// Returns a subject's bytes as if they had just been shown.
    pub(super) fn take_change(&mut self, key: &SubjectKey) -> Option<&[u8]> {
        let at = self.find(key)?;
        let slot = self.slots.get_mut(at.at())?;
        (slot.is_dirty, slot.is_known) = (false, true);
        Some(&slot.packed)
    }

    /// Marks a subject so that it is shown again, because the checkpoint that it was shown for was refused.
    pub(super) fn mark_changed(&mut self, key: &SubjectKey) {
        match self.find(key) {
            None => self.gone.push(*key),
            Some(at) => {
                if let Some(slot) = self.slots.get_mut(at.at()) {
                    slot.is_known = true;
                }
                self.mark_dirty(at);
            }
        }
    }

    fn mark_dirty(&mut self, at: SlotKey) {
        let was_dirty = self.slots.get_mut(at.at()).is_none_or(|slot| std::mem::replace(&mut slot.is_dirty, true));
        if was_dirty {
            return;
        }
        self.dirty.push(at);
        // Subjects that come and go leave stale entries. Without checkpoints nothing else would remove them.
        if self.dirty.len() > 4 * self.slots.len() + 64 {
            let slots = &self.slots;
            self.dirty.retain(|at| slots.get(at.at()).is_some_and(|slot| slot.is_dirty));
            self.dirty.sort_unstable();
            self.dirty.dedup();
        }
    }

    /// Returns the rank of who is at a place; `None` for nobody, and for who must not be forgotten.
    fn candidacy(slots: &Slab<Slot>, at: SlotKey) -> Option<Rank> {
        let slot = slots.get(at.at()).filter(|slot| slot.closeness != HELD)?;
        let (closeness, tie) = (slot.closeness, tie_of(&slot.hash));
        Subject::applied_of(&slot.packed).map(|applied| Rank { closeness, applied, tie })
    }
}

impl Slot {
    fn key(&self) -> SubjectKey {
        SubjectKey { kind: self.kind, hash: self.hash }
    }
}

impl SlotKey {
    fn at(self) -> usize {
        self.0 as usize
    }
}

const _: () = assert!(size_of::<Slot>() == 56, "every subject takes that much");

fn places_in(slots: &Slab<Slot>) -> impl Iterator<Item = SlotKey> {
    slots.iter().filter_map(|(at, _)| u32::try_from(at).ok().map(SlotKey))
}

fn tie_of(hash: &Digest) -> u32 {
    (hash.first_u64() >> 32) as u32
}

/// Returns the bytes of a buffer in a box, the old one if they fit exactly.
fn replaced(mut before: Box<[u8]>, buffer: &[u8]) -> Box<[u8]> {
    if before.len() == buffer.len() {
        before.copy_from_slice(buffer);
        return before;
    }
    buffer.into()
}
