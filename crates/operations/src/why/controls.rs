//! The controls of an event's subjects: what was in force when its verdict was given, and what is now.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use tollgate_config::settings::Settings;
use tollgate_config::topics::TopicRole;
use tollgate_core::decide::controls::{ControlId, HISTORY, Subject, SubjectHasher, decode};
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::event::decode::Event;
use tollgate_core::event::record::Partition;
use tollgate_json::time::parse_timestamp;

use crate::Topics;

/// The members of a control's record, or of a noted change of it, that are shown.
const SHOWN: [&str; 10] = ["state", "reason", "until", "rule", "step", "alert_id", "digest", "by", "at", "tool"];

/// A control of one of the event's subjects.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ControlThenAndNow {
    /// The key of its record: kind and hash of a subject, or the agent of a passport.
    pub key: String,
    /// The last change of it before the verdict, as commands have noted it. `None` if no change is known: notes are of the last changes alone.
    pub then: Option<Value>,
    /// What is in force now.
    pub now: Option<Value>,
}

/// The records of the controls topic, by key and partition. A key stands on two partitions if producers do not agree on a partitioner.
#[derive(Debug, Default)]
pub(super) struct ControlRecords(BTreeMap<(Vec<u8>, Partition), Vec<u8>>);

impl ControlRecords {
    /// Reads the topic.
    pub(super) fn read(topics: &Topics<'_>) -> anyhow::Result<Self> {
        let topic = topics.find(TopicRole::Controls)?;
        let mut records = Self::default();
        for partition in topic.all()? {
            topics.read(topic, partition, |_, key, value| records.take(partition, key, value))?;
        }
        Ok(records)
    }

    fn take(&mut self, partition: Partition, key: Option<&[u8]>, value: Option<&[u8]>) {
        let Some(key) = key else { return };
        match value {
            Some(value) => _ = self.0.insert((key.to_vec(), partition), value.to_vec()),
            None => _ = self.0.remove(&(key.to_vec(), partition)),
        }
    }

    /// Returns every record with its partition.
    pub(super) fn all(&self) -> impl Iterator<Item = (Partition, &[u8], &[u8])> {
        self.0.iter().map(|((key, partition), value)| (*partition, key.as_slice(), value.as_slice()))
    }

    /// Returns the record of a key; that of the first partition that has it.
    fn get(&self, key: &str) -> Option<&[u8]> {
        self.all().find(|(_, of, _)| *of == key.as_bytes()).map(|(.., value)| value)
    }

    /// Returns the controls of an event's subjects that are in force, or of which changes are known.
    pub(super) fn of_event(&self, settings: &Settings, event: &Event<'_>, time_ms: Option<i64>) -> Vec<ControlThenAndNow> {
        let found = |id: ControlId| {
            let key = id.to_string();
            let now = self.get(&key).map(|value| shown_now(key.as_bytes(), value));
            let note = self.get(&format!("{HISTORY}{key}"));
            let then = note.and_then(|note| last_change(&serde_json::from_slice(note).ok()?, time_ms?));
            (now.is_some() || then.is_some()).then_some(ControlThenAndNow { key, then, now })
        };
        ids(settings, event).into_iter().filter_map(found).collect()
    }
}

/// Returns the ids of all controls that an event's decision may depend on, under each subject key.
fn ids(settings: &Settings, event: &Event<'_>) -> Vec<ControlId> {
    let mut hashers: Vec<_> = settings.subject_keys.iter().map(|key| SubjectHasher::new(Some(key))).collect();
    if hashers.is_empty() {
        hashers.push(SubjectHasher::new(None));
    }
    let mut ids = Vec::new();
    for kind in [SubjectKind::User, SubjectKind::Tenant, SubjectKind::Agent, SubjectKind::Thread] {
        for subject in Subject::all_of(event, kind) {
            let hashes = hashers.iter().map(|hasher| hasher.hash(&subject));
            ids.extend(hashes.flat_map(|hash| [ControlId::Subject(kind, hash), ControlId::Abuse(kind, hash)]));
        }
    }
    ids.extend(event.attribution.agent_id.as_ref().map(|agent| ControlId::Passport(agent.to_string())));
    ids
}

/// Returns what is shown of a record that is in force. One that cannot be read is, with the reason.
fn shown_now(key: &[u8], value: &[u8]) -> Value {
    match decode(Some(key), Some(value)) {
        Ok(_) => serde_json::from_slice(value).ok().and_then(|record| shown_part(&record)).unwrap_or_default(),
        Err(rejection) => json!({"state": "unreadable", "code": rejection.code.as_str(), "reason": rejection.to_string()}),
    }
}

/// Returns the members of a record that are shown. A passport itself is long, and `control list` has it.
fn shown_part(record: &Value) -> Option<Value> {
    let record = record.as_object()?;
    let members: Map<_, _> = SHOWN.iter().filter_map(|name| Some(((*name).to_owned(), record.get(*name)?.clone()))).collect();
    Some(Value::Object(members))
}

/// Returns the last change in a note up to a time.
fn last_change(note: &Value, time_ms: i64) -> Option<Value> {
    let at = |change: &&Value| change.get("at").and_then(Value::as_str).and_then(parse_timestamp).is_some_and(|at_ms| at_ms <= time_ms);
    shown_part(note.get("changes")?.as_array()?.iter().rfind(at)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_held_then_is_the_last_change_before() {
        let note = json!({"type": "history", "changes": [
            {"partition": 0, "offset": 1, "state": "suspended", "by": "alice", "at": "2026-01-01T00:00:00Z"},
            {"partition": 0, "offset": 2, "state": "lifted", "by": "bob", "at": "2026-01-02T00:00:00Z"},
        ]});
        let state = |time: &str| last_change(&note, parse_timestamp(time).unwrap()).map(|change| change["state"].clone());
        assert_eq!(state("2025-12-31T23:59:59Z"), None);
        assert_eq!(state("2026-01-01T12:00:00Z"), Some(json!("suspended")));
        assert_eq!(state("2026-01-02T00:00:00Z"), Some(json!("lifted")));
    }

    #[test]
    fn a_passport_is_not_shown_and_a_tombstone_takes_its_record_away() {
        let value = json!({"type": "passport", "agent_id": "coder", "passport": {"secret": 1}, "by": "alice"});
        assert_eq!(shown_now(b"passport/coder", value.to_string().as_bytes()), json!({"by": "alice"}));
        assert_eq!(shown_now(b"passport/coder", b"[]")["code"], "value_not_an_object");
        let mut records = ControlRecords::default();
        records.take(Partition(0), Some(b"passport/coder"), Some(b"{}"));
        records.take(Partition(1), Some(b"passport/coder"), None);
        assert_eq!(records.all().count(), 1, "another partition's record is another record");
        records.take(Partition(0), Some(b"passport/coder"), None);
        assert_eq!(records.all().count(), 0);
    }
}
