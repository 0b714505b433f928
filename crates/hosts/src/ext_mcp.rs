//! agentgateway's ExtMCP: the gateway asks before it hands a call to an MCP server, and once more with the result.
//!
//! The wire is gRPC, service `agentgateway.dev.ext_mcp.ExtMcp`, with JSON in its messages. A request names no thread, and a response names neither
//! thread nor call. So the gateway's configuration adds them as `metadata`; the id of the call is in the answer to the request, from where
//! the gateway can take it.

use std::collections::BTreeMap;

use prost::{Enumeration, Message, Oneof};
use serde_json::json;
use tollgate_json::Parser;

use crate::body::{Fault, Members, asks_for_input, result_text, says_failed};
use crate::event::{Call, Place, mcp_tool, result_event};
use crate::ruling::{Ruling, cut};
use crate::{Event, Question};

/// The longest reason that the gateway is given, in bytes.
const REASON_BYTES_MAX: usize = 10_000;
/// The one method of MCP that the gate decides.
const METHOD: &str = "tools/call";

/// Reads a message `McpRequest`: a call that waits for leave. `call` is an id that no other call has.
///
/// # Errors
/// Returns the message `McpRequestResult` that refuses a message which cannot be read.
pub fn check_request(message: &[u8], call: String) -> Result<Question<Vec<u8>>, Vec<u8>> {
    let (event, tool) = request_event(message, &call).map_err(|fault| refuse(&fault.to_string()))?;
    let answer =
        move |ruling: &Ruling| Answer { result: Some(Ruled::Pass(Pass {})), metadata: Some(pair(call, tool)) }.unless_denied(ruling);
    Ok(Question { events: vec![event], answer: Box::new(move |outcome| answer(&Ruling::of(outcome, 1))) })
}

/// Reads a message `McpResponse`: the result of a call.
///
/// # Errors
/// Returns the message `McpResponseResult` that refuses a message which cannot be read.
pub fn check_response(message: &[u8]) -> Result<Question<Vec<u8>>, Vec<u8>> {
    let checked = Checked::read(message).and_then(|checked| Ok((checked.result_event()?, checked.body)));
    let (event, body) = checked.map_err(|fault| refuse(&fault.to_string()))?;
    let expected = usize::from(event.is_some());
    let answer = move |ruling: &Ruling| {
        let noted = ruling.note.as_deref().and_then(|note| with_note(&body, note));
        Answer { result: Some(noted.map_or(Ruled::Pass(Pass {}), Ruled::Mutated)), metadata: None }.unless_denied(ruling)
    };
    Ok(Question { events: event.into_iter().collect(), answer: Box::new(move |outcome| answer(&Ruling::of(outcome, expected))) })
}

/// Returns the message that refuses a request or a response for a reason of its own.
#[must_use]
pub fn refuse(reason: &str) -> Vec<u8> {
    Answer::error(Code::Invalid, reason).encode_to_vec()
}

fn request_event(message: &[u8], call: &str) -> Result<(Event, String), Fault> {
    let checked = Checked::read(message)?;
    let mut parser = Parser::new();
    let params = checked.members(&mut parser)?;
    params.check_keys(&["name", "arguments"], true)?;
    params.get("arguments").map_or(Ok(()), |_| params.object("arguments")?.check_case())?;
    let tool = checked.tool(&params.text("name")?)?;
    let call = Call { id: call.to_owned(), tool, arguments: params.arguments_or_none("arguments")? };
    let place = checked.place()?;
    Ok((call.asked(&place, place.turn.as_deref()), call.tool))
}

/// What a message holds, a request as well as a response.
#[derive(Debug)]
struct Checked {
    services: Vec<String>,
    metadata: BTreeMap<String, Text>,
    body: Vec<u8>,
}

impl Checked {
    fn read(message: &[u8]) -> Result<Self, Fault> {
        let unreadable = |_| Fault::new("message", "found bytes that are no message of ExtMCP", "use agentgateway 1.4 or later");
        let Checking { services, method, metadata, body } = Checking::decode(message).map_err(unreadable)?;
        if method != METHOD {
            let problem = "found another method than tools/call, which is the one that Tollgate decides";
            return Err(Fault::new("method", problem, "list tools/call alone under the processor's methods"));
        }
        Ok(Self { services, metadata: metadata.unwrap_or_default().fields, body: body.unwrap_or_default() })
    }

    fn members<'d>(&'d self, parser: &'d mut Parser) -> Result<Members<'d>, Fault> {
        Members::parse(parser, &self.body)
    }

    /// Returns a text that the gateway's configuration adds. An expression that fails there is left out, so a text that is missing is a fault.
    fn added(&self, name: &str) -> Result<&str, Fault> {
        self.optional(name).ok_or_else(|| {
            let fix = format!("write an expression for `{name}` that gives a string under the processor's metadata");
            Fault::new(format!("metadata_context.{name}"), "is missing, empty or no string", fix)
        })
    }

    fn optional(&self, name: &str) -> Option<&str> {
        self.metadata.get(name).and_then(|text| text.string.as_deref()).filter(|text| !text.is_empty())
    }

    fn place(&self) -> Result<Place, Fault> {
        let id = |name: &'static str, id: &str| {
            let fault = || Fault::new(format!("metadata_context.{name}"), "found a slash in an id", "write an expression without a slash");
            (!id.contains('/')).then_some(()).ok_or_else(fault)
        };
        let (thread, child) = (self.added("thread")?, self.optional("child"));
        id("thread", thread)?;
        child.map_or(Ok(()), |child| id("child", child))?;
        let mut place = Place::new(thread, child)?;
        place.turn = self.optional("turn").map(str::to_owned);
        Ok(place)
    }

    /// Returns the tool's name, as agents and policies write a tool of an MCP server.
    fn tool(&self, tool: &str) -> Result<String, Fault> {
        match self.services.as_slice() {
            [server] => mcp_tool(server, tool).ok_or_else(|| {
                let problem = "found an empty name, or a name with __ in it or _ at its end, which runs into the tool's name";
                Fault::new("service_names", problem, "give the backend another name")
            }),
            names => {
                let problem = format!("found {} names, so that the server of the tool is not known", names.len());
                Err(Fault::new("service_names", problem, "give each MCP server a backend of its own"))
            }
        }
    }

    /// Returns the event of the result. A call for which the server asks for input has none yet.
    fn result_event(&self) -> Result<Option<Event>, Fault> {
        let mut parser = Parser::new();
        let result = self.members(&mut parser)?;
        let (place, call, tool) = (self.place()?, self.added("call")?, self.added("tool")?);
        if asks_for_input(&result)? {
            return Ok(None);
        }
        let came = (Some(text_of(&result)?), says_failed(&result)?);
        let mut event = result_event(&place, place.turn.as_deref(), call, &[tool.as_bytes()], came);
        event.insert("tool_call_id".to_owned(), call.into());
        event.insert("tool_name".to_owned(), tool.into());
        Ok(Some(event))
    }
}

/// Returns a result as the model sees it: its texts, or all of its content where that is not text alone.
fn text_of(result: &Members<'_>) -> Result<String, Fault> {
    let items = result.objects("content")?;
    let texts: Vec<Option<String>> = items.iter().map(|item| item.optional_text("text")).collect::<Result<_, _>>()?;
    match texts.into_iter().collect::<Option<Vec<_>>>() {
        Some(texts) if !texts.is_empty() => Ok(texts.join("\n")),
        _ => Ok(result.get("content").map_or_else(String::new, result_text)),
    }
}

/// Returns a result with one more text; nothing if it has no content to add to.
fn with_note(body: &[u8], note: &str) -> Option<Vec<u8>> {
    let mut parser = Parser::new();
    let result = Members::parse(&mut parser, body).ok()?;
    result.get("content")?;
    Some(result.text_with_item("content", &json!({"type": "text", "text": note})).into_bytes())
}

/// Returns what the gateway can tie the result to the call by.
fn pair(call: String, tool: String) -> Struct {
    let fields = [("call", call), ("tool", tool)];
    Struct { fields: fields.into_iter().map(|(name, text)| (name.to_owned(), Text { string: Some(text) })).collect() }
}

impl Answer {
    fn error(code: Code, reason: &str) -> Self {
        let error = AuthorizationError { code: code.into(), reason: cut(reason, REASON_BYTES_MAX) };
        Self { result: Some(Ruled::Error(error)), metadata: None }
    }

    /// Returns this answer as bytes, or the denial of a ruling.
    fn unless_denied(self, ruling: &Ruling) -> Vec<u8> {
        let denied = match (&ruling.denial, ruling.stop_reason()) {
            (_, Some(reason)) => Self::error(Code::ResourceExhausted, reason),
            (Some(reason), None) => Self::error(Code::PermissionDenied, reason),
            (None, None) => self,
        };
        denied.encode_to_vec()
    }
}

/// `McpRequest` and `McpResponse`, which have these fields in common.
#[derive(Clone, PartialEq, Message)]
struct Checking {
    #[prost(string, repeated, tag = "1")]
    services: Vec<String>,
    #[prost(string, tag = "2")]
    method: String,
    #[prost(message, optional, tag = "3")]
    metadata: Option<Struct>,
    /// The `params` or the `result` of JSON-RPC, as JSON.
    #[prost(bytes = "vec", optional, tag = "4")]
    body: Option<Vec<u8>>,
}

/// `McpRequestResult`, and `McpResponseResult`, which has no metadata.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(oneof = "Ruled", tags = "1, 2, 3")]
    result: Option<Ruled>,
    #[prost(message, optional, tag = "5")]
    metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Ruled {
    #[prost(message, tag = "1")]
    Pass(Pass),
    #[prost(bytes, tag = "2")]
    Mutated(Vec<u8>),
    #[prost(message, tag = "3")]
    Error(AuthorizationError),
}

#[derive(Clone, PartialEq, Message)]
struct Pass {}

#[derive(Clone, PartialEq, Message)]
struct AuthorizationError {
    #[prost(enumeration = "Code", tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    reason: String,
}

/// What the client is told: each has a JSON-RPC error of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
enum Code {
    Unknown = 0,
    PermissionDenied = 1,
    ResourceExhausted = 2,
    Invalid = 3,
}

/// `google.protobuf.Struct`, of whose values the strings alone are read.
#[derive(Clone, PartialEq, Message)]
struct Struct {
    #[prost(btree_map = "string, message", tag = "1")]
    fields: BTreeMap<String, Text>,
}

#[derive(Clone, PartialEq, Message)]
struct Text {
    #[prost(string, optional, tag = "3")]
    string: Option<String>,
}
