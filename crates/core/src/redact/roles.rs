//! What the members of an event are to its redaction. Whatever is not named here is data, and is replaced.

use super::words::RESULT_MEMBERS;
use crate::decide::signal::USAGE_MEMBERS;

/// What a value is, which says what of it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The fields of an event.
    Event,
    /// A structured CloudEvent around them.
    CloudEvent,
    /// An id or a name that verdicts repeat: it stays, if it is a string.
    Id,
    /// The version of an envelope, or a hint at a provider: it stays if it is known.
    Version,
    /// See [`Role::Version`].
    Provider,
    /// The event's type: it stays if it is known.
    EventType,
    /// A moment: it stays if it is one.
    Time,
    /// The end user's id.
    User,
    /// Anything else: names, texts and numbers are replaced.
    Data,
    /// Arguments that may be a JSON text in a string.
    Arguments,
    /// A tool's result that may be a JSON text in a string.
    Result,
    /// Whatever is in a result: what tells of a failure stays.
    InResult,
    /// The native body of a response.
    Response,
    /// A LangChain message, or its part with the fields.
    Message,
    /// One of the answers in a response, or the metadata of a message: an object with a reason why it ended.
    Answer,
    /// A message in the form of OpenAI.
    OpenAiMessage,
    /// The content of a message: a text, or blocks.
    Content,
    /// Content of which a block is known to be a call.
    CallBlock,
    /// The content of Gemini's answers.
    Parts,
    /// One part of that.
    Part,
    /// A tool call.
    Call,
    /// The function of a tool call.
    Function,
    /// The type of a block: it stays if it is known.
    BlockType,
    /// The reason why a response ended: it stays if it is known.
    Reason,
    /// The usage of a response: its counts of tokens stay.
    Usage,
    /// A provider's ratings: known words stay, and numbers, which verdicts repeat.
    Ratings,
}

impl Role {
    /// Returns the role of the member of that name, if the name is known there.
    pub(super) fn member(self, name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?;
        match self {
            Self::Event => event_field(name),
            Self::CloudEvent => attribute(name),
            Self::InResult => RESULT_MEMBERS.contains(&name.as_bytes()).then_some(Self::InResult),
            Self::Ratings => super::words::is_rating(name).then_some(Self::Ratings),
            _ => response_member(self, name),
        }
    }
}

fn event_field(name: &str) -> Option<Role> {
    Some(match name {
        "type" => Role::EventType,
        "thread_id" | "event_id" | "turn_id" | "tool_call_id" | "tool_name" | "agent_id" | "tenant_id" | "run_id" => Role::Id,
        "timestamp" => Role::Time,
        "user_id" => Role::User,
        "provider" => Role::Provider,
        "arguments" => Role::Arguments,
        "result" => Role::Result,
        "response" => Role::Response,
        "message" => Role::Message,
        // Names that a reader of events looks for, in front of values that nothing reads as they are.
        "tool_input" | "failed" | "is_subagent" | "user_role" | "error" | "verdict_id" | "allows_execution" | "policy_version"
        | "specversion" | "source" => Role::Data,
        _ => return None,
    })
}

fn attribute(name: &str) -> Option<Role> {
    Some(match name {
        "specversion" => Role::Version,
        "id" | "subject" => Role::Id,
        "type" => Role::EventType,
        "time" => Role::Time,
        "data" => Role::Event,
        "source" | "data_base64" | "datacontenttype" | "dataschema" => Role::Data,
        _ => return None,
    })
}

/// Returns the role of a member in a model's response, along the paths that safety detectors read.
fn response_member(role: Role, name: &str) -> Option<Role> {
    use Role::{
        Answer, BlockType, Call, CallBlock, Content, Data, Function, Id, Message, OpenAiMessage, Part, Parts, Ratings, Reason, Response,
        Usage,
    };
    Some(match (role, name) {
        (Response, "choices" | "candidates") => Answer,
        (Response, "stop_reason") => Reason,
        (Response, "usage" | "usageMetadata" | "usage_metadata") | (Message, "usage_metadata") => Usage,
        (Usage, name) if USAGE_MEMBERS.contains(&name) => Usage,
        (Response | OpenAiMessage | Message, "content") => Content,
        (Message, "kwargs" | "data") => Message,
        (Message, "response_metadata" | "additional_kwargs") => Answer,
        (Message, "tool_calls" | "invalid_tool_calls" | "tool_call_chunks") => Call,
        (Answer, "finish_reason" | "finishReason" | "stop_reason") => Reason,
        (Answer, "content_filter_results" | "safety_ratings" | "safetyRatings") => Ratings,
        (Answer, "message" | "delta") => OpenAiMessage,
        (Answer, "content") => Parts,
        (OpenAiMessage | Answer, "tool_calls") => Call,
        (OpenAiMessage | Answer, "function_call") => Function,
        (Parts, "parts") => Part,
        (Part, "functionCall" | "function_call") => Call,
        (Call, "function" | "custom") => Function,
        (Call, "id" | "name") | (Function, "name") | (CallBlock, "id" | "call_id" | "name") => Id,
        (Content | CallBlock, "type") => BlockType,
        // Their names are looked for, so that no other name may become one of them.
        (Part | Content | CallBlock, "text") | (Content, "id" | "call_id" | "name") => Data,
        _ => return None,
    })
}
