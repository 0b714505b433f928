//! Subjects: those that a suspension can be about, by kind and hash. Ids never leave the process that hashes them.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

use crate::decide::ruling::SubjectKind;
use crate::event::decode::Event;
use tollgate_json::digest::Digest;

/// How many hex digits of a key's hash are its fingerprint.
const FINGERPRINT_DIGITS: usize = 16;

/// A subject with its id in the clear. It is hashed and never written anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Subject<'a> {
    /// The kind of subject.
    pub kind: SubjectKind,
    /// The tenant that it belongs to; empty without a tenant, and for a tenant itself.
    pub tenant: &'a str,
    /// Its id.
    pub id: &'a str,
}

impl<'a> Subject<'a> {
    /// Returns the subjects of a kind that an event is on behalf of. There is more than one for a subagent, whose thread is
    /// `<parent thread>/<child>`: its own thread comes first and then every thread above it, the nearest first.
    pub fn all_of(event: &'a Event<'_>, kind: SubjectKind) -> impl Iterator<Item = Self> {
        std::iter::successors(Self::of(event, kind), |below| {
            let (above, _) = (below.kind == SubjectKind::Thread).then(|| below.id.rsplit_once('/')).flatten()?;
            // No thread has an empty id.
            (!above.is_empty()).then_some(Self { id: above, ..*below })
        })
    }

    /// Returns the subject of a kind that an event is itself on behalf of, if it names one. An empty id names nobody: all those who send none
    /// would be one.
    #[must_use]
    pub fn of(event: &'a Event<'_>, kind: SubjectKind) -> Option<Self> {
        let attribution = &event.attribution;
        let id = match kind {
            SubjectKind::User => attribution.user_id.as_deref()?,
            SubjectKind::Tenant => attribution.tenant_id.as_deref()?,
            SubjectKind::Agent => attribution.agent_id.as_deref()?,
            SubjectKind::Thread => &event.thread_id,
        };
        let tenant = if kind == SubjectKind::Tenant { "" } else { attribution.tenant_id.as_deref().unwrap_or_default() };
        (!id.is_empty()).then_some(Self { kind, tenant, id })
    }
}

impl std::fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Hashes subjects: HMAC-SHA-256 under the configured key, or plain SHA-256 without one.
#[derive(Clone)]
pub struct SubjectHasher {
    /// The key's HMAC state, which every hash starts from; `None` without a key.
    keyed: Option<Hmac<Sha256>>,
}

impl SubjectHasher {
    /// Returns a hasher under this key, or without a key.
    #[must_use]
    pub fn new(key: Option<&str>) -> Self {
        Self { keyed: key.map(|key| keyed(key.as_bytes())) }
    }

    /// Returns whether there is a key. Without one, anybody who can guess an id can compute its hash.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.keyed.is_some()
    }

    /// Returns the hash of `kind NUL tenant NUL id`. Where tenant or id has a NUL of its own, it is the hash of `kind NUL NUL NUL`, the length of
    /// the tenant in 8 bytes, tenant and id, so that no two subjects are one.
    #[must_use]
    pub fn hash(&self, subject: &Subject<'_>) -> Digest {
        let has_nul = subject.tenant.contains('\0') || subject.id.contains('\0');
        self.prefix(subject, has_nul).finish(subject.id)
    }

    /// Returns what the hashes of all subjects of this kind and tenant begin with. `has_nul` says whether tenant or id has a NUL.
    pub(super) fn prefix(&self, subject: &Subject<'_>, has_nul: bool) -> Prefix {
        let (kind, tenant) = (subject.kind.as_str().as_bytes(), subject.tenant.as_bytes());
        if has_nul {
            return self.begin(&[kind, b"\0\0\0", &(tenant.len() as u64).to_be_bytes(), tenant]);
        }
        self.begin(&[kind, b"\0", tenant, b"\0"])
    }

    /// Returns the hash of a call: of `call NUL NUL tool NUL args_hash`. It has no tenant, because the same call in many tenants is one
    /// thing: a document that tells agents what to call reaches them all.
    #[must_use]
    pub fn call_hash(&self, tool_name: &str, args_hash: &Digest) -> Digest {
        self.begin(&[b"call\0\0", tool_name.as_bytes(), b"\0"]).finish(args_hash.hex())
    }

    /// Returns the fingerprint of the key, as 16 hex digits: keys with different fingerprints are different keys. It is a hash of a constant
    /// under the key, from which nobody can compute the key, nor the hash of a subject. `None` without a key.
    #[must_use]
    pub fn fingerprint(&self) -> Option<String> {
        self.is_keyed().then(|| self.begin(&[b"fingerprint\0\0"]).finish("").to_string().chars().take(FINGERPRINT_DIGITS).collect())
    }

    fn begin(&self, parts: &[&[u8]]) -> Prefix {
        match &self.keyed {
            Some(keyed) => {
                let mut mac = keyed.clone();
                parts.iter().for_each(|part| mac.update(part));
                Prefix::Keyed(mac)
            }
            None => {
                let mut hasher = Sha256::new();
                parts.iter().for_each(|part| hasher.update(part));
                Prefix::Plain(hasher)
            }
        }
    }
}

/// A hash that has begun with a subject's kind and tenant, and goes on with an id.
#[derive(Clone)]
pub(super) enum Prefix {
    Keyed(Hmac<Sha256>),
    Plain(Sha256),
}

impl Prefix {
    /// Returns the hash that ends with these bytes.
    pub(super) fn finish(self, id: impl AsRef<[u8]>) -> Digest {
        let bytes: [u8; 32] = match self {
            Self::Keyed(mac) => mac.chain_update(id).finalize().into_bytes().into(),
            Self::Plain(hasher) => hasher.chain_update(id).finalize().into(),
        };
        Digest::from_bytes(bytes)
    }
}

impl std::fmt::Debug for SubjectHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubjectHasher").field("is_keyed", &self.is_keyed()).finish()
    }
}

/// Returns the HMAC state of a key, which may have any length. A key longer than a block counts as its digest, a shorter one is padded with
/// zeros.
fn keyed(key: &[u8]) -> Hmac<Sha256> {
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    let short: [u8; 32];
    let bytes = if key.len() > block.len() {
        short = Sha256::digest(key).into();
        short.as_slice()
    } else {
        key
    };
    block.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    Hmac::new(&block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(key: &[u8], data: &[u8]) -> String {
        let mut mac = keyed(key);
        mac.update(data);
        Digest::from_bytes(mac.finalize().into_bytes().into()).to_string()
    }

    /// These are cases 1, 2 and 6 of RFC 4231.
    #[test]
    fn keys_of_any_length_give_the_published_macs() {
        for (key, data, expected) in [
            (vec![0x0b; 20], "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (b"Jefe".to_vec(), "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (
                vec![0xaa; 131],
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(mac(&key, data.as_bytes()), expected);
        }
    }

    #[test]
    fn a_subject_is_kind_tenant_and_id() {
        let subject = |kind, tenant, id| Subject { kind, tenant, id };
        let user = subject(SubjectKind::User, "acme", "42");
        let glued = [("a\0b", "c"), ("a", "b\0c"), ("", "a\0b\0c"), ("a\0", "b\0c")];
        let glued: std::collections::HashSet<Digest> =
            glued.into_iter().map(|(tenant, id)| SubjectHasher::new(None).hash(&Subject { kind: SubjectKind::User, tenant, id })).collect();
        assert_eq!(glued.len(), 4, "a NUL makes no two subjects one");
        assert_eq!(SubjectHasher::new(None).hash(&user), Digest::of(b"user\0acme\x0042"));
        let keyed = SubjectHasher::new(Some("k"));
        assert_eq!(keyed.hash(&user).to_string(), mac(b"k", b"user\0acme\x0042"));
        let others = [
            subject(SubjectKind::User, "other", "42"),
            subject(SubjectKind::User, "", "42"),
            subject(SubjectKind::Agent, "acme", "42"),
            subject(SubjectKind::User, "acme", "43"),
        ];
        assert!(others.iter().all(|other| keyed.hash(other) != keyed.hash(&user)));
        assert!(keyed.hash(&user) != SubjectHasher::new(Some("l")).hash(&user));
        assert!(!format!("{user:?} {keyed:?}").contains("42"));
    }

    #[test]
    fn a_fingerprint_is_of_the_key_alone_and_no_subjects_hash() {
        let of = |key| SubjectHasher::new(key).fingerprint();
        let published = mac(b"k", b"fingerprint\0\0");
        assert_eq!(of(Some("k")).as_deref(), published.get(..16));
        assert!(of(Some("k")) != of(Some("l")) && of(None).is_none());
    }
}
