//! Pauses: for whom a rule suspends nobody until an operator lets it.

use tollgate_core::engine::wire::layout;

use crate::subjects::TenantTag;

/// For as many tenants a rule is paused one by one. With more of them it is paused for all.
pub(crate) const PAUSED_TENANTS_MAX: usize = 64;

/// For whom a rule is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PauseScope {
    /// For everybody.
    All,
    /// For the subjects of a tenant, or for those without a tenant.
    Tenant(Option<TenantTag>),
}

/// The pauses of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pauses {
    /// Whether it is paused for everybody.
    is_for_all: bool,
    /// The tenants for which it is paused, in the order in which it was; `None` stands for subjects without a tenant.
    tenants: Vec<Option<TenantTag>>,
}

impl Pauses {
    /// Returns whether the rule is paused for anybody.
    pub(crate) fn is_any(&self) -> bool {
        self.is_for_all || !self.tenants.is_empty()
    }

    /// Returns whether the rule is paused for the subjects of a tenant, or for those without a tenant.
    pub(crate) fn is_for(&self, tenant: Option<TenantTag>) -> bool {
        self.is_for_all || self.tenants.contains(&tenant)
    }

    /// Adds a pause, and returns for whom it is.
    pub(crate) fn add(&mut self, scope: PauseScope) -> PauseScope {
        match scope {
            PauseScope::Tenant(tenant) if self.tenants.len() < PAUSED_TENANTS_MAX => {
                self.tenants.push(tenant);
                scope
            }
            _ => {
                self.is_for_all = true;
                PauseScope::All
            }
        }
    }

    /// Ends all pauses, and returns them in the order in which they began.
    pub(crate) fn take(&mut self) -> Vec<PauseScope> {
        let Self { is_for_all, tenants } = std::mem::take(self);
        tenants.into_iter().map(PauseScope::Tenant).chain(is_for_all.then_some(PauseScope::All)).collect()
    }
}

layout! {
    Pauses { is_for_all, tenants }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::digest::Digest;

    #[test]
    fn with_too_many_tenants_it_is_paused_for_all() {
        let tenant = |n: usize| Some(TenantTag::of(&Digest::of(&n.to_be_bytes())));
        let mut pauses = Pauses::default();
        for n in 0..PAUSED_TENANTS_MAX {
            assert_eq!(pauses.add(PauseScope::Tenant(tenant(n))), PauseScope::Tenant(tenant(n)));
        }
        assert!(pauses.is_any() && pauses.is_for(tenant(1)) && !pauses.is_for(tenant(PAUSED_TENANTS_MAX)) && !pauses.is_for(None));
        assert_eq!(pauses.add(PauseScope::Tenant(None)), PauseScope::All);
        assert!(pauses.is_for(tenant(PAUSED_TENANTS_MAX)));
        assert_eq!((pauses.take().len(), pauses), (PAUSED_TENANTS_MAX + 1, Pauses::default()));
    }
}
