//! What is shown of a comparison: the same for terminals, pages and JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::flip::Side;
use super::suspended::Suspensions;
use super::tally::{Example, MINUTE_MS, Names, Share, Tally};

/// How many names of a kind are shown.
const NAMES_SHOWN: usize = 20;
/// How many points in time a page shows at most.
const TIMES_MAX: i64 = 120;

/// What is shown of a comparison.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Both sides: the first is what was, the second what would be.
    pub sides: [SideSummary; 2],
    /// Records that were read.
    pub records: u64,
    /// Verdicts of both sides.
    pub verdicts: u64,
    /// Verdicts that differ.
    pub flips: u64,
    /// Those that are the first of their turn. The others may follow from them.
    pub first_flips: u64,
    /// Threads with a verdict that differs.
    pub threads_with_flips: u64,
    /// Verdicts that only one side has.
    pub unmatched: u64,
    /// Records with stand-ins in place of their contents, where a part of the policies reads these.
    pub redacted: u64,
    /// Records that cannot be read, by the reason.
    pub unreadable: BTreeMap<&'static str, u64>,
    /// Calls that succeeded, and that the second side would have refused and the first would not.
    pub refused_calls: u64,
    /// Calls that succeeded after the second side would have stopped their turn, and the first would not.
    pub cut_off_calls: u64,
    /// The turns of these calls.
    pub cut_off_turns: u64,
    /// What rules against abuse find, where they are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abuse: Option<Suspensions>,
    /// The changes, the most frequent first.
    pub changes: Vec<ChangeSummary>,
    /// The tools under which most differs.
    pub tools: Vec<Named>,
    /// The agents under which most differs.
    pub agents: Vec<Named>,
    /// The tenants under which most differs.
    pub tenants: Vec<Named>,
    /// The threads in which most differs.
    pub threads: Vec<Named>,
    /// Over time, in equal steps.
    pub times: Vec<At>,
}

/// One side.
#[derive(Debug, Serialize)]
pub struct SideSummary {
    /// Where it comes from.
    pub name: String,
    /// The versions of its policies.
    pub policy_versions: Vec<String>,
    /// Its verdicts by action.
    pub actions: Vec<(&'static str, u64)>,
}

/// A change of what is decided.
#[derive(Debug, Serialize)]
pub struct ChangeSummary {
    /// What the first side decides.
    pub from: Side,
    /// What the second side decides.
    pub to: Side,
    /// How many verdicts change so.
    pub flips: u64,
    /// Some of them.
    pub examples: Vec<Example>,
}

/// A name, and how much differs under it.
#[derive(Debug, Serialize)]
pub struct Named {
    /// The name.
    pub name: String,
    /// How much differs.
    #[serde(flatten)]
    pub share: Share,
}

/// A step in time, and how much differs in it.
#[derive(Debug, Serialize)]
pub struct At {
    /// When it begins, in milliseconds since 1970.
    pub time_ms: i64,
    /// How much differs.
    #[serde(flatten)]
    pub share: Share,
}

impl Summary {
    /// Returns what is shown of a tally.
    pub(super) fn of(tally: &Tally, versions: [Vec<String>; 2], names: [String; 2]) -> Self {
        let mut changes: Vec<_> = tally.changes.iter().collect();
        changes.sort_by_key(|(_, change)| std::cmp::Reverse(change.flips));
        let changes = changes.into_iter().map(|((from, to), change)| ChangeSummary {
            from: from.clone(),
            to: to.clone(),
            flips: change.flips,
            examples: change.examples.clone(),
        });
        let [one, other] = versions;
        let [name, other_name] = names;
        let side = |name, policy_versions, at: usize| SideSummary {
            name,
            policy_versions,
            actions: tally.actions.get(at).into_iter().flatten().map(|(action, verdicts)| (*action, *verdicts)).collect(),
        };
        Self {
            sides: [side(name, one, 0), side(other_name, other, 1)],
            records: tally.records,
            verdicts: tally.total.verdicts,
            flips: tally.total.flips,
            first_flips: tally.first_flips,
            threads_with_flips: tally.threads.len() as u64,
            unmatched: tally.unmatched,
            redacted: tally.redacted,
            unreadable: tally.unreadable.clone(),
            refused_calls: tally.lost.refused,
            cut_off_calls: tally.lost.calls,
            cut_off_turns: tally.lost.turns,
            abuse: tally.abuse.clone(),
            changes: changes.collect(),
            tools: most(&tally.tools),
            agents: most(&tally.agents),
            tenants: most(&tally.tenants),
            threads: most(&tally.threads),
            times: by_time(tally),
        }
    }
}

/// Returns the names under which most differs.
fn most(names: &Names) -> Vec<Named> {
    let mut found: Vec<_> = names.iter().filter(|(_, share)| share.flips > 0).collect();
    found.sort_by(|(a, one), (b, other)| (other.flips, a).cmp(&(one.flips, b)));
    found.truncate(NAMES_SHOWN);
    found.into_iter().map(|(name, share)| Named { name: name.to_string(), share: *share }).collect()
}

/// Returns the differences over time, in steps of whole minutes.
fn by_time(tally: &Tally) -> Vec<At> {
    let (Some((first, _)), Some((last, _))) = (tally.minutes.first_key_value(), tally.minutes.last_key_value()) else { return Vec::new() };
    let step = (last - first) / TIMES_MAX + 1;
    let mut steps: Vec<At> = Vec::new();
    for (minute, share) in &tally.minutes {
        let time_ms = (first + (minute - first) / step * step).saturating_mul(MINUTE_MS);
        match steps.last_mut().filter(|at| at.time_ms == time_ms) {
            Some(at) => (at.share.flips, at.share.verdicts) = (at.share.flips + share.flips, at.share.verdicts + share.verdicts),
            None => steps.push(At { time_ms, share: *share }),
        }
    }
    steps
}
