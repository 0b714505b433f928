//! The events of a thread up to the one that a verdict is on, and which of them are of its turn.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use tollgate_config::topics::TopicRole;
use tollgate_core::event::decode::{Body, CLOCK_SKEW_MS_MAX, Event, EventType, PartialEvent, decode};
use tollgate_core::event::record::{OwnedRecord, Record};
use tollgate_json::Parser;
use tollgate_json::time::rfc_3339;

use super::FoundVerdict;
use crate::{TimeRange, Topics};

/// How far before a verdict its thread's events are looked for at first, in milliseconds. Each further look goes ten times as far.
const FIRST_LOOK_MS: i64 = 60_000;
/// How many events of a thread are kept.
const EVENTS_MAX: usize = 20_000;

/// A thread's events up to the one that a verdict is on, with what was decided on each.
#[derive(Debug, Default)]
pub(super) struct History {
    events: Vec<TurnEvent>,
    /// Where the turn begins among the events.
    turn_from: usize,
    is_whole: bool,
    /// The first published verdict on each event, by the event's id.
    verdicts: BTreeMap<String, Value>,
}

/// An event, without what is in it.
#[derive(Debug)]
struct TurnEvent {
    record: OwnedRecord,
    event_type: Option<EventType>,
    event_id: String,
    turn_id: Option<String>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    time_ms: Option<i64>,
    record_ms: Option<i64>,
}

/// An event of the turn, with what was decided on it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct TurnStep {
    /// When it happened, as RFC 3339.
    pub time: Option<String>,
    /// Its id.
    pub event_id: String,
    /// What happened; `None` where the record could not be read.
    #[serde(rename = "type")]
    pub event_type: Option<&'static str>,
    /// The tool.
    pub tool_name: Option<String>,
    /// The call.
    pub tool_call_id: Option<String>,
    /// What its verdict says is to be done; `None` where it has no verdict.
    pub action: Option<String>,
    /// The code of its verdict.
    pub code: Option<String>,
    /// Whether it is the same tool with the same arguments as the event that was asked about.
    pub is_same_call: bool,
}

impl History {
    /// Reads the events of a verdict's thread from its partition, far enough back for the turn's beginning, but no further than
    /// `lookback_ms`. A pause of `pause_ms` counts as the end of a turn, as it does for turns without an id.
    pub(super) fn read(topics: &Topics<'_>, found: &FoundVerdict, lookback_ms: i64, pause_ms: i64) -> anyhow::Result<Self> {
        let (thread, event_id) = (found.text("thread_id"), found.text("event_id"));
        let topic = topics.find(TopicRole::Events)?;
        let end_ms = found.time_ms();
        let mut look_ms = FIRST_LOOK_MS.min(lookback_ms);
        let (mut history, mut range);
        loop {
            range = TimeRange {
                from_ms: end_ms.map(|end_ms| end_ms.saturating_sub(look_ms)),
                // The clock of an event's producer may run ahead.
                until_ms: end_ms.map(|end_ms| end_ms.saturating_add(CLOCK_SKEW_MS_MAX)),
            };
            let (mut events, mut parser) = (Vec::new(), Parser::new());
            range.read(topics, topic, Some(found.partition), |record| {
                let Some(known) = TurnEvent::of(record, thread, &mut parser) else { return true };
                let is_last = known.event_id == event_id;
                events.push(known);
                !is_last && events.len() < EVENTS_MAX
            })?;
            history = Self::of(events, event_id, range.from_ms, pause_ms);
            if history.is_whole || look_ms >= lookback_ms || history.events.len() >= EVENTS_MAX {
                break;
            }
            look_ms = look_ms.saturating_mul(10).min(lookback_ms);
        }
        let decisions = topics.find(TopicRole::Decisions)?;
        range.read(topics, decisions, Some(found.partition), |record| {
            let value = record.value.filter(|_| record.key == Some(thread.as_bytes()));
            if let Some(verdict) = value.and_then(|value| serde_json::from_slice::<Value>(value).ok())
                && let Some(id) = verdict.get("event_id").and_then(Value::as_str).map(str::to_owned)
            {
                let is_last = id == event_id;
                history.verdicts.entry(id).or_insert(verdict);
                return !is_last;
            }
            true
        })?;
        Ok(history)
    }

    /// Returns the history of a thread's events from a time on, of which the last one has this id.
    fn of(events: Vec<TurnEvent>, event_id: &str, from_ms: Option<i64>, pause_ms: i64) -> Self {
        let has_it = events.last().is_some_and(|last| last.event_id == event_id);
        // A turn begins with its boundary, or behind the end of another one or a long pause.
        let is_pause =
            |from_ms: Option<i64>, to_ms: Option<i64>| from_ms.zip(to_ms).is_some_and(|(from, to)| to.saturating_sub(from) > pause_ms);
        let begins = |at: usize| {
            let Some(event) = events.get(at) else { return false };
            let Some(before) = at.checked_sub(1).and_then(|at| events.get(at)) else { return is_pause(from_ms, event.record_ms) };
            let is_another = event.turn_id.is_some() && before.turn_id.is_some() && event.turn_id != before.turn_id;
            // A result belongs to the turn of its call, however long the call took.
            let is_unnamed = event.turn_id.is_none() && before.turn_id.is_none() && event.event_type != Some(EventType::ToolResult);
            let is_over = matches!(before.event_type, Some(EventType::TurnEnd | EventType::ThreadReset));
            is_another || is_over || (is_unnamed && is_pause(before.time_ms, event.time_ms))
        };
        let starts = |at: usize| events.get(at).is_some_and(|event| event.event_type == Some(EventType::TurnStart));
        let from = (0..events.len()).rev().find(|at| starts(*at) || begins(*at));
        Self { is_whole: has_it && from.is_some(), turn_from: from.unwrap_or_default(), events, verdicts: BTreeMap::new() }
    }

    /// Returns whether the turn's beginning is known.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the records of the thread, in their order.
    pub(super) fn records(&self) -> impl Iterator<Item = &OwnedRecord> {
        self.events.iter().map(|event| &event.record)
    }

    /// Returns the record that the verdict is on, if it is still there.
    pub(super) fn record(&self, event_id: &str) -> Option<&OwnedRecord> {
        self.events.last().filter(|last| last.event_id == event_id).map(|last| &last.record)
    }

    /// Returns the turn's events with what was decided on them, up to the one of `found`.
    pub(super) fn turn(&self, found: &FoundVerdict) -> Vec<TurnStep> {
        let signature = found.verdict.get("signature");
        let text = |verdict: Option<&Value>, member: &str| Some(verdict?.get(member)?.as_str()?.to_owned());
        let step = |event: &TurnEvent| {
            let verdict = self.verdicts.get(&event.event_id);
            TurnStep {
                time: event.time_ms.and_then(rfc_3339),
                event_id: event.event_id.clone(),
                event_type: event.event_type.map(EventType::as_str),
                tool_name: event.tool_name.clone(),
                tool_call_id: event.tool_call_id.clone(),
                action: text(verdict, "action"),
                code: text(verdict, "code"),
                is_same_call: signature.is_some() && verdict.and_then(|verdict| verdict.get("signature")) == signature,
            }
        };
        self.events.iter().skip(self.turn_from).map(step).collect()
    }
}

impl TurnEvent {
    /// Returns what is known of a record, if it is one of the thread.
    fn of(record: &Record<'_>, thread: &str, parser: &mut Parser) -> Option<Self> {
        // Records of other threads are by far the most, and need not be parsed.
        if record.key.is_some_and(|key| key != thread.as_bytes()) {
            return None;
        }
        let known = match decode(record, parser, usize::MAX) {
            Ok(event) if event.thread_id == thread => Self::of_event(record, &event),
            Err(rejection) if rejection.event.thread_id.as_deref() == Some(thread) => Self::of_rejected(record, *rejection.event),
            _ => return None,
        };
        Some(known)
    }

    fn of_event(record: &Record<'_>, event: &Event<'_>) -> Self {
        let (tool_call_id, tool_name) = match &event.body {
            Body::ToolCall(call) => (Some(&call.tool_call_id), Some(&call.tool_name)),
            Body::ToolResult(result) => (Some(&result.tool_call_id), Some(&result.tool_name)),
            _ => (None, None),
        };
        Self {
            record: OwnedRecord::of(record),
            event_type: Some(event.event_type()),
            event_id: event.event_id.to_string(),
            turn_id: event.turn_id.as_ref().map(ToString::to_string),
            tool_call_id: tool_call_id.map(ToString::to_string),
            tool_name: tool_name.map(ToString::to_string),
            time_ms: event.time_ms,
            record_ms: record.timestamp_ms,
        }
    }

    fn of_rejected(record: &Record<'_>, event: PartialEvent) -> Self {
        Self {
            record: OwnedRecord::of(record),
            event_type: event.event_type,
            event_id: event.event_id.unwrap_or_else(|| record.coordinates()),
            turn_id: event.turn_id,
            tool_call_id: event.tool_call_id,
            tool_name: event.tool_name,
            time_ms: record.timestamp_ms,
            record_ms: record.timestamp_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::event::record::{Offset, Partition};

    const HOUR_MS: i64 = 3_600_000;

    fn history(events: &[&str], last: &str) -> History {
        history_from(HOUR_MS - 60_000, events, last)
    }

    fn history_from(from_ms: i64, events: &[&str], last: &str) -> History {
        let mut parser = Parser::new();
        let known = events.iter().zip(0..).filter_map(|(value, offset)| {
            let (partition, value) = (Partition(0), Some(value.as_bytes()));
            // An event a minute.
            let timestamp_ms = Some(HOUR_MS + offset * 60_000);
            let record = Record { topic: "e", partition, offset: Offset(offset), timestamp_ms, key: None, value, headers: &[] };
            TurnEvent::of(&record, "t", &mut parser)
        });
        History::of(known.collect(), last, Some(from_ms), HOUR_MS / 2)
    }

    fn event(kind: &str, id: &str, turn: &str) -> String {
        format!(
            r#"{{"type":"{kind}","thread_id":"t","event_id":"{id}","turn_id":{turn},"tool_call_id":"c","tool_name":"ls","tool_input":{{}},"result":""}}"#
        )
    }

    #[test]
    fn a_turn_begins_at_its_boundary_or_behind_the_end_of_another() {
        let named = [event("tool_call", "a", "\"1\""), event("tool_call", "b", "\"2\""), event("tool_call", "c", "\"2\"")];
        let started = [event("tool_call", "a", "null"), event("turn_start", "b", "null"), event("tool_call", "c", "null")];
        let ended = [event("turn_end", "a", "null"), event("tool_call", "b", "null"), event("tool_call", "c", "null")];
        for events in [&named, &started, &ended] {
            let known = history(&events.each_ref().map(String::as_str), "c");
            assert_eq!((known.turn_from, known.is_whole()), (1, true), "{events:?}");
        }
        let cut = [event("tool_call", "b", "\"2\""), event("tool_call", "c", "\"2\"")];
        assert!(!history(&cut.each_ref().map(String::as_str), "c").is_whole());
        assert!(!history(&named.each_ref().map(String::as_str), "gone").is_whole());
    }

    #[test]
    fn a_long_pause_ends_a_turn() {
        let [first, second] = ["a", "b"].map(|id| event("tool_call", id, "null"));
        // Nothing came for an hour before the first event.
        let known = history_from(0, &[&first, &second], "b");
        assert_eq!((known.turn_from, known.is_whole()), (0, true));
        // Fifty minutes lie between the two, by their own times.
        let earlier = first.replace(r#""thread_id""#, r#""timestamp":"1970-01-01T00:10:00Z","thread_id""#);
        let behind = |last: &str| {
            let known = history(&[&earlier, last], "b");
            (known.turn_from, known.is_whole())
        };
        assert_eq!(behind(&second), (1, true));
        assert_eq!(behind(&event("tool_result", "b", "null")), (0, false));
    }

    #[test]
    fn records_of_other_threads_are_left_out_and_rejected_ones_are_not() {
        let other = event("tool_call", "x", "null").replace("\"t\"", "\"u\"");
        let broken = r#"{"type":"tool_call","thread_id":"t","event_id":"broken","tool_name":5}"#;
        let known = history(&[&other, broken, "{", &event("tool_call", "c", "null")], "c");
        let ids: Vec<_> = known.events.iter().map(|event| event.event_id.as_str()).collect();
        assert_eq!(ids, ["broken", "c"]);
        assert!(known.record("c").is_some() && known.record("broken").is_none());
    }
}
