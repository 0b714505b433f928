//! Evaluation: decides on an event of a thread and writes the verdict. There is no Kafka, no clock, no metrics and no randomness in it.
//!
//! ```text
//! prepare (which turn? what do the providers say, up to the first that has to ask?) ─▶ answer … ─▶ fold (thread) ─▶ verdict
//! ```
//!
//! On a tool call the order of precedence is: (1) its id was suppressed, (2) a control has suspended a subject, (3) a guardrail provider
//! denies, (4) the loop controllers. The first that does not allow the call decides. The loop controllers never observe a call that was
//! stopped before them.

mod emit;
mod schema;
mod tools;
pub mod verdict;
mod verdict_digest;
mod write;

use std::borrow::Cow;

use crate::decide::policy::Policy;
use crate::decide::ruling::{Action, DecidedBy, Reason, Ruling, Suspension};
use crate::decide::safety::Doubt;
use crate::decide::safety::reading::Scan;
use crate::decide::thread::{Answer as Answered, CallRecord, IdText, NewCalls, Suppression, Thread, Turn, TurnMemory};
use crate::event::decode::{Body, Event, ModelBody, Rejection, RejectionCode, ToolCall, ToolResult};
use tollgate_json::digest::{Digest, Fingerprint};
use tollgate_passport::ToolInput;

use crate::decide::guardrail::{self, Answer, ChainOutcome, GuardrailRequest, Progress, ProviderError, Question};
use crate::decide::loops::{Arguments, CallContext, Observation, Signature, arguments_digest};
use crate::decide::safety::ResponseContent;
use crate::decide::signal::EventSignals;
use emit::Emitter;
pub use emit::FAILURES;
pub use schema::schema;
pub use tools::Tools;
pub use verdict_digest::{DistinctVerdicts, VerdictDigest};
use write::{Frame, Subject};

/// What was decided on an event, for the caller to count. The verdict itself is in the caller's buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// What happens next.
    pub action: Action,
    /// What decided.
    pub decided_by: DecidedBy,
    /// The verdict's code.
    pub code: Cow<'static, str>,
    /// The tool of a call or result that was stopped; `None` where nothing is stopped, or no tool is named.
    pub stopped_tool: Option<Box<str>>,
    /// What is in doubt of a response, whatever follows from it; `None` for all other events.
    pub doubt: Option<Doubt>,
    /// How asking the guardrail providers went, by their place in the chain.
    pub provider_calls: Vec<(usize, guardrail::ProviderOutcome)>,
}

impl Decided {
    /// Returns what was decided where no provider was asked and no tool is stopped.
    fn new(action: Action, decided_by: DecidedBy, code: Cow<'static, str>) -> Self {
        Self { action, decided_by, code, stopped_tool: None, doubt: None, provider_calls: Vec::new() }
    }
}

/// An event brought to its thread, with what the guardrail providers have said so far.
#[derive(Debug)]
pub struct Prepared {
    /// The fingerprint that names the event and its verdict.
    event: Fingerprint,
    /// The call that it is about.
    call: Option<CallKey>,
    /// The suspension that was in force. It decides even if it is lifted before the verdict is written, because no provider was asked.
    suspension: Option<Suspension>,
    /// Where the providers stand; `None` if they have no say.
    guardrails: Option<Progress>,
    /// Whether a remote provider was asked, so that a suspension may have come meanwhile.
    has_asked: bool,
    /// Whether nothing was remembered of the thread.
    is_new_thread: bool,
}

impl Prepared {
    /// Returns the question that a remote provider has to answer before this event can be folded.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        match &self.guardrails {
            Some(Progress::Asking(asking)) => Some(asking.question()),
            _ => None,
        }
    }

    /// Continues with the answer to the question, after which there may be another question. `event` is the event that was prepared.
    #[must_use]
    pub fn answered(self, policy: &Policy, event: &Event<'_>, answer: Answer) -> Self {
        match (self.guardrails, &event.body) {
            (Some(Progress::Asking(asking)), Body::ToolCall(call)) => {
                let request = GuardrailRequest::new(event, call, policy.guardrails().passport());
                Self { guardrails: Some(policy.guardrails().resume(&request, asking, answer)), ..self }
            }
            (guardrails, _) => Self { guardrails, ..self },
        }
    }

    /// Answers every question that is left with the same error.
    #[must_use]
    pub fn unanswered(mut self, policy: &Policy, event: &Event<'_>, why: ProviderError) -> Self {
        while self.question().is_some() {
            self = self.answered(policy, event, Err(why));
        }
        self
    }

    fn outcome(self) -> ChainOutcome {
        match self.guardrails {
            Some(Progress::Concluded(outcome)) => outcome,
            _ => ChainOutcome::default(),
        }
    }
}

/// Brings the thread to the event's turn and asks the guardrail providers, up to the first that needs a remote answer. Every event is
/// prepared once, answered as often as it has a question, and then folded. No other event of its thread may be prepared in between.
///
/// `out` is the buffer that the verdict is written to later; until then canonical forms are.
pub fn prepare(policy: &Policy, tools: &mut Tools, thread: &mut Thread, event: &Event<'_>, out: &mut Vec<u8>) -> Prepared {
    let (fingerprint, is_new_thread) = (verdict::verdict_id(&event.thread_id, &event.event_id), thread.is_over());
    thread.enter(event, fingerprint, &policy.store_limits().thread);
    let (call, suspension, guardrails) = match &event.body {
        Body::ToolCall(call) => {
            let key = CallKey::of(&call.tool_call_id, tools.fingerprint(&call.tool_name));
            let args = Arguments::of(&call.input, out);
            let suspension = policy.controls().suspension(event);
            let is_settled = earlier_ruling(thread, &key, args, fingerprint).is_some()
                || suppression_of(&thread.turn, event, &key, call).is_some()
                || suspension.is_some();
            let request = GuardrailRequest::new(event, call, policy.guardrails().passport());
            let guardrails = (!is_settled).then(|| policy.guardrails().begin(&request));
            (Some(CallKey { args: Some(args), ..key }), suspension, guardrails)
        }
        Body::ToolResult(result) => (Some(CallKey::of(&result.tool_call_id, tools.fingerprint(&result.tool_name))), None, None),
        _ => (None, None, None),
    };
    let has_asked = matches!(guardrails, Some(Progress::Asking(_)));
    Prepared { event: fingerprint, call, suspension, guardrails, has_asked, is_new_thread }
}

/// Returns why a call may not run, if it is of a response that was cut off.
fn suppression_of(turn: &Turn, event: &Event<'_>, key: &CallKey, call: &ToolCall<'_>) -> Option<Reason> {
    let memory = turn.memory();
    // Hosts that number calls anew in every response use the id of another call, which may have run, and calls without an id share it.
    let is_same =
        |record: &CallRecord| record.is_open && record.tool == key.tool && key.args.is_none_or(|args| record.args == args.canonical);
    let is_new = call.tool_call_id.is_empty() || !memory.calls.find(key.id).is_some_and(is_same);
    memory.suppression.stops(key.id, &call.tool_name, is_new, turn.is_of_another(event))
}

/// The identity of a call, as state holds it.
#[derive(Debug, Clone, Copy)]
struct CallKey {
    id: Fingerprint,
    tool: Fingerprint,
    /// The digests of its arguments, where they are known before the thread is asked.
    args: Option<Arguments>,
}

impl CallKey {
    fn of(tool_call_id: &str, tool: Fingerprint) -> Self {
        Self { id: Fingerprint::of(tool_call_id), tool, args: None }
    }
}

/// Returns the ruling that the same `tool_call` event got before. Its id alone does not make an event the same: hosts that number calls
/// anew in every response use ids again, and another call must not get the first one's answer. Nor do arguments that mean the same to this
/// gate: a tool may read them otherwise, such as a key that stands twice.
fn earlier_ruling<'t>(thread: &'t Thread, key: &CallKey, args: Arguments, event: Fingerprint) -> Option<&'t Ruling> {
    thread.turn.memory().calls.find(key.id)?.earlier_ruling(event, key.tool, args)
}

/// Decides on a prepared event and appends its verdict to `out`. Returns `None` for turn boundaries, which get no verdict. A question that
/// is left counts as not asked. What there is to count is added to `signals`, if the policy has signals.
///
/// # Errors
/// Returns a [`Rejection`] where a rule of the contract depends on the thread: for a result that leaves out the input of a call that was
/// not seen, and for a verdict that would be too large. The thread has then been brought to the event's turn all the same, and there is
/// nothing to count.
pub fn fold(
    policy: &Policy,
    thread: &mut Thread,
    event: &Event<'_>,
    prepared: Prepared,
    out: &mut Vec<u8>,
    signals: &mut EventSignals,
) -> Result<Option<Decided>, Rejection> {
    let start = out.len();
    let mut prepared = prepared.unanswered(policy, event, ProviderError::NotAsked);
    let later = || policy.controls().suspension(event);
    let suspension = prepared.suspension.take().or_else(|| prepared.has_asked.then(later).flatten());
    let emitter = Emitter::new(policy, event, signals);
    let mut fold = Fold { policy, event, fingerprint: prepared.event, suspension, emitter };
    if prepared.is_new_thread {
        fold.emitter.thread_start();
    }
    let decided = match (&event.body, prepared.call) {
        (Body::ModelResponse(body), _) => fold.response(thread, body, out),
        (Body::ToolCall(call), Some(key)) => fold.call(thread, &key, call, prepared.outcome(), out),
        (Body::ToolResult(result), Some(key)) => fold.result(thread, &key, result, out)?,
        _ => return Ok(None),
    };
    let bytes = out.len() - start;
    if bytes > policy.limits().verdict_bytes_max {
        out.truncate(start);
        let found = format!("what would be a verdict of {bytes} bytes");
        let fix = "send shorter tool names and ids, or fewer calls";
        return Err(Rejection::new(RejectionCode::VerdictTooLarge, "value", found, fix).with_event(write::partial_event(event)));
    }
    Ok(Some(decided))
}

/// Decides on an event at once, for callers that cannot ask remote providers, and fails as [`fold`] does.
pub fn evaluate(policy: &Policy, thread: &mut Thread, event: &Event<'_>, out: &mut Vec<u8>) -> Result<Option<Decided>, Rejection> {
    let prepared = prepare(policy, &mut Tools::default(), thread, event, out);
    fold(policy, thread, event, prepared, out, &mut EventSignals::default())
}

/// Writes a closed verdict: the one on an event whose thread could not be taken in, because the store is full. Returns `None` for turn
/// boundaries, which get no verdict.
pub fn refuse(policy: &Policy, event: &Event<'_>, out: &mut Vec<u8>) -> Option<Decided> {
    let subject = match &event.body {
        Body::TurnStart | Body::TurnEnd | Body::ThreadReset => return None,
        Body::ModelResponse(_) => Subject::RESPONSE,
        Body::ToolCall(call) => Subject::call(call, None),
        Body::ToolResult(result) => Subject::result(result, None),
    };
    let fingerprint = verdict::verdict_id(&event.thread_id, &event.event_id);
    let frame = Frame { policy, event, verdict_id: fingerprint, turn_id: None };
    Some(write::ruling(&frame, &subject, &Ruling::new(vec![Reason::ThreadStoreFull], None), out))
}

/// An event that is being decided, with everything that its verdict needs besides the thread.
struct Fold<'e> {
    policy: &'e Policy,
    event: &'e Event<'e>,
    fingerprint: Fingerprint,
    /// The suspension that is in force, of a call.
    suspension: Option<Suspension>,
    emitter: Emitter<'e>,
}

impl<'e> Fold<'e> {
    /// Returns what the verdict says besides the ruling. `room` holds the turn's id.
    fn frame<'f>(&'f self, turn: &'f Turn, room: &'f mut IdText) -> Frame<'f> {
        let turn_id = turn.id.as_ref().map(|id| id.text(room));
        Frame { policy: self.policy, event: self.event, verdict_id: self.fingerprint, turn_id }
    }

    fn response(&mut self, thread: &mut Thread, body: &ModelBody<'_>, out: &mut Vec<u8>) -> Decided {
        let turn = &mut thread.turn;
        let found = self.policy.safety().inspect(body);
        // An API error is not an answer: the host may still hold calls of a response that was cut off before it.
        let is_error = matches!(body, ModelBody::Error(_));
        // A response that is delivered again, or late, was there before the stop, and answers nothing.
        let is_new = (!is_error || found.termination.is_some()) && turn.note_response(self.fingerprint, found.suppresses_all());
        let is_late = turn.is_late(self.event);
        if is_new && !is_error && !is_late && !found.suppresses_all() {
            turn.memory.iter_mut().for_each(|memory| memory.suppression.change(|suppression| answered(suppression, body)));
        }
        if found.suppresses_all() || !found.suppressed.is_empty() {
            let suppression = &mut turn.memory_mut().suppression;
            found.suppressed.iter().for_each(|call| suppression.add(call.id.as_deref(), call.name.as_deref()));
            if is_new && found.suppresses_all() {
                suppression.cut_off(NewCalls::CutOff, is_late);
            }
        }
        if is_new {
            self.emitter.response(turn, body, found.termination.as_ref());
        }
        write::response(&self.frame(turn, &mut IdText::default()), &found, out)
    }

    fn call(
        &mut self,
        thread: &mut Thread,
        key: &CallKey,
        call: &ToolCall<'_>,
        mut guardrails: ChainOutcome,
        out: &mut Vec<u8>,
    ) -> Decided {
        let provider_calls = std::mem::take(&mut guardrails.calls);
        let args = key.args.unwrap_or_else(|| Arguments::of(&call.input, out));
        let ruling = match earlier_ruling(thread, key, args, self.fingerprint) {
            Some(ruling) => ruling.clone(),
            None => {
                let suppressed = suppression_of(&thread.turn, self.event, key, call);
                let ruling = self.rule_on_call(thread.turn.memory_mut(), key, args, call, suppressed, guardrails);
                self.emitter.call(call, args.canonical, &ruling);
                ruling
            }
        };
        let decided =
            write::ruling(&self.frame(&thread.turn, &mut IdText::default()), &Subject::call(call, Some(args.canonical)), &ruling, out);
        Decided { provider_calls, ..decided }
    }

    fn rule_on_call(
        &self,
        memory: &mut TurnMemory,
        key: &CallKey,
        args: Arguments,
        call: &ToolCall<'_>,
        suppressed: Option<Reason>,
        guardrails: ChainOutcome,
    ) -> Ruling {
        let ruling = if let Some(reason) = suppressed {
            if !call.tool_call_id.is_empty() {
                memory.suppression.note_stopped(key.id, &call.tool_name);
            }
            Ruling::new(vec![reason], None)
        } else if let Some(suspension) = self.suspension.clone() {
            Ruling::new(vec![Reason::SubjectSuspended(Box::new(suspension))], None)
        } else if !guardrails.denial.is_empty() {
            Ruling::new([guardrails.denial, guardrails.notes].concat(), None)
        } else {
            let signature = Signature { tool_name: &call.tool_name, tool: key.tool, args: args.canonical };
            let outcome = self.policy.loops().before_call(&mut memory.loops, &signature, &self.context(key, &call.input));
            Ruling::new([outcome.reasons, guardrails.notes].concat(), Some(outcome.count))
        };
        memory.calls.note_call(key.id, key.tool, args, Answered { event: self.fingerprint, ruling: ruling.clone() });
        ruling
    }

    fn result(&mut self, thread: &mut Thread, key: &CallKey, result: &ToolResult<'_>, out: &mut Vec<u8>) -> Result<Decided, Rejection> {
        let turn = &mut thread.turn;
        let memory = turn.memory_mut();
        let record = memory.calls.find(key.id);
        let seen = record.map(|record| record.args);
        let earlier = record.and_then(|record| record.result.as_ref().filter(|_| !record.is_open)).map(|answer| answer.ruling.clone());
        let was_stopped = record.map_or_else(|| memory.suppression.covers(key.id, &result.tool_name), CallRecord::was_denied);
        let repeated = record.and_then(|record| record.result.as_ref()).filter(|answer| answer.event == self.fingerprint);
        let (args, ruling) = if let Some(answer) = repeated {
            (seen, answer.ruling.clone())
        } else if let Some(ruling) = was_stopped.then(Ruling::not_executed).or(earlier) {
            memory.calls.note_answer(key.id, Answered { event: self.fingerprint, ruling: ruling.clone() });
            (seen, ruling)
        } else {
            let args = result_arguments(result, seen, out).map_err(|rejection| rejection.with_event(write::partial_event(self.event)))?;
            let observation = Observation::new(&result.tool_name, result.failed, result.result.as_ref());
            let ruling = self.observe(memory, key, args, result, &observation);
            self.emitter.result(turn, result, &observation, &ruling);
            (Some(args), ruling)
        };
        Ok(write::ruling(&self.frame(&thread.turn, &mut IdText::default()), &Subject::result(result, args), &ruling, out))
    }

    fn context<'c>(&self, key: &CallKey, input: &'c ToolInput<'c>) -> CallContext<'c> {
        CallContext { id: Some(key.id), input: Some(input), is_attended: self.event.attended == Some(true), only_warns: false }
    }

    /// Observes a result, and returns the ruling.
    fn observe(&self, memory: &mut TurnMemory, key: &CallKey, args: Digest, result: &ToolResult<'_>, seen: &Observation<'_>) -> Ruling {
        let signature = Signature { tool_name: &result.tool_name, tool: key.tool, args };
        let outcome = self.policy.loops().after_call(&mut memory.loops, &signature, &self.context(key, &result.input), seen);
        let ruling = Ruling::new(outcome.reasons, Some(outcome.count));
        memory.calls.note_result(key.id, key.tool, args, Answered { event: self.fingerprint, ruling: ruling.clone() });
        ruling
    }
}

/// Notes in what a thread suppresses that the model has answered, if a body says that its response is over. Counts of tokens may come behind
/// the piece that says the stop, the same calls may come once more as a message without its end, and the next response begins with pieces.
/// A response that failed, or whose word for the end is not known, is an answer if the model has said something in it.
fn answered(suppression: &mut Suppression, body: &ModelBody<'_>) {
    let scan = Scan::of(body);
    let content = scan.is_over.then(|| ResponseContent::of(body));
    if let Some(content) = content.filter(|content| scan.is_complete || !content.is_blank || !content.calls.is_empty()) {
        suppression.model_answered(|| content.calls.iter().filter_map(|call| call.id.as_deref().map(Fingerprint::of)).collect());
    }
}

/// Returns the digest of a result's arguments: of its own, or else of those of the call that was seen. An explicit null counts as `{}`.
fn result_arguments(result: &ToolResult<'_>, seen: Option<Digest>, scratch: &mut Vec<u8>) -> Result<Digest, Rejection> {
    match (&result.input, seen) {
        (ToolInput::Absent { .. }, Some(seen)) => Ok(seen),
        (ToolInput::Absent { null: false }, None) => Err(Rejection::new(
            RejectionCode::ToolInputMissing,
            "tool_input",
            "nothing, and no tool_call with this tool_call_id in this turn",
            "send tool_input (or arguments) with the result, or its tool_call before it",
        )),
        (input, _) => Ok(arguments_digest(input, scratch)),
    }
}
