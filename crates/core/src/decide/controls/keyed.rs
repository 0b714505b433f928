//! The keys of subject hashes: subjects are written under the first one and looked up under all.

use super::recent::{Recent, is_short};
use super::subject::{Prefix, Subject, SubjectHasher};
use crate::decide::ruling::SubjectKind;
use tollgate_json::digest::Digest;

/// The keys of subject hashes, each with the hashes of recent subjects under it.
#[derive(Debug)]
pub(super) struct Keyed {
    first: Key,
    /// Keys that were the first one once. Only what was written under them is still found.
    earlier: Box<[Key]>,
}

/// One key, or none at all.
#[derive(Debug)]
struct Key {
    hasher: SubjectHasher,
    recent: Recent,
}

/// What the hashes of one event's subjects begin with, for a tenant that is too long to be remembered: a thread may lie below hundreds of threads,
/// and the tenant is hashed once for all of them.
#[derive(Default)]
pub(super) struct Prefixes {
    /// Whether the event's tenant has a NUL; `None` while that was not asked.
    tenant_has_nul: Option<bool>,
    /// By key, kind, and whether tenant or id has a NUL.
    prefixes: Vec<((usize, SubjectKind, bool), Prefix)>,
}

impl Prefixes {
    fn hash(&mut self, index: usize, hasher: &SubjectHasher, subject: &Subject<'_>) -> Digest {
        if subject.kind == SubjectKind::Tenant {
            return hasher.hash(subject);
        }
        let has_nul = *self.tenant_has_nul.get_or_insert_with(|| subject.tenant.contains('\0')) || subject.id.contains('\0');
        let wanted = (index, subject.kind, has_nul);
        if let Some((_, prefix)) = self.prefixes.iter().find(|(found, _)| *found == wanted) {
            return prefix.clone().finish(subject.id);
        }
        let prefix = hasher.prefix(subject, has_nul);
        self.prefixes.push((wanted, prefix.clone()));
        prefix.finish(subject.id)
    }
}

impl Keyed {
    /// Returns these keys in order. Without any, subjects are hashed without a key.
    pub(super) fn new<'k>(keys: impl IntoIterator<Item = &'k str>) -> Self {
        let mut keys = keys.into_iter();
        let first = Key::new(keys.next());
        Self { first, earlier: keys.map(|key| Key::new(Some(key))).collect() }
    }

    /// Returns the first key's hasher.
    pub(super) fn hasher(&self) -> &SubjectHasher {
        &self.first.hasher
    }

    /// Returns the fingerprint of each key, in their order.
    pub(super) fn fingerprints(&self) -> impl Iterator<Item = String> {
        std::iter::once(&self.first).chain(&self.earlier).filter_map(|key| key.hasher.fingerprint())
    }

    /// Returns the hash of a subject under the first key.
    pub(super) fn hash(&self, subject: &Subject<'_>) -> Digest {
        self.first.hash(subject)
    }

    /// Returns the hashes of a subject under every key, each computed when it is asked for. `prefixes` are those of the subject's event.
    pub(super) fn hashes(&self, subject: &Subject<'_>, prefixes: &mut Prefixes) -> impl Iterator<Item = Digest> {
        let keys = std::iter::once(&self.first).chain(&self.earlier).enumerate();
        keys.map(|(index, key)| if is_short(subject) { key.hash(subject) } else { prefixes.hash(index, &key.hasher, subject) })
    }
}

impl Key {
    fn new(key: Option<&str>) -> Self {
        Self { hasher: SubjectHasher::new(key), recent: Recent::default() }
    }

    fn hash(&self, subject: &Subject<'_>) -> Digest {
        self.recent.hash(subject, |subject| self.hasher.hash(subject))
    }
}
