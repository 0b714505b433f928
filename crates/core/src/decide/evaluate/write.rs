//! Writing verdicts: from a ruling and its event to the verdict's bytes.

use std::borrow::Cow;

use super::Decided;
use super::verdict::{ReasonView, SignatureView, Verdict};
use crate::decide::guardrail::EVALUATOR_ERROR;
use crate::decide::policy::Policy;
use crate::decide::ruling::{Action, Basis, DecidedBy, LoopCode, Reason, Ruling};
use crate::decide::safety::{Doubt, Inspection, OnDoubt, SAFETY_TERMINATED};
use crate::event::decode::{ATTRIBUTION_BYTES_MAX, Body, Event, PartialEvent, ToolCall, ToolResult};
use tollgate_json::digest::{Digest, Fingerprint};

const ALLOW: &str = "allow";
const NOT_EXECUTED: &str = "not_executed";

/// The event that a verdict answers, with what the verdict says besides the ruling.
pub(super) struct Frame<'e> {
    pub(super) policy: &'e Policy,
    pub(super) event: &'e Event<'e>,
    pub(super) verdict_id: Fingerprint,
    /// The id of the running turn, for events that do not name their turn.
    pub(super) turn_id: Option<&'e str>,
}

/// The call or result that a ruling is about.
pub(super) struct Subject<'e> {
    tool_call_id: Option<&'e str>,
    tool_name: Option<&'e str>,
    args: Option<Digest>,
    is_call: bool,
}

impl<'e> Subject<'e> {
    pub(super) const RESPONSE: Subject<'static> = Subject { tool_call_id: None, tool_name: None, args: None, is_call: false };

    pub(super) fn call(call: &'e ToolCall<'e>, args: Option<Digest>) -> Self {
        Self { tool_call_id: Some(&call.tool_call_id), tool_name: Some(&call.tool_name), args, is_call: true }
    }

    pub(super) fn result(result: &'e ToolResult<'e>, args: Option<Digest>) -> Self {
        Self { tool_call_id: Some(&result.tool_call_id), tool_name: Some(&result.tool_name), args, is_call: false }
    }
}

/// Writes the verdict of a ruling.
pub(super) fn ruling(frame: &Frame<'_>, subject: &Subject<'_>, ruling: &Ruling, out: &mut Vec<u8>) -> Decided {
    if ruling.basis == Basis::NotExecuted {
        return not_executed(frame, subject, out);
    }
    let tool_name = subject.tool_name.unwrap_or_default();
    let decisive = ruling.decisive();
    let code = decisive.map_or(ALLOW, Reason::code);
    let decided_by = decisive.map_or(DecidedBy::None, Reason::source);
    let signature = ruling.count().and(subject.args).map(|args_hash| SignatureView { tool_name, args_hash });
    let verdict = Verdict {
        action: ruling.action(),
        allows_execution: ruling.allows_execution(),
        should_halt: matches!(decisive, Some(Reason::Loop { code, .. }) if code.intervention().halts()),
        code,
        message: decisive.map_or_else(String::new, |reason| reason.message(tool_name)),
        decided_by,
        reasons: ruling.reasons.iter().map(|reason| ReasonView::new(reason, tool_name)).collect(),
        count: ruling.count(),
        signature,
        synthetic_result: decisive
            .filter(|_| subject.is_call && !ruling.allows_execution())
            .map(|reason| synthetic_result(reason, tool_name, signature)),
        guidance: decisive.filter(|_| !subject.is_call).and_then(|reason| guidance(reason, tool_name)),
        ..blank(frame, subject)
    };
    verdict.write(out);
    // Calls that may run are by far the most, and cost nothing here.
    let stopped_tool = subject.tool_name.filter(|_| !verdict.allows_execution).map(Into::into);
    Decided { stopped_tool, ..Decided::new(verdict.action, decided_by, label(decisive)) }
}

/// Writes the verdict on a result whose call was not allowed to run.
fn not_executed(frame: &Frame<'_>, subject: &Subject<'_>, out: &mut Vec<u8>) -> Decided {
    let message = "The call was not allowed to run, so its result changes nothing.".to_owned();
    Verdict { code: NOT_EXECUTED, message, ..blank(frame, subject) }.write(out);
    Decided::new(Action::Allow, DecidedBy::None, Cow::Borrowed(NOT_EXECUTED))
}

/// Writes the verdict on a model's response: of a stop, and of what is in doubt beside it, the stricter action counts.
pub(super) fn response(frame: &Frame<'_>, found: &Inspection<'_>, out: &mut Vec<u8>) -> Decided {
    let termination = found.termination.as_ref();
    let stop = termination.map(|termination| {
        let action = if termination.suppressed_tool_call_count > 0 { Action::Suppress } else { Action::Allow };
        (SAFETY_TERMINATED, format!("{}.", termination.summary()), action)
    });
    let doubt = found.doubt.and_then(|doubt| Some((doubt.code(), doubt.message().to_owned(), action_of(doubt)?)));
    let action = stop.iter().chain(&doubt).map(|(.., action)| *action).max().unwrap_or(Action::Allow);
    let decisive = stop.as_ref().or(doubt.as_ref());
    let (code, message) = decisive.map_or_else(|| (ALLOW, String::new()), |(code, message, _)| (*code, message.clone()));
    let decided_by = decisive.map_or(DecidedBy::None, |_| DecidedBy::Safety);
    let verdict = Verdict {
        action,
        allows_execution: action != Action::Suppress,
        code,
        message,
        decided_by,
        reasons: stop.into_iter().chain(doubt).map(|(code, message, _)| ReasonView::safety(code, message)).collect(),
        safety: termination,
        unrecognized_response: matches!(found.doubt, Some(Doubt::Unrecognized(_))),
        tool_calls_unreliable: matches!(found.doubt, Some(Doubt::Unreliable(_))),
        ..blank(frame, &Subject::RESPONSE)
    };
    verdict.write(out);
    Decided { doubt: found.doubt, ..Decided::new(action, decided_by, Cow::Borrowed(code)) }
}

/// Returns the action that follows from a doubt; `None` where the response is allowed.
fn action_of(doubt: Doubt) -> Option<Action> {
    match doubt.action() {
        OnDoubt::Allow => None,
        OnDoubt::Warn => Some(Action::Warn),
        OnDoubt::Suppress => Some(Action::Suppress),
    }
}

/// Returns what is known of an event that was read and then rejected.
pub(super) fn partial_event(event: &Event<'_>) -> PartialEvent {
    let (tool_call_id, tool_name) = match &event.body {
        Body::ToolCall(call) => (Some(&call.tool_call_id), Some(&call.tool_name)),
        Body::ToolResult(result) => (Some(&result.tool_call_id), Some(&result.tool_name)),
        _ => (None, None),
    };
    PartialEvent {
        thread_id: Some(event.thread_id.to_string()),
        event_id: Some(event.event_id.to_string()),
        event_type: Some(event.event_type()),
        turn_id: event.turn_id.as_ref().map(ToString::to_string),
        tool_call_id: tool_call_id.map(ToString::to_string),
        tool_name: tool_name.map(ToString::to_string),
        agent_id: named(event.attribution.agent_id.as_ref()).map(str::to_owned),
        tenant_id: named(event.attribution.tenant_id.as_ref()).map(str::to_owned),
        timestamp: event.timestamp.as_ref().map(ToString::to_string),
    }
}

/// Returns a verdict that plainly allows, for callers to fill in the rest.
fn blank<'a>(frame: &Frame<'a>, subject: &Subject<'a>) -> Verdict<'a> {
    let event = frame.event;
    Verdict {
        verdict_id: frame.verdict_id,
        event_id: &event.event_id,
        event_type: Some(event.event_type()),
        thread_id: Some(&event.thread_id),
        turn_id: event.turn_id.as_deref().or(frame.turn_id),
        tool_call_id: subject.tool_call_id,
        tool_name: subject.tool_name,
        action: Action::Allow,
        allows_execution: true,
        should_halt: false,
        code: ALLOW,
        message: String::new(),
        decided_by: DecidedBy::None,
        reasons: Vec::new(),
        count: None,
        signature: None,
        synthetic_result: None,
        guidance: None,
        safety: None,
        tool_calls_unreliable: false,
        unrecognized_response: false,
        policy_version: frame.policy.version(),
        agent_id: named(event.attribution.agent_id.as_ref()),
        tenant_id: named(event.attribution.tenant_id.as_ref()),
        timestamp: event.timestamp.as_deref(),
    }
}

/// Returns an id of the attribution, if a verdict repeats it. Their length is not limited, and a verdict's is.
fn named<'a>(id: Option<&'a Cow<'_, str>>) -> Option<&'a str> {
    id.map(AsRef::as_ref).filter(|id: &&str| id.len() <= ATTRIBUTION_BYTES_MAX)
}

/// Returns the text to give the agent as the result of a call that may not run.
fn synthetic_result(reason: &Reason, tool_name: &str, signature: Option<SignatureView<'_>>) -> String {
    match (reason, signature) {
        (Reason::Loop { code, count }, Some(signature)) => loop_result(*code, *count, tool_name, signature.args_hash),
        // Nobody has judged the call: an agent that is sent elsewhere would look for a way round the policy.
        (Reason::Denied(denied), _) if denied.code == EVALUATOR_ERROR => format!(
            "Tool call not executed ({EVALUATOR_ERROR}): the policy service that decides on tool '{tool_name}' is unavailable. The call itself was not judged. Do not try another way: retry later, or tell the user."
        ),
        (Reason::Denied(denied), _) => format!(
            "Guardrail denied: tool '{tool_name}' was blocked ({}). Reason: {}. Choose an alternative approach.",
            denied.code, denied.message
        ),
        // Another tool would not run either.
        (Reason::SubjectSuspended(_), _) => format!(
            "Tool call not executed ({}): {}. Do not retry: no tool will run until the suspension is lifted.",
            reason.code(),
            reason.message(tool_name).trim_end_matches('.')
        ),
        _ => format!("Tool call not executed ({}): {} Choose an alternative approach.", reason.code(), reason.message(tool_name)),
    }
}

/// Returns the JSON form of a loop block, as `json.dumps(…, ensure_ascii=False)` prints it in the Hermes controller.
fn loop_result(code: LoopCode, count: u32, tool_name: &str, args: Digest) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let message = quoted(&code.message(tool_name, count));
    let action = quoted(Reason::Loop { code, count }.action().as_str());
    let (code, tool_name) = (quoted(code.as_str()), quoted(tool_name));
    format!(
        "{{\"error\": {message}, \"guardrail\": {{\"action\": {action}, \"code\": {code}, \"message\": {message}, \
         \"tool_name\": {tool_name}, \"count\": {count}, \"signature\": {{\"tool_name\": {tool_name}, \"args_hash\": \"{args}\"}}}}}}"
    )
}

fn guidance(reason: &Reason, tool_name: &str) -> Option<String> {
    match reason {
        Reason::Loop { code, count } => code.guidance(tool_name, *count),
        _ => None,
    }
}

/// Returns the verdict's code for counting. Codes of loop controllers are not allocated.
fn label(reason: Option<&Reason>) -> Cow<'static, str> {
    match reason {
        None => Cow::Borrowed(ALLOW),
        Some(Reason::Loop { code, .. }) => Cow::Borrowed(code.as_str()),
        Some(reason) => Cow::Owned(reason.code().to_owned()),
    }
}
