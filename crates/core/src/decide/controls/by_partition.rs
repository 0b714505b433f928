//! The last record of a key on each partition of the controls topic.
//!
//! Producers that agree on a partitioner keep a key on one partition, and the last record there is the last of all. Where producers do not
//! agree, a key stands on several partitions, and Kafka gives these records no order. So a record replaces records of its own partition alone,
//! and the strictest of the partitions counts: no record lifts what stands on another partition, whichever is read first.

use super::change::Effect;
use super::record::{HoldsUntil, SubjectState};
use super::switches::Switches;
use crate::event::record::Partition;

/// What the last record of a key says, in the order of partitions. There is hardly ever more than one.
#[derive(Debug, Clone)]
pub(super) struct ByPartition<T>(Vec<(Partition, T)>);

impl<T> Default for ByPartition<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByPartition<T> {
    /// Puts what a record says in place of what its partition said, or removes that.
    pub(super) fn set(&mut self, partition: Partition, said: Option<T>) -> Effect {
        let place = self.0.binary_search_by_key(&partition, |(of, _)| *of);
        let (Ok(at) | Err(at)) = place;
        let was_set = place.map(|at| self.0.remove(at)).is_ok();
        match said {
            Some(said) => {
                self.0.insert(at, (partition, said));
                Effect::Set
            }
            None if was_set => Effect::Removed,
            None => Effect::Absent,
        }
    }

    /// Returns what each partition says.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, said)| said)
    }

    /// Returns whether no partition says anything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The control records of one subject.
#[derive(Debug, Default)]
pub(super) struct SubjectRecords {
    pub(super) operators: ByPartition<SubjectState>,
    pub(super) machines: ByPartition<HoldsUntil>,
}

impl SubjectRecords {
    /// Returns what all partitions say together.
    pub(super) fn switches(&self) -> Switches {
        Switches {
            operators: self.operators.iter().cloned().reduce(SubjectState::stricter),
            machines: self.machines.iter().cloned().reduce(HoldsUntil::later),
        }
    }

    /// Returns whether there is no record.
    pub(super) fn is_empty(&self) -> bool {
        self.operators.is_empty() && self.machines.is_empty()
    }
}

impl SubjectState {
    /// Returns the stricter of two states: a suspension before an exemption, the longer of two suspensions, the shorter of two exemptions.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Suspended(one), Self::Suspended(other)) => Self::Suspended(one.later(other)),
            (Self::Exempt(one), Self::Exempt(other)) if one.end_ms() <= other.end_ms() => Self::Exempt(one),
            (Self::Exempt(_), other) => other,
            (suspended, _) => suspended,
        }
    }
}

impl HoldsUntil {
    /// Returns the end, in milliseconds since the epoch; the last moment there is if there is no end.
    fn end_ms(&self) -> i64 {
        self.until_ms.unwrap_or(i64::MAX)
    }

    /// Returns the one of two that holds longer.
    pub(super) fn later(self, other: Self) -> Self {
        if self.end_ms() >= other.end_ms() { self } else { other }
    }
}
