//! What is sent of a record: the record as it stands, or a copy with ids of its own and times that were moved. All other bytes stay.

use std::borrow::Cow;

use tollgate_core::decide::evaluate::verdict::verdict_id;
use tollgate_core::event::decode::{EVENT_ID_BYTES_MAX, EventType, THREAD_ID_BYTES_MAX, decode};
use tollgate_core::event::record::Record;
use tollgate_json::time::{parse_timestamp, rfc_3339};
use tollgate_json::{DEPTH_MAX, Parser, Splice, Value};

use crate::LineFault;

/// How many containers may be open at once in an event.
const DEPTH: usize = DEPTH_MAX + 4;
const STRUCTURED: &[u8] = b"application/cloudevents+json";

/// What is sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Ready<'r> {
    /// The key.
    pub key: Option<Cow<'r, [u8]>>,
    /// The value.
    pub value: Option<Cow<'r, [u8]>>,
    /// The headers, each with its name.
    pub headers: Vec<(&'r str, Option<Cow<'r, [u8]>>)>,
    /// Milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    /// The id of the verdict on it; `None` if it gets none.
    pub verdict_id: Option<[u8; 32]>,
}

/// Makes what is sent.
#[derive(Debug)]
pub struct Rewriter {
    /// How many bytes an event may have.
    pub event_bytes_max: usize,
    /// What stands between an id and the number of its copy.
    pub mark: String,
    /// Whether there are copies with ids of their own.
    pub has_copies: bool,
}

/// What a record says of itself.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) thread: Option<String>,
    event: Option<String>,
    user: Option<String>,
    /// Whether the event brings no id, so that it is known by its place.
    is_placed: bool,
    is_event: bool,
    gets_verdict: bool,
}

impl Facts {
    /// Returns whether the record can be read as an event.
    pub(super) fn is_event(&self) -> bool {
        self.is_event
    }

    fn verdict_id(&self, coordinates: &str) -> Option<[u8; 32]> {
        let thread = self.thread.as_deref().filter(|_| self.gets_verdict)?;
        Some(verdict_id(thread, self.event.as_deref().unwrap_or(coordinates)).hex())
    }
}

impl Rewriter {
    /// Returns what a record says of itself.
    pub(super) fn facts(&self, record: &Record<'_>) -> Facts {
        let mut parser = Parser::new();
        match decode(record, &mut parser, self.event_bytes_max) {
            Ok(event) => Facts {
                is_placed: event.event_id == record.coordinates(),
                gets_verdict: !matches!(event.event_type(), EventType::TurnStart | EventType::TurnEnd),
                user: event.attribution.user_id.as_deref().map(str::to_owned),
                thread: Some(event.thread_id.into_owned()),
                event: Some(event.event_id.into_owned()),
                is_event: true,
            },
            Err(rejection) => Facts {
                gets_verdict: rejection.event.thread_id.is_some() && rejection.is_answered(),
                is_placed: rejection.event.event_id.is_none(),
                thread: rejection.event.thread_id,
                event: rejection.event.event_id,
                ..Facts::default()
            },
        }
    }

    /// Returns what is sent of a record as its copy of this number; 0 is the record itself. `shift_ms` is added to its times.
    ///
    /// # Errors
    /// An id of the record could not be told from that of a copy, or leaves no room for the number of one.
    pub fn ready<'r>(&self, record: &Record<'r>, number: u64, shift_ms: Option<i64>) -> Result<Ready<'r>, LineFault> {
        let facts = self.facts(record);
        let coordinates = record.coordinates();
        if self.has_copies {
            self.check(&facts, &coordinates, number)?;
        }
        if facts.is_placed && coordinates.len() > EVENT_ID_BYTES_MAX {
            let found = format!("no event id, and a place of {} bytes", coordinates.len());
            return Err(LineFault::new("event_id_too_long", "topic", found, "give events ids of their own, of at most 128 bytes"));
        }
        let timestamp_ms = record.timestamp_ms.map(|time_ms| time_ms.saturating_add(shift_ms.unwrap_or_default()));
        let own = |bytes: Option<&'r [u8]>| bytes.map(Cow::Borrowed);
        if number == 0 && shift_ms.is_none() && !facts.is_placed {
            let headers = record.headers.iter().map(|header| (header.name, own(header.value))).collect();
            let verdict_id = facts.verdict_id(&coordinates);
            return Ok(Ready { key: own(record.key), value: own(record.value), headers, timestamp_ms, verdict_id });
        }
        let edit = Edit { tail: self.tail(number), shift_ms, place: facts.is_placed.then_some(&coordinates), is_event: facts.is_event };
        let (key, headers) = (record.key.map(|key| edit.id(key)), edit.headers(record));
        let value = record.value.map(|value| edit.value(record, value).map_or(Cow::Borrowed(value), Cow::Owned));
        let mut ready = Ready { key, value, headers, timestamp_ms, verdict_id: facts.verdict_id(&coordinates) };
        if number > 0 {
            ready.verdict_id = self.facts_of(&ready, record).verdict_id(&coordinates);
        }
        Ok(ready)
    }

    fn facts_of(&self, ready: &Ready<'_>, record: &Record<'_>) -> Facts {
        let headers: Vec<_> =
            ready.headers.iter().map(|(name, value)| tollgate_core::event::record::Header { name, value: value.as_deref() }).collect();
        let (key, value) = (ready.key.as_deref(), ready.value.as_deref());
        self.facts(&Record { key, value, headers: &headers, timestamp_ms: ready.timestamp_ms, ..*record })
    }

    /// Returns what the ids of a copy end with. The record itself is the first, and has its own ids.
    fn tail(&self, number: u64) -> String {
        if number == 0 { String::new() } else { format!("{}{}", self.mark, number + 1) }
    }

    /// Checks that no id looks like that of a copy, and that each has room for the number.
    fn check(&self, facts: &Facts, coordinates: &str, number: u64) -> Result<(), LineFault> {
        // The first copies have to be refused together with the later ones.
        let tail = self.tail(number).len().max(self.mark.len() + 6);
        let event = facts.event.as_deref().unwrap_or(coordinates);
        let ids = [
            ("thread_id", facts.thread.as_deref(), THREAD_ID_BYTES_MAX),
            ("event_id", Some(event), EVENT_ID_BYTES_MAX),
            ("user_id", facts.user.as_deref(), usize::MAX),
        ];
        for (field, id, bytes_max) in ids {
            let Some(id) = id else { continue };
            if id.trim_end_matches(|digit: char| digit.is_ascii_digit()).ends_with(&self.mark)
                && id.ends_with(|end: char| end.is_ascii_digit())
            {
                return Err(LineFault::new("id_like_a_copy", field, "an id that ends as those of copies do", "choose another --mark"));
            }
            if id.len() <= bytes_max && id.len() + tail > bytes_max {
                let found = format!("an id of {} bytes, which leaves no room for the number of a copy", id.len());
                return Err(LineFault::new("id_without_room", field, found, "replay this record without --multiply and --loop"));
            }
        }
        Ok(())
    }
}

/// The changes of one copy.
struct Edit<'e> {
    tail: String,
    shift_ms: Option<i64>,
    /// The recorded place of a record that brings no event id.
    place: Option<&'e String>,
    is_event: bool,
}

impl Edit<'_> {
    fn id<'r>(&self, id: &'r [u8]) -> Cow<'r, [u8]> {
        // An empty id stays one, since it is refused as such.
        if self.tail.is_empty() || id.is_empty() { Cow::Borrowed(id) } else { Cow::Owned([id, self.tail.as_bytes()].concat()) }
    }

    fn headers<'r>(&self, record: &Record<'r>) -> Vec<(&'r str, Option<Cow<'r, [u8]>>)> {
        let changed = |name, value: &'r [u8]| match name {
            "ce_id" | "ce_subject" | "event_id" => self.id(value),
            "ce_time" => {
                self.time(std::str::from_utf8(value).unwrap_or_default()).map_or(Cow::Borrowed(value), |time| Cow::Owned(time.into()))
            }
            _ => Cow::Borrowed(value),
        };
        let headers = record.headers.iter().map(|header| (header.name, header.value.map(|value| changed(header.name, value))));
        // The verdict on a record that cannot be read takes its event's id from here.
        let place = self.place.filter(|_| !self.is_event);
        headers.chain(place.map(|place| ("event_id", Some(Cow::Owned(format!("{place}{}", self.tail).into_bytes()))))).collect()
    }

    /// Returns a time moved as the record's is, if it is one and is to be moved.
    fn time(&self, text: &str) -> Option<String> {
        rfc_3339(parse_timestamp(text)?.checked_add(self.shift_ms?)?)
    }

    /// Returns the changed value; `None` if nothing of it changes.
    fn value(&self, record: &Record<'_>, value: &[u8]) -> Option<Vec<u8>> {
        let (prefix, text) = match value {
            [0, _, _, _, _, text @ ..] => value.split_at(value.len() - text.len()),
            _ => value.split_at(0),
        };
        std::str::from_utf8(text).ok()?;
        let mut parser = Parser::new();
        let root = parser.parse(text, DEPTH).ok().filter(Value::is_object)?;
        let mut splice = Splice::of(text);
        let content_type = record.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-type"));
        let says_structured = |value: &[u8]| value.get(..STRUCTURED.len()).is_some_and(|head| head.eq_ignore_ascii_case(STRUCTURED));
        let is_structured = root.get("specversion").is_some() && content_type.is_none()
            || content_type.and_then(|header| header.value).is_some_and(says_structured);
        let mut fields = Some(root);
        if is_structured {
            self.members(root, &["id", "subject"], "time", &mut splice);
            fields = root.get("data");
        }
        if let Some(fields) = fields {
            self.members(fields, &["thread_id", "event_id", "user_id"], "timestamp", &mut splice);
        }
        if let Some(place) = self.place.filter(|_| self.is_event) {
            let id = serde_json::Value::from(format!("{place}{}", self.tail)).to_string();
            match root.members().find(|(name, _)| name.is_text("event_id")) {
                Some((_, null)) if null.is_null() => splice.replace(null.place(), id),
                Some(_) => {}
                None => {
                    let begin = root.place().start + 1;
                    let comma = if root.members().next().is_some() { "," } else { "" };
                    splice.replace(begin..begin, format!("\"event_id\":{id}{comma}"));
                }
            }
        }
        let mut out = prefix.to_vec();
        splice.write(&mut out).ok()?;
        Some(out)
    }

    /// Changes the ids and the time among the members of an object.
    fn members(&self, object: Value<'_>, ids: &[&str], time: &str, splice: &mut Splice<'_>) {
        for (name, value) in object.members() {
            let Some(text) = value.as_text() else { continue };
            if !self.tail.is_empty() && !value.source().is_empty() && ids.iter().any(|id| name.is_text(id)) {
                // The number is plain text, so it stands behind the id however that is escaped.
                splice.replace(value.place().end..value.place().end, self.tail.as_bytes());
            } else if name.is_text(time)
                && let Some(moved) = text.into_str().and_then(|text| self.time(&text))
            {
                splice.replace(value.place(), moved);
            }
        }
    }
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
