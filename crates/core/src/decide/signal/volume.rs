//! Volumes: amounts of one subject in one second, with the events that they come from.

use crate::event::record::{Offset, Partition};

use super::{SubjectKey, VolumeKind};

/// The amounts of one subject in one second of event time, from one partition of the events topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// What was measured.
    pub kind: VolumeKind,
    /// The subject.
    pub subject: SubjectKey,
    /// The partition of the events topic.
    pub source: Partition,
    /// The second, since the epoch.
    pub second: i64,
    /// The offset of each event, ascending, with its amount. They stand one by one, so that a reader can leave out those that it has counted
    /// already.
    pub amounts: Vec<(Offset, u64)>,
}

impl Volume {
    /// Returns the sum of the amounts behind an offset, which is the last one that was counted already.
    #[must_use]
    pub fn sum_behind(&self, applied: Option<Offset>) -> u64 {
        let is_new = |offset: &Offset| applied.is_none_or(|applied| *offset > applied);
        self.amounts.iter().filter(|(offset, _)| is_new(offset)).fold(0, |sum, (_, amount)| sum.saturating_add(*amount))
    }

    /// Returns the offset of its last event.
    #[must_use]
    pub fn last(&self) -> Option<Offset> {
        self.amounts.last().map(|(offset, _)| *offset)
    }
}
