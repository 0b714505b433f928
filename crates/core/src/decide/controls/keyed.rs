//! The keys of subject hashes: subjects are written under the first one and looked up under all.

use super::recent::Recent;
use super::subject::{Subject, SubjectHasher};
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

    /// Returns the hashes of a subject under every key, each computed when it is asked for.
    pub(super) fn hashes(&self, subject: &Subject<'_>) -> impl Iterator<Item = Digest> {
        std::iter::once(&self.first).chain(&self.earlier).map(|key| key.hash(subject))
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
