//! State under keys, as checkpoints see it: what has changed, and how an entry is written and read.

use crate::record::{Departures, Offset, StreamClock};

use super::StateError;

/// What a stage remembers of a partition, under keys.
///
/// It knows which entries have changed since a checkpoint last asked, and which of those that a checkpoint has seen are gone. Everything
/// in it is a function of the records, so state that is restored and state that was never away decide alike.
pub trait KeyedState: Sized {
    /// What the entries are called. Their records have the key `<kind>/<key>`.
    const KIND: &'static str;
    /// What is remembered under one key.
    type Entry;
    /// How much may be remembered.
    type Limits: Copy + std::fmt::Debug;

    /// Writes an entry. The first byte is the version of the encoding.
    fn encode(entry: &Self::Entry, out: &mut Vec<u8>);

    /// Reads an entry, of this version or an earlier one.
    ///
    /// # Errors
    /// [`StateError::Newer`] or [`StateError::Malformed`].
    fn decode(value: &[u8]) -> Result<Self::Entry, StateError>;

    /// Returns the offset of the last record that was applied to an entry.
    fn applied(entry: &Self::Entry) -> Offset;

    /// Returns the state that held these entries at this time.
    fn restored(limits: Self::Limits, clock: StreamClock, entries: impl IntoIterator<Item = (Box<str>, Self::Entry)>) -> Self;

    /// Returns the partition's time.
    fn clock(&self) -> StreamClock;

    /// Returns how many entries there are.
    fn len(&self) -> usize;

    /// Returns whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of all entries, about.
    fn bytes(&self) -> usize;

    /// Returns what was let go of to keep within the limits, since the state was made.
    fn departures(&self) -> Departures {
        Departures::default()
    }

    /// Shows every change since the last time: keys that are gone, with `None`, and then those that are there, as they are now.
    fn take_changes(&mut self, show: impl FnMut(&str, Option<&Self::Entry>));

    /// Returns one entry as if it had been shown, whether it has changed or not; `None` if it is not there.
    fn take_change(&mut self, key: &str) -> Option<&Self::Entry>;

    /// Has an entry shown again by the next [`KeyedState::take_changes`], because what was shown came to nothing.
    fn mark_changed(&mut self, key: &str);
}
