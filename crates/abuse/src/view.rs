//! What is remembered of a subject, for people to read.

use serde::Serialize;

use tollgate_core::decide::signal::SubjectKey;
use tollgate_json::time::rfc_3339;

use super::rules::Rule;
use super::stage::Abuse;
use super::subjects::{Opened, Subject};

/// What is remembered of a subject.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubjectView {
    /// The partition's time, which the counts are of, as RFC 3339; `None` before any source has told its time.
    pub clock: Option<String>,
    /// The end of the suspension in force, as RFC 3339; `None` if there is none.
    pub until: Option<String>,
    /// What each rule counts of it, in the order in which it began to.
    pub counters: Vec<CounterView>,
}

/// What one rule counts of a subject.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterView {
    /// The rule's id.
    pub rule: String,
    /// The combination of the rule's dimensions, as a JSON object; empty for a rule that has none.
    pub group: String,
    /// What there is in the window that ends with the partition's time.
    pub count: f64,
    /// What there has to be for the rule to fire. A baseline shows its floor, and a ratio its share.
    pub threshold: f64,
    /// The step of the rule's ladder that the subject is on, counted from 1; `None` if it is on none.
    pub step: Option<u32>,
    /// How many steps the ladder has.
    pub steps: usize,
    /// When the subject goes a step down unless the rule fires before, as RFC 3339.
    pub descends: Option<String>,
    /// The end of the suspension that this rule brought, as RFC 3339.
    pub until: Option<String>,
}

impl Abuse {
    /// Returns what is remembered of a subject; `None` if nothing is, or nothing that can be read.
    #[must_use]
    pub fn view(&self, key: &SubjectKey) -> Option<SubjectView> {
        let at = self.counters.state.subjects.find(key)?;
        let mut subject = Subject::read(self.counters.state.subjects.packed(at)).ok()?;
        let mut counters = Vec::with_capacity(subject.counters.len());
        for at in 0..subject.counters.len() {
            let Some((_, rule)) = subject.counters.get(at).and_then(|counter| self.counters.program.numbered(counter.rule)) else {
                continue;
            };
            let group = subject.counters.get(at).map(|counter| counter.group.to_string()).unwrap_or_default();
            let Ok(opened) = subject.open(at) else { continue };
            counters.push(counter_view(rule, group, opened, self.clock_ms()));
        }
        Some(SubjectView {
            clock: self.clock_ms().and_then(rfc_3339),
            until: subject.control.and_then(|control| rfc_3339(control.until_ms)),
            counters,
        })
    }
}

fn counter_view(rule: &Rule, group: String, opened: &Opened, clock_ms: Option<i64>) -> CounterView {
    let (count, threshold) = opened.window.amount(rule, clock_ms);
    let episode = opened.episode.as_ref();
    CounterView {
        rule: rule.id.clone(),
        group,
        count,
        threshold,
        step: episode.map(|episode| episode.step),
        steps: rule.ladder.steps.len().max(1),
        descends: episode.and_then(|episode| rfc_3339(episode.descends_ms)),
        until: episode.and_then(|episode| episode.until_ms).and_then(rfc_3339),
    }
}
