//! Codex CLI: command hooks. Codex reads answers strictly: a member that it does not know fails the hook, and the call runs.

use serde_json::{Value, json};

use crate::body::{Fault, Members, result_text};
use crate::hook::{CallId, Dialect, END, Finished, Hook, Kind, Moment, Occasion};
use crate::nested::Nested;
use crate::ruling::{Ruling, cut};

pub(crate) static CODEX: Hook = Hook {
    name: "codex",
    dialects: &[Dialect {
        event: Some("hook_event_name"),
        events: EVENTS,
        session: "session_id",
        // The calls of a subagent come under the session of its parent, without the subagent's id. If their turns were turns of the gate, each
        // would begin the other's turn anew, and no loop would be seen.
        turn: None,
        turn_of_ids: Some("turn_id"),
        agent: None,
        tool: "tool_name",
        arguments: "tool_input",
        server: None,
        call: CallId::Member("tool_use_id"),
    }],
    answer: |occasion, ruling| ANSWER.answer(occasion, ruling),
    refuse,
};

/// Codex cuts at about 2,500 tokens, which are three bytes or more.
const ANSWER: Nested = Nested { text_max: TEXT_MAX, stops_before_calls: false };
const TEXT_MAX: usize = 7_500;

const EVENTS: &[(&str, Moment)] = &[
    ("PreToolUse", Moment::Call),
    // Codex sends it after failures too. The gate classifies the result.
    ("PostToolUse", Moment::Result(finished)),
    ("UserPromptSubmit", Moment::TurnStart),
    ("Stop SessionEnd", END),
    ("StopFailure SubagentStart SubagentStop PermissionRequest SessionStart PreCompact PostCompact Interrupt", Moment::Nothing),
];

fn finished(body: &Members<'_>) -> Result<Option<Finished>, Fault> {
    Ok(Some(Finished { failed: None, result: body.get("tool_response").map(result_text) }))
}

/// `decision: "block"` is understood before and after calls and before prompts.
fn refuse(occasion: &Occasion, reason: &str) -> Value {
    match occasion.kind {
        Kind::Unknown => json!({"decision": "block", "reason": cut(reason, TEXT_MAX)}),
        _ => ANSWER.answer(occasion, &Ruling::denied(reason)),
    }
}
