//! What is remembered of the rules of a partition: of each for whom it is paused, and its alerts of the minute.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::engine::wire::layout;
use tollgate_json::digest::Digest;

use crate::subjects::TenantTag;

/// What is remembered of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleState {
    /// Its number within the partition, by which subjects know it. It is never given to another rule.
    pub number: u32,
    /// The version of it that counted.
    pub version: Digest,
    /// Whether it has yet to be shown what came before it.
    pub is_warming: bool,
    /// For whom it enforces nothing, because it was about to suspend too many.
    pub pauses: Pauses,
    /// Up to when suspensions no longer count against it, in milliseconds since the epoch.
    pub forgiven_ms: Option<i64>,
    /// Its alerts of the minute.
    pub grouping: Grouping,
}

impl RuleState {
    /// Returns the time of a suspension, unless it no longer counts against the rule.
    pub(crate) fn counted(&self, suspended_ms: Option<i64>) -> Option<i64> {
        suspended_ms.filter(|time_ms| self.forgiven_ms.is_none_or(|forgiven_ms| *time_ms >= forgiven_ms))
    }
}

/// What is remembered of each rule, by its id, and which of it has changed since a checkpoint last saw it.
#[derive(Debug, Default)]
pub(crate) struct RuleStates {
    states: BTreeMap<Box<str>, RuleState>,
    /// Rules that have changed or are gone since a checkpoint last saw them.
    changed: BTreeSet<Box<str>>,
}

impl RuleStates {
    /// Returns what is remembered of a rule.
    pub(crate) fn get(&self, id: &str) -> Option<&RuleState> {
        self.states.get(id)
    }

    /// Returns the ids and states of all rules, in the order of the ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RuleState)> {
        self.states.iter().map(|(id, state)| (&**id, state))
    }

    /// Returns how many rules there are.
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// Changes what is remembered of a rule.
    pub(crate) fn change<T>(&mut self, id: &str, change: impl FnOnce(&mut RuleState) -> T) -> Option<T> {
        let state = self.states.get_mut(id)?;
        let before = state.clone();
        let result = change(state);
        if *state != before {
            self.changed.insert(id.into());
        }
        Some(result)
    }

    /// Adds a rule that is new to the partition.
    pub(crate) fn add(&mut self, id: &str, state: RuleState) {
        self.restore(id, state);
        self.changed.insert(id.into());
    }

    /// Forgets the rules that `is_there` does not know.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        let Self { states, changed } = self;
        changed.extend(states.keys().filter(|id| !is_there(id)).cloned());
        states.retain(|id, _| is_there(id));
    }

    /// Takes over the state of a checkpoint.
    pub(super) fn restore(&mut self, id: &str, state: RuleState) {
        self.states.insert(id.into(), state);
    }

    /// Takes the ids of the rules that have changed.
    pub(super) fn take_changes(&mut self) -> BTreeSet<Box<str>> {
        std::mem::take(&mut self.changed)
    }

    /// Notes that a checkpoint has to see a rule.
    pub(crate) fn mark_changed(&mut self, id: &str) {
        self.changed.insert(id.into());
    }

    /// Notes that a checkpoint has seen a rule.
    pub(super) fn unmark(&mut self, id: &str) {
        self.changed.remove(id);
    }
}

/// As many alerts a rule raises in a minute, one by one.
pub(crate) const ALERTS_PER_MINUTE_MAX: u32 = 20;

pub(crate) const MINUTE_MS: i64 = 60_000;

/// The alerts of one rule in the current minute of the partition's time. Where a rule raises very many, it raises one for the rest of them.
/// Nothing is muted: they are counted in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Grouping {
    /// The minute, since the epoch.
    minute: i64,
    /// How many alerts it has raised.
    raised: u32,
    /// How many it has left to the grouped one.
    grouped: u32,
}

/// A minute that is over, and how many alerts its grouped one stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    /// The beginning of the minute, in milliseconds since the epoch.
    pub from_ms: i64,
    /// How many alerts it stands for.
    pub alerts: u32,
}

impl Grouping {
    /// Returns the group of the minute before, if there is one and it is over by `now_ms`.
    pub(crate) fn flush(&mut self, now_ms: i64) -> Option<Group> {
        if self.grouped == 0 || now_ms.div_euclid(MINUTE_MS) <= self.minute {
            return None;
        }
        let group = Group { from_ms: self.minute.saturating_mul(MINUTE_MS), alerts: self.grouped };
        self.grouped = 0;
        Some(group)
    }

    /// Counts an alert, and returns whether it is raised by itself. What is over has to be flushed before.
    pub(crate) fn raises(&mut self, now_ms: i64) -> bool {
        let minute = now_ms.div_euclid(MINUTE_MS);
        // While a source has not told its time, that of the signals goes back and forth.
        if minute > self.minute {
            (self.minute, self.raised) = (minute, 0);
        }
        let is_raised = self.raised < ALERTS_PER_MINUTE_MAX;
        let count = if is_raised { &mut self.raised } else { &mut self.grouped };
        *count = count.saturating_add(1);
        is_raised
    }

    /// Returns when a grouped alert is due, in milliseconds since the epoch.
    pub(crate) fn due_ms(&self) -> Option<i64> {
        (self.grouped > 0).then(|| self.minute.saturating_add(1).saturating_mul(MINUTE_MS))
    }
}

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

/// The pauses of a rule: for whom it suspends nobody until an operator lets it.
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
    RuleState { number, version, is_warming, pauses, forgiven_ms, grouping }
    Grouping { minute, raised, grouped }
    Pauses { is_for_all, tenants }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::digest::Digest;

    #[test]
    fn beyond_so_many_a_minute_they_are_grouped() {
        let mut grouping = Grouping::default();
        let raised = (0..50).filter(|at| grouping.raises(60_000 + at)).count();
        assert_eq!((raised, grouping.due_ms(), grouping.flush(119_999)), (20, Some(120_000), None));
        assert_eq!(grouping.flush(120_000), Some(Group { from_ms: 60_000, alerts: 30 }));
        assert_eq!((grouping.flush(120_000), grouping.due_ms(), grouping.raises(120_000)), (None, None, true));
    }

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
