//! Claude Code: http and command hooks.

use crate::body::{Fault, Members, result_text};
use crate::hook::{CallId, Dialect, END, Finished, Hook, Moment};
use crate::nested::{Nested, refuse_widely};

pub(crate) static CLAUDE_CODE: Hook = Hook {
    name: "claude-code",
    dialects: &[Dialect {
        event: Some("hook_event_name"),
        events: EVENTS,
        session: "session_id",
        turn: Some("prompt_id"),
        turn_of_ids: None,
        agent: Some("agent_id"),
        tool: "tool_name",
        arguments: "tool_input",
        server: None,
        call: CallId::Member("tool_use_id"),
    }],
    answer: |occasion, ruling| ANSWER.answer(occasion, ruling),
    refuse: refuse_widely,
};

/// Longer strings are put into a file, which the model may not read. The limit counts characters.
const ANSWER: Nested = Nested { text_max: 10_000, stops_before_calls: true };

const EVENTS: &[(&str, Moment)] = &[
    ("PreToolUse", Moment::Call),
    ("PostToolUse", Moment::Result(succeeded)),
    ("PostToolUseFailure", Moment::Result(failed)),
    ("UserPromptSubmit", Moment::TurnStart),
    ("SubagentStart", Moment::ChildStart),
    ("Stop SubagentStop SessionEnd", END),
    // Its results came already, each with its own call, and in another shape.
    ("PostToolBatch", Moment::Nothing),
    // The call was asked about already. The host's own prompt goes on.
    ("PermissionRequest", Moment::Nothing),
    ("PermissionDenied SessionStart Setup StopFailure Notification PreCompact PostCompact InstructionsLoaded", Moment::Nothing),
    ("ConfigChange CwdChanged FileChanged WorktreeRemove TeammateIdle TaskCreated TaskCompleted Elicitation", Moment::Nothing),
    ("ElicitationResult UserPromptExpansion MessageDisplay", Moment::Nothing),
];

fn succeeded(body: &Members<'_>) -> Result<Option<Finished>, Fault> {
    Ok(Some(Finished { failed: Some(false), result: body.get("tool_response").map(result_text) }))
}

/// A call that the user aborted did not end, so it has no result.
fn failed(body: &Members<'_>) -> Result<Option<Finished>, Fault> {
    if body.optional_bool("is_interrupt")? == Some(true) {
        return Ok(None);
    }
    Ok(Some(Finished { failed: Some(true), result: Some(result_text(body.required("error")?)) }))
}
