//! The JSON Schema of events: the values of records, as plain JSON or as structured CloudEvents.
//!
//! It says what can be said of a value alone. Whether key and headers agree with it, and what only the thread's history tells, is not in it.

use serde_json::{Map, Value, json};

use super::fields::{FIELDS, VERDICT_MEMBERS};
use super::{EVENT_ID_BYTES_MAX, EventType, THREAD_ID_BYTES_MAX, TOOL_CALL_ID_BYTES_MAX, TOOL_NAME_BYTES_MAX, TURN_ID_BYTES_MAX};

/// Returns the JSON Schema of events.
#[must_use]
pub fn schema() -> Value {
    let of_a_verdict = json!(VERDICT_MEMBERS.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>());
    let is_structured = json!({"required": ["specversion", "source"]});
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "An event, as an orchestrator publishes it",
        "description": "The value of a record: plain JSON, or a structured CloudEvent. A null in an optional field is the same as leaving it out.",
        "type": "object",
        "not": {"required": of_a_verdict},
        "if": is_structured,
        "then": {"$ref": "#/definitions/cloud_event"},
        "else": {"allOf": [{"$ref": "#/definitions/fields"}, {"properties": {"type": {"enum": names()}}, "required": ["type"]}, rules(&by_name)]},
        "definitions": {"fields": {"type": "object", "properties": properties()}, "cloud_event": cloud_event(), "given": {"not": {"type": "null"}}},
    })
}

fn names() -> Vec<&'static str> {
    EventType::ALL.into_iter().map(EventType::as_str).collect()
}

/// Returns what each field may be, whatever the event's type.
fn properties() -> Map<String, Value> {
    let properties = FIELDS.iter().map(|name| ((*name).to_owned(), described(field(name), sentence(name))));
    properties.chain([("type".to_owned(), json!({"description": sentence("type")}))]).collect()
}

/// Returns what a field may be. A string of so many bytes has as many characters, or fewer.
fn field(name: &str) -> Value {
    let optional = |least: usize, bytes_max: usize| json!({"type": ["string", "null"], "minLength": least, "maxLength": bytes_max});
    match name {
        "thread_id" => optional(1, THREAD_ID_BYTES_MAX),
        "event_id" => optional(1, EVENT_ID_BYTES_MAX),
        "turn_id" => optional(0, TURN_ID_BYTES_MAX),
        "timestamp" => json!({"type": ["string", "null"], "format": "date-time"}),
        "agent_id" | "user_id" | "user_role" | "tenant_id" | "run_id" => json!({"type": ["string", "null"]}),
        "is_subagent" | "attended" => json!({"type": ["boolean", "null"]}),
        // What is left depends on the type.
        _ => json!({}),
    }
}

fn sentence(name: &str) -> &'static str {
    match name {
        "type" => "What happened.",
        "thread_id" => {
            "The conversation: 1 to 256 bytes. It may be left out if the record's key carries it, and has to equal the key otherwise."
        }
        "event_id" => "The event, which its verdict names: up to 128 bytes. Left out, it is the record's place.",
        "turn_id" => "The turn. A new value starts a new turn.",
        "timestamp" => "When it happened, as RFC 3339 says. Left out, it is the record's time.",
        "tool_call_id" => "The call that it is about: up to 4,096 bytes.",
        "tool_name" => "The tool: up to 512 bytes.",
        "tool_input" => "The tool's arguments.",
        "arguments" => "The tool's arguments, as an object or as JSON in a string, in place of `tool_input`.",
        "result" => "What the tool returned: a string or null. Any other value stands for its JSON.",
        "failed" => "Whether the tool failed. Left out, it is told from the result.",
        "agent_id" => "The agent, which is also the reference of its passport.",
        "is_subagent" => "Whether another agent delegated to it.",
        "user_id" => "The end user.",
        "user_role" => "The end user's role.",
        "tenant_id" => "The tenant.",
        "run_id" => "The run.",
        "attended" => "Whether a person watches the run. Presets of the loop controllers may differ in it.",
        "provider" => "A hint which provider's response it is: openai, anthropic or gemini.",
        "response" => "The provider's native body, or the events of its stream in a list.",
        "message" => "A LangChain message, in place of `response`.",
        "error" => "The API's error body, in place of `response`.",
        _ => "",
    }
}

fn described(mut schema: Value, sentence: &str) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.insert("description".to_owned(), json!(sentence));
    }
    schema
}

/// Returns the rules of each type. `is_type` is the condition that an event is of it.
fn rules(is_type: &dyn Fn(&str) -> Value) -> Value {
    let rule = |event_type: EventType, then: Value| json!({"if": is_type(event_type.as_str()), "then": then});
    json!({"allOf": [
        rule(EventType::ToolCall, call(false)),
        rule(EventType::ToolResult, call(true)),
        rule(EventType::ModelResponse, model_response()),
    ]})
}

fn by_name(name: &str) -> Value {
    json!({"properties": {"type": {"const": name}}, "required": ["type"]})
}

/// Returns the rules of a tool's call, or of its result.
fn call(is_result: bool) -> Value {
    let mut properties = json!({
        "tool_call_id": {"type": "string", "maxLength": TOOL_CALL_ID_BYTES_MAX},
        "tool_name": {"type": "string", "maxLength": TOOL_NAME_BYTES_MAX},
    });
    let mut required = vec!["tool_call_id", "tool_name"];
    if is_result {
        required.push("result");
        crate::settings::put(&mut properties, "failed", json!({"type": ["boolean", "null"]}));
    }
    json!({"properties": properties, "required": required, "not": all_given(&["tool_input", "arguments"])})
}

fn model_response() -> Value {
    let bodies = ["response", "message", "error"];
    json!({
        "properties": {
            "provider": {"type": ["string", "null"]},
            "response": {"type": ["object", "array", "null"]},
            "message": {"type": ["object", "null"]},
            "error": {"type": ["object", "string", "null"]},
        },
        "oneOf": bodies.map(|body| all_given(&[body])),
    })
}

/// Returns the condition that these fields are there and not null.
fn all_given(names: &[&str]) -> Value {
    let given: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!({"$ref": "#/definitions/given"}))).collect();
    json!({"properties": given, "required": names})
}

/// Returns the schema of a structured CloudEvent. Its type's last part counts, or the one before it where the last is a version.
fn cloud_event() -> Value {
    let pattern = |names: &str| format!("^([^.]*\\.)*({names})(\\.v[0-9]+)?$");
    let is_type = |name: &str| json!({"properties": {"type": {"type": "string", "pattern": pattern(name)}}, "required": ["type"]});
    let text = |sentence: &str| json!({"type": ["string", "null"], "description": sentence});
    let named = [EventType::ToolCall, EventType::ToolResult, EventType::ModelResponse];
    let data = [call(false), call(true), model_response()];
    // Without data, such an event has none of the fields that it needs.
    let data_rules: Vec<_> = named
        .iter()
        .zip(data)
        .map(|(event_type, data)| json!({"if": is_type(event_type.as_str()), "then": {"properties": {"data": data}, "anyOf": [{"required": ["data"]}, {"required": ["data_base64"]}]}}))
        .collect();
    let data = json!({"type": ["object", "null"], "allOf": [{"if": {"type": "object"}, "then": {"$ref": "#/definitions/fields"}}]});
    json!({
        "properties": {
            "specversion": {"type": "string", "pattern": "^1(\\.[0-9]{1,3})?$"},
            "id": {"type": "string", "minLength": 1, "maxLength": EVENT_ID_BYTES_MAX, "description": sentence("event_id")},
            "type": text("The event's type, behind a prefix of your own: com.acme.agent.tool_call.v1."),
            "subject": text(sentence("thread_id")),
            "time": {"type": ["string", "null"], "format": "date-time", "description": sentence("timestamp")},
            "data": data,
            "data_base64": {"type": ["string", "null"], "contentEncoding": "base64", "description": "The event's fields as JSON in base64, instead of `data`."},
        },
        "required": ["specversion", "id"],
        // Without a type of its own, the envelope's data names it.
        "anyOf": [is_type(&names().join("|")), {
            "properties": {"type": {"type": "null"}, "data": {"type": "object", "properties": {"type": {"enum": names()}}, "required": ["type"]}},
        }],
        "allOf": data_rules,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_described() {
        for name in FIELDS.iter().chain(&["type"]) {
            assert!(sentence(name).ends_with('.'), "{name}");
        }
        assert_eq!(properties().len(), FIELDS.len() + 1);
    }
}
