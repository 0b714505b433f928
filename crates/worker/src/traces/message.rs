//! The messages of OTLP 1 that a request with spans consists of, as far as they are used, and how spans become one.
//!
//! They are `opentelemetry/proto/trace/v1/trace.proto` and its neighbours, which are stable: fields are only ever added.

use std::env;

use prost::{Enumeration, Message, Oneof};

use tollgate_config::settings::{KafkaSettings, TraceSettings};

use super::span::Span;

/// The flag of a span that is recorded.
const SAMPLED: u32 = 1;
/// The flags that say whether a parent is of another process: it is known, and it is.
const REMOTE_KNOWN: u32 = 0x100;
const REMOTE: u32 = 0x200;

/// A request with spans.
#[derive(Clone, PartialEq, Message)]
pub struct Request {
    /// Spans by the process that they are of.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// Spans of one process.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceSpans {
    /// The process.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Its spans, by the program's part that made them.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// A process.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    /// What is known of it.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// Spans of one part of a program.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeSpans {
    /// The part.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    /// Its spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<WireSpan>,
}

/// A part of a program.
#[derive(Clone, PartialEq, Message)]
pub struct Scope {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// A span. Times are in nanoseconds since the epoch.
#[derive(Clone, PartialEq, Message)]
pub struct WireSpan {
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    /// The `tracestate`.
    #[prost(string, tag = "3")]
    pub trace_state: String,
    /// 8 bytes, or none.
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    /// What was done.
    #[prost(string, tag = "5")]
    pub name: String,
    /// In which role.
    #[prost(enumeration = "Kind", tag = "6")]
    pub kind: i32,
    /// The beginning.
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    /// The end.
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    /// What is known of it.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// What happened, in order.
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
    /// Other spans that it belongs to.
    #[prost(message, repeated, tag = "13")]
    pub links: Vec<Link>,
    /// Whether it failed.
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
    /// The flags of its `traceparent`, and whether its parent is of another process.
    #[prost(fixed32, tag = "16")]
    pub flags: u32,
}

/// The role of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub enum Kind {
    /// Not said.
    Unspecified = 0,
    /// It handles a message.
    Consumer = 5,
}

/// Something that happened in a span.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    /// When.
    #[prost(fixed64, tag = "1")]
    pub time_unix_nano: u64,
    /// What.
    #[prost(string, tag = "2")]
    pub name: String,
}

/// Another span.
#[derive(Clone, PartialEq, Message)]
pub struct Link {
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    /// The `tracestate`.
    #[prost(string, tag = "3")]
    pub trace_state: String,
    /// As those of a span.
    #[prost(fixed32, tag = "6")]
    pub flags: u32,
}

/// Whether a span failed.
#[derive(Clone, PartialEq, Message)]
pub struct Status {
    /// 2 is an error.
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    /// The value itself.
    #[prost(oneof = "Value", tags = "1, 3")]
    pub value: Option<Value>,
}

/// A text or a number.
#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    /// A text.
    #[prost(string, tag = "1")]
    Text(String),
    /// A number.
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// The answer to a request.
#[derive(Clone, PartialEq, Message)]
pub struct Answer {
    /// What was not taken.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// What the collector did not take of a request.
#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    /// How many spans.
    #[prost(int64, tag = "1")]
    pub rejected_spans: i64,
    /// Why.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// What all spans of a process have in common.
#[derive(Debug, Clone)]
pub(super) struct About {
    resource: Resource,
    /// The attributes of every span.
    common: Vec<KeyValue>,
    name: String,
    version: String,
}

impl About {
    /// Returns it by the settings, and by the variables of OpenTelemetry that say who a process is.
    pub(super) fn new(settings: &TraceSettings, kafka: &KafkaSettings) -> Self {
        let variable = |name: &str| env::var(name).ok().filter(|text| !text.is_empty());
        let mut attributes = variable("OTEL_RESOURCE_ATTRIBUTES").map(|text| read_attributes(&text)).unwrap_or_default();
        let name = settings.service_name.clone().or_else(|| variable("OTEL_SERVICE_NAME"));
        if let Some(name) = name {
            put(&mut attributes, "service.name", name);
        } else if !attributes.iter().any(|(key, _)| key == "service.name") {
            put(&mut attributes, "service.name", "tollgate".to_owned());
        }
        put(&mut attributes, "service.version", env!("CARGO_PKG_VERSION").to_owned());
        Self::of(attributes, &kafka.topics.events, &kafka.group_id, env!("CARGO_PKG_VERSION"))
    }

    fn of(attributes: Vec<(String, String)>, topic: &str, group: &str, version: &str) -> Self {
        let common = vec![
            text("messaging.system", "kafka"),
            text("messaging.operation.type", "process"),
            text("messaging.operation.name", "process"),
            text("messaging.destination.name", topic),
            text("messaging.consumer.group.name", group),
        ];
        let resource = Resource { attributes: attributes.iter().map(|(key, value)| text(key, value)).collect() };
        Self { resource, common, name: format!("process {topic}"), version: version.to_owned() }
    }

    /// Returns the request for these spans, as bytes.
    pub(super) fn request(&self, spans: &[Span]) -> Vec<u8> {
        let scope = Scope { name: "tollgate".to_owned(), version: self.version.clone() };
        let spans = spans.iter().map(|span| self.span(span)).collect();
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
        Request { resource_spans: vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans }] }.encode_to_vec()
    }

    fn span(&self, span: &Span) -> WireSpan {
        let state = span.trace_state.as_deref().unwrap_or_default();
        let link = span.parent.map(|parent| Link {
            trace_id: parent.trace_id.to_be_bytes().to_vec(),
            span_id: parent.span_id.to_be_bytes().to_vec(),
            trace_state: state.to_owned(),
            flags: u32::from(parent.flags) | REMOTE_KNOWN | REMOTE,
        });
        let mut attributes = self.common.clone();
        attributes.push(text("messaging.destination.partition.id", &span.partition.0.to_string()));
        attributes.push(KeyValue {
            key: "messaging.kafka.offset".to_owned(),
            value: Some(AnyValue { value: Some(Value::Number(span.offset.0)) }),
        });
        attributes.extend(span.verdict.attributes().map(|(key, value)| text(key, value)));
        WireSpan {
            trace_id: span.trace_id.to_be_bytes().to_vec(),
            span_id: span.span_id.to_be_bytes().to_vec(),
            trace_state: state.to_owned(),
            parent_span_id: span.parent.map(|parent| parent.span_id.to_be_bytes().to_vec()).unwrap_or_default(),
            name: self.name.clone(),
            kind: Kind::Consumer.into(),
            start_time_unix_nano: span.started_ns,
            end_time_unix_nano: span.ended_ns,
            attributes,
            events: span.steps.iter().map(|(step, at_ns)| Event { time_unix_nano: *at_ns, name: step.as_str().to_owned() }).collect(),
            links: link.into_iter().collect(),
            // A call that is blocked is no failure of the gate. A record that cannot be read is one.
            status: span.verdict.rejection.map(|_| Status { code: 2 }),
            flags: SAMPLED | REMOTE_KNOWN | if span.parent.is_some() { REMOTE } else { 0 },
        }
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(Value::Text(value.to_owned())) }) }
}

fn put(attributes: &mut Vec<(String, String)>, key: &str, value: String) {
    attributes.retain(|(other, _)| other != key);
    attributes.push((key.to_owned(), value));
}

/// Reads `key=value,key=value`, where values are percent-encoded. An entry that is none makes the others worthless, as OpenTelemetry has it.
fn read_attributes(list: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let read = entry.split_once('=').and_then(|(key, value)| Some((key.trim(), decoded(value.trim())?)));
        let Some((key, value)) = read.filter(|(key, _)| !key.is_empty()) else {
            tracing::warn!("OTEL_RESOURCE_ATTRIBUTES: found no list of key=value; write them with commas between, values percent-encoded");
            return Vec::new();
        };
        put(&mut found, key, value);
    }
    found
}

/// Returns a percent-encoded text decoded; `None` if it is none.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        (bytes, rest) = match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok().filter(|digits| !digits.starts_with('+'))?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                (bytes, behind)
            }
            (b'%', _) => return None,
            (plain, behind) => {
                bytes.push(*plain);
                (bytes, behind)
            }
        };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::context::TraceContext;
    use crate::traces::span::{Step, Verdict, test_span};

    /// The bytes are what OpenTelemetry's own library for Python makes of the same request: see `tests/traces/golden.py`.
    #[test]
    fn a_request_has_the_bytes_that_opentelemetry_gives_it() {
        let about = About::of(vec![("service.name".to_owned(), "gate".to_owned())], "agent.events", "tollgate", "1.2.3");
        let parent = TraceContext { trace_id: 0x0102, span_id: 0x0304, flags: 1 };
        let child = Span {
            parent: Some(parent),
            trace_id: 0x0102,
            trace_state: Some("v=1".into()),
            steps: vec![(Step::Consume, 1_000), (Step::Ask, 2_000)],
            verdict: Verdict::read(br#"{"verdict_id":"v1","action":"block"}"#, Some("invalid_json")),
            ..test_span(9)
        };
        let request = about.request(&[child, test_span(10)]);
        let hex: String = request.iter().map(|byte| format!("{byte:02x}")).collect();
        let golden = include_str!("golden.hex");
        assert_eq!(hex, golden.trim());
    }

    #[test]
    fn attributes_of_the_environment_are_read() {
        let read = |text: &str| read_attributes(text).into_iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>();
        assert_eq!(read("a=1, k8s.pod.name = gate-0 ,c=x%20y%2Cz,a=2"), ["k8s.pod.name:gate-0", "c:x y,z", "a:2"]);
        for wrong in ["a", "a=1,b", "=1", "a=%2", "a=%zz", "a=%ff", "a=%+1"] {
            assert!(read(wrong).is_empty(), "{wrong}");
        }
        assert!(read("").is_empty());
    }
}
