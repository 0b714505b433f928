//! What several test binaries share: the policy of a configuration, and events fed through a lane.
#![allow(dead_code, reason = "each test binary uses its own part")]

use serde_json::{Value, json};
use tollgate::decode::{Header, Offset, Partition, Record};
use tollgate::lane::{Applied, Lane, VerdictBuffer};
use tollgate::policy::Policy;
use tollgate::settings::Settings;

/// The settings of a configuration over the embedded defaults.
pub fn settings(user: &Value) -> Settings {
    let defaults = tollgate::config::embedded_defaults().expect("the embedded defaults parse");
    Settings::read(user, &defaults).expect("a valid configuration")
}

/// The policy of a configuration over the embedded defaults.
pub fn policy(user: &Value) -> Policy {
    Policy::new(&settings(user).policy)
}

/// The default policy.
pub fn default_policy() -> Policy {
    policy(&json!({}))
}

/// A lane that is fed values one after the other.
pub struct Gate {
    policy: Policy,
    lane: Lane,
    offset: i64,
    out: VerdictBuffer,
}

impl Gate {
    pub fn new(policy: Policy) -> Self {
        let lane = Lane::new(Partition(0), &policy);
        Self { policy, lane, offset: 0, out: VerdictBuffer::default() }
    }

    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Feeds a record's parts; the answer is what it became and the verdict's bytes (empty if there is none).
    pub fn record(&mut self, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header<'_>]) -> (Applied, Vec<u8>) {
        let offset = Offset(self.offset);
        self.offset += 1;
        self.out.json.clear();
        let record = Record { topic: "agent.events", partition: Partition(0), offset, timestamp_ms: None, key, value, headers };
        let applied = self.lane.apply(&self.policy, &record, &mut self.out);
        (applied, self.out.json.clone())
    }

    /// Feeds an event and parses its verdict.
    pub fn event(&mut self, event: &Value) -> Value {
        let (_, bytes) = self.record(None, Some(event.to_string().as_bytes()), &[]);
        if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).expect("a verdict is JSON") }
    }
}

/// The lines of a JSONL fixture; an empty one is a broken test, not a passed one.
pub fn jsonl(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a fixture line is JSON")).collect();
    assert!(!lines.is_empty(), "{path} is empty");
    lines
}
