//! The trait of state that checkpoints can hold: entries under keys, with the changes since the last checkpoint.

use crate::event::record::{Departures, Offset, StreamClock};

use super::StateError;

/// The state that a stage holds for a partition: entries under keys.
///
/// It tracks which entries have changed since the last checkpoint, and which entries of earlier checkpoints are gone. Everything in it is a
/// function of the records, so restored state and state that was never away decide alike.
pub trait KeyedState: Sized {
    /// The name of the entries. Their records have the key `<kind>/<key>`.
    const KIND: &'static str;
    /// What is remembered under one key.
    type Entry;
    /// The limits on what may be remembered.
    type Limits: Copy + std::fmt::Debug;

    /// Writes an entry. The first byte is the version of the encoding.
    fn encode(entry: &Self::Entry, out: &mut Vec<u8>);

    /// Reads an entry that this version or an earlier one has written.
    ///
    /// # Errors
    /// [`StateError::Newer`] if a newer version wrote it, [`StateError::Malformed`] if it cannot be read.
    fn decode(value: &[u8]) -> Result<Self::Entry, StateError>;

    /// Returns the offset of the last record that was applied to an entry.
    fn applied(entry: &Self::Entry) -> Offset;

    /// Returns the state with the entries of a checkpoint, at the time of that checkpoint.
    fn restored(limits: Self::Limits, clock: StreamClock, entries: impl IntoIterator<Item = (Box<str>, Self::Entry)>) -> Self;

    /// Returns the partition's time.
    fn clock(&self) -> StreamClock;

    /// Returns how many entries there are.
    fn len(&self) -> usize;

    /// Returns whether there are no entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns about how many bytes all entries take.
    fn bytes(&self) -> usize;

    /// Returns what the state has let go of to stay within its limits, since it was made.
    fn departures(&self) -> Departures {
        Departures::default()
    }

    /// Calls `show` for every change since the last time: first for keys that are gone, with `None`, then for keys that have changed, with
    /// their entry.
    fn take_changes(&mut self, show: impl FnMut(&str, Option<&Self::Entry>));

    /// Returns an entry as if it had just been shown, whether it has changed or not; `None` if there is none.
    fn take_change(&mut self, key: &str) -> Option<&Self::Entry>;

    /// Marks an entry so that the next [`KeyedState::take_changes`] shows it again, because the checkpoint that it was shown for was
    /// refused.
    fn mark_changed(&mut self, key: &str);
}
