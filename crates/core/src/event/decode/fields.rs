//! Reading the event's fields: every rule of the contract's table, with one code each.

use std::borrow::Cow;

use super::envelope::{Envelope, short_type};
use super::members::{self, Others};
use super::{
    ATTRIBUTION_BYTES_MAX, Attribution, Body, CLOCK_SKEW_MS_MAX, EVENT_ID_BYTES_MAX, Event, EventType, ModelBody, PartialEvent, Record,
    Rejection, RejectionCode, THREAD_ID_BYTES_MAX, TIMESTAMP_BYTES_MAX, TOOL_CALL_ID_BYTES_MAX, TOOL_NAME_BYTES_MAX, TURN_ID_BYTES_MAX,
    ToolCall, ToolResult, envelope, too_many_values,
};
use tollgate_json::time::parse_timestamp;
use tollgate_json::{DEPTH_MAX, Parser, Shape, SyntaxErrorKind, Text, VALUES_MAX, Value};
use tollgate_passport::ToolInput;

/// Returns what tells nearly all names apart in one comparison: the length and the first byte.
const fn tag(name: &[u8]) -> (usize, u8) {
    (name.len(), if let [first, ..] = name { *first } else { 0 })
}

macro_rules! fields {
    ($($field:ident),+ $(,)?) => {
        /// The names of the fields, besides `type`.
        pub(super) const FIELDS: &[&str] = &[$(stringify!($field)),+];

        /// The fields of the contract as they stand in the event. Unknown ones are not kept.
        #[derive(Debug, Default)]
        struct Fields<'d> { $($field: Option<Value<'d>>,)+ }

        impl<'d> Fields<'d> {
            /// Returns the place for the field with this name.
            fn slot(&mut self, name: &[u8]) -> Option<(&'static str, &mut Option<Value<'d>>)> {
                let tag_of_name = tag(name);
                $(if tag_of_name == const { tag(stringify!($field).as_bytes()) } && name == stringify!($field).as_bytes() {
                    return Some((stringify!($field), &mut self.$field));
                })+
                None
            }
        }
    };
}

fields! {
    thread_id, event_id, turn_id, timestamp, tool_call_id, tool_name, tool_input, arguments, result, failed, agent_id,
    is_subagent, user_id, user_role, tenant_id, run_id, attended, provider, response, message, error,
}

/// Members that every verdict has and no event does. A record with all of them is a verdict, whatever else it holds.
pub(super) const VERDICT_MEMBERS: [&[u8]; 3] = [b"verdict_id", b"allows_execution", b"policy_version"];

type Read<T> = Result<T, Rejection>;

/// Reads the event from the fields of an opened envelope, which was read from `document`.
pub(super) fn read<'d>(record: &Record<'d>, document: &'d str, envelope: &Envelope<'d>) -> Read<Event<'d>> {
    let mut reader = Reader { record, document, envelope, fields: Fields::default(), event_type: None };
    match reader.collect().and_then(|()| reader.event()) {
        Ok(event) => Ok(event),
        // Whoever is named in a verdict already has it.
        Err(rejection) if !rejection.is_answered() => Err(rejection),
        Err(rejection) => Err(rejection.with_event(reader.partial_event())),
    }
}

/// Says how a record's key differs from the thread's id, and what to do about it. Serialisers of JSON write quotes around a key, and `null` for
/// none.
fn mismatch(key: &[u8], thread_id: &str) -> (&'static str, &'static str) {
    let unquoted = key.strip_prefix(b"\"").and_then(|key| key.strip_suffix(b"\""));
    match key {
        b"null" => {
            ("a key that is the text null", "send no key, or the id: a serialiser of JSON writes null for no key; use one for plain texts")
        }
        _ if unquoted == Some(thread_id.as_bytes()) => (
            "a key with the same id in quotes",
            "send the key without quotes: a serialiser of JSON writes them around it; use one for plain texts",
        ),
        _ => ("another thread than the record's key", "let both name the same thread"),
    }
}

struct Reader<'r, 'd> {
    record: &'r Record<'d>,
    document: &'d str,
    envelope: &'r Envelope<'d>,
    fields: Fields<'d>,
    event_type: Option<Value<'d>>,
}

impl<'d> Reader<'_, 'd> {
    fn collect(&mut self) -> Read<()> {
        let (mut repeated, mut others, mut verdict_members) = (None, Others::default(), 0);
        for (key, value) in self.envelope.fields.iter().flat_map(Value::members) {
            let name = key.text_bytes();
            let (name, slot) = match &*name {
                // `type` is a Rust keyword, so the macro cannot declare a field of that name.
                b"type" => ("type", &mut self.event_type),
                name => match self.fields.slot(name) {
                    Some(slot) => slot,
                    None => {
                        others.note(key);
                        verdict_members += usize::from(VERDICT_MEMBERS.contains(&name));
                        continue;
                    }
                },
            };
            if slot.replace(value).is_some() {
                repeated = Some(name);
            }
        }
        if verdict_members >= VERDICT_MEMBERS.len() {
            return Err(Rejection::of_own_verdict());
        }
        match repeated {
            Some(name) => Err(members::repeated(name)),
            None if self.envelope.fields.is_some_and(|fields| others.repeat_in(fields)) => Err(members::repeated("value")),
            None => Ok(()),
        }
    }

    fn event(&self) -> Read<Event<'d>> {
        let event_type = self.event_type()?;
        let fields = &self.fields;
        let thread_id = self.thread_id()?;
        let event_id = self.event_id()?;
        let turn_id = self.optional_string(fields.turn_id, "turn_id", RejectionCode::TurnIdInvalid)?;
        if let Some(turn_id) = &turn_id {
            check_length(turn_id, TURN_ID_BYTES_MAX, "turn_id", RejectionCode::TurnIdTooLong, "send at most 256 bytes")?;
        }
        let attribution = self.attribution()?;
        let (timestamp, time_ms) = self.time()?;
        let body = match event_type {
            EventType::TurnStart => Body::TurnStart,
            EventType::TurnEnd => Body::TurnEnd,
            EventType::ThreadReset => Body::ThreadReset,
            EventType::ModelResponse => Body::ModelResponse(self.model_body()?),
            EventType::ToolCall => {
                Body::ToolCall(ToolCall { tool_call_id: self.tool_call_id()?, tool_name: self.tool_name()?, input: self.tool_input()? })
            }
            EventType::ToolResult => Body::ToolResult(self.tool_result()?),
        };
        let attended = optional_bool(self.fields.attended, "attended", RejectionCode::AttendedInvalid)?;
        let provider = if event_type == EventType::ModelResponse { self.provider()? } else { None };
        let record_ms = self.record.timestamp_ms;
        Ok(Event { thread_id, event_id, turn_id, timestamp, time_ms, record_ms, attribution, attended, provider, body })
    }

    fn event_type(&self) -> Read<EventType> {
        const FIX: &str = "send turn_start, model_response, tool_call, tool_result or turn_end";
        let named = match self.envelope.cloud_event.as_ref().and_then(|cloud_event| cloud_event.event_type.as_deref()) {
            Some(name) => Some(Cow::Borrowed(short_type(name))),
            None => match self.event_type {
                None => None,
                Some(value) => Some(self.string(value, "type", RejectionCode::TypeInvalid)?),
            },
        };
        let name = named.ok_or_else(|| Rejection::new(RejectionCode::TypeMissing, "type", "nothing", FIX))?;
        EventType::from_name(&name)
            .ok_or_else(|| Rejection::new(RejectionCode::TypeUnknown, "type", format!("an unknown name of {} bytes", name.len()), FIX))
    }

    /// Returns the thread's id, from the field, the CloudEvents subject and the key, which must agree.
    fn thread_id(&self) -> Read<Cow<'d, str>> {
        const FIX: &str = "send 1 to 256 bytes; in Kafka, the record's key may hold the id instead";
        let field = self.optional_string(self.fields.thread_id, "thread_id", RejectionCode::ThreadIdInvalid)?;
        let subject = self.envelope.cloud_event.as_ref().and_then(|cloud_event| cloud_event.subject.clone());
        let key = self.record.key;
        if let (Some(field), Some(subject)) = (&field, &subject)
            && field != subject
        {
            let found = "another thread than the CloudEvents subject";
            return Err(Rejection::new(RejectionCode::ThreadIdMismatch, "thread_id", found, "let both name the same thread"));
        }
        let Some(thread_id) = field.or(subject) else {
            let key = key.ok_or_else(|| Rejection::new(RejectionCode::ThreadIdMissing, "thread_id", "neither field nor key", FIX))?;
            let key = std::str::from_utf8(key).map_err(|_| {
                let found = format!("no field, and a key of {} bytes that is not UTF-8", key.len());
                Rejection::new(RejectionCode::KeyInvalid, "thread_id", found, FIX)
            })?;
            return check_thread_id(Cow::Borrowed(key), FIX);
        };
        let thread_id = check_thread_id(thread_id, FIX)?;
        if key.is_some_and(|key| key != thread_id.as_bytes()) {
            let (found, fix) = mismatch(key.unwrap_or_default(), &thread_id);
            return Err(Rejection::new(RejectionCode::ThreadIdMismatch, "thread_id", found, fix));
        }
        Ok(thread_id)
    }

    fn event_id(&self) -> Read<Cow<'d, str>> {
        const FIX: &str = "send 1 to 128 bytes, or leave it out";
        let event_id = match &self.envelope.cloud_event {
            Some(cloud_event) => Some(cloud_event.id.clone()),
            None => self.optional_string(self.fields.event_id, "event_id", RejectionCode::EventIdInvalid)?,
        };
        let Some(event_id) = event_id else { return Ok(Cow::Owned(self.record.coordinates())) };
        if event_id.is_empty() {
            return Err(Rejection::new(RejectionCode::EventIdEmpty, "event_id", "0 bytes", FIX));
        }
        check_length(&event_id, EVENT_ID_BYTES_MAX, "event_id", RejectionCode::EventIdTooLong, FIX)?;
        Ok(event_id)
    }

    fn attribution(&self) -> Read<Attribution<'d>> {
        let fields = &self.fields;
        Ok(Attribution {
            agent_id: self.optional_string(fields.agent_id, "agent_id", RejectionCode::AgentIdInvalid)?,
            is_subagent: optional_bool(fields.is_subagent, "is_subagent", RejectionCode::IsSubagentInvalid)?.unwrap_or(false),
            user_id: self.optional_string(fields.user_id, "user_id", RejectionCode::UserIdInvalid)?,
            user_role: self.optional_string(fields.user_role, "user_role", RejectionCode::UserRoleInvalid)?,
            tenant_id: self.optional_string(fields.tenant_id, "tenant_id", RejectionCode::TenantIdInvalid)?,
            run_id: self.optional_string(fields.run_id, "run_id", RejectionCode::RunIdInvalid)?,
        })
    }

    /// Returns the event's own timestamp as a verdict repeats it, and its time in milliseconds since the epoch.
    fn time(&self) -> Read<(Option<Cow<'d, str>>, Option<i64>)> {
        let text = match self.envelope.cloud_event.as_ref().and_then(|cloud_event| cloud_event.time.clone()) {
            Some(time) => Some(time),
            None => self.optional_string(self.fields.timestamp, "timestamp", RejectionCode::TimestampInvalid)?,
        };
        let Some(text) = text else { return Ok((None, self.record.timestamp_ms)) };
        let time_ms = parse_timestamp(&text).ok_or_else(|| {
            let found = format!("a string of {} bytes that is not RFC 3339", text.len());
            let fix = "send a moment such as 2026-01-31T12:00:00Z, or leave it out";
            Rejection::new(RejectionCode::TimestampInvalid, "timestamp", found, fix)
        })?;
        // A host whose clock runs ahead must not make the stops of its thread expire.
        let latest_ms = self.record.timestamp_ms.map_or(i64::MAX, |record_ms| record_ms.saturating_add(CLOCK_SKEW_MS_MAX));
        Ok((Some(text).filter(|text| text.len() <= TIMESTAMP_BYTES_MAX), Some(time_ms.min(latest_ms))))
    }

    fn tool_call_id(&self) -> Read<Cow<'d, str>> {
        const FIX: &str = "send the id that ties the result to its call, at most 4,096 bytes";
        let value = self.fields.tool_call_id;
        let value = value.ok_or_else(|| Rejection::new(RejectionCode::ToolCallIdMissing, "tool_call_id", "nothing", FIX))?;
        let id = self.string(value, "tool_call_id", RejectionCode::ToolCallIdInvalid)?;
        check_length(&id, TOOL_CALL_ID_BYTES_MAX, "tool_call_id", RejectionCode::ToolCallIdTooLong, FIX)?;
        Ok(id)
    }

    fn tool_name(&self) -> Read<Cow<'d, str>> {
        const FIX: &str = "send the tool's name, at most 512 bytes";
        let value = self.fields.tool_name;
        let value = value.ok_or_else(|| Rejection::new(RejectionCode::ToolNameMissing, "tool_name", "nothing", FIX))?;
        let name = self.string(value, "tool_name", RejectionCode::ToolNameInvalid)?;
        check_length(&name, TOOL_NAME_BYTES_MAX, "tool_name", RejectionCode::ToolNameTooLong, FIX)?;
        Ok(name)
    }

    /// Returns the arguments, from `tool_input` or `arguments`. With both it would be unclear which ones the host runs.
    fn tool_input(&self) -> Read<ToolInput<'d>> {
        let present = |value: Option<Value<'d>>| value.filter(|value| !value.is_null());
        match (present(self.fields.tool_input), present(self.fields.arguments)) {
            (Some(_), Some(_)) => Err(Rejection::new(
                RejectionCode::ToolInputAmbiguous,
                "tool_input",
                "both tool_input and arguments",
                "send the one that the tool is run with",
            )),
            (Some(input), None) => Ok(ToolInput::Value(input)),
            (None, Some(arguments)) => match arguments.as_text() {
                None => Ok(ToolInput::Value(arguments)),
                Some(text) => check_values(text).map(ToolInput::Encoded),
            },
            (None, None) => Ok(ToolInput::Absent { null: self.fields.tool_input.is_some() || self.fields.arguments.is_some() }),
        }
    }

    fn tool_result(&self) -> Read<ToolResult<'d>> {
        let (tool_call_id, tool_name) = (self.tool_call_id()?, self.tool_name()?);
        let result = self.fields.result.ok_or_else(|| {
            Rejection::new(RejectionCode::ResultMissing, "result", "nothing", "send the tool's result as a string, or null for none")
        })?;
        let result = match result.shape() {
            Shape::Null => None,
            Shape::String => result.as_text(),
            _ => Some(Text::plain(result.source())),
        };
        let failed = optional_bool(self.fields.failed, "failed", RejectionCode::FailedInvalid)?;
        Ok(ToolResult { tool_call_id, tool_name, input: self.tool_input()?, result, failed })
    }

    fn model_body(&self) -> Read<ModelBody<'d>> {
        const FIX: &str = "send exactly one of response, message and error";
        let fields = &self.fields;
        self.provider()?;
        let present = |value: Option<Value<'d>>| value.filter(|value| !value.is_null());
        match (present(fields.response), present(fields.message), present(fields.error)) {
            // The events of a stream are an array.
            (Some(response), None, None) if response.shape() == Shape::Array => Ok(ModelBody::Response(response)),
            (Some(response), None, None) => object(response, "response", RejectionCode::ResponseInvalid).map(ModelBody::Response),
            (None, Some(message), None) => object(message, "message", RejectionCode::MessageInvalid).map(ModelBody::Message),
            (None, None, Some(error)) if error.shape() == Shape::String => Ok(ModelBody::Error(error)),
            (None, None, Some(error)) => object(error, "error", RejectionCode::ErrorInvalid).map(ModelBody::Error),
            (None, None, None) => Err(Rejection::new(RejectionCode::ModelBodyMissing, "response", "no response, message or error", FIX)),
            _ => Err(Rejection::new(RejectionCode::ModelBodyAmbiguous, "response", "more than one of response, message and error", FIX)),
        }
    }

    fn provider(&self) -> Read<Option<Cow<'d, str>>> {
        self.optional_string(self.fields.provider, "provider", RejectionCode::ProviderInvalid)
            .map(|name| name.filter(|name| !name.is_empty()))
    }

    /// Returns whatever is readable, for the verdict to the host that waits for one.
    fn partial_event(&self) -> PartialEvent {
        let short = |value: Option<Value<'d>>, bytes_max| {
            value.and_then(|value| value.as_text()?.into_str()).filter(|text| text.len() <= bytes_max).map(Cow::into_owned)
        };
        let fields = &self.fields;
        let outer = envelope::partial_event_of(self.record);
        let cloud_event = self.envelope.cloud_event.as_ref();
        let nonempty = |text: &String| !text.is_empty();
        PartialEvent {
            thread_id: short(fields.thread_id, THREAD_ID_BYTES_MAX)
                .or_else(|| cloud_event?.subject.as_deref().filter(|id| id.len() <= THREAD_ID_BYTES_MAX).map(str::to_owned))
                .filter(nonempty)
                .or(outer.thread_id),
            event_id: match cloud_event {
                Some(cloud_event) => Some(cloud_event.id.to_string()).filter(|id| id.len() <= EVENT_ID_BYTES_MAX),
                None => short(fields.event_id, EVENT_ID_BYTES_MAX).filter(nonempty).or(outer.event_id),
            },
            event_type: self.event_type().ok(),
            turn_id: short(fields.turn_id, TURN_ID_BYTES_MAX),
            tool_call_id: short(fields.tool_call_id, TOOL_CALL_ID_BYTES_MAX),
            tool_name: short(fields.tool_name, TOOL_NAME_BYTES_MAX),
            agent_id: short(fields.agent_id, ATTRIBUTION_BYTES_MAX),
            tenant_id: short(fields.tenant_id, ATTRIBUTION_BYTES_MAX),
            timestamp: self.time().map_or(outer.timestamp, |(text, _)| text.map(Cow::into_owned)),
        }
    }

    fn string(&self, value: Value<'d>, field: &'static str, code: RejectionCode) -> Read<Cow<'d, str>> {
        if let Some(text) = value.as_str_of(self.document) {
            return Ok(Cow::Borrowed(text));
        }
        let text = value.as_text().ok_or_else(|| Rejection::new(code, field, value.shape().to_string(), "send a string"))?;
        text.into_str().ok_or_else(|| Rejection::new(code, field, "a string with half a surrogate pair", "send whole Unicode characters"))
    }

    fn optional_string(&self, value: Option<Value<'d>>, field: &'static str, code: RejectionCode) -> Read<Option<Cow<'d, str>>> {
        value.filter(|value| !value.is_null()).map(|value| self.string(value, field, code)).transpose()
    }
}

/// Checks that arguments inside a string hold no more values than are read. With more of them they would count as no arguments at all.
fn check_values(text: Text<'_>) -> Read<Text<'_>> {
    // Every value takes two bytes at least, so the arguments of all usual calls need not be read for that.
    if text.source_len() / 2 < VALUES_MAX {
        return Ok(text);
    }
    match Parser::new().parse(text.as_bytes(), DEPTH_MAX) {
        Err(error) if error.kind == SyntaxErrorKind::TooManyValues => {
            let found = format!("a string of {} bytes, {error}", text.source_len());
            Err(too_many_values("arguments", found))
        }
        _ => Ok(text),
    }
}

fn check_thread_id<'d>(thread_id: Cow<'d, str>, fix: &'static str) -> Read<Cow<'d, str>> {
    if thread_id.is_empty() {
        return Err(Rejection::new(RejectionCode::ThreadIdEmpty, "thread_id", "0 bytes", fix));
    }
    check_length(&thread_id, THREAD_ID_BYTES_MAX, "thread_id", RejectionCode::ThreadIdTooLong, fix)?;
    Ok(thread_id)
}

fn check_length(text: &str, bytes_max: usize, field: &'static str, code: RejectionCode, fix: &'static str) -> Read<()> {
    if text.len() <= bytes_max {
        return Ok(());
    }
    Err(Rejection::new(code, field, format!("{} bytes", text.len()), fix))
}

fn optional_bool(value: Option<Value<'_>>, field: &'static str, code: RejectionCode) -> Read<Option<bool>> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let flag = value.as_bool();
    flag.map(Some).ok_or_else(|| Rejection::new(code, field, value.shape().to_string(), "send true or false, or leave it out"))
}

fn object<'d>(value: Value<'d>, field: &'static str, code: RejectionCode) -> Read<Value<'d>> {
    if value.is_object() {
        return Ok(value);
    }
    Err(Rejection::new(code, field, value.shape().to_string(), "send a JSON object"))
}
