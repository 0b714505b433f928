//! The events of a wire: where they belong, and what they are named.
//!
//! The name of an event decides what a repeat is. A host that asks again about one and the same call repeats the event's id, and gets the same
//! verdict. A model that makes the same call again is another event, which the loop controller counts.

use serde_json::{Value as Json, json};
use tollgate_json::digest::Digest;

use crate::Event;
use crate::body::{Arguments, Fault};

/// The longest id of an event, in bytes, as the contract has it.
const EVENT_ID_BYTES_MAX: usize = 128;
/// How many hexadecimal digits of the digest of an event's content its id has.
const CONTENT_DIGITS: usize = 16;
/// The longest id of a thread, in bytes, as the contract has it.
const THREAD_ID_BYTES_MAX: usize = 256;

/// The thread that a request belongs to, with the turn where the host names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    thread: String,
    is_subagent: bool,
    /// The turn, as events name it.
    pub turn: Option<String>,
}

impl Place {
    /// Returns the thread of a session, or of a child of it.
    pub(crate) fn new(session: &str, child: Option<&str>) -> Result<Self, Fault> {
        let thread = child.map_or_else(|| session.to_owned(), |child| format!("{session}/{child}"));
        if thread.len() > THREAD_ID_BYTES_MAX {
            let problem = format!("found {} bytes of ids of session and subagent", thread.len());
            return Err(Fault::new("session", problem, format!("send at most {THREAD_ID_BYTES_MAX} bytes")));
        }
        Ok(Self { thread, is_subagent: child.is_some(), turn: None })
    }

    /// Returns the thread's id.
    pub(crate) fn thread(&self) -> &str {
        &self.thread
    }

    /// Returns an event of this thread. Without an id the server names the event.
    pub(crate) fn event(&self, kind: &str, id: Option<String>) -> Event {
        let mut event = Event::new();
        let mut put = |name: &str, value: Json| event.insert(name.to_owned(), value);
        put("type", kind.into());
        put("thread_id", self.thread.clone().into());
        id.map(|id| put("event_id", id.into()));
        self.turn.clone().map(|turn| put("turn_id", turn.into()));
        if self.is_subagent {
            put("is_subagent", true.into());
        }
        event
    }
}

/// A call of a tool.
#[derive(Debug)]
pub(crate) struct Call {
    /// What ties the result to the call.
    pub id: String,
    /// The tool, as the host names it.
    pub tool: String,
    pub arguments: Arguments,
}

impl Call {
    /// Returns the event that asks about the call. `turn` is the part of its id that says which turn this is.
    pub(crate) fn asked(&self, place: &Place, turn: Option<&str>) -> Event {
        let mut event = place.event("tool_call", Some(content_id(turn, &self.id, &self.content(), "call")));
        self.describe(&mut event);
        event
    }

    /// Returns the event that reports the result. Without `failed` the gate classifies the result.
    pub(crate) fn answered(&self, place: &Place, turn: Option<&str>, result: Option<String>, failed: Option<bool>) -> Event {
        let mut event = result_event(place, turn, &self.id, &self.content(), (result, failed));
        self.describe(&mut event);
        event
    }

    /// Returns what tells this call from another call under the same id.
    fn content(&self) -> [&[u8]; 2] {
        [self.tool.as_bytes(), &self.arguments.canonical]
    }

    /// Writes the call's members into an event.
    fn describe(&self, event: &mut Event) {
        event.insert("tool_call_id".to_owned(), self.id.clone().into());
        event.insert("tool_name".to_owned(), self.tool.clone().into());
        event.insert("arguments".to_owned(), self.arguments.text.clone().into());
    }
}

/// Returns the event of a result, with nothing of the call but its part in the event's id.
pub(crate) fn result_event(
    place: &Place,
    turn: Option<&str>,
    call: &str,
    content: &[&[u8]],
    came: (Option<String>, Option<bool>),
) -> Event {
    let came_text = json!(came).to_string();
    let content: Vec<&[u8]> = content.iter().copied().chain([came_text.as_bytes()]).collect();
    let mut event = place.event("tool_result", Some(content_id(turn, call, &content, "result")));
    let (result, failed) = came;
    event.insert("result".to_owned(), result.into());
    failed.map(|failed| event.insert("failed".to_owned(), failed.into()));
    event
}

/// Returns the id of an event of a call, with a digest of the event's content: a call that comes again under its old id with other arguments, or
/// with another result, is another event, which no old answer answers.
fn content_id(turn: Option<&str>, call: &str, content: &[&[u8]], end: &str) -> String {
    let mut content = digest(content);
    content.truncate(CONTENT_DIGITS);
    let parts: Vec<&str> = turn.into_iter().chain([call, &content, end]).collect();
    event_id(&parts)
}

/// Returns the id of a call, or of a result, of a host that names no calls. Equal calls differ in their moment. A result finds its call by tool
/// and arguments.
pub(crate) fn derived_call_id(thread: &str, tool: &str, arguments: &Arguments, moment: &str) -> String {
    digest(&[thread.as_bytes(), tool.as_bytes(), &arguments.canonical, moment.as_bytes()])
}

/// Returns the id of an event that is made of these parts: the parts themselves, or their digest where they would be too long or could be taken
/// for other parts.
pub(crate) fn event_id(parts: &[&str]) -> String {
    let joined = parts.join("/");
    if joined.len() <= EVENT_ID_BYTES_MAX && !parts.iter().any(|part| part.contains('/')) {
        return joined;
    }
    digest(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
}

fn digest(parts: &[&[u8]]) -> String {
    Digest::of_parts(parts).to_string()
}

/// Returns the name of a tool of an MCP server, as agents and policies write it; `None` where the server's name runs into the tool's.
pub(crate) fn mcp_tool(server: &str, tool: &str) -> Option<String> {
    let is_clear = !server.is_empty() && !server.contains("__") && !server.ends_with('_');
    is_clear.then(|| format!("mcp__{server}__{tool}"))
}
