//! What every wire has in common: the request of a host, the question that it asks, and the answer that the host gets.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

/// An event of the gate, in the contract's plain JSON.
pub type Event = Map<String, Value>;

/// A request of a host.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The part of the path behind the wire's own path, without a leading slash; empty where the wire has one path.
    pub path: &'a str,
    /// Names in lower case and values of the headers.
    pub headers: &'a [(String, String)],
    /// The body as it came.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// Returns the value of the header with this name, which is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// What a wire says of a request: the events to publish, in order, and how the host is answered.
pub struct Question<A = Answer> {
    /// The events, all of one thread. No event means that the gate has nothing to decide, and that the answer needs no verdict.
    pub events: Vec<Event>,
    /// Writes the host's answer. An outcome with verdicts has as many as there are events that get one, in their order.
    pub answer: Box<dyn FnOnce(Outcome<'_>) -> A + Send>,
}

impl<A> fmt::Debug for Question<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Question").field("events", &self.events.len()).finish_non_exhaustive()
    }
}

/// What came of a question: the verdicts of its events, or the reason why there is none.
pub type Outcome<'a> = Result<&'a [Verdict], &'a Unanswered>;

/// Why a question has no verdict. A wire answers it with a denial in the host's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// The code, as `deadline_exceeded`.
    pub code: &'static str,
    /// A sentence for people, without anything of the request.
    pub message: String,
}

/// The answer of a host: its status, and a JSON body.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; nothing is an empty body.
    pub body: Option<Value>,
}

/// The fields of a verdict that an answer is made of.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Verdict {
    /// `allow`, `warn`, `block`, `halt` or `suppress`.
    pub action: String,
    /// Whether the call may run.
    pub allows_execution: bool,
    /// Whether the turn should stop.
    pub should_halt: bool,
    /// The code of what decided.
    pub code: String,
    /// The sentence of what decided; empty for a plain allow.
    pub message: String,
    /// The text that stands for the result of a call that does not run.
    #[serde(default)]
    pub synthetic_result: Option<String>,
    /// The text to append to a result.
    #[serde(default)]
    pub guidance: Option<String>,
    /// The ids of calls that a terminated response took with it, and what to tell the user.
    #[serde(default)]
    pub safety: Option<Value>,
}

/// The wire of a host.
pub trait Wire: Send + Sync {
    /// The wire's name, as it stands in paths, in `tollgate hook --host` and in metrics: `claude-code`.
    fn name(&self) -> &'static str;

    /// Reads a request of the host.
    ///
    /// # Errors
    /// Returns the host's own denial of a request that cannot be read: it says what is wrong and how it is mended, and repeats nothing of the
    /// request.
    fn read(&self, request: &Request<'_>) -> Result<Question, Answer>;
}
