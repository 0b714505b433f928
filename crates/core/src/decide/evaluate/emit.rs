//! What an event that was newly decided on is to those who count: the signals that it gives.
//!
//! Only what is new gives signals: an event that comes again gives none, nor does one that is late.

use crate::decide::controls::Subject;
use crate::decide::guardrail::EVALUATOR_ERROR;
use crate::decide::loops::Observation;
use crate::decide::policy::Policy;
use crate::decide::ruling::{Reason, Ruling};
use crate::decide::safety::{Stage, Termination};
use crate::decide::signal::{
    EventSignals, Fact, Interest, KeyKind, KeyKinds, PointKind, SignalKind, SubjectKey, Subjects, VolumeKind, tokens_of,
};
use crate::decide::thread::Turn;
use crate::event::decode::{Body, Event, ModelBody, ToolCall, ToolResult};
use tollgate_json::digest::Digest;

/// Codes of denials that say nothing of the call: the provider failed, or what it decides by is missing, broken or cannot be kept to. They
/// would hit everybody at once.
pub const FAILURES: [&str; 5] =
    [EVALUATOR_ERROR, "oap.passport_not_found", "oap.passport_invalid", "oap.passport_version_mismatch", "oap.policy_error"];

/// The signals of an event in the making. While signals are off it does nothing.
#[derive(Debug)]
pub(super) struct Emitter<'e> {
    policy: &'e Policy,
    event: &'e Event<'e>,
    interest: Option<&'e Interest>,
    signals: &'e mut EventSignals,
}

impl<'e> Emitter<'e> {
    pub(super) fn new(policy: &'e Policy, event: &'e Event<'e>, signals: &'e mut EventSignals) -> Self {
        Self { policy, event, interest: policy.signals(), signals }
    }

    /// Notes an event of a thread of which nothing was remembered.
    pub(super) fn thread_start(&mut self) {
        // The end of what is not known begins nothing.
        if !matches!(self.event.body, Body::TurnEnd | Body::ThreadReset) {
            self.optional(PointKind::ThreadStart, |_| ());
        }
    }

    /// Notes a response that is new, and how it was cut off, if it was. `turn` is the one that it came to.
    pub(super) fn response(&mut self, turn: &mut Turn, body: &ModelBody<'_>, terminated: Option<&Termination>) {
        if self.interest.is_none() || turn.is_late(self.event) {
            return;
        }
        if let Some(termination) = terminated
            && turn.note_counted_stop()
        {
            let shape = || termination.shape.or_else(|| provider_of(body));
            let provider = self.event.provider.as_deref().or_else(shape).map(Into::into);
            let fact = Fact::new(PointKind::SafetyStop, KeyKinds::OF_EVENTS);
            let (category, detector) = (Some(termination.category.as_str()), Some(termination.detector));
            self.fact(Fact { category, detector, stage: termination.stage.map(Stage::as_str), provider, ..fact });
        }
        use VolumeKind::{AudioTokens, CachedTokens, ReasoningTokens, Response, Tokens};
        let wants_tokens = [Tokens, CachedTokens, ReasoningTokens, AudioTokens].into_iter().any(|kind| self.wants(kind));
        let read = wants_tokens.then(|| tokens_of(body)).flatten().unwrap_or_default();
        self.volumes(&[
            (Response, 1),
            (Tokens, read.total),
            (CachedTokens, read.cached),
            (ReasoningTokens, read.reasoning),
            (AudioTokens, read.audio),
        ]);
    }

    /// Notes a call that was newly ruled on.
    pub(super) fn call(&mut self, call: &ToolCall<'_>, args: Digest, ruling: &Ruling) {
        if self.interest.is_none() {
            return;
        }
        let decisive = ruling.decisive();
        let of_call = |kind| Fact { args_hash: Some(args), ..stopped(kind, &call.tool_name, decisive) };
        match decisive {
            Some(Reason::Suppressed | Reason::ResponseNotRead) => return self.fact(of_call(PointKind::SuppressedCall)),
            Some(Reason::SubjectSuspended(_)) => return self.fact(of_call(PointKind::SuspendedCall)),
            Some(Reason::Denied(reason)) if !FAILURES.contains(&reason.code.as_ref()) => {
                let mut fact = of_call(PointKind::Denial);
                fact.counts_for.insert(KeyKind::Call);
                fact.call = Some(self.policy.controls().call_hash(&call.tool_name, &args));
                self.fact(fact);
            }
            Some(Reason::Loop { code, .. }) if code.intervention().halts() => {
                self.fact(stopped(PointKind::LoopStop, &call.tool_name, decisive));
            }
            _ => {}
        }
        self.volumes(&[(VolumeKind::Call, 1)]);
    }

    /// Notes a result that was newly observed. `turn` is the running one.
    pub(super) fn result(&mut self, turn: &Turn, result: &ToolResult<'_>, observation: &Observation<'_>, ruling: &Ruling) {
        if self.interest.is_none() || turn.is_late(self.event) {
            return;
        }
        let decisive = ruling.decisive();
        if matches!(decisive, Some(Reason::Loop { code, .. }) if code.intervention().halts()) {
            self.fact(stopped(PointKind::LoopStop, &result.tool_name, decisive));
        }
        if observation.has_failed() {
            self.optional(PointKind::ToolFailure, |fact| fact.tool = Some(result.tool_name.as_ref().into()));
        }
    }

    /// Adds a fact that is written only where it is of interest, and only for those for whom it is.
    fn optional(&mut self, kind: PointKind, complete: impl FnOnce(&mut Fact)) {
        let kinds = self.interest.map_or(KeyKinds::default(), |interest| interest.of(SignalKind::Point(kind)));
        if !kinds.is_empty() {
            let mut fact = Fact::new(kind, kinds);
            complete(&mut fact);
            self.fact(fact);
        }
    }

    fn fact(&mut self, fact: Fact) {
        let [user, tenant, agent, thread] = [KeyKind::User, KeyKind::Tenant, KeyKind::Agent, KeyKind::Thread].map(|kind| self.hash(kind));
        self.signals.fact(fact, Subjects { user, tenant, agent, thread }, (&self.event.thread_id, &self.event.event_id));
    }

    fn wants(&self, kind: VolumeKind) -> bool {
        self.interest.is_some_and(|interest| !interest.of(SignalKind::Volume(kind)).is_empty())
    }

    /// Adds amounts for everybody for whom they are of interest. Each subject is hashed once.
    fn volumes(&mut self, amounts: &[(VolumeKind, u64)]) {
        let Some(interest) = self.interest else { return };
        let kinds_of = |kind: VolumeKind| interest.of(SignalKind::Volume(kind));
        let all = amounts.iter().fold(KeyKinds::default(), |all, (kind, _)| all.or(kinds_of(*kind)));
        for of in all.iter() {
            let Some(hash) = self.hash(of) else { continue };
            for (kind, amount) in amounts.iter().filter(|(kind, _)| kinds_of(*kind).has(of)) {
                self.signals.volume(*kind, SubjectKey { kind: of, hash }, *amount);
            }
        }
    }

    /// Returns the hash of the event's subject of a kind, if it names one. Of threads it is its own alone.
    fn hash(&self, kind: KeyKind) -> Option<Digest> {
        let subject = Subject::of(self.event, kind.subject_kind()?)?;
        Some(self.policy.controls().subject_hash(&subject))
    }
}

fn stopped(kind: PointKind, tool_name: &str, decisive: Option<&Reason>) -> Fact {
    let code = decisive.map(|reason| reason.code().into());
    Fact { tool: Some(tool_name.into()), code, ..Fact::new(kind, KeyKinds::OF_EVENTS) }
}

/// Returns the provider whose form a native response has.
fn provider_of(body: &ModelBody<'_>) -> Option<&'static str> {
    let ModelBody::Response(response) = body else { return None };
    let known = [("choices", "openai"), ("candidates", "gemini"), ("stop_reason", "anthropic")];
    known.into_iter().find(|(member, _)| response.get(member).is_some()).map(|(_, provider)| provider)
}
