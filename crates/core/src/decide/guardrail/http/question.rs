//! Writing a question for a policy server: the request in its form on the wire.

use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Dialect;
use crate::decide::guardrail::GuardrailRequest;
use tollgate_json::{DEPTH_MAX, Parser, Value, canonical};
use tollgate_passport::ToolInput;

/// The body of a request in the contract's form. Every field is present, and null where nothing is known.
#[derive(Debug, Serialize)]
struct Body<'a> {
    tool_name: &'a str,
    tool_input: &'a RawValue,
    agent_id: Option<&'a str>,
    thread_id: &'a str,
    is_subagent: bool,
    timestamp: Option<String>,
    tool_call_id: &'a str,
    turn_id: Option<&'a str>,
    user_id: Option<&'a str>,
    user_role: Option<&'a str>,
    tenant_id: Option<&'a str>,
    run_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct OpaBody<'a> {
    input: Body<'a>,
}

/// Writes the question about a request with these arguments.
pub(super) fn write(dialect: Dialect, request: &GuardrailRequest<'_>, tool_input: &RawValue) -> serde_json::Result<Vec<u8>> {
    let attribution = request.attribution;
    let body = Body {
        tool_name: request.tool_name,
        tool_input,
        agent_id: request.agent_id(),
        thread_id: request.thread_id,
        is_subagent: attribution.is_subagent,
        timestamp: request.time_ms.and_then(timestamp),
        tool_call_id: request.tool_call_id,
        turn_id: request.turn_id,
        user_id: attribution.user_id.as_deref(),
        user_role: attribution.user_role.as_deref(),
        tenant_id: attribution.tenant_id.as_deref(),
        run_id: attribution.run_id.as_deref(),
    };
    match dialect {
        Dialect::Tollgate => serde_json::to_vec(&body),
        Dialect::Opa => serde_json::to_vec(&OpaBody { input: body }),
    }
}

/// Returns the arguments as a JSON object, `{}` where there are none. Returns `None` if they are not an object, if only Python can read
/// them, or if two readers could understand them differently.
pub(super) fn arguments(input: &ToolInput<'_>) -> Option<Box<RawValue>> {
    let spell = |value: Value<'_>| {
        if value.has_repeated_keys() {
            return None;
        }
        let mut text = Vec::new();
        canonical::write(value, &mut text);
        RawValue::from_string(String::from_utf8(text).ok()?).ok()
    };
    match input {
        ToolInput::Absent { .. } => RawValue::from_string("{}".to_owned()).ok(),
        ToolInput::Value(value) => Some(*value).filter(Value::is_object).and_then(spell),
        ToolInput::Encoded(text) => {
            let mut parser = Parser::new();
            parser.parse(text.as_bytes(), DEPTH_MAX).ok().filter(Value::is_object).and_then(spell)
        }
    }
}

/// Returns a time in RFC 3339, in UTC.
fn timestamp(time_ms: i64) -> Option<String> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000).ok()?.format(&Rfc3339).ok()
}
