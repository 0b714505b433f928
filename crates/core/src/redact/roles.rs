//! What the members of an event are to its redaction. Whatever is not named here is data, and is replaced.

use super::words::RESULT_MEMBERS;
use crate::decide::safety::reading::outline::{OnPath, is_arguments, is_call_name, is_function};
use crate::decide::signal::is_usage_member;

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
    /// A place on the paths along which responses are read: what is read there stays, in known words.
    Path(OnPath),
    /// A tool call.
    Call,
    /// The function of a tool call.
    Function,
    /// What a gateway tells of its provider.
    Provided,
    /// The type of a block: it stays if it is known.
    BlockType,
    /// The reason that a gateway got from its provider: it stays if it is known.
    Reason,
    /// The usage of a response: its counts of tokens stay.
    Usage,
    /// A provider's verdict on calls: that a call is flagged stays.
    Flags,
    /// The calls of such a verdict, by their ids, which stay.
    FlaggedCalls,
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
        "response" | "error" => Role::Path(OnPath::RESPONSE),
        "message" => Role::Path(OnPath::MESSAGE),
        // Names that a reader of events looks for, in front of values that nothing reads as they are.
        "tool_input" | "failed" | "is_subagent" | "attended" | "user_role" | "verdict_id" | "allows_execution" | "policy_version"
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

/// Returns the role of a member in a model's response.
fn response_member(role: Role, name: &str) -> Option<Role> {
    Some(match (role, name) {
        (Role::Usage, name) if is_usage_member(name) => Role::Usage,
        (Role::Call | Role::Function, name) if is_call_name(name) => Role::Id,
        (Role::Call | Role::Function, name) if is_arguments(name) => Role::Arguments,
        (Role::Call, name) if is_function(name) => Role::Function,
        (Role::Call, "type" | "part_kind") => Role::BlockType,
        (Role::Call, "status") => Role::Reason,
        (Role::Provided, "native_finish_reason") => Role::Reason,
        (Role::Flags, "tool_uses") => Role::FlaggedCalls,
        (Role::Flags, "status" | "outcome") | (Role::FlaggedCalls, _) => Role::Flags,
        (Role::Path(path), name) => return path.member(name.as_bytes()).map(Role::Path).or_else(|| beside(name)),
        // A reader looks for these names, so that no other name may become one of them.
        (Role::Call, "text") => Role::Data,
        _ => return None,
    })
}

/// Returns the role of a member that stands beside what is read.
fn beside(name: &str) -> Option<Role> {
    Some(match name {
        "usage" | "Usage" | "usageMetadata" | "usage_metadata" => Role::Usage,
        "content_filter_results" | "safety_ratings" | "safetyRatings" => Role::Ratings,
        "native_finish_reason" => Role::Reason,
        "provider_specific_fields" => Role::Provided,
        "type" | "part_kind" => Role::BlockType,
        name if name == "text" || is_call_name(name) => Role::Data,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_events_has_a_role() {
        let schema = crate::event::decode::schema();
        for name in schema["definitions"]["fields"]["properties"].as_object().unwrap().keys() {
            assert!(event_field(name).is_some(), "{name}: say in `event_field` how redaction treats it");
        }
    }
}
