//! Reads the body of a request: events as records for the log, checked by the same reader that the workers use.
//!
//! The text of an event stays as it came. Ids that the server adds stand in front of it, so that no number is rounded and no member is lost.

use std::borrow::Cow;
use std::collections::HashSet;

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use tollgate_core::decide::evaluate::verdict::verdict_id;
use tollgate_core::event::decode::{Event, EventType, Rejection, decode};
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_json::digest::{Digest, Fingerprint};
use tollgate_json::{DEPTH_MAX, Parser, Value};

use crate::refusal::Refusal;
use crate::tokens::Caller;

/// How many events a request may hold: the calls of a response.
pub const EVENTS_MAX: usize = 256;

/// The members that the server adds.
const ADDED: [&str; 4] = ["event_id", "tenant_id", "agent_id", "user_id"];

/// An event that is ready for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The record's key.
    pub thread_id: String,
    /// The event's id.
    pub event_id: String,
    /// The record's value.
    pub value: Vec<u8>,
    /// The id of the event's verdict.
    pub verdict: Fingerprint,
    /// The digest of the record's value, the caller's tenant included, which tells a repeat from another event under the same id.
    pub digest: Fingerprint,
    /// Whether the request awaits a verdict on the event.
    pub has_verdict: bool,
    /// Whether the event is a response of the model.
    pub is_response: bool,
}

/// What events are read with.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// The id of the event, where a header names it; of several events, the beginning of their ids.
    pub idempotency_key: Option<&'a str>,
    /// The most bytes of an event.
    pub event_bytes_max: usize,
}

/// The members that the server may add. Whether they are there is looked up; what they hold is read by the events' own reader.
#[derive(Debug, Deserialize)]
struct Ids<'a> {
    #[serde(borrow)]
    specversion: Option<&'a RawValue>,
    #[serde(borrow)]
    event_id: Option<&'a RawValue>,
    #[serde(borrow)]
    tenant_id: Option<&'a RawValue>,
    #[serde(borrow)]
    agent_id: Option<&'a RawValue>,
    #[serde(borrow)]
    user_id: Option<&'a RawValue>,
}

impl Reading<'_> {
    /// Reads a body: an event, or a list of events of a thread. Returns the events, and whether the body was a list.
    ///
    /// # Errors
    /// Returns a [`Refusal`] that names the field, the shape of the value and the fix.
    pub fn body(&self, body: &[u8]) -> Result<(Vec<Prepared>, bool), Refusal> {
        let (texts, is_list) = texts(body)?;
        if texts.is_empty() || texts.len() > EVENTS_MAX {
            let found = format!("body: found {} events; send 1 to {EVENTS_MAX} events, such as the calls of a response", texts.len());
            return Err(Refusal::body("events_out_of_bounds", found));
        }
        let place = |index| if is_list { Some(index) } else { None };
        let events = texts.iter().enumerate().map(|(index, text)| self.event(text, place(index)));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        if events.iter().any(|event| events.first().is_some_and(|first| first.thread_id != event.thread_id)) {
            let message =
                "thread_id: found events of several threads in a list; send a request for each thread, so that each keeps its order";
            return Err(Refusal::body("threads_differ", message));
        }
        let ids: HashSet<_> = events.iter().map(|event| event.verdict).collect();
        if ids.len() < events.len() {
            let message = "event_id: found the same id twice in a list; give each event an id of its own";
            return Err(Refusal::body("event_id_repeated", message));
        }
        Ok((events, is_list))
    }

    /// Reads an event. `place` is its place in a list.
    ///
    /// # Errors
    /// Returns a [`Refusal`].
    pub fn event(&self, text: &str, place: Option<usize>) -> Result<Prepared, Refusal> {
        let named = |message: String| place.map_or_else(|| message.clone(), |place| format!("event {} of the list: {message}", place + 1));
        let ids: Ids<'_> = serde_json::from_str(text).map_err(|error| {
            if !error.is_data() {
                return not_json(&error);
            }
            let message = "found a value that is no JSON object of an event, or a member twice; send one JSON object for each event";
            Refusal::body("value_not_an_object", named(message.to_owned()))
        })?;
        let own = self.added(&ids, place);
        let value = with_members(&without_nulls(text), &own);
        let record = Record {
            topic: "http",
            partition: Partition(0),
            offset: Offset(0),
            timestamp_ms: None,
            key: None,
            value: Some(value.as_bytes()),
            headers: &[],
        };
        let mut parser = Parser::new();
        let event = decode(&record, &mut parser, self.event_bytes_max).map_err(|rejection| refused(&rejection, &named))?;
        self.check(&event).map_err(|refusal| Refusal { message: named(refusal.message.clone()), ..refusal })?;
        if ids.specversion.is_some() && event.event_id.as_ref() == record.coordinates() {
            let message = "id: found nothing; give the CloudEvent an id";
            return Err(Refusal::body("event_id_missing", named(message.to_owned())));
        }
        let (thread_id, event_id) = (event.thread_id.to_string(), event.event_id.to_string());
        let verdict = verdict_id(&thread_id, &event_id);
        let has_verdict = !matches!(event.event_type(), EventType::TurnStart | EventType::TurnEnd);
        let is_response = event.event_type() == EventType::ModelResponse;
        let digest = Digest::of(value.as_bytes()).fingerprint();
        Ok(Prepared { thread_id, event_id, verdict, digest, has_verdict, is_response, value: value.into_bytes() })
    }

    /// Returns the members that the event lacks and that the server knows, as JSON text.
    fn added(&self, ids: &Ids<'_>, place: Option<usize>) -> Vec<String> {
        if ids.specversion.is_some() {
            return Vec::new();
        }
        let event_id = ids.event_id.is_none().then(|| match (self.idempotency_key, place) {
            (Some(key), None) => key.to_owned(),
            (Some(key), Some(place)) => format!("{key}/{place}"),
            (None, _) => new_event_id(),
        });
        let known = |known: &'_ Option<String>, own: Option<&RawValue>| known.clone().filter(|_| own.is_none());
        let members = [
            ("event_id", event_id),
            ("tenant_id", known(&self.caller.tenant, ids.tenant_id)),
            ("agent_id", known(&self.caller.agent, ids.agent_id)),
            ("user_id", known(&self.caller.user, ids.user_id)),
        ];
        let member = |(name, text): (&str, Option<String>)| text.map(|text| format!("\"{name}\":{}", serde_json::Value::from(text)));
        members.into_iter().filter_map(member).collect()
    }

    /// Checks that the caller may speak for whom the event names.
    fn check(&self, event: &Event<'_>) -> Result<(), Refusal> {
        if event.event_type() == EventType::ThreadReset {
            let message = "type: found thread_reset, which is an operator's; use `tollgate state reset`";
            return Err(Refusal::new(StatusCode::FORBIDDEN, "type_not_allowed", message));
        }
        let of = &event.attribution;
        self.caller.check(of.tenant_id.as_deref(), of.agent_id.as_deref())?;
        self.caller.check_user(of.user_id.as_deref())
    }
}

/// Returns the texts of a body's events, and whether the body is a list.
pub(crate) fn texts(body: &[u8]) -> Result<(Vec<&str>, bool), Refusal> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Refusal::body("value_not_utf8", "body: found bytes that are no UTF-8; encode the JSON as UTF-8"))?;
    // What JSON calls white space.
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if text.is_empty() {
        return Err(Refusal::body("value_not_json", "body: is empty; send an event as a JSON object, or a list of events"));
    }
    if !text.starts_with('[') {
        return Ok((vec![text], false));
    }
    let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    Ok((elements.into_iter().map(RawValue::get).collect(), true))
}

fn not_json(error: &serde_json::Error) -> Refusal {
    let (line, column) = (error.line(), error.column());
    let message = format!("body: found no JSON at line {line}, column {column}; send an event as a JSON object, or a list of events");
    Refusal::body("value_not_json", message)
}

/// Returns the text of an object without the ids in it that are null: a null is the same as leaving the id out, and no member may stand twice.
fn without_nulls(text: &str) -> Cow<'_, str> {
    // Few events hold a null, and no other event has to be read for it.
    if !text.contains("null") {
        return text.into();
    }
    let mut parser = Parser::new();
    let Ok(root) = parser.parse(text.as_bytes(), DEPTH_MAX) else { return text.into() };
    let is_null = |(key, value): &(Value<'_>, Value<'_>)| value.is_null() && ADDED.iter().any(|name| key.is_text(name));
    if !root.members().any(|member| is_null(&member)) {
        return text.into();
    }
    let kept = root.members().filter(|member| !is_null(member));
    let members: Vec<_> = kept.map(|(key, value)| format!("{}:{}", key.as_written(), value.as_written())).collect();
    format!("{{{}}}", members.join(",")).into()
}

/// Returns the text of an object with members in front of its own.
fn with_members(text: &str, members: &[String]) -> String {
    let Some(rest) = text.strip_prefix('{').filter(|_| !members.is_empty()) else { return text.to_owned() };
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{{}{comma}{rest}", members.join(","))
}

fn refused(rejection: &Rejection, named: &impl Fn(String) -> String) -> Refusal {
    let refusal = Refusal::body(rejection.code.as_str(), named(rejection.to_string()));
    match &rejection.event.event_id {
        Some(event_id) => refusal.of_event(event_id),
        None => refusal,
    }
}

/// Returns an id for an event that has no id: 128 random bits.
pub(crate) fn new_event_id() -> String {
    format!("http-{:032x}", fastrand::u128(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(caller: &Caller, body: &str) -> Result<(Vec<Prepared>, bool), Refusal> {
        Reading { caller, idempotency_key: Some("key"), event_bytes_max: 1 << 20 }.body(body.as_bytes())
    }

    const CALL: &str =
        r#"{"type":"tool_call","thread_id":"t","tool_call_id":"c","tool_name":"bash","tool_input":{"n":12345678901234567890123}}"#;

    #[test]
    fn an_event_keeps_its_text_and_gets_an_id_and_a_tenant() {
        let caller = Caller::anyone().of_tenant("acme");
        let (events, is_list) = read(&caller, CALL).unwrap();
        let value = std::str::from_utf8(&events[0].value).unwrap();
        assert_eq!(value, CALL.replacen('{', r#"{"event_id":"key","tenant_id":"acme","#, 1));
        assert!(!is_list && events[0].has_verdict);
        assert_eq!(events[0].verdict, verdict_id("t", "key"));
        let own = CALL.replace('{', r#"{"event_id":"e1","#).replacen(r#""tool_input":{"event_id":"e1","#, r#""tool_input":{"#, 1);
        assert_eq!(read(&Caller::anyone(), &own).unwrap().0[0].event_id, "e1");
    }

    #[test]
    fn the_calls_of_a_response_come_as_a_list_of_one_thread() {
        let list = format!("[{CALL},{}]", CALL.replace("\"c\"", "\"d\""));
        let (events, is_list) = read(&Caller::anyone(), &list).unwrap();
        assert_eq!((events[0].event_id.as_str(), events[1].event_id.as_str(), is_list), ("key/0", "key/1", true));
        let other = format!("[{CALL},{}]", CALL.replace("\"t\"", "\"u\""));
        assert_eq!(read(&Caller::anyone(), &other).unwrap_err().code, "threads_differ");
        assert_eq!(read(&Caller::anyone(), "[]").unwrap_err().code, "events_out_of_bounds");
        let twice = CALL.replacen('{', r#"{"event_id":"e","#, 1);
        assert_eq!(read(&Caller::anyone(), &format!("[{twice},{twice}]")).unwrap_err().code, "event_id_repeated");
    }

    #[test]
    fn what_a_worker_would_refuse_is_refused_here_by_name() {
        let cases = [
            (" \n", "value_not_json", "body: is empty"),
            ("nonsense", "value_not_json", "body: found no JSON at line 1"),
            ("7", "value_not_an_object", "found a value that is no JSON object"),
            ("{}", "type_missing", "type"),
            (r#"{"type":"tool_call","thread_id":"t"}"#, "tool_call_id_missing", "tool_call_id"),
            (r#"{"type":"tool_call","type":"turn_end","thread_id":"t"}"#, "field_repeated", "type"),
            (r#"{"type":"thread_reset","thread_id":"t"}"#, "type_not_allowed", "state reset"),
        ];
        for (body, code, words) in cases {
            let refusal = read(&Caller::anyone(), body).unwrap_err();
            assert!(refusal.message.contains(words), "{body}: {refusal:?}");
            assert_eq!(refusal.code, code, "{body}");
        }
        let listed = read(&Caller::anyone(), &format!("[{CALL},{{}}]")).unwrap_err();
        assert!(listed.message.starts_with("event 2 of the list: "), "{}", listed.message);
    }

    #[test]
    fn nobody_speaks_for_another_tenant_or_agent() {
        let caller = Caller::anyone().of_tenant("acme");
        let foreign = CALL.replacen('{', r#"{"tenant_id":"globex","#, 1);
        let refusal = read(&caller, &foreign).unwrap_err();
        assert_eq!((refusal.status, refusal.code), (StatusCode::FORBIDDEN, "tenant_not_allowed"));
        assert!(!refusal.message.contains("globex") && refusal.message.contains("tenant_id"));
    }

    #[test]
    fn an_event_gets_the_only_agent_and_the_user_of_its_token() {
        let mut caller = Caller::anyone();
        (caller.agent, caller.user) = (Some("coder".to_owned()), Some("ada".to_owned()));
        let value = String::from_utf8(read(&caller, CALL).unwrap().0.remove(0).value).unwrap();
        assert_eq!(value, CALL.replacen('{', r#"{"event_id":"key","agent_id":"coder","user_id":"ada","#, 1));
        let foreign = CALL.replacen('{', r#"{"user_id":"bob","#, 1);
        assert_eq!(read(&caller, &foreign).unwrap_err().code, "user_not_allowed");
    }

    #[test]
    fn an_id_that_is_null_is_left_out() {
        let nulls = CALL.replacen('{', r#"{"tenant_id":null,"event_id":null,"#, 1);
        let value = String::from_utf8(read(&Caller::anyone().of_tenant("acme"), &nulls).unwrap().0.remove(0).value).unwrap();
        assert_eq!(value, CALL.replacen('{', r#"{"event_id":"key","tenant_id":"acme","#, 1));
        let cloud_event = format!(r#"{{"specversion":"1.0","id":"e","type":"tool_call","subject":"t","source":"s","data":{CALL}}}"#);
        let refusal = read(&Caller::anyone().of_tenant("acme"), &cloud_event).unwrap_err();
        assert!(refusal.message.contains("CloudEvent"), "{refusal:?}");
    }

    #[test]
    fn the_same_text_of_another_tenant_is_another_event() {
        let of = |tenant| read(&Caller::anyone().of_tenant(tenant), CALL).unwrap().0[0].digest;
        assert_eq!(of("acme"), of("acme"));
        assert_ne!(of("acme"), of("globex"), "a remembered verdict is nobody else's");
    }

    #[test]
    fn turns_get_no_verdict() {
        let (events, _) = read(&Caller::anyone(), r#"{"type":"turn_start","thread_id":"t"}"#).unwrap();
        assert!(!events[0].has_verdict);
    }
}
