//! Counts of verdicts that differ: by change, tool, agent, tenant, thread and time.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::cut_off::Loss;
use super::flip::{Facts, Side};
use super::suspended::Suspensions;

/// How many examples of a change are kept: those that stand first in their topic.
const EXAMPLES_MAX: usize = 5;
/// How many names of a kind are told apart by each core. The rest is counted as one.
const NAMES_MAX: usize = 200_000;
/// The name of the rest.
pub(super) const OTHERS: &str = "(others)";
/// The name of what is not named.
pub const NOBODY: &str = "(none)";
/// The unit of time of the counts over time, in milliseconds.
pub(super) const MINUTE_MS: i64 = 60_000;

/// What was found of a name, a change or a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Verdicts that differ.
    pub flips: u64,
    /// All verdicts; 0 where only differences are counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub verdicts: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Share {
    fn add(&mut self, other: Self) {
        self.flips += other.flips;
        self.verdicts += other.verdicts;
    }
}

/// A verdict that differs, for people to look up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Example {
    /// The topic of the event.
    pub topic: String,
    /// The partition of the event.
    pub partition: i32,
    /// The offset of the event.
    pub offset: i64,
    /// The thread.
    pub thread_id: String,
    /// The event; empty where it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub event_id: String,
    /// The message of the first side; empty where that side has none, or is what was published.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from_message: String,
    /// The message of the second side.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to_message: String,
}

/// A change, with examples.
#[derive(Debug, Clone, Default)]
pub(super) struct Change {
    pub(super) flips: u64,
    pub(super) examples: Vec<Example>,
}

/// A kind of name by which differences are counted.
pub(super) type Names = FxHashMap<Box<str>, Share>;

/// Everything that was counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Records that were read, boundaries among them.
    pub(super) records: u64,
    pub(super) total: Share,
    /// Differences that are the first of their turn.
    pub(super) first_flips: u64,
    /// Verdicts that only one side has.
    pub(super) unmatched: u64,
    /// Records with stand-ins in place of their contents.
    pub(super) redacted: u64,
    /// Records that cannot be read, by the reason.
    pub(super) unreadable: BTreeMap<&'static str, u64>,
    pub(super) lost: Loss,
    pub(super) changes: BTreeMap<(Side, Side), Change>,
    pub(super) tools: Names,
    pub(super) agents: Names,
    pub(super) tenants: Names,
    /// Only threads with a difference.
    pub(super) threads: Names,
    /// By the minute since 1970.
    pub(super) minutes: BTreeMap<i64, Share>,
    /// Verdicts by action, of each side.
    pub(super) actions: [BTreeMap<&'static str, u64>; 2],
    /// What rules against abuse find, where they are compared.
    pub(super) abuse: Option<Suspensions>,
}

impl Tally {
    /// Counts a verdict of both sides, and returns whether they differ.
    pub(super) fn note(&mut self, facts: &Facts, from: &Side, to: &Side) -> bool {
        let differs = from.differs(to);
        self.add(facts, from, to, Share { flips: u64::from(differs), verdicts: 1 });
        differs
    }

    /// Counts a verdict that differs, where nothing is known of those that do not.
    pub(super) fn note_flip(&mut self, facts: &Facts, from: &Side, to: &Side) {
        self.add(facts, from, to, Share { flips: 1, verdicts: 0 });
    }

    fn add(&mut self, facts: &Facts, from: &Side, to: &Side, share: Share) {
        self.total.add(share);
        for (actions, side) in self.actions.iter_mut().zip([from, to]) {
            *actions.entry(side.action.as_str()).or_default() += 1;
        }
        if let Some(tool) = &facts.tool_name {
            count(&mut self.tools, tool, share);
        }
        count(&mut self.agents, facts.agent_id.as_deref().unwrap_or(NOBODY), share);
        count(&mut self.tenants, facts.tenant_id.as_deref().unwrap_or(NOBODY), share);
        if let Some(time_ms) = facts.time_ms {
            self.minutes.entry(time_ms.div_euclid(MINUTE_MS)).or_default().add(share);
        }
        if share.flips > 0 {
            // Verdicts of threads without a difference are not counted, so that there is no share.
            count(&mut self.threads, &facts.thread_id, Share { flips: 1, verdicts: 0 });
            self.changes.entry((from.clone(), to.clone())).or_default().add(1, [example(facts)]);
        }
    }

    /// Adds what another core has counted.
    pub(super) fn merge(&mut self, other: Self) {
        self.records += other.records;
        self.total.add(other.total);
        self.first_flips += other.first_flips;
        self.unmatched += other.unmatched;
        self.redacted += other.redacted;
        other.unreadable.into_iter().for_each(|(reason, records)| *self.unreadable.entry(reason).or_default() += records);
        self.lost.calls += other.lost.calls;
        self.lost.turns += other.lost.turns;
        self.lost.refused += other.lost.refused;
        self.abuse = self.abuse.take().or(other.abuse);
        for (change, found) in other.changes {
            self.changes.entry(change).or_default().add(found.flips, found.examples);
        }
        for (names, found) in [
            (&mut self.tools, other.tools),
            (&mut self.agents, other.agents),
            (&mut self.tenants, other.tenants),
            (&mut self.threads, other.threads),
        ] {
            found.into_iter().for_each(|(name, share)| names.entry(name).or_default().add(share));
        }
        other.minutes.into_iter().for_each(|(minute, share)| self.minutes.entry(minute).or_default().add(share));
        for (actions, found) in self.actions.iter_mut().zip(other.actions) {
            found.into_iter().for_each(|(action, verdicts)| *actions.entry(action).or_default() += verdicts);
        }
    }
}

impl Change {
    fn add(&mut self, flips: u64, examples: impl IntoIterator<Item = Example>) {
        self.flips += flips;
        for example in examples {
            let at = self.examples.binary_search(&example).unwrap_or_else(|at| at);
            if at < EXAMPLES_MAX {
                self.examples.insert(at, example);
                self.examples.truncate(EXAMPLES_MAX);
            }
        }
    }
}

fn count(names: &mut Names, name: &str, share: Share) {
    if let Some(found) = names.get_mut(name) {
        return found.add(share);
    }
    let name = if names.len() < NAMES_MAX { name } else { OTHERS };
    names.entry(name.into()).or_default().add(share);
}

fn example(facts: &Facts) -> Example {
    Example {
        topic: facts.topic.clone(),
        partition: facts.partition,
        offset: facts.offset,
        thread_id: facts.thread_id.clone(),
        event_id: facts.event_id.clone(),
        from_message: facts.from_message.clone(),
        to_message: facts.to_message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::decide::ruling::{Action, DecidedBy};

    fn side(action: Action, code: &'static str) -> Side {
        Side { action, code: code.into(), decided_by: DecidedBy::None }
    }

    fn facts(offset: i64) -> Facts {
        let text = |text: &str| Some(text.to_owned());
        Facts { offset, thread_id: format!("t{}", offset % 3), tool_name: text("bash"), time_ms: Some(offset * 30_000), ..Facts::default() }
    }

    fn tally(offsets: impl Iterator<Item = i64>) -> Tally {
        let mut tally = Tally::default();
        for offset in offsets {
            let to = if offset % 2 == 0 { side(Action::Block, "tool_denied") } else { side(Action::Allow, "allow") };
            assert_eq!(tally.note(&facts(offset), &side(Action::Allow, "allow"), &to), offset % 2 == 0);
        }
        tally
    }

    #[test]
    fn any_split_over_cores_counts_the_same() {
        let whole = tally(0..100);
        let mut merged = tally((0..100).filter(|offset| offset % 3 == 1));
        merged.merge(tally((0..100).filter(|offset| offset % 3 != 1).rev()));
        assert_eq!((whole.total, merged.total), (Share { flips: 50, verdicts: 100 }, Share { flips: 50, verdicts: 100 }));
        assert_eq!((&whole.tools, &whole.threads, &whole.minutes), (&merged.tools, &merged.threads, &merged.minutes));
        assert_eq!(whole.actions, merged.actions);
        let examples = |tally: &Tally| tally.changes.values().map(|change| (change.flips, change.examples.clone())).collect::<Vec<_>>();
        assert_eq!(examples(&whole), examples(&merged));
        let offsets: Vec<_> = examples(&whole)[0].1.iter().map(|example| example.offset).collect();
        assert_eq!(offsets, [0, 2, 4, 6, 8]);
    }

    #[test]
    fn names_are_bounded() {
        let mut names = Names::default();
        (0..NAMES_MAX + 10).for_each(|at| count(&mut names, &at.to_string(), Share { flips: 1, verdicts: 1 }));
        assert_eq!((names.len(), names[OTHERS].flips), (NAMES_MAX + 1, 10));
    }
}
