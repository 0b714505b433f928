//! The tenant of a subject, by the beginning of its hash.

use std::fmt;

use tollgate_core::engine::wire::{Input, Malformed, Wire};
use tollgate_json::digest::Digest;

/// A tenant, by the first four bytes of its hash: enough to tell the tenants of a partition apart, and little beside what a subject takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TenantTag(u32);

impl TenantTag {
    /// Returns the tag of the tenant with a hash.
    pub(crate) fn of(hash: &Digest) -> Self {
        Self((hash.first_u64() >> u32::BITS) as u32)
    }
}

/// The first eight digits of the tenant's hash.
impl fmt::Display for TenantTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// A hash is as long as any other, so that all four bytes are written as they are.
impl Wire for TenantTag {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_be_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.array().map(u32::from_be_bytes).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_the_beginning_of_the_hash() {
        let hash = Digest::of(b"acme");
        let tag = TenantTag::of(&hash);
        assert!(hash.to_string().starts_with(&tag.to_string()));
        let mut out = Vec::new();
        tag.write(&mut out);
        assert_eq!((out.len(), Input::new(1, &out).whole()), (4, Ok(tag)));
    }
}
