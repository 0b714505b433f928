//! What the blast radius is told of a subject: to which tenant it belongs, when it was active, and when which rule suspended it.

use std::collections::BTreeSet;

use tollgate_core::decide::signal::{KeyKind, SubjectKey};

use super::Counters;
use crate::alerts::blast_radius;
use crate::subjects::{Subject, TenantTag};

impl Counters {
    /// Notes that a subject was active at a time, in milliseconds since the epoch, and the tenant that its signal names.
    pub(super) fn note_active(&mut self, key: &SubjectKey, subject: &mut Subject<'_>, tenant: Option<TenantTag>, time_ms: Option<i64>) {
        self.learn_tenant(key, subject, tenant);
        let latest_ms = subject.active_ms.max(time_ms);
        self.alerts.census.active(key.kind, subject.tenant, subject.active_ms, latest_ms);
        subject.active_ms = latest_ms;
    }

    /// Notes the tenant of a subject, as a signal names it, unless it is known. Amounts name no tenant, so that it may come to be known later
    /// than the subject. A tenant is a subject of its own, and counts among all tenants.
    fn learn_tenant(&mut self, key: &SubjectKey, subject: &mut Subject<'_>, tenant: Option<TenantTag>) {
        if tenant.is_none() || subject.tenant.is_some() || key.kind == KeyKind::Tenant {
            return;
        }
        self.tell_census(key, subject, |time_ms| (time_ms, None));
        subject.tenant = tenant;
        self.tell_census(key, subject, |time_ms| (None, time_ms));
    }

    /// Tells the census of a subject's latest signal and of its latest suspension by each rule. `change` makes of each of these times the one
    /// before and the one from now on.
    pub(super) fn tell_census(
        &mut self,
        key: &SubjectKey,
        subject: &mut Subject<'_>,
        change: impl Fn(Option<i64>) -> (Option<i64>, Option<i64>),
    ) {
        let (before_ms, now_ms) = change(subject.active_ms);
        self.alerts.census.active(key.kind, subject.tenant, before_ms, now_ms);
        let numbers: BTreeSet<u32> = subject.counters.iter().filter(|counter| counter.is_on_ladder).map(|counter| counter.rule).collect();
        for number in numbers {
            let suspended_ms = blast_radius::suspended_ms(subject, number);
            let Some((_, rule)) = self.program.numbered(number) else { continue };
            let Some(state) = self.state.rules.get(&rule.id) else { continue };
            let (before_ms, now_ms) = change(state.counted(suspended_ms));
            self.alerts.census.suspended(number, subject.tenant, before_ms, now_ms);
        }
    }
}
