//! The thread store as state that checkpoints can hold.

use crate::engine::checkpoint::{KeyedState, StateError, decode, encode_into};
use crate::event::record::{Departures, Offset, StreamClock};

use super::{StoreLimits, StoredThread, ThreadStore};

impl KeyedState for ThreadStore {
    const KIND: &'static str = "thread";
    type Entry = StoredThread;
    type Limits = StoreLimits;

    fn encode(entry: &StoredThread, out: &mut Vec<u8>) {
        encode_into(entry, out);
    }

    fn decode(value: &[u8]) -> Result<StoredThread, StateError> {
        decode(value)
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

/// Reads the value of a thread's record.
///
/// # Errors
/// [`StateError::Newer`] or [`StateError::Malformed`].
pub fn read_thread(value: &[u8]) -> Result<StoredThread, StateError> {
    decode(value)
}
