//! The threads of one partition, in bounded memory.
//!
//! Three rules keep it bounded. A thread whose turn has ended is dropped at once. A thread that nobody has touched for twice the idle
//! limit, by the partition's own event time, is dropped; its own events would have found it expired after once the limit, so no verdict
//! depends on this unless an event comes later than that. At the limit of threads the one that was touched longest ago makes room. One
//! that holds a stop does so only once it has been idle for that long; where none has, a new thread is refused, which the caller answers
//! fail-closed.
//!
//! The store knows which of its threads have changed since a checkpoint last asked, and which of those that a checkpoint has seen are
//! gone. Everything in it is a function of the events, so a store that is restored and one that was never away decide alike.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use slab::Slab;

use super::id::ThreadId;
use super::order::{Links, Order, SlotKey};
use super::{Thread, ThreadLimits};
use crate::record::{Departures, Offset, StreamClock};

/// How many threads are measured to estimate the bytes of all: measuring every one would stall a full partition.
const BYTES_SAMPLED_MAX: usize = 256;

/// The bounds of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Threads kept at once.
    pub threads_max: usize,
    /// The bounds of each.
    pub thread: ThreadLimits,
}

/// Whether a thread could be taken in.
#[derive(Debug)]
pub enum Admission<'s> {
    /// Here it is. Every admission is to be settled.
    Admitted(SlotKey, &'s mut Thread),
    /// The store is full of threads that hold a stop.
    Full,
}

/// When a thread is touched by an event: when it comes, however long it then waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The event's offset.
    pub offset: Offset,
    /// The partition's time, in milliseconds since the epoch; `None` if none has been told yet.
    pub time_ms: Option<i64>,
}

/// A thread as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredThread {
    /// The thread.
    pub thread: Thread,
    /// The offset of the last event that was applied to it. The order of these is the order of touch.
    pub applied: Offset,
    /// The partition's time when that was, in milliseconds since the epoch; `None` if none had been told yet.
    pub touched_ms: Option<i64>,
}

#[derive(Debug)]
struct Slot {
    id: ThreadId,
    stored: StoredThread,
    /// Which of the two orders it is in, if any yet.
    place: Place,
    /// Whether it has changed since a checkpoint last saw it.
    is_dirty: bool,
    /// Whether a checkpoint has ever seen it.
    is_known: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Free,
    Stopped,
}

/// See the module.
#[derive(Debug)]
pub struct ThreadStore {
    limits: StoreLimits,
    slots: Slab<Slot>,
    /// Slots by the hash of their id, which is kept in the slot alone.
    index: HashTable<SlotKey>,
    links: Links,
    /// Threads that can make room.
    free: Order,
    /// Threads that hold a stop.
    stopped: Order,
    clock: StreamClock,
    departures: Departures,
    /// Slots that have changed; one that has been dropped or seen since is stale.
    dirty: Vec<SlotKey>,
    /// Threads that a checkpoint has seen and that are gone since.
    gone: Vec<Box<str>>,
}

impl ThreadStore {
    /// Returns an empty store.
    #[must_use]
    pub fn new(limits: StoreLimits) -> Self {
        Self {
            limits,
            slots: Slab::new(),
            index: HashTable::new(),
            links: Links::default(),
            free: Order::default(),
            stopped: Order::default(),
            clock: StreamClock::default(),
            departures: Departures::default(),
            dirty: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Returns the store that held these threads at this time.
    #[must_use]
    pub fn restored(limits: StoreLimits, clock: StreamClock, threads: impl IntoIterator<Item = (Box<str>, StoredThread)>) -> Self {
        let mut threads: Vec<_> = threads.into_iter().collect();
        threads.sort_unstable_by_key(|(_, stored)| stored.applied);
        let mut store = Self { clock, ..Self::new(limits) };
        for (id, stored) in threads {
            let key = store.insert(&id, stored);
            store.put_in_order(key);
            store.change(key, |slot| slot.is_known = true);
        }
        store
    }

    /// Lets the time of the event at an offset pass, and threads expire by it. The answer is when its thread is touched.
    pub fn advance(&mut self, offset: Offset, time_ms: Option<i64>) -> Touch {
        if let Some(time_ms) = time_ms {
            self.clock.advance(time_ms, self.limits.thread.idle_ms_max);
            self.expire();
        }
        Touch { offset, time_ms: self.clock.now_ms() }
    }

    /// Returns the thread of that id, taken in if it is new. Until it is settled it neither expires nor makes room for another one.
    pub fn admit(&mut self, thread_id: &str) -> Admission<'_> {
        let key = match self.find(thread_id) {
            Some(key) => key,
            None => {
                while self.slots.len() >= self.limits.threads_max {
                    if !self.make_room() {
                        self.departures.refused += 1;
                        return Admission::Full;
                    }
                }
                self.insert(thread_id, StoredThread { thread: Thread::default(), applied: Offset(0), touched_ms: None })
            }
        };
        self.take_out_of_order(key);
        match self.slots.get_mut(key.at()) {
            Some(slot) => Admission::Admitted(key, &mut slot.stored.thread),
            None => Admission::Full,
        }
    }

    /// Returns a thread that was admitted and is not settled yet.
    pub fn admitted(&mut self, key: SlotKey) -> Option<&mut Thread> {
        self.slots.get_mut(key.at()).map(|slot| &mut slot.stored.thread)
    }

    /// Called when an event has been applied to an admitted thread: drops it if its turn is over, and else keeps it within its bytes and
    /// notes when it was touched.
    pub fn settle(&mut self, key: SlotKey, touch: Touch) {
        let Some(slot) = self.slots.get_mut(key.at()) else { return };
        slot.stored.thread.trim(&self.limits.thread);
        if slot.stored.thread.is_over() {
            return self.remove(key);
        }
        (slot.stored.applied, slot.stored.touched_ms) = (touch.offset, touch.time_ms);
        self.mark_dirty(key);
        self.put_in_order(key);
    }

    /// Returns the thread of that id, untouched.
    #[must_use]
    pub fn get(&self, thread_id: &str) -> Option<&StoredThread> {
        self.slots.get(self.find(thread_id)?.at()).map(|slot| &slot.stored)
    }

    /// Returns how many threads are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns every thread with its id, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &StoredThread)> {
        self.slots.iter().map(|(_, slot)| (slot.id.as_str(), &slot.stored))
    }

    /// Returns the partition's time.
    #[must_use]
    pub fn clock(&self) -> StreamClock {
        self.clock
    }

    /// Returns bytes of all threads, estimated from at most a few hundred of them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let sample = self.slots.iter().take(BYTES_SAMPLED_MAX).map(|(_, slot)| slot.bytes());
        let (sampled, bytes) = sample.fold((0, 0), |(n, sum), bytes| (n + 1, sum + bytes));
        (bytes * self.slots.len()).checked_div(sampled).unwrap_or_default()
    }

    /// Returns what the store has let go of.
    #[must_use]
    pub fn departures(&self) -> Departures {
        self.departures
    }

    /// Shows every change since the last time: threads that are gone, as `None`, and then those that are there as they are now.
    pub fn take_changes(&mut self, mut show: impl FnMut(&str, Option<&StoredThread>)) {
        for id in std::mem::take(&mut self.gone) {
            // One that has come back is shown below.
            if self.find(&id).is_none() {
                show(&id, None);
            }
        }
        for key in std::mem::take(&mut self.dirty) {
            let Some(slot) = self.slots.get_mut(key.at()).filter(|slot| slot.is_dirty) else { continue };
            (slot.is_dirty, slot.is_known) = (false, true);
            show(slot.id.as_str(), Some(&slot.stored));
        }
    }

    /// Returns the same for one thread, whether it has changed or not; `None` if it is not there.
    pub fn take_change(&mut self, thread_id: &str) -> Option<&StoredThread> {
        let key = self.find(thread_id)?;
        let slot = self.slots.get_mut(key.at())?;
        (slot.is_dirty, slot.is_known) = (false, true);
        Some(&slot.stored)
    }

    /// Has a thread shown again by the next [`ThreadStore::take_changes`], because what was shown came to nothing. Checkpoints know it
    /// then, even if it has ended and come back since: what they know of it may be the thread that ended.
    pub fn mark_changed(&mut self, thread_id: &str) {
        match self.find(thread_id) {
            None => self.gone.push(thread_id.into()),
            Some(key) => {
                self.change(key, |slot| slot.is_known = true);
                self.mark_dirty(key);
            }
        }
    }

    fn mark_dirty(&mut self, key: SlotKey) {
        let was_dirty = self.slots.get_mut(key.at()).is_none_or(|slot| std::mem::replace(&mut slot.is_dirty, true));
        if was_dirty {
            return;
        }
        self.dirty.push(key);
        // Threads that come and go leave stale entries, and where nobody asks for changes these would never end.
        if self.dirty.len() > 4 * self.slots.len() + 64 {
            let slots = &self.slots;
            self.dirty.retain(|key| slots.get(key.at()).is_some_and(|slot| slot.is_dirty));
            self.dirty.sort_unstable();
            self.dirty.dedup();
        }
    }

    fn find(&self, thread_id: &str) -> Option<SlotKey> {
        let is_it = |key: &SlotKey| self.slots.get(key.at()).is_some_and(|slot| slot.id.as_bytes() == thread_id.as_bytes());
        self.index.find(hash(thread_id.as_bytes()), is_it).copied()
    }

    fn insert(&mut self, id: &str, stored: StoredThread) -> SlotKey {
        let hash_of_id = hash(id.as_bytes());
        let slot = Slot { id: id.into(), stored, place: Place::Nowhere, is_dirty: false, is_known: false };
        let key = SlotKey::new(self.slots.insert(slot));
        let slots = &self.slots;
        self.index.insert_unique(hash_of_id, key, |key| slots.get(key.at()).map_or(0, |slot| hash(slot.id.as_bytes())));
        key
    }

    fn remove(&mut self, key: SlotKey) {
        self.take_out_of_order(key);
        let Some(slot) = self.slots.try_remove(key.at()) else { return };
        if let Ok(entry) = self.index.find_entry(hash(slot.id.as_bytes()), |indexed| *indexed == key) {
            entry.remove();
        }
        if slot.is_known {
            self.gone.push(slot.id.as_str().into());
        }
    }

    fn put_in_order(&mut self, key: SlotKey) {
        let Some(slot) = self.slots.get_mut(key.at()) else { return };
        slot.place = if slot.stored.thread.holds_a_stop() { Place::Stopped } else { Place::Free };
        let order = if slot.place == Place::Stopped { &mut self.stopped } else { &mut self.free };
        order.push(&mut self.links, key);
    }

    fn take_out_of_order(&mut self, key: SlotKey) {
        let place = self.slots.get_mut(key.at()).map(|slot| std::mem::replace(&mut slot.place, Place::Nowhere));
        match place {
            Some(Place::Free) => self.free.remove(&mut self.links, key),
            Some(Place::Stopped) => self.stopped.remove(&mut self.links, key),
            Some(Place::Nowhere) | None => {}
        }
    }

    fn change(&mut self, key: SlotKey, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slots.get_mut(key.at()) {
            change(slot);
        }
    }

    /// Drops threads without a stop that nobody has touched for too long.
    fn expire(&mut self) {
        while let Some(key) = self.free.oldest().filter(|key| self.is_idle(*key)) {
            self.remove(key);
            self.departures.expired += 1;
        }
    }

    /// Drops the thread without a stop that was touched longest ago, or else one with a stop that has been idle for too long; whether
    /// there was any. A stop is not dropped before that, whatever the clocks of other threads say.
    fn make_room(&mut self) -> bool {
        if let Some(key) = self.free.oldest() {
            self.remove(key);
            self.departures.evicted += 1;
            return true;
        }
        let Some(key) = self.stopped.oldest().filter(|key| self.is_idle(*key)) else { return false };
        self.remove(key);
        self.departures.expired += 1;
        true
    }

    /// Returns whether nobody has touched a thread for twice the idle limit.
    fn is_idle(&self, key: SlotKey) -> bool {
        let touched_ms = self.slots.get(key.at()).and_then(|slot| slot.stored.touched_ms);
        self.clock.idle_ms(touched_ms) > self.limits.thread.idle_ms_max.saturating_mul(2)
    }
}

impl Slot {
    /// Returns bytes of the slot, of its place in index and order and of what it holds on the heap, without the allocator's own.
    fn bytes(&self) -> usize {
        size_of::<Self>() + 3 * size_of::<SlotKey>() + self.id.heap_bytes() + self.stored.thread.heap_bytes()
    }
}

fn hash(thread_id: &[u8]) -> u64 {
    FxBuildHasher.hash_one(thread_id)
}
