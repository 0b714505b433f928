//! The thread store as state that checkpoints can hold.

use crate::record::{Departures, Offset, StreamClock};
use crate::thread::{StoreLimits, StoredThread, ThreadStore};

use super::{KeyedState, StateError, encode_into, read_thread};

impl KeyedState for ThreadStore {
    const KIND: &'static str = "thread";
    type Entry = StoredThread;
    type Limits = StoreLimits;

    fn encode(entry: &StoredThread, out: &mut Vec<u8>) {
        encode_into(entry, out);
    }

    fn decode(value: &[u8]) -> Result<StoredThread, StateError> {
        read_thread(value)
    }

    fn applied(entry: &StoredThread) -> Offset {
        entry.applied
    }

    fn restored(limits: StoreLimits, clock: StreamClock, entries: impl IntoIterator<Item = (Box<str>, StoredThread)>) -> Self {
        Self::restored(limits, clock, entries)
    }

    fn clock(&self) -> StreamClock {
        self.clock()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn departures(&self) -> Departures {
        self.departures()
    }

    fn take_changes(&mut self, show: impl FnMut(&str, Option<&StoredThread>)) {
        self.take_changes(show);
    }

    fn take_change(&mut self, key: &str) -> Option<&StoredThread> {
        self.take_change(key)
    }

    fn mark_changed(&mut self, key: &str) {
        self.mark_changed(key);
    }
}
