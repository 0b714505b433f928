//! Thread and event → verdict. No Kafka, no clock, no metrics, no randomness.
//!
//! ```text
//! enter (which turn?) ─▶ plan (what has to be asked?) ─▶ fold (answers, thread) ─▶ verdict
//! ```
//!
//! Precedence on a tool call: (1) its id was suppressed, (2) a guardrail provider denies, (3) the loop controllers. The first that
//! does not allow decides, and the loop controllers never observe a call that was stopped before them.

pub mod guardrail;
pub mod loops;
pub mod safety;
pub mod verdict;
mod write;

use std::borrow::Cow;

use crate::decode::{Body, Event, EventType, ModelBody, Rejection, RejectionCode, ToolCall, ToolInput, ToolResult};
use crate::digest::{Digest, Fingerprint};
use crate::policy::Policy;
use crate::thread::{Answer as Answered, Thread};

use guardrail::{Answer, ChainOutcome, ChainPlan, GuardrailRequest};
use loops::{Observation, Signature, arguments_digest, classify};
use verdict::{Action, DecidedBy, Reason, Ruling};

pub use guardrail::ChainPlan as Plan;

/// What was decided, for whoever counts it. The verdict itself has been written to the caller's buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// What happens next.
    pub action: Action,
    /// What decided.
    pub decided_by: DecidedBy,
    /// The verdict's code.
    pub code: Cow<'static, str>,
    /// How asking the guardrail providers went.
    pub provider_calls: Vec<(&'static str, guardrail::ProviderOutcome)>,
}

/// An event brought to its thread: the turn is the right one, and the plan says what has to be asked.
#[derive(Debug)]
pub struct Prepared {
    fingerprint: Fingerprint,
    plan: Option<ChainPlan>,
}

impl Prepared {
    /// The questions for remote providers, in order.
    pub fn questions(&self) -> impl Iterator<Item = &[u8]> {
        self.plan.iter().flat_map(ChainPlan::questions)
    }
}

/// Brings the thread to the event's turn and plans what has to be asked. Every event is prepared once and then folded.
pub fn prepare(policy: &Policy, thread: &mut Thread, event: &Event<'_>) -> Prepared {
    let fingerprint = verdict::verdict_id(&event.thread_id, &event.event_id);
    thread.enter(event, fingerprint, &policy.store_limits().thread);
    let plan = match &event.body {
        Body::ToolCall(call) if !is_settled(thread, call, fingerprint) => {
            let passport = policy.guardrails().passport();
            Some(policy.guardrails().plan(&GuardrailRequest::new(event, call, passport)))
        }
        _ => None,
    };
    Prepared { fingerprint, plan }
}

/// Whether a call's answer depends on no provider: it came before, or its response was cut off.
fn is_settled(thread: &Thread, call: &ToolCall<'_>, event: Fingerprint) -> bool {
    let id = Fingerprint::of(&call.tool_call_id);
    let record = thread.turn.calls.find(id);
    let is_repeat = record.and_then(|record| record.call.as_ref()).is_some_and(|answer| answer.event == event);
    is_repeat || thread.turn.suppression.covers(id, &call.tool_name)
}

/// Decides on a prepared event and appends its verdict to `out`; `None` for turn boundaries, which get none.
///
/// # Errors
/// A [`Rejection`] where a rule of the contract depends on the thread: a result that leaves out the input of a call that was not
/// seen, and a verdict that would be too large. The thread has then been brought to the event's turn all the same.
pub fn fold(
    policy: &Policy,
    thread: &mut Thread,
    event: &Event<'_>,
    prepared: Prepared,
    answers: impl IntoIterator<Item = Answer>,
    out: &mut Vec<u8>,
) -> Result<Option<Decided>, Rejection> {
    let start = out.len();
    let decided = match &event.body {
        Body::TurnStart | Body::TurnEnd => return Ok(None),
        Body::ModelResponse(body) => fold_response(policy, thread, event, body, out),
        Body::ToolCall(call) => {
            let guardrails = prepared.plan.map(|plan| policy.guardrails().fold(plan, answers)).unwrap_or_default();
            fold_call(policy, thread, event, call, (prepared.fingerprint, guardrails), out)
        }
        Body::ToolResult(result) => fold_result(policy, thread, event, result, prepared.fingerprint, out)?,
    };
    let bytes = out.len() - start;
    if bytes > policy.limits().verdict_bytes_max {
        out.truncate(start);
        let found = format!("what would be a verdict of {bytes} bytes");
        let rejection = Rejection::new(RejectionCode::VerdictTooLarge, "value", found, "send shorter tool names and ids, or fewer calls");
        return Err(rejection.told(write::told(event)));
    }
    Ok(Some(decided))
}

/// Decides where nothing remote has to be asked: a question that is planned all the same counts as unanswered.
///
/// # Errors
/// See [`fold`].
pub fn evaluate(policy: &Policy, thread: &mut Thread, event: &Event<'_>, out: &mut Vec<u8>) -> Result<Option<Decided>, Rejection> {
    let prepared = prepare(policy, thread, event);
    fold(policy, thread, event, prepared, std::iter::empty(), out)
}

/// Writes the verdict on an event whose thread could not be taken in: closed. `None` for turn boundaries.
pub fn refuse(policy: &Policy, event: &Event<'_>, out: &mut Vec<u8>) -> Option<Decided> {
    let ruling = Ruling::new(vec![Reason::ThreadStoreFull], None);
    match &event.body {
        Body::TurnStart | Body::TurnEnd => None,
        Body::ModelResponse(_) => Some(write::ruling(policy, event, None, &write::Subject::RESPONSE, &ruling, out)),
        Body::ToolCall(call) => Some(write::ruling(policy, event, None, &write::Subject::call(call, None), &ruling, out)),
        Body::ToolResult(result) => Some(write::ruling(policy, event, None, &write::Subject::result(result, None), &ruling, out)),
    }
}

fn fold_response(policy: &Policy, thread: &mut Thread, event: &Event<'_>, body: &ModelBody<'_>, out: &mut Vec<u8>) -> Decided {
    let found = policy.safety().inspect(body);
    let suppressed = found.iter().flat_map(|(_, view)| &view.calls);
    if found.as_ref().is_none_or(|(_, view)| view.calls.is_empty()) {
        thread.turn.suppression.model_answered();
    }
    suppressed.for_each(|call| thread.turn.suppression.add(call.id.as_deref(), call.name.as_deref()));
    write::response(policy, event, thread.turn.id.as_deref(), found.map(|(termination, _)| termination), out)
}

fn fold_call(
    policy: &Policy,
    thread: &mut Thread,
    event: &Event<'_>,
    call: &ToolCall<'_>,
    (fingerprint, guardrails): (Fingerprint, ChainOutcome),
    out: &mut Vec<u8>,
) -> Decided {
    let turn = &mut thread.turn;
    let id = Fingerprint::of(&call.tool_call_id);
    let answered = turn.calls.find(id).and_then(|record| Some((record.args, record.call.clone()?)));
    let (args, ruling) = match answered {
        Some((args, answer)) if answer.event == fingerprint => (args, answer.ruling),
        _ => {
            let args = arguments_digest(&call.input);
            let ruling = if turn.suppression.covers(id, &call.tool_name) {
                Ruling::new(vec![Reason::Suppressed], None)
            } else if let Some(denial) = guardrails.denial {
                Ruling::new([vec![denial], guardrails.notes].concat(), None)
            } else {
                let outcome = policy.loops().before_call(&mut turn.loops, &Signature::new(&call.tool_name, args));
                Ruling::new([outcome.reasons, guardrails.notes].concat(), Some(outcome.count))
            };
            if let Some(record) = turn.calls.entry(id, args) {
                record.args = args;
                record.is_open = ruling.allows_execution();
                record.call = Some(Answered { event: fingerprint, ruling: ruling.clone() });
            }
            (args, ruling)
        }
    };
    let subject = write::Subject::call(call, Some(args));
    let decided = write::ruling(policy, event, turn.id.as_deref(), &subject, &ruling, out);
    Decided { provider_calls: guardrails.calls, ..decided }
}

fn fold_result(
    policy: &Policy,
    thread: &mut Thread,
    event: &Event<'_>,
    result: &ToolResult<'_>,
    fingerprint: Fingerprint,
    out: &mut Vec<u8>,
) -> Result<Decided, Rejection> {
    let turn = &mut thread.turn;
    let id = Fingerprint::of(&result.tool_call_id);
    let record = turn.calls.find(id);
    let is_repeat = |answer: &&Answered| answer.event == fingerprint;
    let earlier = record.and_then(|record| {
        let answer = record.result.as_ref()?;
        (is_repeat(&answer) || (!record.is_open && !record.was_denied())).then(|| (record.args, answer.ruling.clone()))
    });
    if let Some((args, ruling)) = earlier {
        let subject = write::Subject::result(result, Some(args));
        return Ok(write::ruling(policy, event, turn.id.as_deref(), &subject, &ruling, out));
    }
    let was_stopped = record.is_some_and(|record| record.was_denied()) || turn.suppression.covers(id, &result.tool_name);
    if was_stopped {
        return Ok(write::not_executed(policy, event, turn.id.as_deref(), result, out));
    }
    let args = result_arguments(result, record.map(|record| record.args)).map_err(|rejection| rejection.told(write::told(event)))?;
    let failed = result.failed.unwrap_or_else(|| classify(&result.tool_name, result.result.as_ref()).is_some());
    let observation = Observation::new(failed, result.result.as_ref());
    let outcome = policy.loops().after_call(&mut turn.loops, &Signature::new(&result.tool_name, args), &observation);
    let ruling = Ruling::new(outcome.reasons, Some(outcome.count));
    if let Some(record) = turn.calls.entry(id, args) {
        record.args = args;
        record.is_open = false;
        record.result = Some(Answered { event: fingerprint, ruling: ruling.clone() });
    }
    let subject = write::Subject::result(result, Some(args));
    Ok(write::ruling(policy, event, turn.id.as_deref(), &subject, &ruling, out))
}

/// The digest of a result's arguments: its own, or those of the call that was seen. An explicit null counts as `{}`.
fn result_arguments(result: &ToolResult<'_>, seen: Option<Digest>) -> Result<Digest, Rejection> {
    match (&result.input, seen) {
        (ToolInput::Absent { .. }, Some(seen)) => Ok(seen),
        (ToolInput::Absent { null: false }, None) => Err(Rejection::new(
            RejectionCode::ToolInputMissing,
            "tool_input",
            "nothing, and no tool_call with this tool_call_id in this turn",
            "send tool_input (or arguments) with the result, or its tool_call before it",
        )),
        (input, _) => Ok(arguments_digest(input)),
    }
}

/// The type of an event that gets a verdict.
#[must_use]
pub fn gets_a_verdict(event_type: EventType) -> bool {
    !matches!(event_type, EventType::TurnStart | EventType::TurnEnd)
}
