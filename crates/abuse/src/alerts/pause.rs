//! A rule that was about to suspend too many is paused: it suspends nobody until an operator lets it.

use super::Enforcement;
use super::alert::{Alert, id_about, span};
use crate::outcome::{Action, Status};
use crate::rules::{Level, Rule};

impl Enforcement<'_> {
    /// Pauses a rule.
    pub(super) fn pause(&mut self, rule: &Rule) {
        let pause = self.states.change(&rule.id, |state| {
            state.is_paused = true;
            (state.number, state.forgiven_ms)
        });
        let message = format!(
            "rule {} was about to suspend more than 2 % of the active subjects of partition {} within {}: it suspends nobody until `tollgate abuse resume {}`",
            rule.id,
            self.context.partition,
            span(rule.timespan_ms),
            rule.id
        );
        pause.into_iter().for_each(|pause| self.tell_of_rule(rule, pause, (Status::Firing, Action::EnforcementPaused), &message));
    }

    /// Lets a paused rule enforce again. Whom it has suspended so far no longer counts against it.
    pub(crate) fn resume_rule(&mut self, id: &str) {
        let Some(number) = self.states.get(id).filter(|state| state.is_paused).map(|state| state.number) else { return };
        let latest_ms = self.alerts.census.forget(number);
        let forgiven_ms = latest_ms.max(self.context.now_ms);
        let pause = self.states.change(id, |state| {
            state.is_paused = false;
            let forgiven_ms = state.forgiven_ms.max(forgiven_ms);
            (state.number, std::mem::replace(&mut state.forgiven_ms, forgiven_ms))
        });
        let Some((rule, pause)) = self.program.rules().rules.iter().find(|rule| rule.id == id).zip(pause) else { return };
        let message = format!("rule {id} may suspend again on partition {}, as an operator has asked for", self.context.partition);
        self.tell_of_rule(rule, pause, (Status::Ended, Action::EnforcementResumed), &message);
    }

    /// Raises an alert that a rule enforces nothing any more, or again. Both have one id, made of the rule's number and the time up to which
    /// suspensions were forgiven when it was paused.
    fn tell_of_rule(&mut self, rule: &Rule, (number, forgiven_ms): (u32, Option<i64>), (status, action): (Status, Action), message: &str) {
        let key = format!("rule/{}", rule.id);
        let about = format!("{key} {} {number}", self.context.partition);
        let alert_id = id_about(&about, forgiven_ms.unwrap_or(i64::MIN), Action::EnforcementPaused);
        let alert = Alert::about(&key, 0, Level::Critical, action, message.to_owned());
        self.context.folded.alerts.push(Alert { alert_id, rule: Some(rule), status, ..alert }.record(key, false));
    }

    /// Notes that a subject is down from a rule's ladder in one of its groups: when the rule last suspended it in any of them, before that
    /// and without that one.
    pub(crate) fn suspended_otherwise(&mut self, number: u32, id: &str, before_ms: Option<i64>, now_ms: Option<i64>) {
        let Some(state) = self.states.get(id) else { return };
        self.alerts.census.suspended(number, state.counted(before_ms), state.counted(now_ms));
    }
}
