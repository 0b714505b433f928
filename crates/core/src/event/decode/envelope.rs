//! Opening envelopes: plain JSON, CloudEvents 1.0 structured, CloudEvents 1.0 binary, and the schema-registry prefix.

use std::borrow::Cow;

use super::members::{self, Others};
use super::{EventType, PartialEvent, Rejection, RejectionCode, THREAD_ID_BYTES_MAX, TIMESTAMP_BYTES_MAX};
use crate::event::record::Record;
use tollgate_json::Value;
use tollgate_json::time::parse_timestamp;

/// The content type of structured CloudEvents.
pub(crate) const STRUCTURED: &str = "application/cloudevents+json";
const ATTRIBUTE_FIX: &str = "send it as UTF-8 text";
const VERSION_FIX: &str = "send CloudEvents 1.0";

/// An opened envelope: the object with the event's fields, and what the envelope itself says.
#[derive(Debug)]
pub(super) struct Envelope<'d> {
    /// The event's fields; `None` is a CloudEvent without data.
    pub(super) fields: Option<Value<'d>>,
    /// The attributes of a CloudEvent, whose id and type are taken from the envelope.
    pub(super) cloud_event: Option<CloudEvent<'d>>,
}

/// The context attributes that are used.
#[derive(Debug, Default)]
pub(super) struct CloudEvent<'d> {
    pub(super) id: Cow<'d, str>,
    pub(super) event_type: Option<Cow<'d, str>>,
    pub(super) subject: Option<Cow<'d, str>>,
    pub(super) time: Option<Cow<'d, str>>,
}

/// Returns the value without the prefix of Confluent's wire format, which puts a zero byte and a four-byte schema id before the JSON.
pub(crate) fn skip_schema_registry_prefix(value: &[u8]) -> &[u8] {
    match value {
        [0, _, _, _, _, json @ ..] => json,
        _ => value,
    }
}

/// Opens the envelope, which its headers identify. A structured CloudEvent without headers, as a file holds it, is identified by its
/// `specversion`.
pub(super) fn open<'d>(record: &Record<'d>, root: Value<'d>) -> Result<Envelope<'d>, Rejection> {
    let content_type = content_type(record);
    let is_structured = says_structured(&content_type, root);
    let opened = match content_type {
        Err(rejection) => Err(rejection),
        Ok(_) if is_structured => structured(root),
        Ok(_) if is_binary(record) => binary(record, Some(root)),
        Ok(_) => return Ok(Envelope { fields: Some(root), cloud_event: None }),
    };
    opened.map_err(|rejection| {
        let event = if is_structured { structured_partial_event(root, partial_event_of(record)) } else { partial_event_of(record) };
        rejection.with_event(event)
    })
}

/// Returns whether a record is read as a structured CloudEvent.
pub(crate) fn is_structured(record: &Record<'_>, root: Value<'_>) -> bool {
    says_structured(&content_type(record), root)
}

fn says_structured(content_type: &Result<Option<String>, Rejection>, root: Value<'_>) -> bool {
    match content_type {
        // SDKs label such an event as plain JSON, or not at all.
        Ok(content_type) => {
            let is_labelled = content_type.as_ref().is_some_and(|content_type| content_type.starts_with(STRUCTURED));
            is_labelled || (root.get("specversion").is_some() && root.get("source").is_some())
        }
        Err(_) => false,
    }
}

/// Returns what the key and the headers say of an event whose value cannot be read.
#[must_use]
pub fn partial_event_of(record: &Record<'_>) -> PartialEvent {
    let text = |name| record.header(name).and_then(|bytes| std::str::from_utf8(bytes).ok()).map(str::to_owned);
    PartialEvent {
        thread_id: text("ce_subject").or_else(|| key_text(record)).filter(|id| (1..=THREAD_ID_BYTES_MAX).contains(&id.len())),
        event_id: text("ce_id").or_else(|| text("event_id")).filter(|id| (1..=super::EVENT_ID_BYTES_MAX).contains(&id.len())),
        event_type: text("ce_type").and_then(|name| EventType::from_name(short_type(&name))),
        timestamp: text("ce_time").filter(|text| is_moment(text)),
        ..PartialEvent::default()
    }
}

/// Returns what a structured envelope says of an event although the envelope is broken.
fn structured_partial_event(root: Value<'_>, outer: PartialEvent) -> PartialEvent {
    let text = |name, bytes_max| {
        let text = root.get(name).and_then(|value| value.as_text()?.into_str()).map(Cow::into_owned);
        text.filter(|text| (1..=bytes_max).contains(&text.len()))
    };
    PartialEvent {
        thread_id: text("subject", THREAD_ID_BYTES_MAX).or(outer.thread_id),
        event_id: text("id", super::EVENT_ID_BYTES_MAX).or(outer.event_id),
        event_type: text("type", usize::MAX).and_then(|name| EventType::from_name(short_type(&name))).or(outer.event_type),
        timestamp: text("time", TIMESTAMP_BYTES_MAX).filter(|text| is_moment(text)).or(outer.timestamp),
        ..outer
    }
}

/// Returns whether a text is a timestamp that a verdict can repeat.
fn is_moment(text: &str) -> bool {
    text.len() <= TIMESTAMP_BYTES_MAX && parse_timestamp(text).is_some()
}

fn key_text(record: &Record<'_>) -> Option<String> {
    record.key.and_then(|key| std::str::from_utf8(key).ok()).map(str::to_owned)
}

/// Returns the content type, which says what kind of envelope it is. Two of them say nothing.
fn content_type(record: &Record<'_>) -> Result<Option<String>, Rejection> {
    let mut found = record.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("content-type"));
    let Some(header) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err(members::repeated("content-type"));
    }
    Ok(header.value.map(|value| String::from_utf8_lossy(value).to_ascii_lowercase()))
}

/// Returns the type's short name: `tool_call` for `com.acme.agent.tool_call.v1`. It is the last segment, or the one before a version.
pub(crate) fn short_type(name: &str) -> &str {
    let mut segments = name.rsplit('.');
    let last = segments.next().unwrap_or(name);
    let is_version = last.strip_prefix('v').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
    if is_version { segments.next().unwrap_or(last) } else { last }
}

/// The members of a structured CloudEvent that are used.
#[derive(Debug, Default)]
struct Attributes<'d> {
    specversion: Option<Value<'d>>,
    id: Option<Value<'d>>,
    event_type: Option<Value<'d>>,
    subject: Option<Value<'d>>,
    time: Option<Value<'d>>,
    data: Option<Value<'d>>,
    data_base64: Option<Value<'d>>,
}

impl<'d> Attributes<'d> {
    fn of(root: Value<'d>) -> Result<Self, Rejection> {
        let (mut attributes, mut others) = (Self::default(), Others::default());
        for (key, value) in root.members() {
            let Some(name) = key.as_text() else { continue };
            let (name, slot) = match name.as_bytes() {
                b"specversion" => ("specversion", &mut attributes.specversion),
                b"id" => ("id", &mut attributes.id),
                b"type" => ("type", &mut attributes.event_type),
                b"subject" => ("subject", &mut attributes.subject),
                b"time" => ("time", &mut attributes.time),
                b"data" => ("data", &mut attributes.data),
                b"data_base64" => ("data_base64", &mut attributes.data_base64),
                _ => {
                    others.note(key);
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                return Err(members::repeated(name));
            }
        }
        if others.repeat_in(root) { Err(members::repeated("value")) } else { Ok(attributes) }
    }
}

fn structured(root: Value<'_>) -> Result<Envelope<'_>, Rejection> {
    let attributes = Attributes::of(root)?;
    check_version(text("specversion", attributes.specversion)?.as_deref())?;
    let cloud_event = CloudEvent {
        id: require_id(text("id", attributes.id)?)?,
        event_type: text("type", attributes.event_type)?,
        subject: text("subject", attributes.subject)?,
        time: text("time", attributes.time)?,
    };
    // Data that is JSON stands in `data` by now.
    if attributes.data_base64.is_some_and(|data| !data.is_null()) {
        let fix = "send the event's fields as a JSON object in `data`, or as its base64 in `data_base64`";
        return Err(Rejection::new(RejectionCode::CloudEventData, "data_base64", "something else than JSON in base64", fix));
    }
    let fields = attributes.data.filter(|data| !data.is_null());
    if let Some(data) = fields.filter(|data| !data.is_object()) {
        let fix = "send the event's fields as a JSON object";
        return Err(Rejection::new(RejectionCode::CloudEventData, "data", data.shape().to_string(), fix));
    }
    Ok(Envelope { fields, cloud_event: Some(cloud_event) })
}

/// Returns the text of an attribute. A null is the same as leaving it out.
fn text<'d>(name: &'static str, value: Option<Value<'d>>) -> Result<Option<Cow<'d, str>>, Rejection> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let text = value.as_text().and_then(tollgate_json::Text::into_str);
    text.map(Some).ok_or_else(|| Rejection::new(RejectionCode::CloudEventAttribute, name, value.shape().to_string(), ATTRIBUTE_FIX))
}

fn is_binary(record: &Record<'_>) -> bool {
    record.header("ce_specversion").is_some() || record.header("ce_id").is_some()
}

/// Opens a binary CloudEvent without data, which is enough for a turn boundary. Returns `None` for any other record.
pub(super) fn open_without_data<'d>(record: &Record<'d>) -> Option<Result<Envelope<'d>, Rejection>> {
    let is_empty = record.value.is_none_or(<[u8]>::is_empty);
    (is_empty && is_binary(record)).then(|| binary(record, None).map_err(|rejection| rejection.with_event(partial_event_of(record))))
}

fn binary<'d>(record: &Record<'d>, data: Option<Value<'d>>) -> Result<Envelope<'d>, Rejection> {
    check_headers(record)?;
    let attribute = |name: &'static str| match record.header(name) {
        None => Ok(None),
        Some(bytes) => std::str::from_utf8(bytes).map(|text| Some(Cow::Borrowed(text))).map_err(|_| {
            let found = format!("{} bytes that are not UTF-8", bytes.len());
            Rejection::new(RejectionCode::CloudEventAttribute, name, found, ATTRIBUTE_FIX)
        }),
    };
    check_version(attribute("ce_specversion")?.as_deref())?;
    let cloud_event = CloudEvent {
        id: require_id(attribute("ce_id")?)?,
        event_type: attribute("ce_type")?,
        subject: attribute("ce_subject")?,
        time: attribute("ce_time")?,
    };
    Ok(Envelope { fields: data, cloud_event: Some(cloud_event) })
}

/// Refuses attributes of a binary CloudEvent that stand twice. Upper and lower case are not told apart, because some readers do not.
fn check_headers(record: &Record<'_>) -> Result<(), Rejection> {
    let is_attribute = |name: &&str| name.as_bytes().get(..3).is_some_and(|prefix| prefix.eq_ignore_ascii_case(b"ce_"));
    let mut names: Vec<_> = record.headers.iter().map(|header| header.name).filter(is_attribute).collect();
    let lower = |name: &str| name.bytes().map(|byte| byte.to_ascii_lowercase()).collect::<Vec<_>>();
    // Most names differ in length already.
    names.sort_unstable_by(|left, right| left.len().cmp(&right.len()).then_with(|| lower(left).cmp(&lower(right))));
    let twice = names.windows(2).find_map(|pair| match pair {
        [left, right] if left.eq_ignore_ascii_case(right) => Some(*left),
        _ => None,
    });
    let Some(name) = twice else { return Ok(()) };
    let known = ["ce_specversion", "ce_id", "ce_type", "ce_subject", "ce_time"];
    Err(members::repeated(known.into_iter().find(|known| known.eq_ignore_ascii_case(name)).unwrap_or("headers")))
}

fn check_version(version: Option<&str>) -> Result<(), Rejection> {
    match version {
        Some(version) if version == "1" || version.strip_prefix("1.").is_some_and(is_minor) => Ok(()),
        Some(_) => Err(Rejection::new(RejectionCode::CloudEventVersion, "specversion", "another version", VERSION_FIX)),
        None => Err(Rejection::new(RejectionCode::CloudEventVersion, "specversion", "nothing", VERSION_FIX)),
    }
}

/// Returns whether a text is the number of a minor version.
fn is_minor(text: &str) -> bool {
    (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn require_id(id: Option<Cow<'_, str>>) -> Result<Cow<'_, str>, Rejection> {
    id.filter(|id| !id.is_empty())
        .ok_or_else(|| Rejection::new(RejectionCode::CloudEventIdMissing, "id", "nothing", "give every CloudEvent an id of 1 to 128 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_lose_their_prefix_and_version() {
        for (name, short) in [
            ("com.acme.agent.tool_call.v1", "tool_call"),
            ("tool_call", "tool_call"),
            ("a.turn_end", "turn_end"),
            ("x.tool_call.v", "v"),
            ("v2", "v2"),
        ] {
            assert_eq!(short_type(name), short);
        }
    }

    #[test]
    fn the_registry_prefix_is_skipped() {
        assert_eq!(skip_schema_registry_prefix(b"\0\0\0\0\x07{}"), b"{}");
        assert_eq!(skip_schema_registry_prefix(b"{}"), b"{}");
        assert_eq!(skip_schema_registry_prefix(b"\0\0"), b"\0\0");
    }
}
