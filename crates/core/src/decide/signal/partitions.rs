//! The partitions of subjects on the signals topic.

use crate::event::record::Partition;

use super::SubjectKey;

/// For how many subjects the partition is remembered.
const SLOTS: usize = 1_024;

/// The partitions of the signals topic that subjects are on. Those of recent subjects are remembered, because a subject is hashed as text.
///
/// A subject's hash assigns it to one slot, where it replaces the subject before it.
#[derive(Debug)]
pub struct SubjectPartitions {
    partitions: u32,
    slots: Box<[Option<(SubjectKey, Partition)>]>,
}

impl SubjectPartitions {
    /// Returns those of a topic with so many partitions.
    #[must_use]
    pub fn new(partitions: u32) -> Self {
        Self { partitions, slots: vec![None; SLOTS].into() }
    }

    /// Returns a subject's partition.
    pub fn of(&mut self, subject: SubjectKey) -> Partition {
        let slot = subject.hash.first_u64() as usize % SLOTS;
        match self.slots.get_mut(slot) {
            Some(Some((known, partition))) if *known == subject => *partition,
            Some(slot) => slot.insert((subject, subject.partition(self.partitions))).1,
            None => subject.partition(self.partitions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::signal::KeyKind;
    use tollgate_json::digest::Digest;

    #[test]
    fn what_is_remembered_is_what_is_computed() {
        let mut partitions = SubjectPartitions::new(7);
        for round in 0..2 {
            for number in 0..3 * SLOTS {
                for kind in [KeyKind::User, KeyKind::Agent] {
                    let subject = SubjectKey { kind, hash: Digest::of(&number.to_be_bytes()) };
                    assert_eq!(partitions.of(subject), subject.partition(7), "{round} {number}");
                    assert_eq!(partitions.of(subject), subject.partition(7), "{round} {number}");
                }
            }
        }
    }
}
