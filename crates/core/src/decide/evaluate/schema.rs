//! The JSON Schema of verdicts. It stands beside the code that writes them, and its lists of names are those of that code.

use serde_json::{Value, json};

use crate::decide::ruling::{Action, DecidedBy};
use crate::decide::safety::Stage;
use crate::event::decode::EventType;

/// Returns the JSON Schema of verdicts.
#[must_use]
pub fn schema() -> Value {
    let sources: Vec<_> = DecidedBy::ALL.iter().map(|source| source.as_str()).collect();
    let actions: Vec<_> = Action::ALL.iter().map(|action| action.as_str()).collect();
    let types: Vec<_> = EventType::ALL.iter().map(|event_type| event_type.as_str()).collect();
    let reason = reason();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A verdict, as Tollgate publishes it",
        "type": "object",
        "properties": {
            "verdict_id": {"type": "string", "pattern": hex(32, ""), "description": "Derived from thread and event: copies have the same."},
            "event_id": text("The event that it answers."),
            "type": {"enum": types, "description": "The event's type, if it is known."},
            "thread_id": text("The event's thread, if it is known."),
            "turn_id": text("The event's turn."),
            "tool_call_id": text("The event's tool call."),
            "tool_name": text("The event's tool."),
            "action": {"enum": actions, "description": "What happens next."},
            "allows_execution": {"type": "boolean", "description": "Whether the tool may run."},
            "should_halt": {"type": "boolean", "description": "Whether the turn should stop."},
            "code": text("What decided: the code of the first reason, or allow, or not_executed."),
            "message": text("The same as a sentence; empty for a plain allow."),
            "decided_by": {"enum": sources, "description": "The part of the gate that decided."},
            "reasons": {"type": "array", "items": reason, "description": "Every reason, the decisive one first."},
            "count": {"type": "integer", "minimum": 0, "description": "How often the same thing happened in this turn."},
            "signature": {
                "type": "object",
                "description": "The call, as loop controllers count it.",
                "properties": {"tool_name": text("The tool."), "args_hash": {"type": "string", "pattern": hex(64, ""), "description": "The hash of its arguments."}},
                "required": ["tool_name", "args_hash"],
                "additionalProperties": false,
            },
            "synthetic_result": text("The text to give the agent in place of a result."),
            "guidance": text("The text to append to what the agent sees."),
            "safety": safety(),
            "tool_calls_unreliable": {"type": "boolean", "description": "Whether the response's calls may be incomplete, for another reason than safety."},
            "unrecognized_response": {"type": "boolean", "description": "Whether the response's body has a shape that is not known."},
            "policy_version": {"type": "string", "pattern": hex(64, "sha256:"), "description": "The digest of all that decisions depend on."},
            "agent_id": text("The event's agent."),
            "tenant_id": text("The event's tenant."),
            "timestamp": {"type": "string", "format": "date-time", "description": "When the event happened, as it says."},
        },
        "required": [
            "verdict_id", "event_id", "action", "allows_execution", "should_halt", "code", "message", "decided_by", "reasons", "policy_version",
        ],
        "additionalProperties": false,
    })
}

fn hex(digits: usize, prefix: &str) -> String {
    format!("^{prefix}[0-9a-f]{{{digits}}}$")
}

fn text(sentence: &str) -> Value {
    json!({"type": "string", "description": sentence})
}

/// Returns the schema of a reason.
fn reason() -> Value {
    let sources: Vec<_> = DecidedBy::ALL.iter().map(|source| source.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "source": {"enum": sources, "description": "The part of the gate."},
            "code": text("What it found."),
            "message": text("The same as a sentence."),
            "policy_id": {"type": ["string", "null"], "description": "The policy that decided, as its provider names it."},
            "passport_digest": {"type": "string", "pattern": hex(64, "sha256:"), "description": "The passport that decided."},
            "answer_digest": {"type": "string", "pattern": hex(64, "sha256:"), "description": "The answer of the policy server that decided."},
        },
        "required": ["source", "code", "message", "policy_id"],
        "additionalProperties": false,
    })
}

/// Returns the schema of what a verdict says of a response that was cut off.
fn safety() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let stages: Vec<_> = Stage::ALL.iter().map(|stage| stage.as_str()).collect();
    json!({
        "type": "object",
        "description": "How the model's response was cut off.",
        "properties": {
            "detector": {"type": "string", "description": "The detector that found it."},
            "category": {"type": "string", "description": "The kind of safety stop."},
            "reason_field": {"type": "string", "description": "The field with the reason."},
            "reason_value": {"type": ["string", "integer", "boolean"], "description": "The field's value."},
            "suppressed_tool_call_count": {"type": "integer", "minimum": 0},
            "suppressed_tool_call_names": texts,
            "suppressed_tool_call_ids": texts,
            "user_message": {"type": "string", "description": "The text for the user."},
            "extras": {"type": "object", "description": "What the provider says besides."},
            "stage": {"enum": stages, "description": "What was stopped, where it is known."},
        },
        "required": [
            "detector", "category", "reason_field", "reason_value", "suppressed_tool_call_count", "suppressed_tool_call_names",
            "suppressed_tool_call_ids", "extras",
        ],
        "additionalProperties": false,
    })
}
