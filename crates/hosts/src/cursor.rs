//! Cursor: command hooks. With `failClosed` it takes an empty answer for a failure, so this host is told an explicit allow.

use serde_json::{Value, json};

use crate::body::{Fault, Members, result_text};
use crate::hook::{CallId, Dialect, END, Finished, Hook, Kind, Moment, Occasion};
use crate::nested::refuse_widely;
use crate::ruling::{Ruling, cut};

pub(crate) static CURSOR: Hook = Hook {
    name: "cursor",
    dialects: &[Dialect {
        event: Some("hook_event_name"),
        events: EVENTS,
        session: "conversation_id",
        turn: Some("generation_id"),
        turn_of_ids: None,
        agent: None,
        tool: "tool_name",
        arguments: "tool_input",
        server: None,
        call: CallId::Member("tool_use_id"),
    }],
    answer,
    refuse: refuse_widely,
};

const TEXT_MAX: usize = 10_000;
const DOUBLE: Moment = Moment::Double("register preToolUse alone, which comes for every call and has the call's id");

const EVENTS: &[(&str, Moment)] = &[
    ("preToolUse", Moment::Call),
    ("postToolUse", Moment::Result(finished)),
    ("postToolUseFailure", Moment::Result(failed)),
    ("beforeShellExecution", DOUBLE),
    ("beforeMCPExecution", DOUBLE),
    ("beforeReadFile", DOUBLE),
    ("beforeSubmitPrompt", Moment::TurnStart),
    ("stop sessionEnd", END),
    ("sessionStart subagentStart subagentStop afterShellExecution afterMCPExecution afterFileEdit afterAgentResponse", Moment::Nothing),
    ("afterAgentThought afterTabFileEdit preCompact", Moment::Nothing),
];

/// The result is a JSON text, in which the gate finds a failure.
fn finished(body: &Members<'_>) -> Result<Option<Finished>, Fault> {
    Ok(Some(Finished { failed: None, result: body.get("tool_output").map(result_text) }))
}

/// A call that the user interrupted or did not permit has no result.
fn failed(body: &Members<'_>) -> Result<Option<Finished>, Fault> {
    let is_refused = body.optional_text("failure_type")?.as_deref() == Some("permission_denied");
    if is_refused || body.optional_bool("is_interrupt")? == Some(true) {
        return Ok(None);
    }
    Ok(Some(Finished { failed: Some(true), result: Some(result_text(body.required("error_message")?)) }))
}

fn answer(occasion: &Occasion, ruling: &Ruling) -> Value {
    match (occasion.kind, &ruling.denial, &ruling.note) {
        (Kind::Call, Some(reason), _) => {
            let reason = cut(reason, TEXT_MAX);
            json!({"permission": "deny", "user_message": reason, "agent_message": reason})
        }
        (Kind::Call, None, _) => json!({"permission": "allow"}),
        (Kind::Result, Some(text), None) | (Kind::Result, _, Some(text)) => json!({"additional_context": cut(text, TEXT_MAX)}),
        _ if occasion.event == "subagentStart" => json!({"permission": "allow"}),
        _ if occasion.event == "beforeSubmitPrompt" => json!({"continue": true}),
        _ => json!({}),
    }
}
