//! Gemini CLI: command hooks.

use serde_json::{Map, Value, json};

use crate::body::{Fault, Members, result_text};
use crate::hook::{CallId, Dialect, END, Finished, Hook, Kind, Moment, Occasion};
use crate::ruling::{Ruling, cut};

pub(crate) static GEMINI_CLI: Hook = Hook {
    name: "gemini-cli",
    dialects: &[Dialect {
        event: Some("hook_event_name"),
        events: EVENTS,
        session: "session_id",
        turn: None,
        turn_of_ids: None,
        agent: None,
        tool: "tool_name",
        arguments: "tool_input",
        server: Some("mcp_context"),
        call: CallId::Time("timestamp"),
    }],
    answer,
    refuse,
};

const TEXT_MAX: usize = 10_000;
/// The tool that runs commands.
const COMMAND: &str = "run_shell_command";
/// The lines behind a command's output: error, code, signal, background processes, process group, and the end of the frame.
const LINES_BEHIND_OUTPUT: usize = 6;

const EVENTS: &[(&str, Moment)] = &[
    ("BeforeTool", Moment::Call),
    ("AfterTool", Moment::Result(finished)),
    ("BeforeAgent", Moment::TurnStart),
    ("AfterAgent SessionEnd", END),
    ("SessionStart BeforeModel AfterModel BeforeToolSelection PreCompress Notification", Moment::Nothing),
];

fn finished(body: &Members<'_>) -> Result<Option<Finished>, Fault> {
    let response = body.object("tool_response")?;
    let content = response.get("llmContent").map(result_text);
    let ends_badly = body.text("tool_name")? == COMMAND && content.as_deref().is_some_and(ends_with_a_code);
    let failed = (ends_badly || response.get("error").is_some()).then_some(true);
    // What the model reads; a failed call may have the error alone.
    let result = content.or_else(|| response.get("error").map(result_text));
    Ok(Some(Finished { failed, result }))
}

/// Returns whether the text of a command has a line for its exit code, which stands there only if the code is not zero, among the lines behind
/// the output. Gemini CLI does not call that an error.
fn ends_with_a_code(text: &str) -> bool {
    text.lines().rev().take(LINES_BEHIND_OUTPUT).any(|line| line.strip_prefix("Exit Code: ").is_some_and(|code| code != "0"))
}

fn answer(occasion: &Occasion, ruling: &Ruling) -> Value {
    let text = |text: &str| Value::from(cut(text, TEXT_MAX));
    let mut answer = Map::new();
    match (occasion.kind, &ruling.denial) {
        (Kind::Call | Kind::Result | Kind::Unknown, Some(reason)) => {
            answer.insert("decision".to_owned(), "deny".into());
            answer.insert("reason".to_owned(), text(reason));
        }
        (Kind::Turn, Some(reason)) => {
            answer.insert("systemMessage".to_owned(), text(reason));
        }
        _ => {}
    }
    if let Some(reason) = ruling.stop_reason() {
        answer.insert("continue".to_owned(), false.into());
        answer.insert("stopReason".to_owned(), text(reason));
    }
    // Before a call there is no place for a statement to the model.
    if let Some(note) = ruling.note.as_ref().filter(|_| occasion.kind == Kind::Result) {
        let context = json!({"hookEventName": occasion.event, "additionalContext": text(note)});
        answer.insert("hookSpecificOutput".to_owned(), context);
    }
    Value::Object(answer)
}

fn refuse(occasion: &Occasion, reason: &str) -> Value {
    answer(occasion, &Ruling { halts: occasion.kind == Kind::Unknown, ..Ruling::denied(reason) })
}
