//! A rule that was about to suspend too many is paused, for a tenant or for all: it suspends none of them until an operator lets it.

use tollgate_core::decide::signal::KeyKind;

use super::Enforcement;
use super::alert::{Alert, id_about, span};
use crate::outcome::{Action, Status};
use crate::rules::{Level, Rule};
use crate::state::rule_states::PauseScope;
use crate::subjects::TenantTag;

impl Enforcement<'_> {
    /// Pauses a rule.
    pub(super) fn pause(&mut self, rule: &Rule, scope: PauseScope) {
        let pause = self.states.change(&rule.id, |state| (state.pauses.add(scope), state.number, state.forgiven_ms));
        let Some((scope, number, forgiven_ms)) = pause else { return };
        let (whose, whom) = match scope {
            PauseScope::All => (", weighed over all tenants".to_owned(), "nobody"),
            PauseScope::Tenant(None) if rule.group_by.kind == KeyKind::Tenant => (String::new(), "nobody"),
            PauseScope::Tenant(None) => (" that name no tenant".to_owned(), "none of these"),
            PauseScope::Tenant(Some(tenant)) => (format!(" of tenant {tenant}"), "none of these"),
        };
        let message = format!(
            "rule {id} was about to suspend more than 2 % of the active subjects of partition {partition}{whose}, within {timespan}: it suspends {whom} until `tollgate abuse resume {id}`",
            id = rule.id,
            partition = self.context.partition,
            timespan = span(rule.timespan_ms),
        );
        self.tell_of_rule(rule, (scope, number, forgiven_ms), (Status::Firing, Action::EnforcementPaused), &message);
    }

    /// Ends all pauses of a rule. Whom it has suspended so far no longer counts against it.
    pub(crate) fn resume_rule(&mut self, id: &str) {
        let Some(number) = self.states.get(id).filter(|state| state.pauses.is_any()).map(|state| state.number) else { return };
        let latest_ms = self.alerts.census.forget(number);
        let forgiven_ms = latest_ms.max(self.context.now_ms);
        let pauses = self.states.change(id, |state| {
            let forgiven_ms = state.forgiven_ms.max(forgiven_ms);
            (state.pauses.take(), std::mem::replace(&mut state.forgiven_ms, forgiven_ms))
        });
        let Some((rule, (scopes, forgiven_ms))) = self.program.rules().rules.iter().find(|rule| rule.id == id).zip(pauses) else { return };
        let message = format!("rule {id} may suspend again on partition {}, as an operator has asked for", self.context.partition);
        for scope in scopes {
            self.tell_of_rule(rule, (scope, number, forgiven_ms), (Status::Ended, Action::EnforcementResumed), &message);
        }
    }

    /// Raises an alert that a rule enforces nothing any more, or again. Both have one id, made of the rule's number, of whom the pause is for,
    /// and of the time up to which suspensions were forgiven when it was paused.
    fn tell_of_rule(
        &mut self,
        rule: &Rule,
        (scope, number, forgiven_ms): (PauseScope, u32, Option<i64>),
        (status, action): (Status, Action),
        message: &str,
    ) {
        let key = format!("rule/{}", rule.id);
        let (whose, group) = match scope {
            PauseScope::All => (" all".to_owned(), String::new()),
            PauseScope::Tenant(None) => Default::default(),
            PauseScope::Tenant(Some(tenant)) => (format!(" {tenant}"), format!(r#"{{"tenant":"{tenant}"}}"#)),
        };
        let about = format!("{key} {} {number}{whose}", self.context.partition);
        let alert_id = id_about(&about, forgiven_ms.unwrap_or(i64::MIN), Action::EnforcementPaused);
        let alert = Alert::about(&key, 0, Level::Critical, action, message.to_owned());
        self.context.folded.alerts.push(Alert { alert_id, rule: Some(rule), status, group: &group, ..alert }.record(key, false));
    }

    /// Notes that a subject is down from a rule's ladder in one of its groups: when the rule last suspended it in any of them, with and
    /// without that one.
    pub(crate) fn suspended_otherwise(
        &mut self,
        (number, id): (u32, &str),
        tenant: Option<TenantTag>,
        (before_ms, now_ms): (Option<i64>, Option<i64>),
    ) {
        let Some(state) = self.states.get(id) else { return };
        self.alerts.census.suspended(number, tenant, state.counted(before_ms), state.counted(now_ms));
    }
}
