//! The events of a wire: where they belong, and what they are named.
//!
//! The name of an event decides what a repeat is. A host that asks again about one and the same call repeats the event's id, and gets the same
//! verdict. A model that makes the same call again is another event, which the loop controller counts.

use serde_json::Value as Json;
use tollgate_json::digest::Digest;

use crate::Event;
use crate::body::{Arguments, Fault};

/// The longest id of an event, in bytes, as the contract has it.
const EVENT_ID_BYTES_MAX: usize = 128;
/// How many hexadecimal digits of the digest of tool and arguments an event's id has.
const CALLED_DIGITS: usize = 16;
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
    /// Returns the id of the event that asks about the call. It says what is called too: a call that comes again under its old id with other
    /// arguments is another question, which no old answer answers.
    pub(crate) fn event_id(&self, turn: Option<&str>) -> String {
        let mut called = digest(&[self.tool.as_bytes(), &self.arguments.canonical]);
        called.truncate(CALLED_DIGITS);
        let parts: Vec<&str> = turn.into_iter().chain([self.id.as_str(), &called, "call"]).collect();
        event_id(&parts)
    }

    /// Returns the id of the event that reports the result.
    pub(crate) fn result_id(&self, turn: Option<&str>) -> String {
        let parts: Vec<&str> = turn.into_iter().chain([self.id.as_str(), "result"]).collect();
        event_id(&parts)
    }

    /// Writes the call's members into an event.
    pub(crate) fn describe(&self, event: &mut Event) {
        event.insert("tool_call_id".to_owned(), self.id.clone().into());
        event.insert("tool_name".to_owned(), self.tool.clone().into());
        event.insert("arguments".to_owned(), self.arguments.text.clone().into());
    }
}

/// Returns the id of a call of a host that names no calls: equal calls of a thread have equal ids, so that a result finds its call.
pub(crate) fn derived_call_id(thread: &str, tool: &str, arguments: &Arguments) -> String {
    digest(&[thread.as_bytes(), tool.as_bytes(), &arguments.canonical])
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
