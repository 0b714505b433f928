//! The JSON Schema of controls: the values of control records. Whether a value agrees with its record's key is not in it.

use serde_json::{Value, json};

use super::record::{AGENT_ID_BYTES_MAX, REASON_BYTES_MAX, RULE_BYTES_MAX};
use crate::decide::ruling::SubjectKind;

/// Returns the JSON Schema of the values of control records. Null removes what was set.
#[must_use]
pub fn schema() -> Value {
    let kinds: Vec<_> = SubjectKind::ALL.into_iter().map(SubjectKind::as_str).collect();
    let about = |more: Value| {
        let mut properties = json!({
            "type": {"const": "subject", "description": "It is about a subject."},
            "kind": {"enum": kinds, "description": "The kind of subject. It is the key's."},
            "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The hash of its id. It is the key's."},
        });
        if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
            properties.extend(more);
        }
        properties
    };
    let operators = json!({
        "properties": about(json!({
            "state": {"enum": ["suspended", "exempt"], "description": "Of a suspended subject, every tool call is blocked. An exempt one is not suspended by the abuse stage; its record has no fields but those here and by, at and tool."},
            "reason": {"type": ["string", "null"], "maxLength": REASON_BYTES_MAX, "description": "Why, in the operator's words: up to 256 bytes."},
            "until": {"type": ["string", "null"], "format": "date-time", "description": "Until when; without it, until the control is removed."},
            "rule": false,
        })),
        "required": ["type", "kind", "hash", "state"],
    });
    let id =
        |types: Value, description: &str| json!({"type": types, "minLength": 1, "maxLength": RULE_BYTES_MAX, "description": description});
    let machines = json!({
        "description": "The record of the abuse stage, whose key ends in /abuse.",
        "properties": about(json!({
            "state": {"const": "suspended"},
            "until": {"type": "string", "format": "date-time", "description": "Until when."},
            "rule": id(json!("string"), "The rule that decided."),
            "step": {"type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX, "description": "The step of the rule's ladder."},
            "alert_id": id(json!(["string", "null"]), "The alert that gives the evidence."),
        })),
        "required": ["type", "kind", "hash", "state", "until", "rule"],
    });
    let passport = json!({
        "properties": {
            "type": {"const": "passport", "description": "An agent gets a passport. The record has no fields but those here and by, at and tool."},
            "agent_id": {"type": "string", "minLength": 1, "maxLength": AGENT_ID_BYTES_MAX, "description": "The agent. It is the key's."},
            "passport": {"type": "object", "description": "The passport: `tollgate passport check` says what is wrong with one."},
        },
        "required": ["type", "agent_id", "passport"],
    });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "The value of a control record",
        "type": ["object", "null"],
        "if": {"type": "object"},
        "then": {"anyOf": [operators, machines, passport, note()], "properties": writer_fields()},
    })
}

fn note() -> Value {
    json!({
        "description": "What a worker or a command notes for commands, under a key that begins with worker/ or history/. It switches nothing.",
        "properties": {"type": {"enum": ["worker", "history"]}},
        "required": ["type"],
    })
}

/// Returns what operators' records say of their writer. Whatever that is, the control counts.
fn writer_fields() -> Value {
    json!({
        "by": {"description": "Who wrote it."},
        "at": {"description": "When it was written, as RFC 3339."},
        "tool": {"description": "The program that wrote it, and its version."},
    })
}
