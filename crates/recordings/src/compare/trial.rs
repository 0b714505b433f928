//! The verdicts that a policy on trial would have changed, counted from the records that `run --shadow` publishes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use tollgate_core::decide::ruling::{Action, DecidedBy};

use super::flip::{Facts, Side};
use super::summary::{At, ChangeSummary, Named, Summary};
use super::tally::Tally;

/// The records of a topic of flips, as far as they were read.
#[derive(Debug, Default)]
pub struct Trial {
    tally: Tally,
    /// The verdicts that were counted, each with the place of its trial: after a crash a record may come twice.
    seen: FxHashSet<(u128, usize)>,
    repeated: u64,
    others: u64,
    policy_versions: BTreeSet<String>,
    /// The versions of the policies on trial, in the order in which they came.
    trials: Vec<String>,
}

/// What is shown of a trial.
#[derive(Debug, Serialize)]
pub struct TrialSummary {
    /// The versions of the policies that decided.
    pub policy_versions: BTreeSet<String>,
    /// The versions of the policies on trial.
    pub shadow_policy_versions: BTreeSet<String>,
    /// Verdicts that would have differed.
    pub flips: u64,
    /// Threads with such a verdict.
    pub threads_with_flips: u64,
    /// Records that came again.
    pub repeated: u64,
    /// Records that are no flips.
    pub others: u64,
    /// The changes, the most frequent first.
    pub changes: Vec<ChangeSummary>,
    /// The tools under which most differs.
    pub tools: Vec<Named>,
    /// The agents under which most differs.
    pub agents: Vec<Named>,
    /// The threads in which most differs.
    pub threads: Vec<Named>,
    /// Over time, in equal steps.
    pub times: Vec<At>,
}

/// The value of a record.
#[derive(Deserialize)]
struct Published {
    verdict_id: String,
    tool_name: Option<String>,
    // Earlier releases did not write it.
    agent_id: Option<String>,
    from: PublishedDecision,
    to: PublishedDecision,
    policy_version: String,
    shadow_policy_version: String,
    topic: String,
    partition: i32,
    offset: i64,
}

/// What a policy said.
#[derive(Deserialize)]
struct PublishedDecision {
    action: String,
    code: String,
    decided_by: String,
}

impl PublishedDecision {
    fn side(self) -> Option<Side> {
        let Self { action, code, decided_by } = self;
        let (action, decided_by) = (Action::from_name(&action)?, DecidedBy::from_name(&decided_by)?);
        Some(Side { action, code: Cow::Owned(code), decided_by })
    }
}

impl Trial {
    /// Takes a record: its key, which is the thread, its value, and its time in milliseconds since 1970.
    pub fn take(&mut self, key: Option<&[u8]>, value: Option<&[u8]>, time_ms: Option<i64>) {
        if self.count(key, value, time_ms).is_none() {
            self.others += 1;
        }
    }

    /// Counts a record; `None` if it is no flip.
    fn count(&mut self, key: Option<&[u8]>, value: Option<&[u8]>, time_ms: Option<i64>) -> Option<()> {
        let thread_id = std::str::from_utf8(key?).ok()?.to_owned();
        let published: Published = serde_json::from_slice(value?).ok()?;
        let verdict = u128::from_str_radix(&published.verdict_id, 16).ok()?;
        let (from, to) = (published.from.side()?, published.to.side()?);
        let place = self.trials.iter().position(|trial| *trial == published.shadow_policy_version);
        let place = place.unwrap_or_else(|| {
            self.trials.push(published.shadow_policy_version);
            self.trials.len() - 1
        });
        if !self.seen.insert((verdict, place)) {
            self.repeated += 1;
            return Some(());
        }
        self.policy_versions.insert(published.policy_version);
        let Published { tool_name, agent_id, topic, partition, offset, .. } = published;
        let facts = Facts { topic, partition, offset, time_ms, thread_id, tool_name, agent_id, ..Facts::default() };
        self.tally.note_flip(&facts, &from, &to);
        Some(())
    }

    /// Returns what is shown of the records that were taken.
    #[must_use]
    pub fn summary(&self) -> TrialSummary {
        let shown = Summary::of(&self.tally, Default::default(), Default::default());
        TrialSummary {
            policy_versions: self.policy_versions.clone(),
            shadow_policy_versions: self.trials.iter().cloned().collect(),
            flips: shown.flips,
            threads_with_flips: shown.threads_with_flips,
            repeated: self.repeated,
            others: self.others,
            changes: shown.changes,
            tools: shown.tools,
            agents: shown.agents,
            threads: shown.threads,
            times: shown.times,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn flip(verdict: u8, tool: &str, agent: Option<&str>, code: &str) -> Value {
        let mut value = json!({"verdict_id": format!("{verdict:032x}"), "thread_hash": "x", "type": "tool_call", "tool_name": tool,
            "from": {"action": "allow", "code": "allow", "decided_by": "none"},
            "to": {"action": "block", "code": code, "decided_by": "guardrail"},
            "policy_version": "sha256:a", "shadow_policy_version": "sha256:b", "topic": "e", "partition": 3, "offset": verdict});
        if let Some(agent) = agent {
            value["agent_id"] = agent.into();
        }
        value
    }

    #[test]
    fn flips_are_counted_by_change_tool_agent_and_thread_and_repeats_once() {
        let mut trial = Trial::default();
        for (thread, value) in [
            ("t1", flip(1, "bash", Some("coder"), "oap.tool_not_allowed")),
            ("t1", flip(2, "bash", Some("coder"), "oap.limit_exceeded")),
            ("t1", flip(2, "bash", Some("coder"), "oap.limit_exceeded")),
            ("t2", flip(3, "read_file", None, "oap.tool_not_allowed")),
            ("t2", json!({"verdict_id": "no flip"})),
        ] {
            trial.take(Some(thread.as_bytes()), Some(value.to_string().as_bytes()), Some(60_000));
        }
        trial.take(None, None, None);
        let shown = serde_json::to_value(trial.summary()).unwrap();
        let numbers = ["flips", "threads_with_flips", "repeated", "others"].map(|name| shown[name].as_u64().unwrap());
        assert_eq!(numbers, [3, 2, 1, 2]);
        assert_eq!(
            (&shown["tools"], &shown["agents"][0]),
            (&json!([{"name": "bash", "flips": 2}, {"name": "read_file", "flips": 1}]), &json!({"name": "coder", "flips": 2}),)
        );
        assert_eq!(shown["threads"], json!([{"name": "t1", "flips": 2}, {"name": "t2", "flips": 1}]));
        let change = &shown["changes"][0];
        assert_eq!((&change["to"]["code"], &change["flips"]), (&json!("oap.tool_not_allowed"), &json!(2)));
        assert_eq!(change["examples"][0], json!({"topic": "e", "partition": 3, "offset": 1, "thread_id": "t1"}));
        assert_eq!((&shown["policy_versions"], &shown["shadow_policy_versions"]), (&json!(["sha256:a"]), &json!(["sha256:b"])));
        assert_eq!(shown["times"], json!([{"time_ms": 60_000, "flips": 3}]));
    }
}
