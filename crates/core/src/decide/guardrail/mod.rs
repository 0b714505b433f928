//! Guardrail providers: they decide whether policy allows an agent a call.
//!
//! The core does not talk to providers in other processes. [`GuardrailChain::begin`] asks the providers up to the first that needs an
//! answer from a policy server, the worker gets that answer, and [`GuardrailChain::resume`] continues with it. The first denial decides.

mod allowlist;
mod chain;
mod descriptor;
mod http;
mod oap_passport;

pub use allowlist::Allowlist;
pub use chain::{Asking, ChainOutcome, EVALUATOR_ERROR, GuardrailChain, Link, Progress, ProviderOutcome, Question};
pub use descriptor::{ConfiguredProvider, NamedFile, ProviderDescriptor, ProviderSettings};
pub use http::{Dialect, Http, HttpSettings};
pub use oap_passport::OapPassport;

use crate::decide::ruling::GuardrailReason;
use crate::event::decode::{Attribution, Event, ToolCall};
use tollgate_passport::ToolInput;

/// The providers that configuration can name. A new provider is a file of its own and a line here.
pub const PROVIDERS: &[&ProviderDescriptor] = &[&allowlist::DESCRIPTOR, &oap_passport::DESCRIPTOR, &http::DESCRIPTOR];

/// A provider's decision, which is a well-formed answer either way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailDecision {
    /// Whether the call may run.
    pub allow: bool,
    /// The reasons; the first one is shown to the agent.
    pub reasons: Vec<GuardrailReason>,
}

/// The reason why a provider has no decision. It holds nothing of the request or the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The server was not asked, because this process cannot ask it.
    #[error("nobody asked")]
    NotAsked,
    /// The deadline passed first.
    #[error("no answer within the deadline")]
    TimedOut,
    /// The connection could not be made, or it broke before the answer was complete.
    #[error("the connection failed")]
    Connection,
    /// The answer's status was not 200.
    #[error("the answer's status was {0}")]
    Status(u16),
    /// The answer was larger than configured.
    #[error("the answer was too large")]
    TooLarge,
    /// Too many questions were waiting already, so this one was not sent.
    #[error("too many questions are waiting")]
    Overloaded,
    /// The provider failed so often that it is not asked for a while.
    #[error("the provider is left alone for a while, because it failed too often")]
    CircuitOpen,
    /// The answer was not a decision.
    #[error("malformed answer: {0}")]
    Malformed(&'static str),
}

impl ProviderError {
    /// Returns the error as a label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotAsked => "not_asked",
            Self::TimedOut => "timed_out",
            Self::Connection => "connection",
            Self::Status(_) => "status",
            Self::TooLarge => "too_large",
            Self::Overloaded => "overloaded",
            Self::CircuitOpen => "circuit_open",
            Self::Malformed(_) => "malformed",
        }
    }
}

/// A provider's response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It has decided, or failed to.
    Decided(Result<GuardrailDecision, ProviderError>),
    /// It needs an answer. This is the body of the question, which the worker sends to the provider's endpoint.
    Ask(Vec<u8>),
}

/// A guardrail provider. To add one, implement this trait and describe it in a [`ProviderDescriptor`].
pub trait GuardrailProvider: std::fmt::Debug + Send + Sync {
    /// Returns the provider's name, as metrics and logs write it.
    fn name(&self) -> &str;

    /// Decides, or returns the question that has to be asked. It must not do I/O.
    fn plan(&self, request: &GuardrailRequest<'_>) -> Step;

    /// Reads the answer to a question of [`GuardrailProvider::plan`]. A provider that never asks does not implement this.
    ///
    /// # Errors
    /// [`ProviderError`] for anything but a well-formed decision.
    fn read(&self, answer: &[u8]) -> Result<GuardrailDecision, ProviderError> {
        let _ = answer;
        Err(ProviderError::Malformed("this provider asks nothing"))
    }
}

/// A remote provider's answer, or the reason why there is none.
pub type Answer = Result<Vec<u8>, ProviderError>;

/// A call in the form that guardrail providers get, borrowed from its event.
#[derive(Debug, Clone, Copy)]
pub struct GuardrailRequest<'e> {
    /// The tool's name; may be empty.
    pub tool_name: &'e str,
    /// Its arguments as they are in the event. A provider that reads them must not treat unreadable ones as missing.
    pub tool_input: &'e ToolInput<'e>,
    /// The id of the call.
    pub tool_call_id: &'e str,
    /// The id of the thread.
    pub thread_id: &'e str,
    /// The id of the turn.
    pub turn_id: Option<&'e str>,
    /// The event's time in milliseconds since the epoch.
    pub time_ms: Option<i64>,
    /// The later of the event's time and its record's, in milliseconds since the epoch: by it things expire.
    pub latest_ms: Option<i64>,
    /// On whose behalf the agent acts.
    pub attribution: &'e Attribution<'e>,
    /// The configured passport reference, for calls without an agent.
    pub passport: Option<&'e str>,
}

impl<'e> GuardrailRequest<'e> {
    /// Returns the request for a call.
    #[must_use]
    pub fn new(event: &'e Event<'e>, call: &'e ToolCall<'e>, passport: Option<&'e str>) -> Self {
        Self {
            tool_name: &call.tool_name,
            tool_input: &call.input,
            tool_call_id: &call.tool_call_id,
            thread_id: &event.thread_id,
            turn_id: event.turn_id.as_deref(),
            time_ms: event.time_ms,
            latest_ms: event.latest_ms(),
            attribution: &event.attribution,
            passport,
        }
    }

    /// Returns the passport reference: the event's agent, or else the configured one.
    #[must_use]
    pub fn agent_id(&self) -> Option<&'e str> {
        self.attribution.agent_id.as_deref().or(self.passport)
    }
}
