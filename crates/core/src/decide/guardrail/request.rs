//! The request that guardrail providers decide on.

use crate::event::decode::{Attribution, Event, ToolCall};
use tollgate_passport::ToolInput;

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
