//! The threads of one partition, in bounded memory.
//!
//! Three rules keep it bounded. A thread whose turn has ended is dropped at once. A thread that nobody has touched for twice the idle
//! limit, by the partition's own event time, is dropped; its own events would have found it expired after once the limit, so no verdict
//! depends on this unless an event comes later than that. At the limit of threads the one that was touched longest ago makes room. One
//! that holds a stop does so only once it has been idle for that long; where none has, a new thread is refused, which the caller answers
//! fail-closed.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{Thread, ThreadLimits};

/// By which part of the idle limit one event can advance the partition's time. A single timestamp from the future must not expire a
/// partition's threads, and a partition that slept catches up within some hundred events.
const STREAM_STEPS_PER_IDLE: i64 = 256;

/// So many events in a row that are far behind the partition's time say that the time is wrong: it was set by a broken clock.
const STREAM_OUTVOTED_AFTER: u32 = 32;

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
    /// Which entry of the queues is this thread's latest; older entries are stale.
    touch: u64,
    /// The partition's time when it was touched.
    touched_ms: i64,
}

/// Threads by their last touch, oldest first, with stale entries among them.
type Queue = VecDeque<(u64, Box<str>)>;

/// See the module.
#[derive(Debug)]
pub struct ThreadStore {
    limits: StoreLimits,
    slots: FxHashMap<Box<str>, Slot>,
    /// Threads that can make room.
    free: Queue,
    /// Threads that hold a stop.
    stopped: Queue,
    touches: u64,
    stream_ms: i64,
    outvoted: u32,
    departures: Departures,
}

impl ThreadStore {
    /// An empty store.
    #[must_use]
    pub fn new(limits: StoreLimits) -> Self {
        Self {
            limits,
            slots: FxHashMap::default(),
            free: Queue::new(),
            stopped: Queue::new(),
            touches: 0,
            stream_ms: i64::MIN,
            outvoted: 0,
            departures: Departures::default(),
        }
    }

    /// The thread of that id, taken in if it is new. `time_ms` is the event's time. Every admission is to be settled.
    pub fn admit(&mut self, thread_id: &str, time_ms: Option<i64>) -> Admission<'_> {
        if let Some(time_ms) = time_ms {
            self.advance(time_ms);
            self.expire();
        }
        if !self.slots.contains_key(thread_id) {
            if self.slots.len() >= self.limits.threads_max && !self.make_room() {
                self.departures.refused += 1;
                return Admission::Full;
            }
            self.slots.insert(thread_id.into(), Slot { thread: Thread::default(), touch: 0, touched_ms: 0 });
        }
        match self.slots.get_mut(thread_id) {
            Some(slot) => Admission::Admitted(&mut slot.thread),
            None => Admission::Full,
        }
    }

    /// Called when an event has been applied to a thread: drops it if its turn is over, and else keeps it within its bytes and notes
    /// that it was touched.
    pub fn settle(&mut self, thread_id: &str) {
        let Some(slot) = self.slots.get_mut(thread_id) else { return };
        if slot.thread.is_over() {
            self.slots.remove(thread_id);
            return;
        }
        slot.thread.trim(&self.limits.thread);
        self.touches += 1;
        (slot.touch, slot.touched_ms) = (self.touches, self.stream_ms);
        let queue = if slot.thread.holds_a_stop() { &mut self.stopped } else { &mut self.free };
        queue.push_back((self.touches, thread_id.into()));
        if queue.len() > 4 * self.slots.len() + 64 {
            let slots = &self.slots;
            queue.retain(|(touch, thread_id)| is_current(slots, *touch, thread_id));
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

    /// Lets the partition's time follow an event's: forward by steps, so that a single timestamp from the future expires nobody, and
    /// back only where many events in a row say that it is wrong.
    fn advance(&mut self, time_ms: i64) {
        let is_far_behind = self.stream_ms.saturating_sub(time_ms) > self.limits.thread.idle_ms_max;
        self.outvoted = if is_far_behind { self.outvoted + 1 } else { 0 };
        if self.stream_ms == i64::MIN || self.outvoted >= STREAM_OUTVOTED_AFTER {
            (self.stream_ms, self.outvoted) = (time_ms, 0);
        } else if time_ms > self.stream_ms {
            self.stream_ms = time_ms.min(self.stream_ms.saturating_add(self.limits.thread.idle_ms_max / STREAM_STEPS_PER_IDLE + 1));
        }
    }

    /// Drops threads without a stop that nobody has touched for too long. The queue is in order of touch, so this looks at few threads
    /// beyond those it drops.
    fn expire(&mut self) {
        while let Some((touch, thread_id)) = self.free.pop_front() {
            match self.is_idle(touch, &thread_id) {
                None => {}
                Some(true) => {
                    self.slots.remove(&thread_id);
                    self.departures.expired += 1;
                }
                Some(false) => return self.free.push_front((touch, thread_id)),
            }
        }
    }

    /// Drops the thread without a stop that was touched longest ago, or else one with a stop that has been idle for too long; whether
    /// there was any. A stop is not dropped before that, whatever the clocks of other threads say.
    fn make_room(&mut self) -> bool {
        while let Some((touch, thread_id)) = self.free.pop_front() {
            if self.is_idle(touch, &thread_id).is_some() {
                self.slots.remove(&thread_id);
                self.departures.evicted += 1;
                return true;
            }
        }
        while let Some((touch, thread_id)) = self.stopped.pop_front() {
            match self.is_idle(touch, &thread_id) {
                None => {}
                Some(true) => {
                    self.slots.remove(&thread_id);
                    self.departures.expired += 1;
                    return true;
                }
                Some(false) => {
                    self.stopped.push_front((touch, thread_id));
                    return false;
                }
            }
        }
        false
    }

    /// Whether nobody has touched a thread for twice the idle limit; `None` for an entry that is stale.
    fn is_idle(&mut self, touch: u64, thread_id: &str) -> Option<bool> {
        let slot = self.slots.get_mut(thread_id).filter(|slot| slot.touch == touch)?;
        // Nothing had a time yet when it was touched: its idleness counts from now.
        slot.touched_ms = if slot.touched_ms == i64::MIN { self.stream_ms } else { slot.touched_ms };
        let idle_ms_max = self.limits.thread.idle_ms_max.saturating_mul(2);
        Some(self.stream_ms.saturating_sub(slot.touched_ms) > idle_ms_max)
    }
}

fn is_current(slots: &FxHashMap<Box<str>, Slot>, touch: u64, thread_id: &str) -> bool {
    slots.get(thread_id).is_some_and(|slot| slot.touch == touch)
}
