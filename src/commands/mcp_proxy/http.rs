//! An MCP server at a URL (streamable HTTP): each frame of the client is a post; answers and streams of events are frames of the server.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use http_body_util::BodyExt as _;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use tollgate_core::decide::guardrail::{Dialect, HttpSettings};
use tollgate_hosts::mcp::FRAME_BYTES_MAX;
use tollgate_worker::policy_servers::{Poster, Stream};

use super::lines::Line;
use crate::commands::shared::server::bearer;

/// How long connecting may take, and an answer that has to come before the client's next frame goes on.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the server may take to close the session at the end.
const GOODBYE: Duration = Duration::from_secs(2);
/// The pause before a stream that the server has closed is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// How many frames of the server wait for the proxy.
const FRAMES_MAX: usize = 16;

/// A session with a server at a URL.
pub(super) struct Http {
    poster: Poster,
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where frames of the server go; none once the client has closed its side.
    frames: Option<Sender<Line>>,
    /// What every request of the session says of it: its id and the version of the protocol.
    headers: HeaderMap,
    /// Reads what the server sends by itself.
    listener: Option<JoinHandle<()>>,
}

/// The request that a post holds; a notification or an answer has no id.
struct Head {
    id: Option<Value>,
    method: String,
    /// The headers that repeat parts of the frame.
    headers: HeaderMap,
}

impl Http {
    /// Returns a session, and the frames of the server.
    pub(super) fn new(url: &str, token_file: Option<&Path>, runtime: &Handle) -> anyhow::Result<(Arc<Self>, Receiver<Line>)> {
        let mut settings = HttpSettings::at("mcp", url, Dialect::Tollgate);
        settings.timeout_ms = u32::try_from(PATIENCE.as_millis()).unwrap_or(u32::MAX);
        if let Some(file) = token_file {
            settings.headers.insert("authorization".to_owned(), bearer("--url-token-file", file)?);
        }
        let poster = Poster::new(&settings).map_err(|error| anyhow!("--url: {}", error.problem))?;
        let (frames, receiver) = channel(FRAMES_MAX);
        let state = Mutex::new(State { frames: Some(frames), ..State::default() });
        Ok((Arc::new(Self { poster, runtime: runtime.clone(), state }), receiver))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts a frame. Requests run beside each other; the first one and everything that is no request go in their order.
    pub(super) fn send(http: &Arc<Self>, line: &[u8]) {
        let Some(frames) = http.state().frames.clone() else { return };
        let (head, line, own) = (Head::of(line), line.to_vec(), Arc::clone(http));
        let waits = head.id.is_none() || head.method == "initialize";
        let begins = head.method == "notifications/initialized";
        let posted = http.runtime.spawn(async move {
            if let Err(error) = own.exchange(&head, line, &frames).await {
                head.fail(&frames, &error.to_string()).await;
            }
        });
        if waits {
            // A server that takes longer is waited for in the background.
            let _late = http.runtime.block_on(async { tokio::time::timeout(PATIENCE, posted).await });
        }
        if begins {
            let listener = http.runtime.spawn(Self::listen(Arc::clone(http)));
            http.state().listener = Some(listener);
        }
    }

    /// Posts a frame and hands on the frames of the answer.
    async fn exchange(&self, head: &Head, line: Vec<u8>, frames: &Sender<Line>) -> anyhow::Result<()> {
        let mut headers = self.state().headers.clone();
        headers.extend(head.headers.clone());
        let stream = self.poster.open(Method::POST, headers, line).await.map_err(|fault| anyhow!(fault.cause))?;
        let status = stream.answer.status();
        if !status.is_success() {
            return Err(anyhow!("the answer's status is {}", status.as_u16()));
        }
        if let Some(session) = stream.answer.headers().get(SESSION) {
            self.state().headers.insert(SESSION, session.clone());
        }
        let (mut is_answered, mut body) = (false, Body::of(stream));
        while let Some(frame) = body.next().await? {
            let parsed: Value = serde_json::from_slice(&frame).unwrap_or_default();
            is_answered |= parsed.get("method").is_none() && head.id.is_some() && parsed.get("id") == head.id.as_ref();
            if head.method == "initialize" {
                insert(&mut self.state().headers, VERSION, parsed.pointer("/result/protocolVersion").and_then(Value::as_str));
            }
            frames.send(Some(frame)).await?;
        }
        if is_answered || head.id.is_none() { Ok(()) } else { Err(anyhow!("the server ended its answer without a result")) }
    }

    /// Reads what the server sends by itself. Many servers offer no such stream.
    async fn listen(http: Arc<Self>) {
        loop {
            let (Some(frames), mut headers) = ({
                let state = http.state();
                (state.frames.clone(), state.headers.clone())
            }) else {
                return;
            };
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            let Ok(stream) = http.poster.open(Method::GET, headers, Vec::new()).await else { return };
            if stream.answer.status() != StatusCode::OK || !is_stream(&stream) {
                return;
            }
            // A broken stream is opened again, as a closed one is.
            let mut body = Body::of(stream);
            while let Ok(Some(frame)) = body.next().await {
                if frames.send(Some(frame)).await.is_err() {
                    return;
                }
            }
            drop((frames, body));
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Ends the frames of the server once all posts are answered.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.frames = None;
        if let Some(listener) = state.listener.take() {
            listener.abort();
        }
    }

    /// Lets the server forget the session.
    pub(super) async fn end_session(&self) {
        let headers = self.state().headers.clone();
        if headers.contains_key(SESSION) {
            // A server that does not know how answers with 405, and forgets the session in its own time.
            let _answer = tokio::time::timeout(GOODBYE, self.poster.open(Method::DELETE, headers, Vec::new())).await;
        }
    }
}

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Inserts a header, if there is a value that a header can hold.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(name, value);
    }
}

impl Head {
    /// Reads a frame that the session has passed.
    fn of(line: &[u8]) -> Self {
        let frame: Value = serde_json::from_slice(line).unwrap_or_default();
        let text = |place: &str| frame.pointer(place).and_then(Value::as_str);
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"))]);
        for (name, value) in [
            (VERSION, text("/params/_meta/io.modelcontextprotocol~1protocolVersion")),
            (HeaderName::from_static("mcp-method"), text("/method")),
            (HeaderName::from_static("mcp-name"), text("/params/name").or_else(|| text("/params/uri"))),
        ] {
            insert(&mut headers, name, value);
        }
        let method = text("/method").unwrap_or_default().to_owned();
        Self { id: frame.get("id").filter(|_| !method.is_empty()).cloned(), method, headers }
    }

    /// Answers a request in the server's place.
    async fn fail(&self, frames: &Sender<Line>, cause: &str) {
        say!("tollgate mcp-proxy: the MCP server: {cause}");
        if let Some(id) = &self.id {
            let message = format!("the MCP server gave no answer: {cause}");
            let frame = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32_603, "message": message}});
            // The proxy may have ended.
            let _ended = frames.send(Some(frame.to_string().into_bytes())).await;
        }
    }
}

fn is_stream(stream: &Stream) -> bool {
    let media = stream.answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// The frames of a body: one JSON text, or a stream of events.
struct Body {
    stream: Stream,
    has_events: bool,
    /// What was read and is no frame yet, and the data of an event without its end.
    bytes: Vec<u8>,
    event: Vec<u8>,
}

impl Body {
    fn of(stream: Stream) -> Self {
        Self { has_events: is_stream(&stream), stream, bytes: Vec::new(), event: Vec::new() }
    }

    /// Returns the next frame; `None` at the end.
    async fn next(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        loop {
            if let Some(event) = self.event() {
                return Ok(Some(on_one_line(event)));
            }
            if self.bytes.len() + self.event.len() > FRAME_BYTES_MAX {
                return Err(anyhow!("the answer is too large"));
            }
            let Some(part) = self.stream.answer.body_mut().frame().await else {
                let text = std::mem::take(&mut self.bytes);
                return Ok(Some(on_one_line(text)).filter(|text| !self.has_events && !text.is_empty()));
            };
            // Trailers are not used.
            let part = part.context("the connection broke before the answer was complete")?;
            if let Some(data) = part.data_ref() {
                self.bytes.extend_from_slice(data);
            }
        }
    }

    /// Returns the data of the next event that has come whole.
    fn event(&mut self) -> Option<Vec<u8>> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n').filter(|_| self.has_events) {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            if let Some(data) = line.strip_prefix(b"data:") {
                self.event.extend_from_slice(data);
            } else if line.trim_ascii().is_empty() {
                let event = std::mem::take(&mut self.event);
                // Some servers begin a stream with an event that has no data.
                if !event.trim_ascii().is_empty() {
                    return Some(event);
                }
            }
        }
        None
    }
}

/// Returns a JSON text on one line: inside strings, JSON has no line breaks.
fn on_one_line(mut text: Vec<u8>) -> Vec<u8> {
    text.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b' ');
    text.trim_ascii().to_vec()
}
