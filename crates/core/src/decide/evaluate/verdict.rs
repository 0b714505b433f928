//! Verdicts as they are published: a ruling together with the event that it answers. Fields are in the order of the contract, and no clock
//! is read.

use crate::event::decode::{EventType, Rejection};
use tollgate_json::ObjectWriter;
use tollgate_json::digest::{Digest, Fingerprint};

use crate::decide::ruling::{Action, DecidedBy, Evidence, Reason};
use crate::decide::safety::Termination;

/// Returns the id of the verdict on an event, which also names the event in state. It is derived from the thread's and the event's id
/// alone.
#[must_use]
pub fn verdict_id(thread_id: &str, event_id: &str) -> Fingerprint {
    Digest::of_parts(&[thread_id.as_bytes(), event_id.as_bytes()]).fingerprint()
}

/// A verdict as it is published, in the contract's field order. Fields that are `None` are left out.
#[derive(Debug)]
pub struct Verdict<'a> {
    /// The verdict's id, as [`verdict_id`] derives it.
    pub verdict_id: Fingerprint,
    /// The id of the event that it answers.
    pub event_id: &'a str,
    /// The event's type; left out where it is not known.
    pub event_type: Option<EventType>,
    /// The event's thread; left out where it is not known.
    pub thread_id: Option<&'a str>,
    /// The event's turn.
    pub turn_id: Option<&'a str>,
    /// The event's tool call.
    pub tool_call_id: Option<&'a str>,
    /// The event's tool.
    pub tool_name: Option<&'a str>,
    /// What happens next.
    pub action: Action,
    /// Whether the tool may run.
    pub allows_execution: bool,
    /// Whether the turn should stop.
    pub should_halt: bool,
    /// The code of the reason that decided, or `allow` or `not_executed`.
    pub code: &'a str,
    /// The sentence of the reason that decided; empty where there is none.
    pub message: String,
    /// The part of the gate that decided.
    pub decided_by: DecidedBy,
    /// The reasons of all parts that had something to say, the decisive one first.
    pub reasons: Vec<ReasonView<'a>>,
    /// The loop controllers' count.
    pub count: Option<u32>,
    /// The loop controllers' signature.
    pub signature: Option<SignatureView<'a>>,
    /// The text to give the agent as the result of a call that may not run.
    pub synthetic_result: Option<String>,
    /// The text to append to the tool's result.
    pub guidance: Option<String>,
    /// How the model's response was cut off, if it was.
    pub safety: Option<&'a Termination>,
    /// Whether the response's calls may be incomplete for another reason than safety.
    pub tool_calls_unreliable: bool,
    /// Whether no reader knows the response's body.
    pub unrecognized_response: bool,
    /// The digest of the effective decision configuration.
    pub policy_version: &'a str,
    /// The event's agent.
    pub agent_id: Option<&'a str>,
    /// The event's tenant.
    pub tenant_id: Option<&'a str>,
    /// The event's own timestamp, as it stands there. The record's is not repeated: a copy of the event would get other bytes.
    pub timestamp: Option<&'a str>,
}

/// A reason as it is published.
#[derive(Debug)]
pub struct ReasonView<'a> {
    source: DecidedBy,
    code: &'a str,
    message: String,
    policy_id: Option<&'a str>,
    passport_digest: Option<Digest>,
    answer_digest: Option<Digest>,
}

/// A signature as it is published.
#[derive(Debug, Clone, Copy)]
pub struct SignatureView<'a> {
    /// The tool.
    pub tool_name: &'a str,
    /// The digest of its arguments.
    pub args_hash: Digest,
}

impl<'a> ReasonView<'a> {
    pub(super) fn new(reason: &'a Reason, tool_name: &str) -> Self {
        let guardrail = reason.guardrail();
        let (passport_digest, answer_digest) = match guardrail.and_then(|guardrail| guardrail.evidence) {
            None => (None, None),
            Some(Evidence::Passport(digest)) => (Some(digest), None),
            Some(Evidence::Answer(digest)) => (None, Some(digest)),
        };
        let policy_id = guardrail.and_then(|guardrail| guardrail.policy_id.as_deref());
        Self { policy_id, passport_digest, answer_digest, ..Self::plain(reason.source(), reason.code(), reason.message(tool_name)) }
    }

    pub(super) fn envelope(code: &'a str, message: String) -> Self {
        Self::plain(DecidedBy::Envelope, code, message)
    }

    pub(super) fn safety(code: &'a str, message: String) -> Self {
        Self::plain(DecidedBy::Safety, code, message)
    }

    fn plain(source: DecidedBy, code: &'a str, message: String) -> Self {
        Self { source, code, message, policy_id: None, passport_digest: None, answer_digest: None }
    }
}

/// The code of every verdict on an event that could not be read.
pub const INVALID_EVENT: &str = "invalid_event";

/// Writes the verdict on an event that could not be read. It is closed, and it says what to mend. `event_id` is the event's own id, or else
/// the record's coordinates.
pub fn write_invalid(rejection: &Rejection, event_id: &str, policy_version: &str, out: &mut Vec<u8>) {
    let event = &rejection.event;
    let message = format!("{}: {rejection}", rejection.code.as_str());
    // Where the type is not known, the event may be a call whose host waits.
    let may_be_a_call = matches!(event.event_type, Some(EventType::ToolCall) | None);
    let verdict = Verdict {
        verdict_id: verdict_id(event.thread_id.as_deref().unwrap_or_default(), event_id),
        event_id,
        event_type: event.event_type,
        thread_id: event.thread_id.as_deref(),
        turn_id: event.turn_id.as_deref(),
        tool_call_id: event.tool_call_id.as_deref(),
        tool_name: event.tool_name.as_deref(),
        action: Action::Block,
        allows_execution: false,
        should_halt: false,
        code: INVALID_EVENT,
        message: message.clone(),
        decided_by: DecidedBy::Envelope,
        reasons: vec![ReasonView::envelope(rejection.code.as_str(), rejection.to_string())],
        count: None,
        signature: None,
        synthetic_result: may_be_a_call
            .then(|| format!("Tool call not executed: the event that asks for it could not be read ({message}).")),
        guidance: None,
        safety: None,
        tool_calls_unreliable: false,
        unrecognized_response: false,
        policy_version,
        agent_id: event.agent_id.as_deref(),
        tenant_id: event.tenant_id.as_deref(),
        timestamp: event.timestamp.as_deref(),
    };
    verdict.write(out);
}

impl Verdict<'_> {
    /// Appends the verdict as JSON. Written by hand, because a derived serialiser takes as long as the decision.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::begin(out);
        object.plain("verdict_id", &[&self.verdict_id.hex()]);
        object.text("event_id", self.event_id);
        if let Some(event_type) = self.event_type {
            object.plain("type", &[event_type.as_str().as_bytes()]);
        }
        for (name, text) in
            [("thread_id", self.thread_id), ("turn_id", self.turn_id), ("tool_call_id", self.tool_call_id), ("tool_name", self.tool_name)]
        {
            text.into_iter().for_each(|text| object.text(name, text));
        }
        object.plain("action", &[self.action.as_str().as_bytes()]);
        object.flag("allows_execution", self.allows_execution);
        object.flag("should_halt", self.should_halt);
        object.text("code", self.code);
        object.text("message", &self.message);
        object.plain("decided_by", &[self.decided_by.as_str().as_bytes()]);
        self.write_reasons(object.member("reasons"));
        if let Some(count) = self.count {
            object.number("count", count);
        }
        if let Some(SignatureView { tool_name, args_hash }) = self.signature {
            let mut signature = ObjectWriter::begin(object.member("signature"));
            signature.text("tool_name", tool_name);
            signature.plain("args_hash", &[&args_hash.hex()]);
            signature.end();
        }
        for (name, text) in [("synthetic_result", &self.synthetic_result), ("guidance", &self.guidance)] {
            text.iter().for_each(|text| object.text(name, text));
        }
        if let Some(safety) = self.safety {
            // Writing to memory does not fail, and every value in it can be serialised.
            let _infallible = serde_json::to_writer(object.member("safety"), safety);
        }
        for (name, flag) in [("tool_calls_unreliable", self.tool_calls_unreliable), ("unrecognized_response", self.unrecognized_response)] {
            if flag {
                object.flag(name, true);
            }
        }
        object.text("policy_version", self.policy_version);
        for (name, text) in [("agent_id", self.agent_id), ("tenant_id", self.tenant_id), ("timestamp", self.timestamp)] {
            text.into_iter().for_each(|text| object.text(name, text));
        }
        object.end();
    }

    fn write_reasons(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, reason) in self.reasons.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            reason.write(out);
        }
        out.push(b']');
    }
}

impl ReasonView<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::begin(out);
        object.plain("source", &[self.source.as_str().as_bytes()]);
        object.text("code", self.code);
        object.text("message", &self.message);
        match self.policy_id {
            Some(policy_id) => object.text("policy_id", policy_id),
            None => object.member("policy_id").extend_from_slice(b"null"),
        }
        // The prefix is how OAP writes digests.
        for (name, digest) in [("passport_digest", self.passport_digest), ("answer_digest", self.answer_digest)] {
            digest.iter().for_each(|digest| object.plain(name, &[b"sha256:", &digest.hex()]));
        }
        object.end();
    }
}
