//! The blast radius: how many subjects a rule suspends, against how many there are.
//!
//! A provider may change its filter overnight, and half of all customers seem to be offenders. A rule that is about to suspend too many of
//! them stops, and a person has to look. Anybody can make up offenders, and active subjects, of their own tenant. So a tenant is measured by
//! itself first, and the rule stops for that tenant alone. Over all, no tenant weighs more than a few.
//!
//! ```text
//! of one tenant   suspended > 20                   and  50 × suspended > active                          paused for the tenant
//! over all        Σ min(suspended, 10) > 20        and  50 × Σ min(suspended, 10) > Σ min(active, 500)   paused for all
//! ```

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use tollgate_core::decide::signal::KeyKind;

use crate::state::rule_states::PauseScope;
use crate::subjects::{Counter, Subject, TenantTag};

/// As many subjects a rule may suspend in any case.
pub(crate) const SUSPENDED_FREE: u64 = 20;
/// One of so many active subjects a rule may suspend: 2 %.
pub(crate) const ACTIVE_PER_SUSPENDED: u64 = 50;
/// As many suspended subjects of a tenant count over all tenants: half of [`SUSPENDED_FREE`], so that it takes at least three tenants to pause
/// a rule for all.
const SUSPENDED_OF_TENANT_MAX: u64 = SUSPENDED_FREE / 2;
/// As many active subjects of a tenant count over all tenants: as many as the suspended ones of a tenant are measured by.
const ACTIVE_OF_TENANT_MAX: u64 = SUSPENDED_OF_TENANT_MAX * ACTIVE_PER_SUSPENDED;

const MINUTE_MS: i64 = 60_000;

/// How many subjects of each tenant, and without a tenant, had their latest signal, or their latest suspension, in each minute.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(BTreeMap<i64, FxHashMap<Option<TenantTag>, u64>>);

/// Who is active, and whom the rules have suspended.
#[derive(Debug, Default)]
pub(crate) struct Census {
    active: FxHashMap<KeyKind, Tally>,
    suspended: FxHashMap<u32, Tally>,
}

/// Returns the latest firing by which a rule suspended a subject, in any of its groups: a subject counts once, however many groups of a
/// rule's dimensions it is found in.
pub(crate) fn suspended_ms(subject: &mut Subject<'_>, rule: u32) -> Option<i64> {
    let places = 0..subject.counters.len();
    let is_of_rule = |counter: &Counter<'_>| counter.rule == rule && counter.is_on_ladder;
    let mut latest_ms = None;
    for at in places {
        if subject.counters.get(at).is_some_and(is_of_rule) {
            let opened = subject.open(at).ok();
            latest_ms = latest_ms.max(opened.and_then(|opened| opened.episode.as_ref()?.suspended_ms));
        }
    }
    latest_ms
}

impl Tally {
    /// Moves a subject of a tenant from the minute of one time to that of another, in milliseconds since the epoch.
    fn shift(&mut self, tenant: Option<TenantTag>, from_ms: Option<i64>, to_ms: Option<i64>) {
        let [from, to] = [from_ms, to_ms].map(|time_ms| time_ms.map(minute_of));
        if from == to {
            return;
        }
        if let Some(from) = from
            && let Some(counts) = self.0.get_mut(&from)
            && let Some(count) = counts.get_mut(&tenant)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&tenant);
            }
            if counts.is_empty() {
                self.0.remove(&from);
            }
        }
        if let Some(to) = to {
            *self.0.entry(to).or_default().entry(tenant).or_default() += 1;
        }
    }

    /// Returns how many subjects of a tenant are in the minute of a time or behind it.
    fn of_tenant(&self, tenant: Option<TenantTag>, since_ms: i64) -> u64 {
        self.0.range(minute_of(since_ms)..).filter_map(|(_, counts)| counts.get(&tenant)).sum()
    }

    /// Returns whether no other tenant has subjects in the minute of a time or behind it.
    fn has_no_other(&self, tenant: TenantTag, since_ms: i64) -> bool {
        let is_other = |other: &Option<TenantTag>| other.is_some_and(|other| other != tenant);
        !self.0.range(minute_of(since_ms)..).any(|(_, counts)| counts.keys().any(is_other))
    }

    /// Returns how many subjects are in the minute of a time or behind it, where no tenant counts more than `of_tenant_max`. It stops where
    /// there are `enough`.
    fn over_all(&self, since_ms: i64, of_tenant_max: u64, enough: u64) -> u64 {
        let (mut of_tenants, mut all) = (FxHashMap::<Option<TenantTag>, u64>::default(), 0);
        for (tenant, count) in self.0.range(minute_of(since_ms)..).flat_map(|(_, counts)| counts) {
            let of_tenant = of_tenants.entry(*tenant).or_default();
            let added = (*count).min(of_tenant_max.saturating_sub(*of_tenant));
            *of_tenant += added;
            all += added;
            if all >= enough {
                break;
            }
        }
        all
    }

    /// Returns the beginning of the latest minute, in milliseconds since the epoch.
    fn latest_ms(&self) -> Option<i64> {
        self.0.last_key_value().map(|(minute, _)| minute.saturating_mul(MINUTE_MS))
    }
}

fn minute_of(time_ms: i64) -> i64 {
    time_ms.div_euclid(MINUTE_MS)
}

impl Census {
    /// Notes the latest signal of a subject of a tenant, and the one before it.
    pub(crate) fn active(&mut self, kind: KeyKind, tenant: Option<TenantTag>, before_ms: Option<i64>, now_ms: Option<i64>) {
        self.active.entry(kind).or_default().shift(tenant, before_ms, now_ms);
    }

    /// Notes the latest suspension of a subject of a tenant by the rule with a number, and the one before it.
    pub(crate) fn suspended(&mut self, rule: u32, tenant: Option<TenantTag>, before_ms: Option<i64>, now_ms: Option<i64>) {
        self.suspended.entry(rule).or_default().shift(tenant, before_ms, now_ms);
    }

    /// Forgets whom a rule has suspended, and returns the end of the latest minute that it did so in, in milliseconds since the epoch.
    pub(crate) fn forget(&mut self, rule: u32) -> Option<i64> {
        let latest_ms = self.suspended.remove(&rule)?.latest_ms()?;
        Some(latest_ms.saturating_add(MINUTE_MS))
    }

    /// Returns for whom a rule has suspended too many since a time, in milliseconds since the epoch: a subject of a tenant, or without a
    /// tenant, is the latest of them. `None` if these are not too many.
    pub(crate) fn too_many(&self, rule: u32, kind: KeyKind, tenant: Option<TenantTag>, since_ms: i64) -> Option<PauseScope> {
        let suspended = self.suspended.get(&rule)?;
        // Counting the active ones takes longer, and most often it is not needed.
        let of_tenant = suspended.of_tenant(tenant, since_ms);
        if of_tenant > SUSPENDED_FREE && of_tenant.saturating_mul(ACTIVE_PER_SUSPENDED) > self.active_beside(kind, tenant, since_ms) {
            return Some(PauseScope::Tenant(tenant));
        }
        let over_all = suspended.over_all(since_ms, SUSPENDED_OF_TENANT_MAX, u64::MAX);
        let needed = over_all.saturating_mul(ACTIVE_PER_SUSPENDED);
        let active = || self.active.get(&kind).map_or(0, |tally| tally.over_all(since_ms, ACTIVE_OF_TENANT_MAX, needed));
        (over_all > SUSPENDED_FREE && active() < needed).then_some(PauseScope::All)
    }

    /// Returns how many subjects of a tenant are active. Where there is no other tenant, those of whom nothing but amounts is known are of it
    /// too.
    fn active_beside(&self, kind: KeyKind, tenant: Option<TenantTag>, since_ms: i64) -> u64 {
        let Some(active) = self.active.get(&kind) else { return 0 };
        let is_alone = tenant.is_some_and(|tenant| active.has_no_other(tenant, since_ms));
        active.of_tenant(tenant, since_ms) + if is_alone { active.of_tenant(None, since_ms) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::digest::Digest;

    fn tenant(id: u64) -> Option<TenantTag> {
        Some(TenantTag::of(&Digest::of(&id.to_be_bytes())))
    }

    /// Returns a census of tenants with so many active and so many suspended subjects each.
    fn census(tenants: &[(Option<TenantTag>, i64, i64)]) -> Census {
        let mut census = Census::default();
        for (tenant, active, suspended) in tenants {
            (0..*active).for_each(|_| census.active(KeyKind::User, *tenant, None, Some(0)));
            (0..*suspended).for_each(|_| census.suspended(7, *tenant, None, Some(0)));
        }
        census
    }

    fn too_many(tenants: &[(Option<TenantTag>, i64, i64)]) -> Option<PauseScope> {
        census(tenants).too_many(7, KeyKind::User, tenants[0].0, 0)
    }

    #[test]
    fn a_few_are_never_too_many_and_more_are_measured_by_all_of_the_tenant() {
        for whose in [None, tenant(1)] {
            assert_eq!(too_many(&[(whose, 20, 20)]), None, "20 of 20");
            assert_eq!(too_many(&[(whose, 21, 21)]), Some(PauseScope::Tenant(whose)));
            assert_eq!(too_many(&[(whose, 1_050, 21)]), None, "exactly 2 %");
            assert_eq!(too_many(&[(whose, 1_049, 21)]), Some(PauseScope::Tenant(whose)));
            assert_eq!(too_many(&[(whose, 1_049, 21), (tenant(2), 9_000, 0)]), Some(PauseScope::Tenant(whose)), "others do not count");
        }
        assert_eq!(too_many(&[(tenant(1), 49, 21), (None, 1_001, 0)]), None, "of whom amounts alone are known");
        assert_eq!(too_many(&[(tenant(1), 49, 21), (None, 1_001, 0), (tenant(2), 1, 0)]), Some(PauseScope::Tenant(tenant(1))));
    }

    #[test]
    fn over_all_a_tenant_is_weighed_by_ten_suspended_and_500_active_subjects() {
        let (one, two, three) = (tenant(1), tenant(2), tenant(3));
        assert_eq!(too_many(&[(one, 10, 10), (two, 9_000, 90)]), None, "two tenants are not all");
        assert_eq!(too_many(&[(one, 10, 10), (two, 10, 10), (three, 1, 1)]), Some(PauseScope::All));
        assert_eq!(too_many(&[(one, 10, 10), (two, 10, 10), (three, 1, 1), (tenant(4), 9_000, 0)]), Some(PauseScope::All), "a flood");
        assert_eq!(too_many(&[(one, 500, 10), (two, 500, 10), (three, 50, 1)]), None, "exactly 2 %");
        assert_eq!(too_many(&[(one, 500, 10), (two, 500, 10), (three, 49, 1)]), Some(PauseScope::All));
        let many: Vec<_> = (0..1_049).map(|id| (tenant(id), 1, i64::from(id < 21))).collect();
        assert_eq!(too_many(&many), Some(PauseScope::All), "tenants of one subject each");
        assert_eq!(too_many(&[many, vec![(None, 1, 0)]].concat()), None);
    }

    #[test]
    fn who_is_counted_again_is_counted_once_and_what_is_long_ago_is_not() {
        let mut census = census(&[(None, 0, 30)]);
        census.suspended(7, None, Some(0), Some(120_000));
        let is_too_much = |census: &Census, since_ms| census.too_many(7, KeyKind::User, None, since_ms).is_some();
        assert!(is_too_much(&census, 0) && !is_too_much(&census, 60_000));
        assert_eq!((census.forget(7), census.forget(7)), (Some(180_000), None));
        assert!(!is_too_much(&census, 0));
    }
}
