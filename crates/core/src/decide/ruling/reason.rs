//! Reasons: which part of the gate had something to say, what it was, and what follows if it decides. A suspended subject is one.

use std::borrow::Cow;

use serde::Serialize;

use super::{Intervention, LoopCode};
use crate::codes::codes;
use tollgate_json::digest::Digest;

codes! {
    /// The action of a verdict: what happens next.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    Action {
        /// The agent goes on.
        Allow = "allow",
        /// The agent goes on and gets a warning.
        Warn = "warn",
        /// The call may not run.
        Block = "block",
        /// The turn should stop.
        Halt = "halt",
        /// The response's tool calls may not run.
        Suppress = "suppress",
    }
}

codes! {
    /// The part of the gate that decided.
    #[derive(PartialOrd, Ord)]
    DecidedBy {
        /// No part objected.
        None = "none",
        /// A safety detector.
        Safety = "safety",
        /// A guardrail provider.
        Guardrail = "guardrail",
        /// A loop controller.
        Loop = "loop",
        /// A control record.
        Control = "control",
        /// The event could not be read, or not be taken in.
        Envelope = "envelope",
    }
}

codes! {
    /// The kind of a subject that can be suspended. Suspensions are looked up in this order.
    SubjectKind {
        /// An end user of a tenant.
        User = "user",
        /// A tenant.
        Tenant = "tenant",
        /// An agent of a tenant.
        Agent = "agent",
        /// A thread of a tenant.
        Thread = "thread",
    }
}

/// A reason: what one part of the gate had to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A loop controller found something.
    Loop {
        /// The finding.
        code: LoopCode,
        /// The count that it is based on.
        count: u32,
    },
    /// A guardrail provider denied.
    Denied(Box<GuardrailReason>),
    /// A guardrail provider failed, and the configuration lets the call run in that case.
    FailedOpen(Box<GuardrailReason>),
    /// A guardrail provider allowed the call, and this is the evidence. It is a note only and never decides.
    Allowed(Box<GuardrailReason>),
    /// A control record has suspended the subject that the call is made on behalf of.
    SubjectSuspended(Box<Suspension>),
    /// The call belongs to a response that was cut off.
    Suppressed,
    /// The call belongs to a response that could not be read.
    ResponseNotRead,
    /// The partition's store is full of threads that hold a stop.
    ThreadStoreFull,
}

/// A guardrail provider's reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailReason {
    /// Its code.
    pub code: Cow<'static, str>,
    /// Its sentence.
    pub message: Cow<'static, str>,
    /// The id of the policy that it is based on.
    pub policy_id: Option<Cow<'static, str>>,
    /// The document that the decision is based on.
    pub evidence: Option<Evidence>,
}

/// The document that a provider's decision is based on, by its digest. With the document at hand, anybody can check that it is that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A passport, in the canonical form of RFC 8785.
    Passport(Digest),
    /// A remote provider's answer, byte for byte.
    Answer(Digest),
}

impl GuardrailReason {
    /// Returns a reason without a policy and without evidence.
    #[must_use]
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: code.into(), message: message.into(), policy_id: None, evidence: None }
    }
}

impl Reason {
    /// Returns the reason's code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Loop { code, .. } => code.as_str(),
            Self::Denied(reason) | Self::FailedOpen(reason) | Self::Allowed(reason) => &reason.code,
            Self::SubjectSuspended(_) => "subject_suspended",
            Self::Suppressed => "suppressed_tool_call",
            Self::ResponseNotRead => "response_not_read",
            Self::ThreadStoreFull => "thread_store_full",
        }
    }

    /// Returns the reason's sentence. `tool_name` is the tool of the event that it is about.
    #[must_use]
    pub fn message(&self, tool_name: &str) -> String {
        match self {
            Self::Loop { code, count } => code.message(tool_name, *count),
            Self::Denied(reason) | Self::FailedOpen(reason) | Self::Allowed(reason) => reason.message.to_string(),
            Self::SubjectSuspended(suspension) => suspension.message(),
            Self::Suppressed => "The model provider stopped the response that made this call with a safety-related signal; \
                                 its arguments may be truncated and unsafe to execute."
                .to_owned(),
            Self::ResponseNotRead => {
                "The response that made this call could not be read, so nothing says whether it was cut off.".to_owned()
            }
            Self::ThreadStoreFull => "Too many threads hold a stop at once; this one could not be taken in.".to_owned(),
        }
    }

    /// Returns the part of the gate that gave the reason.
    #[must_use]
    pub fn source(&self) -> DecidedBy {
        match self {
            Self::Loop { .. } => DecidedBy::Loop,
            Self::Denied(_) | Self::FailedOpen(_) | Self::Allowed(_) => DecidedBy::Guardrail,
            Self::SubjectSuspended(_) => DecidedBy::Control,
            Self::Suppressed | Self::ResponseNotRead => DecidedBy::Safety,
            Self::ThreadStoreFull => DecidedBy::Envelope,
        }
    }

    /// Returns the action that follows if this reason decides.
    #[must_use]
    pub fn action(&self) -> Action {
        match self {
            Self::Loop { code, .. } => match code.intervention() {
                Intervention::Warn => Action::Warn,
                Intervention::Deny | Intervention::Block => Action::Block,
                Intervention::Halt => Action::Halt,
            },
            Self::FailedOpen(_) | Self::Allowed(_) => Action::Allow,
            Self::Denied(_) | Self::SubjectSuspended(_) | Self::Suppressed | Self::ResponseNotRead | Self::ThreadStoreFull => Action::Block,
        }
    }

    /// Returns the guardrail provider's reason, if it is one.
    pub(crate) fn guardrail(&self) -> Option<&GuardrailReason> {
        match self {
            Self::Denied(reason) | Self::FailedOpen(reason) | Self::Allowed(reason) => Some(reason),
            _ => None,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::SubjectSuspended(suspension) => suspension.bytes(),
            // Borrowed texts count as well. A restored thread owns all its texts, and must not forget earlier than one that was never away.
            _ => self.guardrail().map_or(0, |reason| {
                let policy_id = reason.policy_id.as_ref().map_or(0, |id| id.len());
                size_of::<GuardrailReason>() + reason.code.len() + reason.message.len() + policy_id
            }),
        }
    }
}

/// The suspension of a subject, as a verdict reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// The kind of the suspended subject.
    pub kind: SubjectKind,
    /// The reason, in the operator's words.
    pub reason: Option<String>,
}

impl Suspension {
    /// Returns the sentence for the verdict.
    #[must_use]
    pub fn message(&self) -> String {
        let kind = self.kind.as_str();
        match &self.reason {
            Some(reason) => format!("The {kind} is suspended: {reason}"),
            None => format!("The {kind} is suspended."),
        }
    }

    /// Returns how many bytes it takes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.reason.as_ref().map_or(0, String::len)
    }
}
