//! The alerts topic, as commands read it: what the abuse stage has found.

use std::borrow::Cow;
use std::collections::HashSet;

use rdkafka::Message as _;
use serde_json::Value;

use tollgate_abuse::Status;
use tollgate_config::topics::TopicRole;
use tollgate_core::decide::signal::SubjectKey;
use tollgate_core::event::record::Partition;

use tollgate_operations::Topics;

/// One alert.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Alert {
    /// The key of its record: a subject, a rule, a source or a partition.
    pub(super) key: String,
    /// When it was published, in milliseconds since the epoch.
    pub(super) time_ms: Option<i64>,
    pub(super) partition: i32,
    pub(super) offset: i64,
    /// Its value.
    pub(super) fields: Value,
}

/// The alerts of a topic.
#[derive(Debug, Default)]
pub(super) struct Alerts {
    /// Those that were wanted, the latest first.
    pub(super) latest_first: Vec<Alert>,
    /// Records that are no alerts.
    pub(super) strangers: u64,
}

/// Returns a field of an object as text; nothing where there is none.
pub(super) fn field_text<'v>(object: &'v Value, field: &str) -> Cow<'v, str> {
    match object.get(field) {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(other.to_string()),
    }
}

impl Alert {
    /// Reads an alert from its record; `None` if it is none.
    pub(super) fn read(place: (Partition, i64), time_ms: Option<i64>, key: Option<&[u8]>, value: Option<&[u8]>) -> Option<Self> {
        let key = std::str::from_utf8(key?).ok()?.to_owned();
        let fields: Value = serde_json::from_slice(value?).ok().filter(Value::is_object)?;
        let (Partition(partition), offset) = place;
        Some(Self { key, time_ms, partition, offset, fields })
    }

    /// Returns a field as text; nothing where there is none.
    pub(super) fn text(&self, field: &str) -> Cow<'_, str> {
        field_text(&self.fields, field)
    }

    /// Returns a field that is a count.
    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.fields.get(field).and_then(Value::as_u64)
    }

    /// Returns the subject; `None` if it is about a rule, a source or a partition.
    pub(super) fn subject(&self) -> Option<SubjectKey> {
        SubjectKey::parse(&self.key)
    }

    /// Returns the evidence: signals, each with thread and event.
    pub(super) fn evidence(&self) -> impl Iterator<Item = &Value> {
        self.fields.get("evidence").and_then(Value::as_array).into_iter().flatten()
    }

    /// Returns whether it stands for many at once, whose subjects it does not name.
    pub(super) fn is_grouped(&self) -> bool {
        self.text("status") == Status::Grouped.as_str()
    }

    /// Returns how many firings it stands for: its own, and those before it that raised no alert. The end of an episode is no firing. A record
    /// of anybody else may say any number.
    pub(super) fn firings(&self) -> u64 {
        let own = match self.text("status").as_ref() {
            status if status == Status::Ended.as_str() => 0,
            _ if self.is_grouped() => self.number("count").unwrap_or_default(),
            _ => 1,
        };
        own.saturating_add(self.number("suppressed").unwrap_or_default())
    }

    /// Returns what the copies of an alert share, as docs/guarantees.md says; `None` if the alert has no id.
    fn identity(&self) -> Option<[String; 4]> {
        let id = self.text("alert_id");
        let window_end = self.fields.pointer("/window/to").map(Value::to_string).unwrap_or_default();
        (!id.is_empty()).then(|| [id.into_owned(), self.text("status").into_owned(), self.text("step").into_owned(), window_end])
    }
}

/// Takes the wanted alerts one after the other, and leaves copies out.
#[derive(Debug, Default)]
struct Wanted {
    alerts: Vec<Alert>,
    seen: HashSet<[String; 4]>,
}

impl Wanted {
    fn take(&mut self, alert: Alert) {
        if alert.identity().is_none_or(|identity| self.seen.insert(identity)) {
            self.alerts.push(alert);
        }
    }
}

/// Reads the alerts that are wanted, the latest first and each once. It reads the whole topic: some brokers look nothing up by time.
pub(super) fn read(topics: &Topics<'_>, mut is_wanted: impl FnMut(&Alert) -> bool) -> anyhow::Result<Alerts> {
    let topic = topics.find(TopicRole::Alerts)?;
    let (mut alerts, mut wanted) = (Alerts::default(), Wanted::default());
    for partition in topic.all()? {
        let (low, high) = topics.ends(topic, partition)?;
        if low == high {
            continue;
        }
        topics.read_from(topic, partition, low, |message| {
            let place = (partition, message.offset());
            match Alert::read(place, message.timestamp().to_millis(), message.key(), message.payload()) {
                Some(alert) if is_wanted(&alert) => wanted.take(alert),
                Some(_) => {}
                None => alerts.strangers += 1,
            }
            true
        })?;
    }
    alerts.latest_first = wanted.alerts;
    alerts.latest_first.sort_by_key(|alert| std::cmp::Reverse((alert.time_ms, alert.partition, alert.offset)));
    if alerts.strangers > 0 {
        say!("tollgate: {} records of {} are no alerts; keep other writers off the topic", alerts.strangers, topic.name);
    }
    Ok(alerts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_an_alert_is_taken_once_and_an_escalation_is_no_copy() {
        let taken = |alerts: &[Value]| {
            let mut wanted = Wanted::default();
            for (offset, fields) in (0_i64..).zip(alerts) {
                let value = fields.to_string();
                wanted.take(Alert::read((Partition(0), offset), Some(offset), Some(b"k"), Some(value.as_bytes())).unwrap());
            }
            wanted.alerts.iter().map(|alert| alert.offset).collect::<Vec<_>>()
        };
        let alert = |status: &str, step: u64, end: &str| serde_json::json!({"alert_id": "a", "rule": "r", "status": status, "step": step, "window": {"to": end}});
        let first = alert("firing", 1, "2026-01-01T00:01:00Z");
        let later = [alert("firing", 2, "2026-01-01T00:01:00Z"), alert("firing", 1, "2026-01-01T00:02:00Z"), alert("ended", 1, "x")];
        let [escalated, again, ended] = later;
        assert_eq!(taken(&[first.clone(), first.clone(), escalated, again, ended, first]), [0, 2, 3, 4]);
        let nameless = serde_json::json!({"rule": "r"});
        assert_eq!(taken(&[nameless.clone(), nameless]), [0, 1]);
    }

    #[test]
    fn an_alert_is_read_and_a_stranger_is_none() {
        let key = format!("user/{}", "ab".repeat(32));
        let value = br#"{"rule":"r","count":5,"suppressed":2,"step":null,"evidence":[{"event_id":"e"}]}"#;
        let alert = Alert::read((Partition(1), 7), Some(9), Some(key.as_bytes()), Some(value)).unwrap();
        assert_eq!((&*alert.text("rule"), &*alert.text("count"), &*alert.text("step"), &*alert.text("none")), ("r", "5", "", ""));
        assert_eq!((alert.firings(), alert.evidence().count(), alert.subject().map(|key| key.to_string())), (3, 1, Some(key)));
        for (key, value) in [(None, Some(&value[..])), (Some(&b"k"[..]), None), (Some(b"k"), Some(b"[]")), (Some(b"\xff"), Some(value))] {
            assert_eq!(Alert::read((Partition(0), 0), None, key, value), None);
        }
    }
}
