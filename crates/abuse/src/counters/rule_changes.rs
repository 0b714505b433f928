//! Taking over the state of a checkpoint: which of its rules are still there, and what follows from the subjects' bytes alone.
//!
//! What the clock waits for, who goes first when memory is used up, and how many are active and suspended is not in the checkpoint. It is
//! made anew from the subjects.

use std::collections::BTreeSet;

use super::Counters;
use crate::program::Program;
use crate::rules::{AbuseRules, Rule};
use crate::state::AbuseState;
use crate::state::rule_states::{Grouping, Pauses, RuleState};
use crate::subjects::{SlotKey, Subject};
use crate::window::Window;

/// The numbers of rules whose counters begin anew.
type RestartedRules = BTreeSet<u32>;

/// Gives each rule its number within the partition, and drops the rules that are no longer there. Returns the numbers of all rules, and of
/// those whose counters begin anew.
pub(super) fn apply_rule_changes(rules: &AbuseRules, state: &mut AbuseState) -> (Vec<u32>, RestartedRules) {
    let is_new_partition = state.is_new();
    state.rules.retain(|id| rules.rules.iter().any(|rule| rule.id == id));
    let mut restarted = RestartedRules::new();
    let mut numbers = Vec::with_capacity(rules.rules.len());
    for rule in &rules.rules {
        let version = rule.version;
        let known = state.rules.get(&rule.id).map(|known| (known.number, known.is_in_force(rule)));
        let number = known.map_or(state.own.next_rule, |(number, _)| number);
        numbers.push(number);
        match known {
            Some((_, true)) => {}
            Some((_, false)) => {
                // A warming that did not end begins anew.
                state.rules.change(&rule.id, |known| (known.version, known.is_warming) = (version, true));
                state.rules.mark_changed(&rule.id);
                restarted.insert(number);
            }
            None => {
                state.own.next_rule = state.own.next_rule.saturating_add(1);
                let (is_warming, grouping) = (!is_new_partition, Grouping::default());
                state
                    .rules
                    .add(&rule.id, RuleState { number, version, is_warming, pauses: Pauses::default(), forgiven_ms: None, grouping });
            }
        }
    }
    (numbers, restarted)
}

impl RuleState {
    /// Returns whether this is the state of a rule as it is now, which has seen what it needs of the log.
    fn is_in_force(&self, rule: &Rule) -> bool {
        self.version == rule.version && !self.is_warming
    }
}

impl Counters {
    /// Makes of the subjects what is not in the checkpoint. Counters of rules that are gone are dropped, and those of changed rules emptied;
    /// who is on the ladder of a changed rule stays on it.
    pub(crate) fn apply_rule_changes_to_subjects(&mut self, restarted: &RestartedRules) {
        for at in self.state.subjects.places() {
            self.apply_rule_changes_to(at, restarted);
        }
        self.alerts.restore_groups(&self.program, &self.state.rules);
    }

    fn apply_rule_changes_to(&mut self, at: SlotKey, restarted: &RestartedRules) {
        let Some(key) = self.state.subjects.key(at) else { return };
        let before = self.state.subjects.take(at);
        let Ok(mut subject) = Subject::read(&before) else { return self.state.subjects.remove(at) };
        let is_changed = drop_old(&mut subject, &self.program, restarted);
        // What is looked at by the clock has to be opened.
        (0..subject.counters.len()).for_each(|place| _ = subject.open(place));
        subject.active_ms = subject.active_ms.filter(|_| self.program.active_ms(key.kind).is_some());
        self.tell_census(&key, &mut subject, |time_ms| (None, time_ms));
        self.expect(at, &key, &subject);
        if is_changed && subject.control.is_some() {
            // Its suspension may have been that of a rule that is gone.
            let soon = self.state.own.done_s.saturating_add(1);
            self.state.subjects.expect(at, soon);
        }
        let stamp = subject.stamp(&mut self.buffer);
        drop(subject);
        self.state.subjects.rank(at, stamp);
        self.state.subjects.put(at, before, stamp, &self.buffer);
    }
}

/// Drops the counters of rules that are gone, and empties those that begin anew. Returns whether there were any.
fn drop_old(subject: &mut Subject<'_>, program: &Program, restarted: &RestartedRules) -> bool {
    let mut is_changed = false;
    let mut place = 0;
    while let Some(counter) = subject.counters.get(place) {
        let (number, id, is_on_ladder) = (counter.rule, counter.id, counter.is_on_ladder);
        let rule = program.numbered(number).map(|(_, rule)| rule);
        match rule {
            Some(rule) if restarted.contains(&number) && is_on_ladder => {
                is_changed = true;
                subject.evidence.release(id);
                if let Ok(opened) = subject.open(place) {
                    opened.renew(Window::of(rule));
                }
                subject.settle(place, rule);
                place += 1;
            }
            Some(_) if !restarted.contains(&number) => place += 1,
            _ => {
                is_changed = true;
                subject.remove(place);
            }
        }
    }
    is_changed
}
