//! The subjects that signals are counted by: a kind and a hash, and the partition of the signals topic that they are on.

use crate::codes::codes;
use crate::decide::ruling::SubjectKind;
use crate::event::record::{Partition, partition_of};
use tollgate_json::digest::Digest;

codes! {
    /// The kind of what signals are counted by.
    KeyKind {
        /// An end user of a tenant.
        User = "user",
        /// A tenant.
        Tenant = "tenant",
        /// An agent of a tenant.
        Agent = "agent",
        /// A thread of a tenant.
        Thread = "thread",
        /// A call: a tool with its arguments, whoever makes it. It cannot be suspended.
        Call = "call",
    }
}

impl KeyKind {
    /// Returns the kind of subject that controls know it by; `None` for a call.
    #[must_use]
    pub fn subject_kind(self) -> Option<SubjectKind> {
        SubjectKind::from_name(self.as_str())
    }
}

impl From<SubjectKind> for KeyKind {
    fn from(kind: SubjectKind) -> Self {
        match kind {
            SubjectKind::User => Self::User,
            SubjectKind::Tenant => Self::Tenant,
            SubjectKind::Agent => Self::Agent,
            SubjectKind::Thread => Self::Thread,
        }
    }
}

/// The longest text of a subject, in bytes.
const KEY_BYTES_MAX: usize = 6 + 1 + 64;

/// A subject as signals, alerts and state name it: `<kind>/<64 hex digits>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubjectKey {
    /// The kind.
    pub kind: KeyKind,
    /// The subject's hash.
    pub hash: Digest,
}

impl SubjectKey {
    /// Reads a subject from its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, hash) = text.split_once('/')?;
        Some(Self { kind: KeyKind::from_name(kind)?, hash: Digest::parse(hash)? })
    }

    /// Returns the partition of the signals topic that its signals are on.
    #[must_use]
    pub fn partition(&self, partitions: u32) -> Partition {
        // The key is hashed for each signal, so that it is not allocated.
        let (mut text, kind, hash) = ([0; KEY_BYTES_MAX], self.kind.as_str().as_bytes(), self.hash.hex());
        let bytes = kind.iter().chain(b"/").chain(&hash);
        text.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        partition_of(text.get(..kind.len() + 1 + hash.len()).unwrap_or_default(), partitions)
    }
}

impl std::fmt::Display for SubjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind.as_str(), self.hash)
    }
}

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

    #[test]
    fn a_subject_is_on_the_partition_that_its_text_hashes_to() {
        for kind in KeyKind::ALL.iter().copied() {
            for number in 0..100 {
                let subject = SubjectKey { kind, hash: Digest::of(format!("{number}").as_bytes()) };
                let text = subject.to_string();
                assert!(text.len() <= KEY_BYTES_MAX);
                assert_eq!(SubjectKey::parse(&text), Some(subject));
                assert_eq!(subject.partition(16), partition_of(text.as_bytes(), 16), "{text}");
            }
        }
        assert_eq!(SubjectKey::parse("user/1"), None);
        assert_eq!(SubjectKey::parse(&format!("passport/{}", Digest::of(b"x"))), None);
    }

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
