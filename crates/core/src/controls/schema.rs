//! The JSON Schema of controls: the values of control records. Whether a value agrees with its record's key is not in it.

use serde_json::{Value, json};

use super::record::{AGENT_ID_BYTES_MAX, REASON_BYTES_MAX};
use crate::ruling::SubjectKind;

/// Returns the JSON Schema of the values of control records. Null removes what was set.
#[must_use]
pub fn schema() -> Value {
    let kinds: Vec<_> = SubjectKind::ALL.into_iter().map(SubjectKind::as_str).collect();
    let subject = json!({
        "properties": {
            "type": {"const": "subject", "description": "A subject is suspended."},
            "kind": {"enum": kinds, "description": "What is suspended. It is the key's."},
            "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The hash of its id. It is the key's."},
            "state": {"const": "suspended"},
            "reason": {"type": ["string", "null"], "maxLength": REASON_BYTES_MAX, "description": "Why, in the operator's words: up to 256 bytes."},
            "until": {"type": ["string", "null"], "format": "date-time", "description": "Until when; without it, until the control is removed."},
        },
        "required": ["type", "kind", "hash", "state"],
    });
    let passport = json!({
        "properties": {
            "type": {"const": "passport", "description": "An agent gets a passport."},
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
        "then": {"anyOf": [subject, passport]},
    })
}
