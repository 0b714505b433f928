//! The tenants' shares of a store: how many of its threads hold a stop, for each tenant.
//!
//! A thread that holds a stop does not make room, so whoever has many of them keeps others out. Each tenant may have so many and no more.
//! A thread counts for the tenant whose event brought it to its stop, until it holds none any more. Threads of events that name no tenant
//! count for nobody: where tenants matter, the orchestrator names them.

use std::collections::HashMap;

use tollgate_json::digest::Fingerprint;

/// A tenant as a thread remembers it: eight bytes of the digest of its id, or nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TenantMark(pub(crate) u64);

impl TenantMark {
    /// The mark of a thread that holds no stop, and of one whose events name no tenant.
    pub const NOBODY: Self = Self(0);

    /// Returns the mark of a tenant.
    #[must_use]
    pub fn of(tenant_id: Option<&str>) -> Self {
        let Some(tenant_id) = tenant_id else { return Self::NOBODY };
        let fingerprint = Fingerprint::of(tenant_id);
        let word = fingerprint.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        // One tenant in 2^64 would be nobody.
        Self(word.max(1))
    }
}

/// How many threads with a stop each tenant has.
#[derive(Debug, Default)]
pub(super) struct Shares {
    counts: HashMap<TenantMark, usize>,
    /// The threads of all tenants together.
    all: usize,
}

impl Shares {
    /// Counts a thread that holds a stop now.
    pub(super) fn add(&mut self, mark: TenantMark) {
        if mark != TenantMark::NOBODY {
            *self.counts.entry(mark).or_default() += 1;
            self.all += 1;
        }
    }

    /// Counts a thread no longer.
    pub(super) fn remove(&mut self, mark: TenantMark) {
        let Some(count) = self.counts.get_mut(&mark) else { return };
        *count -= 1;
        self.all -= 1;
        if *count == 0 {
            self.counts.remove(&mark);
        }
    }

    /// Returns whether some tenant may have used up a share of so many threads. This is rare, and cheap to ask.
    pub(super) fn are_scarce(&self, share: usize) -> bool {
        self.all >= share
    }

    /// Returns whether this tenant has used up a share of so many threads.
    pub(super) fn is_used_up(&self, tenant_id: Option<&str>, share: usize) -> bool {
        self.are_scarce(share) && self.counts.get(&TenantMark::of(tenant_id)).is_some_and(|count| *count >= share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_has_a_share_and_nobody_has_none() {
        let mut shares = Shares::default();
        let [acme, nobody] = [Some("acme"), None].map(TenantMark::of);
        (0..3).for_each(|_| shares.add(acme));
        (0..9).for_each(|_| shares.add(nobody));
        assert!(shares.is_used_up(Some("acme"), 3) && !shares.is_used_up(Some("acme"), 4));
        assert!(!shares.is_used_up(Some("other"), 3) && !shares.is_used_up(None, 3));
        shares.remove(acme);
        shares.remove(nobody);
        assert!(!shares.is_used_up(Some("acme"), 3) && shares.is_used_up(Some("acme"), 2));
        (0..2).for_each(|_| shares.remove(acme));
        assert!(shares.counts.is_empty() && shares.all == 0, "a tenant without a thread is not remembered");
    }

    #[test]
    fn a_mark_tells_tenants_apart_and_is_never_nobodys() {
        assert_ne!(TenantMark::of(Some("acme")), TenantMark::of(Some("other")));
        assert_ne!(TenantMark::of(Some("")), TenantMark::NOBODY);
        assert_eq!(TenantMark::of(None), TenantMark::NOBODY);
    }
}
