//! Deciding again: the thread's events under the configuration of this command, and whether that gives the verdict that was published.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::Value;

use tollgate_config::settings::Settings;
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::deciding::VerdictBuffer;
use tollgate_core::decide::guardrail::{Answer, ProviderError, Question};
use tollgate_core::decide::policy::Policy;
use tollgate_recordings::{AskServers, Decider};

use super::FoundVerdict;
use super::controls::ControlRecords;
use super::turn::History;

/// What the same events give under the configuration of this command, with the controls that are in force now.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Again {
    /// `same` (byte for byte), `same_decision` (action and code), `differs`, or `not_decided`.
    pub result: &'static str,
    /// The action that it gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The code that it gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same as a sentence.
    pub message: String,
}

/// In place of policy servers. They are not asked again: their answer of now is not that of then.
#[derive(Debug, Default)]
struct NotAsked(AtomicBool);

impl AskServers for NotAsked {
    fn ask(&self, _: Question) -> anyhow::Result<Answer> {
        self.0.store(true, Ordering::Relaxed);
        Ok(Err(ProviderError::NotAsked))
    }

    fn failed(&self, _: usize, _: ProviderError) {}
}

/// Decides on the thread's events again.
///
/// # Errors
/// The records name too many partitions.
pub(super) fn decide(settings: &Settings, records: &ControlRecords, history: &History, found: &FoundVerdict) -> anyhow::Result<Again> {
    if history.record(found.text("event_id")).is_none() {
        return Ok(not_decided("The event itself was not found in its topic, so that it was not decided again."));
    }
    let controls = Arc::new(Controls::new(settings.subject_keys.iter()));
    // A record that cannot be read restricts, as in a worker.
    records.all().for_each(|(partition, key, value)| _ = controls.apply_from(partition, Some(key), Some(value)));
    let servers = Arc::new(NotAsked::default());
    let policy = Arc::new(Policy::under(&settings.policy, controls));
    let mut decider = Decider::new(policy, Arc::clone(&servers) as Arc<dyn AskServers>);
    let mut out = VerdictBuffer::default();
    for record in history.records() {
        record.with_borrowed(|record| decider.decide(record, true, &mut out))?;
    }
    if servers.0.load(Ordering::Relaxed) {
        return Ok(not_decided("A policy server has a say in it, and is not asked again: its answer of now is not that of then."));
    }
    Ok(compare(found, &out.json, history.is_whole()))
}

fn not_decided(message: &str) -> Again {
    Again { result: "not_decided", action: None, code: None, message: message.to_owned() }
}

/// Compares a verdict that was published with the one that the same events give now.
fn compare(found: &FoundVerdict, json: &[u8], is_whole: bool) -> Again {
    let verdict: Value = serde_json::from_slice(json).unwrap_or_default();
    let text = |member: &str| verdict.get(member).and_then(Value::as_str).unwrap_or_default();
    let (action, code) = (text("action"), text("code"));
    let is_same_decision = (action, code) == (found.text("action"), found.text("code"));
    let is_same_policy = text("policy_version") == found.text("policy_version");
    let under = if is_same_policy { "" } else { ", under another policy than the verdict's" };
    let (result, mut message) = match is_same_decision {
        true if json == found.json => ("same", "The same events give the same verdict again, byte for byte.".to_owned()),
        true => ("same_decision", format!("The same events give the same decision again{under}.")),
        false if is_same_policy => {
            ("differs", format!("The same events give {action} ({code}) now, which is not what was published: controls may have changed."))
        }
        false => ("differs", format!("The same events give {action} ({code}) now{under}.")),
    };
    if !is_same_decision && !is_whole {
        message
            .push_str(" The beginning of the turn was not found, so that earlier failures may be missing: look further back with --since.");
    }
    Again { result, action: Some(action.to_owned()), code: Some(code.to_owned()), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tollgate_core::event::record::Partition;

    #[test]
    fn it_says_whether_the_verdict_is_the_published_one() {
        let verdict = |code: &str, policy: &str| json!({"action": "block", "code": code, "policy_version": policy});
        let published = verdict("a", "p1");
        let found =
            FoundVerdict { json: published.to_string().into_bytes(), verdict: published, published_ms: None, partition: Partition(0) };
        let result = |code: &str, policy: &str, is_whole| {
            let again = compare(&found, verdict(code, policy).to_string().as_bytes(), is_whole);
            (again.result, again.message.contains("another policy"), again.message.contains("--since"))
        };
        assert_eq!(result("a", "p1", false), ("same", false, false));
        assert_eq!(result("a", "p2", false), ("same_decision", true, false));
        assert_eq!(result("b", "p2", true), ("differs", true, false));
        assert_eq!(result("b", "p1", false), ("differs", false, true));
    }
}
