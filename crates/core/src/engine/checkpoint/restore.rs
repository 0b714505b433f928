//! Restoring a partition: the records of its state partition, in order, give its state.

use crate::event::record::Offset;

use super::{KeyedState, Latest, PartitionState, RekeyMark, StateError, StateOwner};

/// A restore that is under way. It is fed every record of a state partition, from its beginning.
#[derive(Debug)]
pub struct Restore<K: KeyedState>(Latest<K::Entry>);

/// The state of a partition as its records leave it.
#[derive(Debug)]
pub struct Restored<K> {
    /// The first event that is not in the state.
    pub next: Offset,
    /// The stage's state.
    pub state: K,
}

impl<K: KeyedState> Default for Restore<K> {
    fn default() -> Self {
        Self(Latest::default())
    }
}

impl<K: KeyedState> Restore<K> {
    /// Takes the record at an offset of the state topic.
    pub fn take(&mut self, offset: Offset, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.0.take::<K>(offset, key, value, |_, _, entry| entry);
    }

    /// Returns how many entries were read so far.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.0.entries.len()
    }

    /// Returns the state, or `None` if there are no records. `owner` is the owner that the state must name, with the number of partitions
    /// that it must be keyed for. State that does not say for how many it is keyed is taken.
    ///
    /// # Errors
    /// [`StateError`], with the offset of the record in the state topic if it is about a record.
    pub fn finish<'o>(
        self,
        owner: impl Into<StateOwner<'o>>,
        limits: K::Limits,
    ) -> Result<Option<Restored<K>>, (Option<Offset>, StateError)> {
        let Self(mut latest) = self;
        let owner: StateOwner<'_> = owner.into();
        if let Some((offset, error)) = latest.take_unreadable().into_iter().next() {
            return Err((Some(offset), error));
        }
        let Latest { entries, partition, mark, .. } = latest;
        if let Some(RekeyMark { from, to, .. }) = mark {
            return Err((None, StateError::Rekeying { from, to }));
        }
        let Some(PartitionState { owner: found, next, clock, partitions }) = partition else {
            return match entries.len() {
                0 => Ok(None),
                entries => Err((None, StateError::NoPartition { entries, kind: K::KIND })),
            };
        };
        if found != owner.name {
            return Err((None, StateError::Foreign { found, wanted: owner.name.to_owned() }));
        }
        if let (Some(found), Some(wanted)) = (partitions, owner.partitions)
            && found != wanted
        {
            return Err((None, StateError::OtherPartitions { found, wanted }));
        }
        if let Some(applied) = entries.values().map(K::applied).max().filter(|applied| *applied >= next) {
            return Err((None, StateError::Ahead { kind: K::KIND, applied, next }));
        }
        Ok(Some(Restored { next, state: K::restored(limits, clock, entries) }))
    }
}
