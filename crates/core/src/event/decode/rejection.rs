//! Rejections of records: why a record is not an event, and what to send instead.

use super::EventType;
use crate::codes::codes;

codes! {
    /// The code of a broken rule, one per rule of the event contract. It is the dead letter's class, the metric's label and the name of the
    /// test.
    RejectionCode {
        /// A header's name is not UTF-8.
        HeaderInvalid = "header_invalid",
        /// The record's value is null.
        ValueNull = "value_null",
        /// The record's value has no bytes.
        ValueEmpty = "value_empty",
        /// The value is larger than `limits.event_bytes_max`.
        ValueTooLarge = "value_too_large",
        /// The value is not UTF-8.
        ValueNotUtf8 = "value_not_utf8",
        /// The value is not JSON.
        ValueNotJson = "value_not_json",
        /// The value nests too many containers.
        ValueTooDeep = "value_too_deep",
        /// The value, or the text in `arguments`, holds too many values.
        ValueTooMany = "value_too_many_values",
        /// The value is JSON, but not an object.
        ValueNotAnObject = "value_not_an_object",
        /// The record is a verdict. It is not answered: the answer would be the next record of that kind.
        ValueIsAVerdict = "value_is_a_verdict",
        /// A member of the envelope stands twice. Which one counts would depend on the reader.
        FieldRepeated = "field_repeated",
        /// A CloudEvent of a version other than 1.x.
        CloudEventVersion = "cloudevent_version_unsupported",
        /// A CloudEvent without an id.
        CloudEventIdMissing = "cloudevent_id_missing",
        /// A CloudEvents attribute that is not UTF-8 text.
        CloudEventAttribute = "cloudevent_attribute_invalid",
        /// A CloudEvent whose data is not a JSON object.
        CloudEventData = "cloudevent_data_invalid",
        /// No type.
        TypeMissing = "type_missing",
        /// A type that is not a string.
        TypeInvalid = "type_invalid",
        /// A type that the contract does not know.
        TypeUnknown = "type_unknown",
        /// Neither the event nor the key names the thread.
        ThreadIdMissing = "thread_id_missing",
        /// A thread id that is not a string.
        ThreadIdInvalid = "thread_id_invalid",
        /// A thread id of no bytes.
        ThreadIdEmpty = "thread_id_empty",
        /// A thread id of more than 256 bytes.
        ThreadIdTooLong = "thread_id_too_long",
        /// Field, CloudEvents subject and key name different threads.
        ThreadIdMismatch = "thread_id_mismatch",
        /// The key has to stand for the thread id and is not UTF-8.
        KeyInvalid = "key_invalid",
        /// An event id that is not a string.
        EventIdInvalid = "event_id_invalid",
        /// An event id of no bytes.
        EventIdEmpty = "event_id_empty",
        /// An event id of more than 128 bytes.
        EventIdTooLong = "event_id_too_long",
        /// A turn id that is not a string.
        TurnIdInvalid = "turn_id_invalid",
        /// A turn id of more than 256 bytes.
        TurnIdTooLong = "turn_id_too_long",
        /// An agent id that is not a string.
        AgentIdInvalid = "agent_id_invalid",
        /// `is_subagent` that is not a boolean.
        IsSubagentInvalid = "is_subagent_invalid",
        /// A user id that is not a string.
        UserIdInvalid = "user_id_invalid",
        /// A user role that is not a string.
        UserRoleInvalid = "user_role_invalid",
        /// A tenant id that is not a string.
        TenantIdInvalid = "tenant_id_invalid",
        /// A run id that is not a string.
        RunIdInvalid = "run_id_invalid",
        /// `attended` is neither true nor false.
        AttendedInvalid = "attended_invalid",
        /// A timestamp that is not RFC 3339.
        TimestampInvalid = "timestamp_invalid",
        /// A tool call or result without its id.
        ToolCallIdMissing = "tool_call_id_missing",
        /// A tool call id that is not a string.
        ToolCallIdInvalid = "tool_call_id_invalid",
        /// A tool call id of more than 4,096 bytes.
        ToolCallIdTooLong = "tool_call_id_too_long",
        /// A tool call or result without the tool's name.
        ToolNameMissing = "tool_name_missing",
        /// A tool name that is not a string.
        ToolNameInvalid = "tool_name_invalid",
        /// A tool name of more than 512 bytes.
        ToolNameTooLong = "tool_name_too_long",
        /// Both `tool_input` and `arguments`.
        ToolInputAmbiguous = "tool_input_ambiguous",
        /// A result that leaves its input out though its call was not seen in this turn.
        ToolInputMissing = "tool_input_missing",
        /// A tool result without a result.
        ResultMissing = "result_missing",
        /// `failed` that is not a boolean.
        FailedInvalid = "failed_invalid",
        /// A provider hint that is not a string.
        ProviderInvalid = "provider_invalid",
        /// A model response with none of `response`, `message` and `error`.
        ModelBodyMissing = "model_body_missing",
        /// A model response with more than one of `response`, `message` and `error`.
        ModelBodyAmbiguous = "model_body_ambiguous",
        /// A `response` that is not an object.
        ResponseInvalid = "response_invalid",
        /// A `message` that is not an object.
        MessageInvalid = "message_invalid",
        /// An `error` that is neither an object nor a string.
        ErrorInvalid = "error_invalid",
        /// The verdict would be larger than `limits.verdict_bytes_max`.
        VerdictTooLarge = "verdict_too_large",
    }
}

/// What could be read of an event that is not valid: enough to answer the host that waits for its verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialEvent {
    /// The thread, from the event, the CloudEvents subject or the key.
    pub thread_id: Option<String>,
    /// The event's id.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: Option<EventType>,
    /// The turn.
    pub turn_id: Option<String>,
    /// The call that it is about.
    pub tool_call_id: Option<String>,
    /// The tool that it is about.
    pub tool_name: Option<String>,
    /// The agent.
    pub agent_id: Option<String>,
    /// The tenant.
    pub tenant_id: Option<String>,
    /// The event's own timestamp, if that can be read.
    pub timestamp: Option<String>,
}

/// A record that is not an event: the field, the shape of what was found there and what to send instead. It never holds a value
/// from the record, apart from the ids under [`Rejection::event`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: found {found}; {fix}")]
pub struct Rejection {
    /// The rule that was broken.
    pub code: RejectionCode,
    /// The field that broke it (`value` is the whole record).
    pub field: &'static str,
    /// The shape of what was found.
    pub found: String,
    /// What to send instead.
    pub fix: &'static str,
    /// What could be read of the event.
    pub event: Box<PartialEvent>,
}

impl Rejection {
    /// Returns the rejection of a verdict that was read as an event.
    pub(super) fn of_own_verdict() -> Self {
        let fix = "let verdicts go to another topic than kafka.topics.events, and let nothing copy them there";
        Self::new(RejectionCode::ValueIsAVerdict, "value", "a verdict of Tollgate", fix)
    }

    /// Returns a rejection of an event of which nothing is known yet.
    #[must_use]
    pub fn new(code: RejectionCode, field: &'static str, found: impl Into<String>, fix: &'static str) -> Self {
        Self { code, field, found: found.into(), fix, event: Box::default() }
    }

    /// Returns whether the record gets a verdict besides its dead letter. A verdict gets none, since one could be read in turn, without end.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.code != RejectionCode::ValueIsAVerdict
    }

    /// Returns the same rejection with what is known of the event.
    #[must_use]
    pub fn with_event(mut self, event: PartialEvent) -> Self {
        *self.event = event;
        self
    }
}
