//! What the rules against abuse of both sides find in the traffic, whom they suspend, and which calls that blocks.
//!
//! A subject's threads lie on all partitions, and a suspension is in force from the next event on. So where rules are compared, the traffic is
//! decided on in one thread, in the order in which it stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use memchr::memmem;
use rustc_hash::FxHashSet;
use serde::Serialize;
use tollgate_core::abuse::{AbuseRules, Action, Folded};
use tollgate_core::controls::Controls;
use tollgate_core::deciding::VerdictBuffer;
use tollgate_core::record::Record;
use tollgate_core::signal::SubjectKey;

use crate::capture::{Fleet, Follower};

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
pub(super) struct SideRules {
    pub(super) rules: Arc<AbuseRules>,
    pub(super) controls: Arc<Controls>,
}

/// Counting for both sides.
#[derive(Debug)]
pub(super) struct Fleets {
    fleets: [Fleet; 2],
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
    controls: Arc<Controls>,
    /// The subjects that each rule found, and those that it suspended.
    rules: BTreeMap<String, [FxHashSet<SubjectKey>; 2]>,
}

/// What was found, as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Suspensions {
    /// Tool calls that both sides decided on.
    pub(super) calls: u64,
    /// Those that suspensions by rules blocked, on each side.
    pub(super) blocked: [u64; 2],
    /// Calls that a suspension blocks on the second side and not on the first.
    pub(super) suspended: u64,
    /// Calls that a suspension blocks on the first side and not on the second.
    pub(super) freed: u64,
    /// By rule, in the order of their ids.
    pub(super) rules: Vec<RuleFound>,
}

/// Whom a rule finds on each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct RuleFound {
    pub(super) rule: String,
    /// Subjects with an alert, on each side.
    pub(super) caught: [usize; 2],
    /// Subjects that were suspended, on each side.
    pub(super) suspended: [usize; 2],
    /// Subjects that only the second side catches.
    pub(super) gained: usize,
    /// Subjects that only the first side catches.
    pub(super) lost: usize,
    /// Some of those that only one side catches, in the order of their names.
    pub(super) examples: Vec<String>,
}

impl Fleets {
    /// Returns what counts by the rules of both sides. `topic` is the signals topic.
    pub(super) fn new(topic: &str, sides: &[SideRules; 2]) -> Self {
        Self {
            fleets: sides.each_ref().map(|side| Fleet::new(topic, &side.rules, SIGNAL_PARTITIONS)),
            caught: sides.each_ref().map(|side| Caught { controls: Arc::clone(&side.controls), rules: BTreeMap::new() }),
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
        for ((fleet, caught), out) in self.fleets.iter_mut().zip(&mut self.caught).zip(outs) {
            fleet.event((record.partition, record.offset), record.timestamp_ms, &out.signals, caught)?;
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
        for (fleet, caught) in self.fleets.iter_mut().zip(&mut self.caught) {
            fleet.tick(caught)?;
        }
        let [one, other] = &self.caught;
        let ids: std::collections::BTreeSet<_> = one.rules.keys().chain(other.rules.keys()).collect();
        let nobody = Default::default();
        let rules =
            ids.into_iter().map(|id| RuleFound::of(id, one.rules.get(id).unwrap_or(&nobody), other.rules.get(id).unwrap_or(&nobody)));
        Ok(Suspensions { calls: self.calls, blocked: self.blocked, suspended: self.gained, freed: self.lost, rules: rules.collect() })
    }
}

impl RuleFound {
    fn of(
        rule: &str,
        [caught_one, suspended_one]: &[FxHashSet<SubjectKey>; 2],
        [caught_other, suspended_other]: &[FxHashSet<SubjectKey>; 2],
    ) -> Self {
        let mut examples: Vec<_> = caught_one.symmetric_difference(caught_other).map(SubjectKey::to_string).collect();
        examples.sort_unstable();
        examples.truncate(EXAMPLES_MAX);
        Self {
            rule: rule.to_owned(),
            caught: [caught_one.len(), caught_other.len()],
            suspended: [suspended_one.len(), suspended_other.len()],
            gained: caught_other.difference(caught_one).count(),
            lost: caught_one.difference(caught_other).count(),
            examples,
        }
    }
}

impl Follower for Caught {
    fn follow(&mut self, _: &Record<'_>, folded: Folded) -> anyhow::Result<()> {
        for control in &folded.controls {
            let applied = self.controls.apply(Some(control.key.as_bytes()), control.value.as_deref());
            applied.map_err(|rejection| anyhow::anyhow!("a control of the abuse stage is refused: {rejection}"))?;
        }
        for alert in &folded.alerts {
            let fields: serde_json::Value = serde_json::from_slice(&alert.value)?;
            let text = |field: &str| fields.get(field).and_then(serde_json::Value::as_str);
            if let Some((subject, rule)) = SubjectKey::parse(&alert.key).zip(text("rule")) {
                let [caught, suspended] = self.rules.entry(rule.to_owned()).or_default();
                caught.insert(subject);
                if text("action") == Some(Action::Suspended.as_str()) {
                    suspended.insert(subject);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::digest::Digest;
    use tollgate_core::signal::KeyKind;

    use super::*;

    #[test]
    fn who_is_gained_and_who_is_lost_is_counted_by_rule() {
        let of = |ids: &[&str]| {
            ids.iter().map(|id| SubjectKey { kind: KeyKind::User, hash: Digest::of(id.as_bytes()) }).collect::<FxHashSet<_>>()
        };
        let found = RuleFound::of("r", &[of(&["a", "b", "c"]), of(&["a"])], &[of(&["b", "d"]), of(&[])]);
        assert_eq!((found.caught, found.suspended, found.gained, found.lost, found.examples.len()), ([3, 2], [1, 0], 1, 2, 3));
    }
}
