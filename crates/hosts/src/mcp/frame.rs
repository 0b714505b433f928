//! Reading a frame of MCP: JSON-RPC on one line, in one meaning, and the answers that a proxy writes itself.

use serde_json::{Value as Json, json};
use tollgate_json::{DEPTH_MAX, Parser, Shape, Value};

use crate::body::{Fault, Members};

/// The members of a frame. JSON-RPC has no other members.
const KEYS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
/// How many digits a number may have as an id: JavaScript rounds longer numbers, and the answer would have another id.
const ID_DIGITS_MAX: usize = 15;
/// The longest text of an id, in bytes.
const ID_BYTES_MAX: usize = 256;

/// The id of a request, as it is written in JSON.
pub(super) type Id = String;

/// What a frame is.
#[derive(Debug)]
pub(super) enum Frame<'d> {
    Request {
        id: Id,
        method: String,
        body: Members<'d>,
    },
    Notification {
        method: String,
        body: Members<'d>,
    },
    /// The answer to a request; only an error may come without an id.
    Answer {
        id: Option<Id>,
        body: Members<'d>,
    },
}

impl<'d> Frame<'d> {
    /// Reads a frame, without the line break behind it.
    pub(super) fn read(parser: &'d mut Parser, line: &'d [u8]) -> Result<Self, Fault> {
        if line.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            let problem = "found a line break inside a frame, where some readers begin another frame";
            return Err(Fault::new("frame", problem, "write the frame on one line"));
        }
        let body = Members::parse(parser, line)?;
        body.check_keys(&KEYS, false)?;
        if body.text("jsonrpc")? != "2.0" {
            return Err(Fault::new("jsonrpc", "found another version", "write \"2.0\""));
        }
        let id = body.get("id").map(id).transpose()?;
        match (body.has("method"), body.has("result"), body.has("error")) {
            (true, false, false) => {
                let method = method(&body)?;
                Ok(match id {
                    Some(id) => Self::Request { id, method, body },
                    None if body.has("id") => return Err(Fault::new("id", "found null", "leave the id out, or send one")),
                    None => Self::Notification { method, body },
                })
            }
            (false, true, false) if id.is_none() => Err(body.missing("id")),
            (false, true, false) | (false, false, true) if !body.has("params") => Ok(Self::Answer { id, body }),
            _ => Err(Fault::new("frame", "found no request, notification or answer", "send one of method, result and error")),
        }
    }
}

/// Returns the method, which has to be written in plain characters: a reader that unescapes would see another method.
fn method(body: &Members<'_>) -> Result<String, Fault> {
    let method = body.text("method")?;
    let is_escaped = body.required("method")?.source().contains(&b'\\');
    let is_plain = !is_escaped && method.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_.$-".contains(&byte));
    let is_like_a_call = method.eq_ignore_ascii_case(super::CALL) && method != super::CALL;
    if is_plain && !is_like_a_call {
        return Ok(method);
    }
    Err(Fault::new("method", "found a method that readers may take for another one", "write the method as MCP does, without escapes"))
}

/// Returns an id, which has to be written so that its answer is known by it.
fn id(value: Value<'_>) -> Result<Id, Fault> {
    let written = value.as_written();
    let is_clear = match value.shape() {
        Shape::Number => written.len() <= ID_DIGITS_MAX && written.bytes().all(|byte| byte.is_ascii_digit()),
        Shape::String => written.len() <= ID_BYTES_MAX && !written.contains('\\'),
        _ => false,
    };
    if is_clear {
        return Ok(written);
    }
    let problem = format!("found {} that readers may take for different ids", value.shape());
    let fix = format!("send a whole number of at most {ID_DIGITS_MAX} digits, or a string of at most {ID_BYTES_MAX} bytes without escapes");
    Err(Fault::new("id", problem, fix))
}

/// Returns the id of a frame that is refused, if the frame has one id: its sender should not wait in vain.
pub(super) fn id_of_refused(line: &[u8]) -> Option<Id> {
    let mut parser = Parser::new();
    let frame = parser.parse(line, DEPTH_MAX).ok()?;
    let mut ids = frame.members().filter(|(key, _)| key.is_text("id")).map(|(_, value)| value);
    let only = ids.next().filter(|_| ids.next().is_none())?;
    id(only).ok()
}

/// Returns the answer to a call that does not run: a result that the model reads.
pub(super) fn blocked(id: &str, text: &str) -> Vec<u8> {
    // Older versions of the protocol do not know the type of a result, and pass it over.
    answer(id, "result", &json!({"content": [{"type": "text", "text": text}], "isError": true, "resultType": "complete"}))
}

/// Returns an error of JSON-RPC.
pub(super) fn error(id: Option<&str>, code: i32, message: &str) -> Vec<u8> {
    answer(id.unwrap_or("null"), "error", &json!({"code": code, "message": message}))
}

fn answer(id: &str, member: &str, value: &Json) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{value}}}").into_bytes()
}
