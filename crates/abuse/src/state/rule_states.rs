//! What is remembered of the rules of a partition.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::RuleState;

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
