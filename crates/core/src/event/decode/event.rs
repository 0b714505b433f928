//! Events: what an orchestrator reports of its agents.

use std::borrow::Cow;

use crate::codes::codes;
use tollgate_json::{Text, Value};
use tollgate_passport::ToolInput;

codes! {
    /// The type of an event.
    EventType {
        /// The user spoke. The thread's counters start anew.
        TurnStart = "turn_start",
        /// The model answered.
        ModelResponse = "model_response",
        /// The agent asks to run a tool.
        ToolCall = "tool_call",
        /// A tool has run.
        ToolResult = "tool_result",
        /// The turn is over.
        TurnEnd = "turn_end",
        /// An operator wants the thread, or its running turn, forgotten.
        ThreadReset = "thread_reset",
    }
}

/// One event, borrowed from its record.
#[derive(Debug, Clone)]
pub struct Event<'d> {
    /// The id of the thread: 1 to 256 bytes.
    pub thread_id: Cow<'d, str>,
    /// The id of the event, from which the verdict's id is derived: up to 128 bytes, or the record's coordinates.
    pub event_id: Cow<'d, str>,
    /// The id of the turn, if the orchestrator names turns.
    pub turn_id: Option<Cow<'d, str>>,
    /// The event's own timestamp as it stands there, if it has one of at most 64 bytes. Verdicts repeat it.
    pub timestamp: Option<Cow<'d, str>>,
    /// When it happened, in milliseconds since the epoch: the event's own timestamp, or else the record's.
    pub time_ms: Option<i64>,
    /// When the record was written, in milliseconds since the epoch, if it says so. The orchestrator does not choose it where the topic's
    /// brokers set it (`message.timestamp.type=LogAppendTime`).
    pub record_ms: Option<i64>,
    /// On whose behalf the agent acts.
    pub attribution: Attribution<'d>,
    /// Whether a person watches the run, if the orchestrator says so.
    pub attended: Option<bool>,
    /// The model provider of a response, as the orchestrator names it.
    pub provider: Option<Cow<'d, str>>,
    /// What happened.
    pub body: Body<'d>,
}

/// On whose behalf an agent acts. All of it is optional. Verdicts repeat the agent and the tenant, and nothing of the user.
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
    /// The user spoke.
    TurnStart,
    /// The model answered.
    ModelResponse(ModelBody<'d>),
    /// The agent asks to run a tool.
    ToolCall(ToolCall<'d>),
    /// A tool has run.
    ToolResult(ToolResult<'d>),
    /// The turn is over.
    TurnEnd,
    /// An operator wants the thread, or its running turn, forgotten.
    ThreadReset,
}

/// A model's answer in one of its three forms.
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
    /// The id that ties the result to the call.
    pub tool_call_id: Cow<'d, str>,
    /// The tool; may be empty.
    pub tool_name: Cow<'d, str>,
    /// Its arguments.
    pub input: ToolInput<'d>,
}

/// The result of a tool.
#[derive(Debug, Clone)]
pub struct ToolResult<'d> {
    /// The id of the call that it answers.
    pub tool_call_id: Cow<'d, str>,
    /// The tool.
    pub tool_name: Cow<'d, str>,
    /// The arguments of the call; may be left out if the call was seen in this turn.
    pub input: ToolInput<'d>,
    /// The raw result; `None` is null.
    pub result: Option<Text<'d>>,
    /// Whether it failed, if the orchestrator knows.
    pub failed: Option<bool>,
}

impl Event<'_> {
    /// Returns the later of the event's time and its record's, in milliseconds since the epoch. It is for what ends at a moment: an event
    /// that is dated back does not make that last longer.
    #[must_use]
    pub fn latest_ms(&self) -> Option<i64> {
        self.time_ms.max(self.record_ms)
    }

    /// Returns the event's type.
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
