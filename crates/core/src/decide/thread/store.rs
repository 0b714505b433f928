//! The threads of one partition, in bounded memory.
//!
//! Three rules keep it bounded. (1) A thread whose turn has ended is dropped at once. (2) A thread that was not touched for twice the idle
//! limit, by the partition's own event time, is dropped. Its own events would find it expired after one idle limit, so no verdict depends
//! on this rule unless an event comes later than that. (3) At the limit of threads, the thread that was touched longest ago makes room. A
//! thread that holds a stop makes room only once it has been idle for twice the limit. Where there is none that can make room, a new thread
//! is refused, and the caller fails closed.
//!
//! A tenant may have a share of the threads that hold a stop. One that has used it up gets no further stops, so that others find room: its
//! threads without a stop, old and new, are refused until some of those with one have ended.
//!
//! The store tracks which of its threads have changed since the last checkpoint, and which threads of earlier checkpoints are gone.
//! Everything in it is a function of the events, so a restored store and one that was never away decide alike.

use slab::Slab;

use super::id::{Id, IdText, Key};
use super::index::Index;
use super::order::{Links, Order, SlotKey};
use super::shares::{Shares, TenantMark};
use super::{Thread, ThreadLimits};
use crate::event::record::{Departures, Offset, StreamClock};

/// How many threads are measured to estimate the bytes of all. Measuring every one would stall a full partition.
const BYTES_SAMPLED_MAX: usize = 256;

/// The bounds of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// The most threads that are held at once.
    pub threads_max: usize,
    /// The most threads with a stop that one tenant may have.
    pub tenant_stops_max: usize,
    /// The bounds of each thread.
    pub thread: ThreadLimits,
}

/// The outcome of asking the store for a thread.
#[derive(Debug)]
pub enum Admission<'s> {
    /// The thread is in the store. Every admission has to be settled.
    Admitted(SlotKey, &'s mut Thread),
    /// The store is full of threads that hold a stop, or the tenant's share of them is used up.
    Full,
}

/// The moment at which an event touches its thread: when the event is read, however long it then waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The event's offset.
    pub offset: Offset,
    /// The partition's time, in milliseconds since the epoch; `None` if no event has reported a time yet.
    pub time_ms: Option<i64>,
}

/// A thread with the last event that was applied to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredThread {
    /// The thread.
    pub thread: Thread,
    /// The offset of the last event that was applied to it. Threads in order of these offsets are in order of touch.
    pub applied: Offset,
    /// The partition's time at that event, in milliseconds since the epoch; `None` if no event had reported a time by then.
    pub touched_ms: Option<i64>,
    /// The tenant that a thread with a stop counts for; nobody for any other thread.
    pub tenant: TenantMark,
}

#[derive(Debug)]
struct Slot {
    id: Id,
    stored: StoredThread,
    /// Which of the two orders the slot is in, if any.
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

/// The threads of one partition, found by their id.
#[derive(Debug)]
pub struct ThreadStore {
    limits: StoreLimits,
    slots: Slab<Slot>,
    index: Index,
    links: Links,
    /// Threads that can make room.
    free: Order,
    /// Threads that hold a stop.
    stopped: Order,
    /// The threads that hold a stop, counted by tenant.
    shares: Shares,
    clock: StreamClock,
    departures: Departures,
    /// Slots that have changed. An entry is stale once its slot has been dropped or shown to a checkpoint.
    dirty: Vec<SlotKey>,
    /// Ids of threads that a checkpoint holds and that are gone since.
    gone: Vec<Box<str>>,
}

impl ThreadStore {
    /// Returns an empty store.
    #[must_use]
    pub fn new(limits: StoreLimits) -> Self {
        Self {
            limits,
            slots: Slab::new(),
            index: Index::default(),
            links: Links::default(),
            free: Order::default(),
            stopped: Order::default(),
            shares: Shares::default(),
            clock: StreamClock::default(),
            departures: Departures::default(),
            dirty: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Returns a store with the threads of a checkpoint, at its time. Threads that were moved here from two partitions may share an offset.
    #[must_use]
    pub fn restored(limits: StoreLimits, clock: StreamClock, threads: impl IntoIterator<Item = (Box<str>, StoredThread)>) -> Self {
        let mut threads: Vec<_> = threads.into_iter().collect();
        // The threads of a checkpoint lie in order, which a stable sort finds.
        threads.sort_by(|(a, one), (b, other)| (one.applied, one.touched_ms, a).cmp(&(other.applied, other.touched_ms, b)));
        let (slots, index) = (Slab::with_capacity(threads.len()), Index::with_capacity(threads.len()));
        let mut store = Self { clock, slots, index, ..Self::new(limits) };
        for (id, stored) in threads {
            store.shares.add(stored.tenant);
            let key = store.insert(&id, stored, true);
            store.put_in_order(key);
        }
        store
    }

    /// Advances the partition's time by an event and drops threads that have expired by then. Returns the moment at which the event touches
    /// its thread.
    pub fn advance(&mut self, offset: Offset, time_ms: Option<i64>) -> Touch {
        if let Some(time_ms) = time_ms {
            self.clock.advance(time_ms, self.limits.thread.idle_ms_max);
            self.expire();
        }
        Touch { offset, time_ms: self.clock.now_ms() }
    }

    /// Returns the thread of an id, which is taken in if it is new. Until it is settled, it neither expires nor makes room for another
    /// thread. `tenant_id` is the tenant of an event that may bring the thread to a stop; with `None` no share is asked for.
    pub fn admit(&mut self, thread_id: &str, tenant_id: Option<&str>) -> Admission<'_> {
        if self.shares.are_scarce(self.limits.tenant_stops_max) && !self.holds_a_stop(thread_id) && !self.has_share(tenant_id) {
            self.departures.refused += 1;
            return Admission::Full;
        }
        let key = match self.find(thread_id) {
            Some(key) => key,
            None => {
                while self.slots.len() >= self.limits.threads_max {
                    if !self.make_room() {
                        self.departures.refused += 1;
                        return Admission::Full;
                    }
                }
                self.insert(thread_id, StoredThread::default(), false)
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

    /// Settles an admitted thread after an event of a tenant was applied to it. A thread that is over is dropped. Any other is trimmed to
    /// its limits and noted as touched.
    pub fn settle(&mut self, key: SlotKey, touch: Touch, tenant_id: Option<&str>) {
        let Some(Slot { stored, .. }) = self.slots.get_mut(key.at()) else { return };
        stored.thread.trim(&self.limits.thread);
        if stored.thread.is_over() {
            return self.remove(key);
        }
        (stored.applied, stored.touched_ms) = (touch.offset, touch.time_ms);
        match (stored.thread.holds_a_stop(), stored.tenant == TenantMark::NOBODY) {
            (true, true) => {
                stored.tenant = TenantMark::of(tenant_id);
                self.shares.add(stored.tenant);
            }
            (false, false) => self.shares.remove(std::mem::take(&mut stored.tenant)),
            _ => {}
        }
        self.mark_dirty(key);
        self.put_in_order(key);
    }

    /// Returns the thread of an id without touching it.
    #[must_use]
    pub fn get(&self, thread_id: &str) -> Option<&StoredThread> {
        self.slots.get(self.find(thread_id)?.at()).map(|slot| &slot.stored)
    }

    /// Returns how many threads the store holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether the store holds no thread.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns every thread with its id, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&Id, &StoredThread)> {
        self.slots.iter().map(|(_, slot)| (&slot.id, &slot.stored))
    }

    /// Returns the partition's time.
    #[must_use]
    pub fn clock(&self) -> StreamClock {
        self.clock
    }

    /// Returns about how many bytes all threads take. It is estimated from a few hundred of them at most.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let sample = self.slots.iter().take(BYTES_SAMPLED_MAX).map(|(_, slot)| slot.bytes());
        let (sampled, bytes) = sample.fold((0, 0), |(n, sum), bytes| (n + 1, sum + bytes));
        (bytes * self.slots.len()).checked_div(sampled).unwrap_or_default()
    }

    /// Returns what the store has let go of since it was made.
    #[must_use]
    pub fn departures(&self) -> Departures {
        self.departures
    }

    /// Calls `show` for every change since the last time: first for threads that are gone, with `None`, then for threads that have changed,
    /// with their state.
    pub fn take_changes(&mut self, mut show: impl FnMut(&str, Option<&StoredThread>)) {
        for id in std::mem::take(&mut self.gone) {
            // A thread that has come back is shown below.
            if self.find(&id).is_none() {
                show(&id, None);
            }
        }
        for key in std::mem::take(&mut self.dirty) {
            let Some(slot) = self.slots.get_mut(key.at()).filter(|slot| slot.is_dirty) else { continue };
            (slot.is_dirty, slot.is_known) = (false, true);
            show(slot.id.text(&mut IdText::default()), Some(&slot.stored));
        }
    }

    /// Returns a thread as if it had just been shown, whether it has changed or not; `None` if it is not in the store.
    pub fn take_change(&mut self, thread_id: &str) -> Option<&StoredThread> {
        let key = self.find(thread_id)?;
        let slot = self.slots.get_mut(key.at())?;
        (slot.is_dirty, slot.is_known) = (false, true);
        Some(&slot.stored)
    }

    /// Marks a thread so that the next [`ThreadStore::take_changes`] shows it again, because the checkpoint that it was shown for was
    /// refused. The thread counts as part of a checkpoint from then on, even if it has ended and begun anew since: the checkpoint may hold
    /// the thread that ended.
    pub fn mark_changed(&mut self, thread_id: &str) {
        match self.find(thread_id) {
            None => self.gone.push(thread_id.into()),
            Some(key) => {
                self.slots.get_mut(key.at()).into_iter().for_each(|slot| slot.is_known = true);
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
        // Threads that come and go leave stale entries. Without checkpoints nothing else would remove them.
        if self.dirty.len() > 4 * self.slots.len() + 64 {
            let slots = &self.slots;
            self.dirty.retain(|key| slots.get(key.at()).is_some_and(|slot| slot.is_dirty));
            self.dirty.sort_unstable();
            self.dirty.dedup();
        }
    }

    fn find(&self, thread_id: &str) -> Option<SlotKey> {
        let id = Key::of(thread_id);
        self.index.find(&id, |key| self.slots.get(key.at()).is_some_and(|slot| slot.id.key() == id))
    }

    fn insert(&mut self, id: &str, stored: StoredThread, is_known: bool) -> SlotKey {
        let slot = Slot { id: id.into(), stored, place: Place::Nowhere, is_dirty: false, is_known };
        let key = SlotKey::new(self.slots.insert(slot));
        let slots = &self.slots;
        self.index.insert(&Key::of(id), key, |key| slots.get(key.at()).map(|slot| &slot.id));
        key
    }

    fn remove(&mut self, key: SlotKey) {
        self.take_out_of_order(key);
        let Some(slot) = self.slots.try_remove(key.at()) else { return };
        self.index.remove(&slot.id, key);
        self.shares.remove(slot.stored.tenant);
        if slot.is_known {
            self.gone.push(slot.id.text(&mut IdText::default()).into());
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

    /// Drops threads without a stop that have been idle for too long.
    fn expire(&mut self) {
        while let Some(key) = self.free.oldest().filter(|key| self.is_idle(*key)) {
            self.remove(key);
            self.departures.expired += 1;
        }
    }

    /// Drops one thread, and returns whether there was one to drop. It is the thread without a stop that was touched longest ago, or else
    /// one with a stop that has been idle for too long. A stop is not dropped before that, whatever the clocks of other threads say.
    fn make_room(&mut self) -> bool {
        if let Some(key) = self.free.oldest() {
            self.remove(key);
            self.departures.evicted += 1;
            return true;
        }
        self.drop_idle_stop()
    }

    /// Drops the thread with a stop that was touched longest ago, if it has been idle for too long. Returns whether it was.
    fn drop_idle_stop(&mut self) -> bool {
        let Some(key) = self.stopped.oldest().filter(|key| self.is_idle(*key)) else { return false };
        self.remove(key);
        self.departures.expired += 1;
        true
    }

    /// Returns whether a tenant may have one more thread with a stop. Where its share is used up, threads whose agents have died behind
    /// their stop are dropped first.
    fn has_share(&mut self, tenant_id: Option<&str>) -> bool {
        while self.shares.is_used_up(tenant_id, self.limits.tenant_stops_max) {
            if !self.drop_idle_stop() {
                return false;
            }
        }
        true
    }

    fn holds_a_stop(&self, thread_id: &str) -> bool {
        self.get(thread_id).is_some_and(|stored| stored.thread.holds_a_stop())
    }

    /// Returns whether a thread was not touched for twice the idle limit.
    fn is_idle(&self, key: SlotKey) -> bool {
        let touched_ms = self.slots.get(key.at()).and_then(|slot| slot.stored.touched_ms);
        self.clock.idle_ms(touched_ms) > self.limits.thread.idle_ms_max.saturating_mul(2)
    }
}

impl Slot {
    /// Returns how many bytes a slot takes: itself, its place in index and order, and what it holds on the heap. The allocator's own
    /// overhead is not counted.
    fn bytes(&self) -> usize {
        size_of::<Self>() + 3 * size_of::<SlotKey>() + self.id.heap_bytes() + self.stored.thread.heap_bytes()
    }
}
