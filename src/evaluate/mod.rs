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

use crate::decode::{Body, Event, ModelBody, Rejection, RejectionCode, ToolCall, ToolInput, ToolResult};
use crate::digest::{Digest, Fingerprint};
use crate::policy::Policy;
use crate::thread::{Answer as Answered, CallRecord, Thread, Turn};

use guardrail::{Answer, ChainOutcome, ChainPlan, GuardrailRequest};
use loops::{Observation, Signature, arguments_digest, classify};
use verdict::{Action, DecidedBy, Reason, Ruling};
use write::{Frame, Subject};

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
    /// Names the event, and its verdict.
    event: Fingerprint,
    /// Names the call that it is about.
    call: Option<Fingerprint>,
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
    let (call, plan) = match &event.body {
        Body::ToolCall(call) => {
            let id = Fingerprint::of(&call.tool_call_id);
            let request = GuardrailRequest::new(event, call, policy.guardrails().passport());
            let is_settled = is_settled(thread, id, call, fingerprint);
            (Some(id), (!is_settled).then(|| policy.guardrails().plan(&request)))
        }
        Body::ToolResult(result) => (Some(Fingerprint::of(&result.tool_call_id)), None),
        _ => (None, None),
    };
    Prepared { event: fingerprint, call, plan }
}

/// Whether a call's answer depends on no provider: it came before, or its response was cut off.
fn is_settled(thread: &Thread, id: Fingerprint, call: &ToolCall<'_>, event: Fingerprint) -> bool {
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
    let fold = Fold { policy, event, fingerprint: prepared.event };
    let decided = match (&event.body, prepared.call) {
        (Body::ModelResponse(body), _) => fold.response(thread, body, out),
        (Body::ToolCall(call), Some(id)) => {
            let guardrails = prepared.plan.map(|plan| policy.guardrails().fold(plan, answers)).unwrap_or_default();
            fold.call(thread, id, call, guardrails, out)
        }
        (Body::ToolResult(result), Some(id)) => fold.result(thread, id, result, out)?,
        _ => return Ok(None),
    };
    let bytes = out.len() - start;
    if bytes > policy.limits().verdict_bytes_max {
        out.truncate(start);
        let found = format!("what would be a verdict of {bytes} bytes");
        let fix = "send shorter tool names and ids, or fewer calls";
        return Err(Rejection::new(RejectionCode::VerdictTooLarge, "value", found, fix).told(write::told(event)));
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
    let subject = match &event.body {
        Body::TurnStart | Body::TurnEnd => return None,
        Body::ModelResponse(_) => Subject::RESPONSE,
        Body::ToolCall(call) => Subject::call(call, None),
        Body::ToolResult(result) => Subject::result(result, None),
    };
    let fingerprint = verdict::verdict_id(&event.thread_id, &event.event_id);
    let frame = Frame { policy, event, verdict_id: fingerprint, turn_id: None };
    Some(write::ruling(&frame, &subject, &Ruling::new(vec![Reason::ThreadStoreFull], None), out))
}

/// One event being decided.
struct Fold<'e> {
    policy: &'e Policy,
    event: &'e Event<'e>,
    fingerprint: Fingerprint,
}

impl<'e> Fold<'e> {
    fn frame<'f>(&'f self, turn: &'f Turn) -> Frame<'f> {
        Frame { policy: self.policy, event: self.event, verdict_id: self.fingerprint, turn_id: turn.id.as_deref() }
    }

    fn response(&self, thread: &mut Thread, body: &ModelBody<'_>, out: &mut Vec<u8>) -> Decided {
        let turn = &mut thread.turn;
        let found = self.policy.safety().inspect(body);
        let suppressed = found.iter().flat_map(|(_, view)| &view.calls);
        if found.as_ref().is_none_or(|(_, view)| view.calls.is_empty()) {
            turn.suppression.model_answered();
        }
        suppressed.for_each(|call| turn.suppression.add(call.id.as_deref(), call.name.as_deref()));
        write::response(&self.frame(turn), found.map(|(termination, _)| termination), out)
    }

    fn call(&self, thread: &mut Thread, id: Fingerprint, call: &ToolCall<'_>, guardrails: ChainOutcome, out: &mut Vec<u8>) -> Decided {
        let turn = &mut thread.turn;
        let provider_calls = guardrails.calls.clone();
        let answered = turn.calls.find(id).and_then(|record| Some((record.args, record.call.clone()?)));
        let (args, ruling) = match answered {
            Some((args, answer)) if answer.event == self.fingerprint => (args, answer.ruling),
            _ => self.rule_on_call(turn, id, call, guardrails),
        };
        let decided = write::ruling(&self.frame(turn), &Subject::call(call, Some(args)), &ruling, out);
        Decided { provider_calls, ..decided }
    }

    fn rule_on_call(&self, turn: &mut Turn, id: Fingerprint, call: &ToolCall<'_>, guardrails: ChainOutcome) -> (Digest, Ruling) {
        let args = arguments_digest(&call.input);
        let ruling = if turn.suppression.covers(id, &call.tool_name) {
            Ruling::new(vec![Reason::Suppressed], None)
        } else if let Some(denial) = guardrails.denial {
            Ruling::new([vec![denial], guardrails.notes].concat(), None)
        } else {
            let outcome = self.policy.loops().before_call(&mut turn.loops, &Signature::new(&call.tool_name, args));
            Ruling::new([outcome.reasons, guardrails.notes].concat(), Some(outcome.count))
        };
        if let Some(record) = turn.calls.entry(id, args) {
            record.args = args;
            record.is_open = ruling.allows_execution();
            record.call = Some(Answered { event: self.fingerprint, ruling: ruling.clone() });
        }
        (args, ruling)
    }

    fn result(&self, thread: &mut Thread, id: Fingerprint, result: &ToolResult<'_>, out: &mut Vec<u8>) -> Result<Decided, Rejection> {
        let turn = &mut thread.turn;
        let record = turn.calls.find(id);
        let (args, ruling) = if let Some(earlier) = record.and_then(|record| self.earlier_answer(record)) {
            earlier
        } else if record.is_some_and(CallRecord::was_denied) || turn.suppression.covers(id, &result.tool_name) {
            return Ok(write::not_executed(&self.frame(turn), result, out));
        } else {
            let seen = record.map(|record| record.args);
            let args = result_arguments(result, seen).map_err(|rejection| rejection.told(write::told(self.event)))?;
            (args, self.observe(turn, id, args, result))
        };
        Ok(write::ruling(&self.frame(turn), &Subject::result(result, Some(args)), &ruling, out))
    }

    /// What was ruled on the call's result before, if this one changes nothing: it is the same event, or nothing has reopened the call.
    fn earlier_answer(&self, record: &CallRecord) -> Option<(Digest, Ruling)> {
        let answer = record.result.as_ref()?;
        let is_repeat = answer.event == self.fingerprint;
        (is_repeat || (!record.is_open && !record.was_denied())).then(|| (record.args, answer.ruling.clone()))
    }

    fn observe(&self, turn: &mut Turn, id: Fingerprint, args: Digest, result: &ToolResult<'_>) -> Ruling {
        let failed = result.failed.unwrap_or_else(|| classify(&result.tool_name, result.result.as_ref()).is_some());
        let observation = Observation::new(failed, result.result.as_ref());
        let outcome = self.policy.loops().after_call(&mut turn.loops, &Signature::new(&result.tool_name, args), &observation);
        let ruling = Ruling::new(outcome.reasons, Some(outcome.count));
        if let Some(record) = turn.calls.entry(id, args) {
            record.args = args;
            record.is_open = false;
            record.result = Some(Answered { event: self.fingerprint, ruling: ruling.clone() });
        }
        ruling
    }
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
