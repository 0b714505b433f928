//! A cache of subject hashes: agents ask again and again on behalf of the same few subjects.

use std::hash::{Hash, Hasher};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustc_hash::FxHasher;

use super::subject::Subject;
use crate::decide::ruling::SubjectKind;
use tollgate_json::digest::Digest;

/// How many subjects are remembered at most.
const SLOTS: usize = 4_096;
/// The most bytes of a subject's tenant and id together. A longer subject is hashed every time, so that the memory is bounded.
const BYTES_MAX: usize = 256;

/// One subject and its hash.
struct Entry {
    kind: SubjectKind,
    /// How many bytes of the text are the tenant's.
    tenant_bytes: usize,
    /// The tenant and the id in one piece, so that both are fetched at once.
    text: Box<str>,
    hash: Digest,
}

/// The hashes of recent subjects. A quick hash assigns each subject to one slot, where it replaces the subject before it. Each slot has a
/// lock, which is held for a comparison: members contend for it only if they ask for the same slot at the same moment.
#[derive(Default)]
pub(super) struct Recent {
    /// The slots, allocated when the first subject is to be remembered.
    slots: OnceLock<Box<[Mutex<Option<Entry>>]>>,
}

impl Recent {
    /// Returns the hash of a subject, from the cache or computed.
    pub(super) fn hash(&self, subject: &Subject<'_>, compute: impl FnOnce(&Subject<'_>) -> Digest) -> Digest {
        let slots = self.slots.get_or_init(|| (0..SLOTS).map(|_| Mutex::new(None)).collect());
        let Some(slot) = is_short(subject).then(|| slots.get(slot_of(subject))).flatten() else { return compute(subject) };
        if let Some(entry) = slot.lock().unwrap_or_else(PoisonError::into_inner).as_ref().filter(|entry| entry.is_of(subject)) {
            return entry.hash;
        }
        let hash = compute(subject);
        let text = [subject.tenant, subject.id].concat().into();
        let entry = Entry { kind: subject.kind, tenant_bytes: subject.tenant.len(), text, hash };
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(entry);
        hash
    }
}

impl std::fmt::Debug for Recent {
    /// Leaves the entries out, because ids must not be shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recent").finish_non_exhaustive()
    }
}

impl Entry {
    fn is_of(&self, subject: &Subject<'_>) -> bool {
        let is_alike = (self.kind, self.tenant_bytes) == (subject.kind, subject.tenant.len());
        is_alike && self.text.strip_prefix(subject.tenant) == Some(subject.id)
    }
}

/// Returns whether a subject is remembered.
pub(super) fn is_short(subject: &Subject<'_>) -> bool {
    subject.tenant.len() + subject.id.len() <= BYTES_MAX
}

/// Returns the slot of a subject. A sender whose ids fall on one slot only displaces others from it, which costs each a hash.
fn slot_of(subject: &Subject<'_>) -> usize {
    let mut hasher = FxHasher::default();
    subject.hash(&mut hasher);
    usize::try_from(hasher.finish() % SLOTS as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_hash_is_computed_once_while_its_slot_is_not_taken() {
        let recent = Recent::default();
        let computed = Cell::new(0);
        let hash = |kind, tenant, id| {
            recent.hash(&Subject { kind, tenant, id }, |subject| {
                computed.set(computed.get() + 1);
                Digest::of(subject.id.as_bytes())
            })
        };
        assert_eq!(hash(SubjectKind::User, "acme", "1"), Digest::of(b"1"));
        assert_eq!((hash(SubjectKind::User, "acme", "1"), computed.get()), (Digest::of(b"1"), 1));
        // Another kind or tenant is another subject.
        hash(SubjectKind::Agent, "acme", "1");
        hash(SubjectKind::User, "", "1");
        hash(SubjectKind::User, "", "acme1");
        assert_eq!(computed.get(), 4);
        let long = "x".repeat(BYTES_MAX + 1);
        assert_eq!(hash(SubjectKind::User, "", &long), hash(SubjectKind::User, "", &long));
        assert_eq!(computed.get(), 6);
    }

    #[test]
    fn no_more_subjects_are_remembered_than_there_are_slots() {
        let recent = Recent::default();
        for number in 0..3 * SLOTS {
            let id = number.to_string();
            let subject = Subject { kind: SubjectKind::User, tenant: "acme", id: &id };
            assert_eq!(recent.hash(&subject, |subject| Digest::of(subject.id.as_bytes())), Digest::of(id.as_bytes()));
        }
        let slots = recent.slots.get().unwrap();
        let taken = slots.iter().filter(|slot| slot.lock().unwrap().is_some()).count();
        assert!(slots.len() == SLOTS && taken > SLOTS / 2, "{taken}");
    }
}
