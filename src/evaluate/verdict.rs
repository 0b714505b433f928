//! Verdicts: what was ruled, and how it is written down.
//!
//! A [`Ruling`] is the part of a verdict that state keeps, so that an event that comes again gets the same bytes again. A
//! [`Verdict`] is a ruling with the event it answers; its field order is the contract's and its serialisation holds no clock.

use serde::{Serialize, Serializer};

use crate::decode::{EventType, Rejection};
use crate::digest::{Digest, Fingerprint};

use super::safety::Termination;

pub use super::reason::{Action, DecidedBy, Evidence, GuardrailReason, Reason};

/// What was ruled on a tool call or result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// All that spoke, the decisive one first; empty is a plain allow.
    pub reasons: Box<[Reason]>,
    /// What it stands on besides.
    pub basis: Basis,
}

/// What a ruling stands on besides its reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Nothing: the loop controllers were not asked.
    NotAsked,
    /// The loop controllers' count.
    Counted(u32),
    /// It is a result's whose call was not allowed to run.
    NotExecuted,
}

impl Ruling {
    /// The ruling on a result whose call was not allowed to run.
    #[must_use]
    pub fn not_executed() -> Self {
        Self { reasons: Box::default(), basis: Basis::NotExecuted }
    }

    /// A ruling for these reasons, with the loop controllers' count if they were asked.
    #[must_use]
    pub fn new(reasons: Vec<Reason>, count: Option<u32>) -> Self {
        Self { reasons: reasons.into(), basis: count.map_or(Basis::NotAsked, Basis::Counted) }
    }

    /// The loop controllers' count; `None` where they were not asked.
    #[must_use]
    pub fn count(&self) -> Option<u32> {
        match self.basis {
            Basis::Counted(count) => Some(count),
            Basis::NotAsked | Basis::NotExecuted => None,
        }
    }

    /// The reason that decides; `None` is a plain allow, whatever was noted on the way.
    #[must_use]
    pub fn decisive(&self) -> Option<&Reason> {
        self.reasons.first().filter(|reason| !matches!(reason, Reason::Allowed(_)))
    }

    /// What happens next.
    #[must_use]
    pub fn action(&self) -> Action {
        self.decisive().map_or(Action::Allow, Reason::action)
    }

    /// Whether a tool may run.
    #[must_use]
    pub fn allows_execution(&self) -> bool {
        matches!(self.action(), Action::Allow | Action::Warn)
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.reasons.iter().map(|reason| size_of::<Reason>() + reason.heap_bytes()).sum()
    }
}

/// The id of the verdict on an event, which also names the event in state: derived from thread and event id alone.
#[must_use]
pub fn verdict_id(thread_id: &str, event_id: &str) -> Fingerprint {
    Digest::of_parts(&[thread_id.as_bytes(), event_id.as_bytes()]).fingerprint()
}

/// A verdict as it is published, in the contract's field order.
#[derive(Debug, Serialize)]
pub struct Verdict<'a> {
    /// See [`verdict_id`].
    pub verdict_id: Fingerprint,
    /// The event it answers.
    pub event_id: &'a str,
    /// Its type; left out where that could not be told.
    #[serde(rename = "type", serialize_with = "event_type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<EventType>,
    /// Its thread; left out where that could not be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<&'a str>,
    /// Its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<&'a str>,
    /// Its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<&'a str>,
    /// Its tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    /// What happens next.
    pub action: Action,
    /// Whether the tool may run.
    pub allows_execution: bool,
    /// Whether the turn should stop.
    pub should_halt: bool,
    /// Of what decided.
    pub code: &'a str,
    /// Of what decided.
    pub message: String,
    /// What decided.
    pub decided_by: DecidedBy,
    /// All that spoke.
    pub reasons: Vec<ReasonView<'a>>,
    /// The loop controllers' count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The loop controllers' signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<SignatureView<'a>>,
    /// The text to give the agent as the result of a call that may not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synthetic_result: Option<String>,
    /// The text to append to the tool's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// How the model's response was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safety: Option<&'a Termination>,
    /// The digest of the effective decision configuration.
    pub policy_version: &'a str,
}

/// A reason as it is published.
#[derive(Debug, Serialize)]
pub struct ReasonView<'a> {
    source: DecidedBy,
    code: &'a str,
    message: String,
    policy_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "prefixed")]
    passport_digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "prefixed")]
    answer_digest: Option<Digest>,
}

/// A signature as it is published.
#[derive(Debug, Clone, Copy, Serialize)]
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

/// A digest as OAP writes it: `sha256:` and 64 hex digits.
fn prefixed<S: Serializer>(digest: &Option<Digest>, serializer: S) -> Result<S::Ok, S::Error> {
    match digest {
        Some(digest) => serializer.collect_str(&format_args!("sha256:{digest}")),
        None => serializer.serialize_none(),
    }
}

fn event_type<S: Serializer>(event_type: &Option<EventType>, serializer: S) -> Result<S::Ok, S::Error> {
    match event_type {
        Some(event_type) => serializer.serialize_str(event_type.as_str()),
        None => serializer.serialize_none(),
    }
}

/// The code of every verdict on an event that could not be read.
pub const INVALID_EVENT: &str = "invalid_event";

/// Writes the verdict on an event that could not be read: closed, and saying what to mend. `event_id` is the told one, or else the
/// record's coordinates.
pub fn write_invalid(rejection: &Rejection, event_id: &str, policy_version: &str, out: &mut Vec<u8>) {
    let told = &rejection.told;
    let message = format!("{}: {rejection}", rejection.code.as_str());
    // Where the type could not be told, it may be a call that waits.
    let may_be_a_call = matches!(told.event_type, Some(EventType::ToolCall) | None);
    let verdict = Verdict {
        verdict_id: verdict_id(told.thread_id.as_deref().unwrap_or_default(), event_id),
        event_id,
        event_type: told.event_type,
        thread_id: told.thread_id.as_deref(),
        turn_id: told.turn_id.as_deref(),
        tool_call_id: told.tool_call_id.as_deref(),
        tool_name: told.tool_name.as_deref(),
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
        policy_version,
    };
    write(&verdict, out);
}

/// Appends a verdict as JSON.
pub(super) fn write(verdict: &Verdict<'_>, out: &mut Vec<u8>) {
    // Writing to memory does not fail, and nothing in a verdict refuses to be serialised.
    let _infallible = serde_json::to_writer(out, verdict);
}
