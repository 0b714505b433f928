//! Events: what an orchestrator tells of its agents.

use std::borrow::Cow;

use crate::json::{Text, Value};

/// The kinds of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The user spoke: counters of the thread start anew.
    TurnStart,
    /// The model answered.
    ModelResponse,
    /// The agent asks to run a tool.
    ToolCall,
    /// A tool has run.
    ToolResult,
    /// The turn is over.
    TurnEnd,
    /// An operator wants the thread, or its running turn, forgotten.
    ThreadReset,
}

impl EventType {
    /// Every type there is.
    pub const ALL: [Self; 6] = [Self::TurnStart, Self::ModelResponse, Self::ToolCall, Self::ToolResult, Self::TurnEnd, Self::ThreadReset];

    /// Returns the type as it stands in events, verdicts and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TurnStart => "turn_start",
            Self::ModelResponse => "model_response",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::TurnEnd => "turn_end",
            Self::ThreadReset => "thread_reset",
        }
    }

    /// Returns the type of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event_type| event_type.as_str() == name)
    }
}

/// One event, borrowed from its record.
#[derive(Debug, Clone)]
pub struct Event<'d> {
    /// The thread: 1 to 256 bytes.
    pub thread_id: Cow<'d, str>,
    /// Names the verdict: up to 128 bytes, or the record's coordinates.
    pub event_id: Cow<'d, str>,
    /// The turn, if the orchestrator names turns.
    pub turn_id: Option<Cow<'d, str>>,
    /// When it happened, in milliseconds since the epoch: the event's own timestamp or else the record's.
    pub time_ms: Option<i64>,
    /// On whose behalf.
    pub attribution: Attribution<'d>,
    /// What happened.
    pub body: Body<'d>,
}

/// On whose behalf an agent acts. All of it is optional and none of it appears in a verdict.
#[derive(Debug, Clone, Default)]
pub struct Attribution<'d> {
    /// The agent, which is also the passport reference.
    pub agent_id: Option<Cow<'d, str>>,
    /// Whether another agent delegated to it.
    pub is_subagent: bool,
    /// The end user.
    pub user_id: Option<Cow<'d, str>>,
    /// The end user's role.
    pub user_role: Option<Cow<'d, str>>,
    /// The tenant.
    pub tenant_id: Option<Cow<'d, str>>,
    /// The run.
    pub run_id: Option<Cow<'d, str>>,
}

/// What happened, by type.
#[derive(Debug, Clone)]
pub enum Body<'d> {
    /// See [`EventType::TurnStart`].
    TurnStart,
    /// See [`EventType::ModelResponse`].
    ModelResponse(ModelBody<'d>),
    /// See [`EventType::ToolCall`].
    ToolCall(ToolCall<'d>),
    /// See [`EventType::ToolResult`].
    ToolResult(ToolResult<'d>),
    /// See [`EventType::TurnEnd`].
    TurnEnd,
    /// See [`EventType::ThreadReset`].
    ThreadReset,
}

/// A model's answer in one of its three spellings.
#[derive(Debug, Clone, Copy)]
pub enum ModelBody<'d> {
    /// The provider's native response body.
    Response(Value<'d>),
    /// A LangChain AIMessage as a dict.
    Message(Value<'d>),
    /// The provider's API error body.
    Error(Value<'d>),
}

/// A call that waits for its verdict.
#[derive(Debug, Clone)]
pub struct ToolCall<'d> {
    /// Ties the result to the call.
    pub tool_call_id: Cow<'d, str>,
    /// The tool; may be empty.
    pub tool_name: Cow<'d, str>,
    /// Its arguments.
    pub input: ToolInput<'d>,
}

/// What a tool answered.
#[derive(Debug, Clone)]
pub struct ToolResult<'d> {
    /// The call it answers.
    pub tool_call_id: Cow<'d, str>,
    /// The tool.
    pub tool_name: Cow<'d, str>,
    /// The arguments again; may be left out if the call was seen in this turn.
    pub input: ToolInput<'d>,
    /// The raw result; `None` is null.
    pub result: Option<Text<'d>>,
    /// Whether it failed, if the orchestrator knows.
    pub failed: Option<bool>,
}

/// Tool arguments as they came.
#[derive(Debug, Clone)]
pub enum ToolInput<'d> {
    /// Left out, or null.
    Absent {
        /// Whether the field was there as an explicit null.
        null: bool,
    },
    /// `tool_input`, or `arguments` that were sent as a value: any JSON value.
    Value(Value<'d>),
    /// `arguments`: a JSON text inside a string.
    Encoded(Text<'d>),
}

impl Event<'_> {
    /// Returns which kind it is.
    #[must_use]
    pub fn event_type(&self) -> EventType {
        match self.body {
            Body::TurnStart => EventType::TurnStart,
            Body::ModelResponse(_) => EventType::ModelResponse,
            Body::ToolCall(_) => EventType::ToolCall,
            Body::ToolResult(_) => EventType::ToolResult,
            Body::TurnEnd => EventType::TurnEnd,
            Body::ThreadReset => EventType::ThreadReset,
        }
    }
}
