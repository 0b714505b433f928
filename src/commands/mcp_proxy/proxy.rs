//! What is done with each frame. The session decides what that is; the gate is asked here.

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::runtime::Handle;
use tollgate_hosts::mcp::{Asked, Session, Step};
use tollgate_hosts::{Event, Unanswered, Verdict};
use tollgate_worker::policy_servers::Poster;

use super::End;
use super::lines::Line;
use super::server::Input;
use crate::commands::shared::server::Server;

/// For how long a server is asked again that takes no events now or cannot be reached, and the pause between two questions.
const AGAIN_FOR: Duration = Duration::from_secs(2);
const AGAIN_PAUSE: Duration = Duration::from_millis(100);

/// The server of Tollgate.
pub(super) struct Gate {
    pub server: Server,
    pub poster: Poster,
    /// How long a question may take, in milliseconds.
    pub timeout: u32,
    pub runtime: Handle,
}

impl Gate {
    /// Returns the verdict of an event, which has to be the verdict of this event.
    fn ask(&self, event: &Event) -> Result<Verdict, Unanswered> {
        #[derive(Deserialize)]
        struct Of {
            event_id: String,
        }
        let unanswered = |code, message: String| Unanswered { code, message };
        let body = serde_json::to_vec(event).map_err(|error| unanswered("event_unsendable", error.to_string()))?;
        let began = Instant::now();
        let answer = loop {
            // The event keeps its id, so that it counts once however often it is asked about.
            match self.runtime.block_on(self.poster.post(body.clone())) {
                Err(fault) if fault.may_pass && began.elapsed() < AGAIN_FOR => std::thread::sleep(AGAIN_PAUSE),
                answer => break answer,
            }
        };
        let answer = answer.map_err(|fault| unanswered("gate_unreachable", self.server.fault(&fault.cause, self.timeout).to_string()))?;
        let is_of_this = |of: &Of| event.get("event_id").and_then(|id| id.as_str()) == Some(&of.event_id);
        let of = serde_json::from_slice::<Of>(&answer).ok().filter(is_of_this);
        let verdict = serde_json::from_slice::<Verdict>(&answer).ok().filter(|_| of.is_some());
        let foreign = || format!("{}: the answer is no verdict of this event; is this a server of Tollgate?", self.server.url);
        verdict.ok_or_else(|| unanswered("verdict_unreadable", foreign()))
    }
}

/// A session, with everything that its two threads share.
pub(super) struct Proxy {
    session: Mutex<Session>,
    gate: Gate,
}

impl Proxy {
    pub(super) fn new(session: Session, gate: Gate) -> Self {
        Self { session: Mutex::new(session), gate }
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the client to its end, or until the server takes no frame any more.
    pub(super) fn read_client(&self, lines: impl Iterator<Item = Line>, mut input: Input) -> End {
        for line in lines {
            let step = line.as_ref().map_or_else(Session::overlong, |line| self.session().of_client(line));
            let line = line.unwrap_or_default();
            let answer = match step {
                Step::Ask(asked) => self.decide(asked),
                Step::Answer(answer) => Some(answer),
                Step::Pass => None,
                Step::Drop(reason) | Step::End(reason) => return End::Server(reason),
            };
            match answer {
                Some(answer) if print(&answer).is_err() => break,
                None if input(&line).is_err() => return End::Input,
                _ => {}
            }
        }
        End::Client
    }

    fn decide(&self, asked: Asked) -> Option<Vec<u8>> {
        let verdict = self.gate.ask(&asked.event);
        self.session().decide(asked, verdict.as_ref().map(std::slice::from_ref))
    }

    /// Reads the server to its end. Requests that are still open then get an error.
    pub(super) fn read_server(&self, lines: impl Iterator<Item = Line>) -> End {
        let mut reason = "the MCP server ended".to_owned();
        for line in lines {
            let Some(line) = line else {
                reason = "the MCP server wrote a frame that is too long".to_owned();
                break;
            };
            match self.hand_back(&line) {
                Ok(None) => {}
                Ok(Some(why)) => {
                    reason = why;
                    break;
                }
                Err(_) => return End::Client,
            }
        }
        let lost = self.session().lost();
        for frame in lost {
            if self.hand_back(&frame).is_err() {
                return End::Client;
            }
        }
        End::Server(reason)
    }

    /// Handles a frame of the server. Returns why the session ends, if it ends.
    fn hand_back(&self, line: &[u8]) -> std::io::Result<Option<String>> {
        let step = self.session().of_server(line);
        match step {
            Step::Pass => print(line)?,
            Step::Ask(asked) => {
                let verdict = self.gate.ask(&asked.event);
                let frame = self.session().report(&asked, line, verdict.as_ref().map(std::slice::from_ref));
                print(&frame)?;
            }
            Step::Drop(what) => say!("tollgate mcp-proxy: dropped {what}"),
            Step::Answer(_) => {}
            Step::End(reason) => return Ok(Some(reason)),
        }
        Ok(None)
    }
}

/// Writes a frame to the client.
fn print(frame: &[u8]) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(frame)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}
