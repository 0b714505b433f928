//! What the rules against abuse of both sides find in the traffic, whom they suspend, and which calls that blocks.
//!
//! A subject's threads lie on all partitions, and a suspension is in force from the next event on. So where rules are compared, the traffic is
//! decided on in one thread, in the order in which it stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use memchr::memmem;
use rustc_hash::FxHashSet;
use serde::Serialize;
use tollgate_abuse::{AbuseRules, Action, Folded};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::deciding::VerdictBuffer;
use tollgate_core::decide::signal::SubjectKey;
use tollgate_core::event::record::Record;

use crate::{Follower, LocalAbuse, Uncounted};

use super::flip::Side;

/// The code of calls of suspended subjects.
const SUSPENDED: &str = "subject_suspended";
/// What the message of such a verdict says where a rule brought the suspension.
const BY_RULE: &[u8] = b"is suspended: abuse rule ";
/// The type of the events that a suspension blocks.
const CALL: &str = "tool_call";
/// How many subjects of a rule are named.
const EXAMPLES_MAX: usize = 5;
/// Both sides count on one partition of signals: what they find depends on it only where memory or the blast radius of rules is at its limit.
const SIGNAL_PARTITIONS: u32 = 1;

/// The rules of one side, with the controls that they switch.
#[derive(Debug, Clone)]
pub struct SideRules {
    /// The rules.
    pub rules: Arc<AbuseRules>,
    /// The controls that suspensions by the rules are added to.
    pub controls: Arc<Controls>,
}

/// Counting for both sides.
#[derive(Debug)]
pub(super) struct Fleets {
    fleets: [LocalAbuse; 2],
    caught: [Caught; 2],
    calls: u64,
    blocked: [u64; 2],
    gained: u64,
    lost: u64,
    /// The topic of the first record: signals are of one topic.
    source: Option<String>,
}

/// Whom the rules of a side have caught.
#[derive(Debug)]
struct Caught {
    side: SideRules,
    rules: BTreeMap<String, CaughtByRule>,
    uncounted: Uncounted,
}

/// Whom a rule has caught.
#[derive(Debug, Default)]
struct CaughtByRule {
    caught: FxHashSet<SubjectKey>,
    suspended: FxHashSet<SubjectKey>,
    is_paused: bool,
}

/// What was found, as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Suspensions {
    /// Tool calls that both sides decided on.
    pub calls: u64,
    /// Those that suspensions by rules blocked, on each side.
    pub blocked: [u64; 2],
    /// Calls that a suspension blocks on the second side and not on the first.
    pub suspended: u64,
    /// Calls that a suspension blocks on the first side and not on the second.
    pub freed: u64,
    /// By rule, in the order of their ids.
    pub rules: Vec<RuleFound>,
    /// What was left out on each side, in words.
    pub uncounted: [Vec<String>; 2],
}

/// Whom a rule finds on each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleFound {
    /// The rule's id.
    pub rule: String,
    /// Subjects that the rule fired on, in whatever mode, on each side.
    pub caught: [usize; 2],
    /// Subjects that were suspended, on each side.
    pub suspended: [usize; 2],
    /// Subjects that only the second side catches.
    pub gained: usize,
    /// Subjects that only the first side catches.
    pub lost: usize,
    /// Whether the rule ended paused, because it was about to suspend too many, on each side.
    pub paused: [bool; 2],
    /// Some of those whom the sides treat differently.
    pub examples: Examples,
}

/// Some subjects, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Examples {
    /// Of those that only the second side catches.
    pub gained: Vec<String>,
    /// Of those that only the first side catches.
    pub lost: Vec<String>,
    /// Of those that only the second side suspends.
    pub suspended: Vec<String>,
}

impl Examples {
    /// Returns the lists, each with what it is.
    pub fn lists(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        let all = [("gained", &self.gained), ("lost", &self.lost), ("suspended by B alone", &self.suspended)];
        all.into_iter().filter(|(_, list)| !list.is_empty()).map(|(what, list)| (what, list.as_slice()))
    }
}

impl Fleets {
    /// Returns what counts by the rules of both sides. `topic` is the signals topic.
    pub(super) fn new(topic: &str, sides: &[SideRules; 2]) -> Self {
        Self {
            fleets: sides.each_ref().map(|side| LocalAbuse::new(topic, &side.rules, SIGNAL_PARTITIONS)),
            caught: sides.clone().map(|side| Caught { side, rules: BTreeMap::new(), uncounted: Uncounted::default() }),
            calls: 0,
            blocked: [0; 2],
            gained: 0,
            lost: 0,
            source: None,
        }
    }

    /// Counts an event that both sides have decided on. What follows is in force for the next one.
    ///
    /// # Errors
    /// The records are of more than one topic.
    pub(super) fn event(&mut self, record: &Record<'_>, outs: &[VerdictBuffer; 2]) -> anyhow::Result<()> {
        let source = self.source.get_or_insert_with(|| record.topic.to_owned());
        anyhow::ensure!(source == record.topic, "found records of the topics {source} and {}; abuse is counted of one topic", record.topic);
        for ((local_abuse, caught), out) in self.fleets.iter_mut().zip(&mut self.caught).zip(outs) {
            local_abuse.event((record.partition, record.offset), record.timestamp_ms, &out.signals, caught)?;
        }
        Ok(())
    }

    /// Counts what both sides say of an event, in the share of the threads that is counted.
    pub(super) fn said(&mut self, event_type: &str, sides: [&Side; 2], outs: &[VerdictBuffer; 2]) {
        if event_type != CALL {
            return;
        }
        self.calls += 1;
        let by_rule = |at: usize| {
            let (side, out) = (sides.get(at), outs.get(at));
            side.is_some_and(|side| side.code == SUSPENDED) && out.is_some_and(|out| memmem::find(&out.json, BY_RULE).is_some())
        };
        let [from, to] = [by_rule(0), by_rule(1)];
        let [first, second] = &mut self.blocked;
        (*first, *second) = (*first + u64::from(from), *second + u64::from(to));
        let [from_any, to_any] = sides.map(|side| side.code == SUSPENDED);
        self.gained += u64::from(to && !from_any);
        self.lost += u64::from(from && !to_any);
    }

    /// Ends the counting, and returns what was found.
    ///
    /// # Errors
    /// A control of the stage is refused.
    pub(super) fn finish(mut self) -> anyhow::Result<Suspensions> {
        for (local_abuse, caught) in self.fleets.iter_mut().zip(&mut self.caught) {
            local_abuse.tick(caught)?;
        }
        let [one, other] = &self.caught;
        let ids: std::collections::BTreeSet<_> = one.rules.keys().chain(other.rules.keys()).collect();
        let nobody = CaughtByRule::default();
        let rules =
            ids.into_iter().map(|id| RuleFound::of(id, one.rules.get(id).unwrap_or(&nobody), other.rules.get(id).unwrap_or(&nobody)));
        let uncounted = self.caught.each_ref().map(|caught| caught.uncounted.sentences().collect());
        let (calls, blocked, rules) = (self.calls, self.blocked, rules.collect());
        Ok(Suspensions { calls, blocked, suspended: self.gained, freed: self.lost, rules, uncounted })
    }
}

impl RuleFound {
    fn of(rule: &str, one: &CaughtByRule, other: &CaughtByRule) -> Self {
        Self {
            rule: rule.to_owned(),
            caught: [one.caught.len(), other.caught.len()],
            suspended: [one.suspended.len(), other.suspended.len()],
            gained: other.caught.difference(&one.caught).count(),
            lost: one.caught.difference(&other.caught).count(),
            paused: [one.is_paused, other.is_paused],
            examples: Examples {
                gained: some(other.caught.difference(&one.caught)),
                lost: some(one.caught.difference(&other.caught)),
                suspended: some(other.suspended.difference(&one.suspended)),
            },
        }
    }
}

fn some<'s>(subjects: impl Iterator<Item = &'s SubjectKey>) -> Vec<String> {
    let mut names: Vec<_> = subjects.map(SubjectKey::to_string).collect();
    names.sort_unstable();
    names.truncate(EXAMPLES_MAX);
    names
}

impl Caught {
    /// Returns what is known of a rule, by its index.
    fn rule(&mut self, at: usize) -> Option<&mut CaughtByRule> {
        let rule = self.side.rules.rules.get(at)?;
        Some(self.rules.entry(rule.id.clone()).or_default())
    }
}

impl Follower for Caught {
    fn follow(&mut self, _: &Record<'_>, folded: Folded) -> anyhow::Result<()> {
        for control in &folded.controls {
            let applied = self.side.controls.apply(Some(control.key.as_bytes()), control.value.as_deref());
            applied.map_err(|rejection| anyhow::anyhow!("a control of the abuse stage is refused: {rejection}"))?;
        }
        // Alerts would tell less: those of a minute may be in one, and a rule in shadow mode raises none.
        for firing in &folded.firings {
            let Some(rule) = self.rule(firing.rule) else { continue };
            rule.caught.insert(firing.subject);
            if firing.action == Some(Action::Suspended) {
                rule.suspended.insert(firing.subject);
            }
        }
        for at in &folded.counts.paused_rules {
            self.rule(*at).into_iter().for_each(|rule| rule.is_paused = true);
        }
        self.uncounted.add(&folded);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::decide::signal::KeyKind;
    use tollgate_json::digest::Digest;

    use super::*;

    #[test]
    fn who_is_gained_and_who_is_lost_is_counted_by_rule() {
        let of = |ids: &[&str]| {
            ids.iter().map(|id| SubjectKey { kind: KeyKind::User, hash: Digest::of(id.as_bytes()) }).collect::<FxHashSet<_>>()
        };
        let one = CaughtByRule { caught: of(&["a", "b", "c"]), suspended: of(&["a"]), is_paused: false };
        let other = CaughtByRule { caught: of(&["b", "d"]), suspended: of(&["b", "d"]), is_paused: true };
        let found = RuleFound::of("r", &one, &other);
        assert_eq!((found.caught, found.suspended, found.gained, found.lost), ([3, 2], [1, 2], 1, 2));
        let lists: Vec<_> = found.examples.lists().map(|(what, list)| (what, list.len())).collect();
        assert_eq!((found.paused, lists), ([false, true], vec![("gained", 1), ("lost", 2), ("suspended by B alone", 2)]));
    }
}
