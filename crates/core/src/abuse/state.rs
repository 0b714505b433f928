//! What the abuse stage remembers of a partition, as state that checkpoints can hold.

use crate::checkpoint::{KeyedState, Malformed, StateError};
use crate::record::{Offset, StreamClock};

/// What is remembered of a partition of the signals topic.
#[derive(Debug, Default)]
pub struct AbuseState {
    clock: StreamClock,
}

/// What is remembered under one key.
#[derive(Debug)]
pub struct Entry {
    applied: Offset,
}

impl KeyedState for AbuseState {
    const KIND: &'static str = "abuse";
    type Entry = Entry;
    type Limits = ();

    fn encode(_: &Entry, _: &mut Vec<u8>) {}

    fn decode(_: &[u8]) -> Result<Entry, StateError> {
        Err(Malformed::Truncated.into())
    }

    fn applied(entry: &Entry) -> Offset {
        entry.applied
    }

    fn restored((): (), clock: StreamClock, _: impl IntoIterator<Item = (Box<str>, Entry)>) -> Self {
        Self { clock }
    }

    fn clock(&self) -> StreamClock {
        self.clock
    }

    fn len(&self) -> usize {
        0
    }

    fn bytes(&self) -> usize {
        0
    }

    fn take_changes(&mut self, _: impl FnMut(&str, Option<&Entry>)) {}

    fn take_change(&mut self, _: &str) -> Option<&Entry> {
        None
    }

    fn mark_changed(&mut self, _: &str) {}
}
