//! The answers of Claude Code's hooks, which Codex and VS Code read too, and the denial that every host reads.

use serde_json::{Map, Value, json};

use crate::hook::{Kind, Occasion};
use crate::ruling::{Ruling, cut};

/// How a host of this family is answered.
#[derive(Debug)]
pub(crate) struct Nested {
    /// The longest text, in bytes.
    pub text_max: usize,
    /// Whether `continue: false` is understood before a call. Where it is not, the host takes the answer for broken and runs the call.
    pub stops_before_calls: bool,
}

impl Nested {
    /// Writes the answer. No opinion is an empty object: an explicit allow would skip the host's own prompt.
    pub(crate) fn answer(&self, occasion: &Occasion, ruling: &Ruling) -> Value {
        let text = |text: &str| cut(text, self.text_max);
        let mut answer = Map::new();
        let stop = ruling.stop_reason().filter(|_| match occasion.kind {
            Kind::Call => self.stops_before_calls,
            kind => kind == Kind::Result,
        });
        if let Some(reason) = stop {
            answer.insert("continue".to_owned(), false.into());
            answer.insert("stopReason".to_owned(), text(reason).into());
        }
        match (occasion.kind, &ruling.denial) {
            (Kind::Call, Some(reason)) => {
                let denial =
                    json!({"hookEventName": occasion.event, "permissionDecision": "deny", "permissionDecisionReason": text(reason)});
                answer.insert("hookSpecificOutput".to_owned(), denial);
            }
            (Kind::Result, Some(reason)) if occasion.event != FAILED => {
                answer.insert("decision".to_owned(), "block".into());
                answer.insert("reason".to_owned(), text(reason).into());
            }
            (Kind::Turn, Some(reason)) => {
                answer.insert("systemMessage".to_owned(), text(reason).into());
            }
            _ => {}
        }
        // The end of a failed call knows no decision; the reason is a statement there.
        let note = ruling.note.as_ref().or_else(|| ruling.denial.as_ref().filter(|_| occasion.event == FAILED));
        if let Some(note) = note.filter(|_| matches!(occasion.kind, Kind::Call | Kind::Result))
            && !answer.contains_key("hookSpecificOutput")
        {
            let context = json!({"hookEventName": occasion.event, "additionalContext": text(note)});
            answer.insert("hookSpecificOutput".to_owned(), context);
        }
        Value::Object(answer)
    }
}

const FAILED: &str = "PostToolUseFailure";

/// Writes the denial of a request that cannot be read, in the words of every host at once: a settings file is read by several hosts, so the
/// sender may be another host than the path's.
pub(crate) fn refuse_widely(occasion: &Occasion, reason: &str) -> Value {
    let reason = &cut(reason, 8_000);
    let event = if occasion.event.is_empty() { "PreToolUse" } else { occasion.event };
    let denial = json!({"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason});
    match occasion.kind {
        Kind::Unknown => json!({
            "continue": false, "stopReason": reason, "decision": "block", "reason": reason, "permission": "deny", "user_message": reason,
            "permissionDecision": "deny", "permissionDecisionReason": reason, "hookSpecificOutput": denial,
        }),
        Kind::Call => json!({
            "permission": "deny", "user_message": reason, "permissionDecision": "deny", "permissionDecisionReason": reason,
            "hookSpecificOutput": denial,
        }),
        Kind::Result => json!({
            "decision": "block", "reason": reason, "additional_context": reason, "additionalContext": reason,
            "hookSpecificOutput": {"hookEventName": event, "additionalContext": reason},
        }),
        // To refuse the end of a turn would send the agent on.
        Kind::Turn | Kind::Nothing => json!({"systemMessage": reason}),
    }
}
