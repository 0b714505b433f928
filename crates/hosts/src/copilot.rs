//! GitHub Copilot's CLI and cloud agent: http and command hooks, in two dialects. The spelling of an event in the settings picks the dialect.

use serde_json::{Value, json};
use tollgate_json::Shape;

use crate::body::{Fault, Members, result_text};
use crate::hook::{CallId, Dialect, END, Finished, Hook, Kind, Moment, Occasion};
use crate::nested::refuse_widely;
use crate::ruling::{Ruling, cut};

pub(crate) static COPILOT: Hook = Hook {
    name: "copilot",
    dialects: &[
        Dialect {
            event: Some("hook_event_name"),
            events: PASCAL_EVENTS,
            session: "session_id",
            turn: None,
            turn_of_ids: None,
            agent: None,
            tool: "tool_name",
            arguments: "tool_input",
            server: None,
            call: CallId::Time("timestamp"),
        },
        // These bodies do not name their event: the members of a call and of a question for permission are the same.
        Dialect {
            event: None,
            events: CAMEL_EVENTS,
            session: "sessionId",
            turn: None,
            turn_of_ids: None,
            agent: None,
            tool: "toolName",
            arguments: "toolArgs",
            server: None,
            call: CallId::Time("timestamp"),
        },
    ],
    answer,
    refuse: refuse_widely,
};

/// Copilot takes 10 KB.
const TEXT_MAX: usize = 10_000;

const PASCAL_EVENTS: &[(&str, Moment)] = &[
    ("PreToolUse", Moment::Call),
    ("PostToolUse", Moment::Result(|body| finished(body, "tool_result", "result_type", "text_result_for_llm"))),
    ("PostToolUseFailure", Moment::Result(failed)),
    ("UserPromptSubmit", Moment::TurnStart),
    ("Stop SessionEnd", END),
    ("SessionStart SubagentStart SubagentStop PermissionRequest ErrorOccurred PreCompact Notification", Moment::Nothing),
];

const CAMEL_EVENTS: &[(&str, Moment)] = &[
    ("preToolUse", Moment::Call),
    ("postToolUse", Moment::Result(|body| finished(body, "toolResult", "resultType", "textResultForLlm"))),
    ("postToolUseFailure", Moment::Result(failed)),
    ("userPromptSubmitted", Moment::TurnStart),
    ("agentStop sessionEnd", END),
    ("sessionStart subagentStart subagentStop permissionRequest errorOccurred preCompact notification", Moment::Nothing),
    ("userPromptTransformed", Moment::Nothing),
];

/// A call that was rejected or denied did not run, so it has no result. A command that ends with another code than zero is a success to Copilot.
fn finished(body: &Members<'_>, result: &str, kind: &str, text: &str) -> Result<Option<Finished>, Fault> {
    let result = body.object(result)?;
    let text = result.get(text).map(result_text);
    let ended = text.as_deref().and_then(end_of_command);
    let failed = match result.text(kind)?.as_str() {
        "success" => Some(ended.is_some_and(|(_, code)| code != "0")),
        "failure" => Some(true),
        "rejected" | "denied" => return Ok(None),
        // A kind that is new: the gate classifies the text.
        _ => None,
    };
    let without_shell = ended.map(|(output, code)| format!("{output}<exit code {code}>"));
    Ok(Some(Finished { failed, result: without_shell.or(text) }))
}

/// Returns the output of a command and its exit code, where the text ends as those of commands do. The number of the shell in that line is
/// another for every call, so that no two results would be equal.
fn end_of_command(text: &str) -> Option<(&str, &str)> {
    let (output, line) = text.rsplit_once("<shellId: ")?;
    let (shell, code) = line.trim_end().strip_suffix('>')?.split_once(" completed with exit code ")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    (!shell.contains(['<', '\n']) && is_number(code)).then_some((output, code))
}

fn failed(body: &Members<'_>) -> Result<Option<Finished>, Fault> {
    let error = body.required("error")?;
    if error.shape() != Shape::String {
        return Err(Fault::new("error", format!("found {}", error.shape()), "send the error of the tool as a string"));
    }
    Ok(Some(Finished { failed: Some(true), result: Some(result_text(error)) }))
}

fn answer(occasion: &Occasion, ruling: &Ruling) -> Value {
    match (occasion.kind, &ruling.denial, &ruling.note) {
        (Kind::Call, Some(reason), _) => {
            json!({"permissionDecision": "deny", "permissionDecisionReason": cut(reason, TEXT_MAX)})
        }
        (Kind::Result, Some(text), None) | (Kind::Result, _, Some(text)) => json!({"additionalContext": cut(text, TEXT_MAX)}),
        _ => json!({}),
    }
}
