//! The threads of one partition, in bounded memory.
//!
//! Three rules keep it bounded. A thread whose turn has ended is dropped at once. A thread that has been idle for longer than the
//! limit, by the partition's own event time, is dropped. At the limit of threads the one that was touched longest ago makes room,
//! unless a stop depends on it; where every thread holds a stop, a new one is refused, which the caller answers fail-closed.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{Thread, ThreadLimits};

/// How far one event can advance the partition's time, in milliseconds. A single timestamp from the future must not expire a
/// partition's threads, and a partition that slept catches up within some hundred events.
const STREAM_STEP_MS_MAX: i64 = 5 * 60 * 1_000;

/// How many threads may make room for one new one before it is refused.
const EVICTION_PROBES_MAX: usize = 64;

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
    /// Here it is.
    Admitted(&'s mut Thread),
    /// The store is full of threads that hold a stop.
    Full,
}

/// What a store has let go of since it was made, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departures {
    /// Threads that were idle too long.
    pub expired: u64,
    /// Threads that made room for others.
    pub evicted: u64,
    /// Threads that were refused.
    pub refused: u64,
}

#[derive(Debug)]
struct Slot {
    thread: Thread,
    /// Which entry of the queue is this thread's latest; older entries are stale.
    touch: u64,
    /// The partition's time when it was touched, or its own time if that is later.
    touched_ms: i64,
}

/// See the module.
#[derive(Debug)]
pub struct ThreadStore {
    limits: StoreLimits,
    slots: FxHashMap<Box<str>, Slot>,
    /// Threads by their last touch, oldest first, with stale entries among them.
    queue: VecDeque<(u64, Box<str>)>,
    touches: u64,
    stream_ms: Option<i64>,
    departures: Departures,
}

impl ThreadStore {
    /// An empty store.
    #[must_use]
    pub fn new(limits: StoreLimits) -> Self {
        Self { limits, slots: FxHashMap::default(), queue: VecDeque::new(), touches: 0, stream_ms: None, departures: Departures::default() }
    }

    /// The thread of that id, taken in if it is new, and touched. `time_ms` is the event's time.
    pub fn admit(&mut self, thread_id: &str, time_ms: Option<i64>) -> Admission<'_> {
        self.advance(time_ms);
        self.expire();
        if !self.slots.contains_key(thread_id) {
            if self.slots.len() >= self.limits.threads_max && !self.make_room() {
                self.departures.refused += 1;
                return Admission::Full;
            }
            self.slots.insert(thread_id.into(), Slot { thread: Thread::default(), touch: 0, touched_ms: 0 });
        }
        self.touches += 1;
        let touched_ms = self.stream_ms.max(time_ms).unwrap_or_default();
        self.queue.push_back((self.touches, thread_id.into()));
        self.compact_queue();
        match self.slots.get_mut(thread_id) {
            Some(slot) => {
                slot.touch = self.touches;
                slot.touched_ms = touched_ms;
                Admission::Admitted(&mut slot.thread)
            }
            None => Admission::Full,
        }
    }

    /// Called when an event has been applied to a thread: drops it if its turn is over and keeps it within its bytes otherwise.
    pub fn settle(&mut self, thread_id: &str) {
        let Some(slot) = self.slots.get_mut(thread_id) else { return };
        if slot.thread.is_over() {
            self.slots.remove(thread_id);
        } else {
            slot.thread.trim(&self.limits.thread);
        }
    }

    /// The thread of that id, untouched.
    #[must_use]
    pub fn get(&self, thread_id: &str) -> Option<&Thread> {
        self.slots.get(thread_id).map(|slot| &slot.thread)
    }

    /// How many threads are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Every thread with its id, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Thread)> {
        self.slots.iter().map(|(id, slot)| (&**id, &slot.thread))
    }

    /// Bytes of all threads, estimated from at most a few hundred of them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let (sampled, bytes) =
            self.slots.values().take(BYTES_SAMPLED_MAX).fold((0, 0), |(n, bytes), slot| (n + 1, bytes + slot.thread.bytes()));
        (bytes * self.slots.len()).checked_div(sampled).unwrap_or_default()
    }

    /// What the store has let go of.
    #[must_use]
    pub fn departures(&self) -> Departures {
        self.departures
    }

    fn advance(&mut self, time_ms: Option<i64>) {
        self.stream_ms = match (self.stream_ms, time_ms) {
            (Some(stream), Some(time)) => Some(time.clamp(stream, stream.saturating_add(STREAM_STEP_MS_MAX))),
            (stream, time) => stream.or(time),
        };
    }

    /// Drops what has been idle too long. The queue is in order of touch, so this looks at few threads beyond those it drops.
    fn expire(&mut self) {
        let Some(stream_ms) = self.stream_ms else { return };
        while let Some((touch, thread_id)) = self.queue.front() {
            match self.slots.get(thread_id) {
                Some(slot) if slot.touch == *touch => {
                    if stream_ms.saturating_sub(slot.touched_ms) <= self.limits.thread.idle_ms_max {
                        return;
                    }
                    self.slots.remove(thread_id);
                    self.departures.expired += 1;
                }
                _ => {}
            }
            self.queue.pop_front();
        }
    }

    /// Drops the thread that was touched longest ago and holds no stop; those that hold one go to the end of the queue.
    fn make_room(&mut self) -> bool {
        for _ in 0..EVICTION_PROBES_MAX {
            let Some((touch, thread_id)) = self.queue.pop_front() else { return false };
            match self.slots.get_mut(&thread_id) {
                Some(slot) if slot.touch == touch && slot.thread.holds_a_stop() => {
                    self.touches += 1;
                    slot.touch = self.touches;
                    self.queue.push_back((self.touches, thread_id));
                }
                Some(slot) if slot.touch == touch => {
                    self.slots.remove(&thread_id);
                    self.departures.evicted += 1;
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    /// Keeps stale entries from outgrowing the live ones.
    fn compact_queue(&mut self) {
        if self.queue.len() > 4 * self.slots.len() + 64 {
            let slots = &self.slots;
            self.queue.retain(|(touch, thread_id)| slots.get(thread_id).is_some_and(|slot| slot.touch == *touch));
        }
    }
}
