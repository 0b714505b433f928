//! What firings lead to: a place on a ladder, a suspension within the blast radius, and alerts that are grouped where there are too many.

pub(crate) mod alert;
pub(crate) mod blast_radius;
pub(crate) mod control;
pub(crate) mod firing;
mod ladder;
mod pause;

use std::collections::BTreeSet;

use crate::outcome::{Action, AlertRecord, FoldContext, Status};
use crate::program::Program;
use crate::rules::Rule;
use crate::state::rule_states::{MINUTE_MS, RuleStates};
use alert::{Alert, describe, id_about};
use blast_radius::Census;

/// What the alerts of a partition need beside its state, made anew from it.
#[derive(Debug, Default)]
pub(crate) struct Alerts {
    /// Who is active, and who is suspended by which rule.
    pub census: Census,
    /// Rules that have a grouped alert to raise.
    grouped: BTreeSet<usize>,
}

/// The rules at work on one record.
#[derive(Debug)]
pub(crate) struct Enforcement<'a> {
    pub program: &'a Program,
    pub states: &'a mut RuleStates,
    pub alerts: &'a mut Alerts,
    pub context: &'a mut FoldContext,
}

impl Alerts {
    /// Finds the rules that have a grouped alert to raise.
    pub(crate) fn restore_groups(&mut self, program: &Program, states: &RuleStates) {
        let has_group = |rule: &Rule| states.get(&rule.id).is_some_and(|state| state.grouping.due_ms().is_some());
        self.grouped = program.rules().rules.iter().enumerate().filter(|(_, rule)| has_group(rule)).map(|(at, _)| at).collect();
    }

    /// Returns when the next grouped alert is due, in milliseconds since the epoch.
    pub(crate) fn next_due_ms(&self, program: &Program, states: &RuleStates) -> Option<i64> {
        let due_ms = |at: &usize| states.get(&program.rule(*at)?.id)?.grouping.due_ms();
        self.grouped.iter().filter_map(due_ms).min()
    }
}

impl Enforcement<'_> {
    /// Raises an alert of a rule, or leaves it to the grouped one if there were too many within the minute. Who is suspended is told of in any
    /// case, with the evidence: of these there are no more than the blast radius lets through.
    pub(crate) fn raise(&mut self, at: usize, at_ms: i64, record: AlertRecord) {
        let Some(rule) = self.program.rule(at) else { return };
        let now_ms = self.context.now_ms.unwrap_or(at_ms);
        self.flush_group(rule, at, now_ms);
        let is_raised = record.awaits_control || self.states.change(&rule.id, |state| state.grouping.raises(now_ms)).unwrap_or(true);
        if is_raised {
            self.context.folded.counts.rule(at, |counts| counts.alerts += 1);
            self.context.folded.alerts.push(record);
        } else {
            self.context.folded.counts.rule(at, |counts| counts.grouped += 1);
            self.alerts.grouped.insert(at);
        }
    }

    /// Raises the grouped alerts of all rules whose minute is over.
    pub(crate) fn flush_groups(&mut self, now_ms: i64) {
        if self.alerts.grouped.is_empty() {
            return;
        }
        for at in self.alerts.grouped.clone() {
            self.program.rule(at).into_iter().for_each(|rule| self.flush_group(rule, at, now_ms));
        }
    }

    fn flush_group(&mut self, rule: &Rule, at: usize, now_ms: i64) {
        let Some(group) = self.states.change(&rule.id, |state| state.grouping.flush(now_ms)).flatten() else { return };
        self.alerts.grouped.remove(&at);
        let key = format!("rule/{}", rule.id);
        let message = format!("{} more alerts of rule {} within a minute, each {}", group.alerts, rule.id, describe(rule));
        let to_ms = group.from_ms.saturating_add(MINUTE_MS);
        // Each partition has a group of its own.
        let alert_id = id_about(&format!("{key} {}", self.context.partition), group.from_ms, Action::None);
        let alert = Alert { alert_id, ..Alert::about(&key, group.from_ms, rule.level, Action::None, message) };
        let (count, window) = (f64::from(group.alerts), Some((group.from_ms, to_ms)));
        let alert = Alert { rule: Some(rule), status: Status::Grouped, count, window, ..alert };
        self.context.folded.counts.rule(at, |counts| counts.alerts += 1);
        self.context.folded.alerts.push(alert.record(key, false));
    }
}
