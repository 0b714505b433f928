//! VS Code's agent: command hooks, in a dialect close to Claude Code's.

use crate::body::{Fault, Members, result_text};
use crate::hook::{CallId, Dialect, END, Finished, Hook, Moment};
use crate::nested::{Nested, refuse_widely};

pub(crate) static VSCODE: Hook = Hook {
    name: "vscode",
    dialects: &[Dialect {
        event: Some("hookEventName"),
        events: EVENTS,
        session: "sessionId",
        turn: None,
        turn_of_ids: None,
        agent: None,
        tool: "tool_name",
        arguments: "tool_input",
        server: None,
        call: CallId::Member("tool_use_id"),
    }],
    answer: |occasion, ruling| ANSWER.answer(occasion, ruling),
    refuse: refuse_widely,
};

const ANSWER: Nested = Nested { text_max: 10_000, stops_before_calls: true };

const EVENTS: &[(&str, Moment)] = &[
    ("PreToolUse", Moment::Call),
    ("PostToolUse", Moment::Result(finished)),
    ("UserPromptSubmit", Moment::TurnStart),
    ("Stop", END),
    ("SessionStart SubagentStart SubagentStop PreCompact", Moment::Nothing),
];

fn finished(body: &Members<'_>) -> Result<Option<Finished>, Fault> {
    Ok(Some(Finished { failed: None, result: body.get("tool_response").map(result_text) }))
}
