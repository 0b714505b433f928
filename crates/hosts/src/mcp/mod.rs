//! MCP (Model Context Protocol): what a proxy between a client and a server does with each of their frames.
//!
//! Every frame passes as it came, byte for byte. The exceptions are a `tools/call` that may not run, a result that gets a statement for the
//! model, and a frame that two readers could read in two ways. The session is pure: the proxy asks the gate about the event of an [`Asked`], and
//! hands the verdict back.

mod frame;

use std::collections::HashMap;

use serde_json::json;
use tollgate_json::digest::Digest;
use tollgate_json::{Parser, Shape, Splice};

use crate::body::{Arguments, Fault, Members, asks_for_input, says_failed};
use crate::event::{Call, Place};
use crate::ruling::{Ruling, cut};
use crate::{Event, Outcome};
use frame::{Frame, Id, blocked, error, id_of_refused};

/// The longest frame, in bytes, without the line break behind it: the largest body that the server of Tollgate takes.
pub const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many requests of the client may be open at once.
const OPEN_MAX: usize = 1_024;
/// The longest result that the gate gets whole, in bytes, and how much it gets of a longer result.
const RESULT_BYTES_MAX: usize = 262_144;
const RESULT_HEAD_BYTES: usize = 65_536;

/// The one method that the gate decides on.
const CALL: &str = "tools/call";
/// Codes of JSON-RPC.
const INVALID_REQUEST: i32 = -32_600;
const INTERNAL_ERROR: i32 = -32_603;

/// A session of a client with one MCP server: which requests are open, and whether the session is stopped.
#[derive(Debug)]
pub struct Session {
    server: String,
    place: Place,
    /// What the ids of this session's calls begin with.
    name: String,
    calls: u64,
    open: HashMap<Id, Option<OpenCall>>,
    /// The ids of calls for which the server has asked for input, by tool and arguments. The client makes such a call again.
    asked_for_input: HashMap<(String, Vec<u8>), String>,
    /// The text of the verdict that stopped the session.
    stopped: Option<String>,
}

/// A call that the server has, with the statement of its verdict.
#[derive(Debug)]
struct OpenCall {
    call: Call,
    note: Option<String>,
}

/// What to do with a frame.
#[derive(Debug)]
pub enum Step {
    /// Hand the frame on.
    Pass,
    /// Ask the gate first.
    Ask(Asked),
    /// Give the sender this answer, and hand nothing on.
    Answer(Vec<u8>),
    /// Hand nothing on; the text says why.
    Drop(String),
    /// End the session; the text says why.
    End(String),
}

/// A question to the gate about a call or about its result.
#[derive(Debug)]
pub struct Asked {
    /// The event to ask about.
    pub event: Event,
    id: Id,
    call: Call,
    note: Option<String>,
    note_place: NotePlace,
}

/// Where a statement for the model belongs in the frame of a result.
#[derive(Debug, Clone, Copy)]
enum NotePlace {
    /// Behind the items of the content, whose closing bracket is at this byte.
    Content {
        end: usize,
        is_empty: bool,
    },
    /// Behind the message of an error, whose closing quote is at this byte.
    Message {
        end: usize,
    },
    Nowhere,
}

impl Session {
    /// Returns a session. `server` is the name that policies know the MCP server by; `thread` is the thread of its events; `name` is a name
    /// that no other session of this thread has.
    ///
    /// # Errors
    /// Returns the text of an error if the name of the server or the thread cannot be used.
    pub fn new(server: &str, thread: &str, name: &str) -> Result<Self, String> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if server.is_empty() || !server.bytes().all(is_word) || server.contains("__") || server.starts_with('_') || server.ends_with('_') {
            return Err("server: found no name of an MCP server; write letters, digits, `-`, `.` and single `_` between them".to_owned());
        }
        if thread.is_empty() || thread.chars().any(char::is_control) {
            return Err("thread: found nothing, or a control character; write the id of a thread".to_owned());
        }
        let place = Place::new(thread, None).map_err(|fault| format!("thread: {}; {}", fault.problem, fault.fix))?;
        Ok(Self {
            server: server.to_owned(),
            place,
            name: name.to_owned(),
            calls: 0,
            open: HashMap::new(),
            asked_for_input: HashMap::new(),
            stopped: None,
        })
    }

    /// Returns what to do with a frame of the client.
    pub fn of_client(&mut self, line: &[u8]) -> Step {
        let mut parser = Parser::new();
        let step = Frame::read(&mut parser, line).and_then(|frame| match frame {
            Frame::Request { id, method, body } if method == CALL => self.call(id, &body),
            Frame::Request { id, .. } => self.check_open(&id).map(|()| {
                self.open.insert(id, None);
                Step::Pass
            }),
            Frame::Notification { method, .. } if method == CALL => {
                Err(Fault::new("id", "is missing", "send an id with each call of a tool"))
            }
            Frame::Notification { method, body } => {
                if method == "notifications/cancelled" {
                    self.forget(&body);
                }
                Ok(Step::Pass)
            }
            Frame::Answer { .. } => Ok(Step::Pass),
        });
        step.unwrap_or_else(|fault| refused(line, &fault.to_string()))
    }

    /// Returns what to do with a frame of the client that is longer than [`FRAME_BYTES_MAX`].
    #[must_use]
    pub fn overlong() -> Step {
        let fault = Fault::new("frame", format!("found more than {FRAME_BYTES_MAX} bytes"), "send a shorter frame");
        refused(b"", &fault.to_string())
    }

    fn call(&mut self, id: Id, body: &Members<'_>) -> Result<Step, Fault> {
        self.check_open(&id)?;
        let params = body.object("params")?;
        params.check_keys(&["name", "arguments"], true)?;
        let tool = format!("mcp__{}__{}", self.server, params.text("name")?);
        let arguments = match params.get("arguments") {
            Some(_) => params.object("arguments")?.check_case().and_then(|()| params.arguments("arguments"))?,
            None => Arguments::none(),
        };
        if let Some(stopped) = &self.stopped {
            return Ok(Step::Answer(blocked(&id, stopped)));
        }
        self.calls += 1;
        let own = format!("{}-{}", self.name, self.calls);
        let content = (tool.clone(), arguments.canonical.clone());
        let earlier = params.get("inputResponses").and_then(|_| self.asked_for_input.remove(&content));
        // The call that comes with its input is no further call. The gate decides on it anew.
        let part = earlier.as_ref().map(|_| own.clone());
        let call = Call { id: earlier.unwrap_or(own), tool, arguments };
        let event = call.asked(&self.place, part.as_deref());
        Ok(Step::Ask(Asked { event, id, call, note: None, note_place: NotePlace::Nowhere }))
    }

    fn check_open(&self, id: &Id) -> Result<(), Fault> {
        if self.open.contains_key(id) {
            return Err(Fault::new("id", "found the id of a request that has no answer yet", "give each request an id of its own"));
        }
        if self.open.len() >= OPEN_MAX {
            return Err(Fault::new("id", format!("found {OPEN_MAX} requests without an answer"), "wait for answers, or cancel requests"));
        }
        Ok(())
    }

    /// Closes a request that the client has cancelled: the client takes no answer to it.
    fn forget(&mut self, notification: &Members<'_>) {
        let id = notification.object("params").ok().and_then(|params| params.get("requestId")).map(|id| id.as_written());
        id.map(|id| self.open.remove(&id));
    }

    /// Takes in what came of the question about a call. Returns the answer to a call that may not run; without an answer the call's frame goes
    /// on to the server.
    pub fn decide(&mut self, asked: Asked, outcome: Outcome<'_>) -> Option<Vec<u8>> {
        let ruling = Ruling::of(outcome, 1);
        let verdict = outcome.ok().and_then(<[_]>::first);
        let reason = ruling.denial.as_deref().or_else(|| ruling.stop_reason());
        let denial = reason.map(|reason| verdict.and_then(|verdict| verdict.synthetic_result.clone()).unwrap_or_else(|| reason.to_owned()));
        if let Some(reason) = ruling.stop_reason() {
            self.stop(reason);
        }
        // The result of another call may have stopped the session meanwhile.
        if let Some(text) = denial.or_else(|| self.stopped.clone()) {
            return Some(blocked(&asked.id, &text));
        }
        self.open.insert(asked.id, Some(OpenCall { call: asked.call, note: ruling.note }));
        None
    }

    /// MCP knows no turns, so that a stop holds for the rest of the session.
    fn stop(&mut self, reason: &str) {
        self.stopped
            .get_or_insert_with(|| format!("Tollgate stopped this session, and no tool runs in it any more: {}", cut(reason, 2_000)));
    }

    /// Returns what to do with a frame of the server. A line that begins with no brace is no frame to any reader: some servers print such
    /// lines by mistake.
    pub fn of_server(&mut self, line: &[u8]) -> Step {
        if line.trim_ascii_start().first() != Some(&b'{') {
            return Step::Drop("a line of the MCP server that is no frame".to_owned());
        }
        let mut parser = Parser::new();
        let step = Frame::read(&mut parser, line).and_then(|frame| match frame {
            Frame::Answer { id: Some(id), body } => match self.open.remove(&id) {
                None => Ok(Step::Drop("an answer of the MCP server to no open request".to_owned())),
                Some(None) => Ok(Step::Pass),
                Some(Some(open)) => self.result(id, open, &body),
            },
            _ => Ok(Step::Pass),
        });
        step.unwrap_or_else(|fault| Step::End(fault.to_string()))
    }

    fn result(&mut self, id: Id, open: OpenCall, body: &Members<'_>) -> Result<Step, Fault> {
        let (failed, text, note_place) = if body.has("error") {
            let message = body.object("error")?.get("message").filter(|message| message.shape() == Shape::String);
            let note_place = message.map_or(NotePlace::Nowhere, |message| NotePlace::Message { end: message.place().end });
            (Some(true), body.required("error")?.as_written(), note_place)
        } else {
            let result = body.object("result")?;
            if asks_for_input(&result)? {
                if self.asked_for_input.len() < OPEN_MAX {
                    self.asked_for_input.insert((open.call.tool, open.call.arguments.canonical), open.call.id);
                }
                return Ok(Step::Pass);
            }
            let failed = says_failed(&result)?;
            let content = result.get("content").filter(|content| content.shape() == Shape::Array);
            let is_empty = content.is_none_or(|content| content.items().next().is_none());
            let note_place = content.map_or(NotePlace::Nowhere, |content| NotePlace::Content { end: content.place().end - 1, is_empty });
            let whole = body.required("result")?;
            (failed, content.filter(|_| !is_empty).unwrap_or(whole).as_written(), note_place)
        };
        let OpenCall { call, note } = open;
        let event = call.answered(&self.place, None, Some(bounded(text)), failed);
        Ok(Step::Ask(Asked { event, id, call, note, note_place }))
    }

    /// Takes in what came of the question about a result. Returns the frame that the client gets: the server's, with the statements of both
    /// verdicts behind its text.
    pub fn report(&mut self, asked: &Asked, line: &[u8], outcome: Outcome<'_>) -> Vec<u8> {
        let ruling = Ruling::of(outcome, 1);
        if let Some(reason) = ruling.stop_reason() {
            self.stop(reason);
        }
        let notes: Vec<_> = asked.note.iter().chain(ruling.note.as_ref().or(ruling.denial.as_ref())).map(String::as_str).collect();
        let mut splice = Splice::of(line);
        match asked.note_place {
            NotePlace::Content { end, is_empty } => {
                for (index, note) in notes.iter().enumerate() {
                    let comma = if is_empty && index == 0 { "" } else { "," };
                    splice.replace(end..end, format!("{comma}{}", json!({"type": "text", "text": note})));
                }
            }
            NotePlace::Message { end } => {
                for note in notes {
                    let text = json!(format!(" {note}")).to_string();
                    splice.replace(end..end, text.get(1..text.len() - 1).unwrap_or_default());
                }
            }
            NotePlace::Nowhere => {}
        }
        let mut frame = Vec::new();
        // Insertions never overlap.
        if splice.write(&mut frame).is_err() { line.to_vec() } else { frame }
    }

    /// Returns errors in the server's place for all requests that are open, since no answer comes any more.
    #[must_use]
    pub fn lost(&self) -> Vec<Vec<u8>> {
        self.open.keys().map(|id| error(Some(id), INTERNAL_ERROR, "the MCP server ended before it answered")).collect()
    }
}

fn refused(line: &[u8], text: &str) -> Step {
    Step::Answer(error(id_of_refused(line).as_deref(), INVALID_REQUEST, text))
}

/// Returns a result, or the beginning of a long result with the digest of all of it, so that equal results stay equal.
fn bounded(text: String) -> String {
    if text.len() <= RESULT_BYTES_MAX {
        return text;
    }
    let digest = Digest::of(text.as_bytes());
    format!("{}\n[cut: {} bytes, sha256:{digest}]", cut(&text, RESULT_HEAD_BYTES), text.len())
}
