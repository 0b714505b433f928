//! A partition that is fed events, with what there is to count of each: for the tests of signals.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::decide::guardrail::{GuardrailChain, Link};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::signal::{EventSignals, Interest, KeyKind, SignalKind};
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::controls::controls;
use tollgate_fixtures::gate::{self, Processor, settings};

use super::stories::*;

pub(crate) const OWNER: &str = "tollgate/agent.events";
/// The time of the records, in milliseconds since the epoch: 2026-01-01T00:00:00Z.
pub(crate) const NOW_MS: i64 = 1_767_225_600_000;

/// Returns an interest in everything: volumes by tenant, failures by agent, and beginnings by user.
pub(crate) fn interest() -> Interest {
    let mut interest = Interest::default();
    for (signal, kind) in [
        ("call", KeyKind::Tenant),
        ("response", KeyKind::Tenant),
        ("tokens", KeyKind::Tenant),
        ("cached_tokens", KeyKind::Tenant),
        ("reasoning_tokens", KeyKind::Tenant),
        ("audio_tokens", KeyKind::Tenant),
        ("tool_failure", KeyKind::Agent),
        ("thread_start", KeyKind::User),
    ] {
        interest.add(SignalKind::from_name(signal).unwrap(), kind);
    }
    interest
}

/// A partition that is fed events, and what there is to count of each.
pub(crate) struct Counting {
    policy: Arc<Policy>,
    pub(crate) processor: Processor,
    next: i64,
    pub(crate) out: VerdictBuffer,
}

impl Counting {
    pub(crate) fn new(policy: Policy) -> Self {
        let policy = Arc::new(policy);
        let processor = gate::processor(Partition(0), &policy);
        Self { policy, processor, next: 0, out: VerdictBuffer::default() }
    }

    /// Feeds an event of user 42 of acme, by agent coder, unless it says otherwise.
    pub(crate) fn feed(&mut self, event: &Value) -> &EventSignals {
        self.feed_at(event, Some(NOW_MS))
    }

    pub(crate) fn feed_at(&mut self, event: &Value, timestamp_ms: Option<i64>) -> &EventSignals {
        let by = json!({"event_id": format!("e{}", self.next), "user_id": "42", "tenant_id": "acme", "agent_id": "coder"});
        let value = super::stories::event(by, event.clone()).to_string().into_bytes();
        let offset = Offset(self.next);
        self.next += 1;
        let record = Record { timestamp_ms, ..gate::record(Partition(0), offset, &value) };
        let applied = self.processor.apply(&record, &mut self.out).unwrap();
        let outcome = gate::decided(&mut self.processor, offset, applied, &mut self.out);
        assert!(!matches!(outcome, Outcome::DeadLetter(_)) || self.out.signals.is_empty(), "a record that is rejected gives signals");
        self.processor.published(offset, 0).unwrap();
        &self.out.signals
    }

    pub(crate) fn told(&mut self, event: &Value) -> String {
        told(self.feed(event))
    }

    /// Goes on as the next owner of the partition would.
    pub(crate) fn restore(&mut self) {
        self.processor.freeze(OWNER);
        let checkpoint = self.processor.take_checkpoint().expect("everything is acknowledged");
        self.processor.checkpoint_written();
        // A checkpoint holds what has changed since the last one; here each is the first.
        let restored = gate::restore(&checkpoint.records).finish(OWNER, self.policy.store_limits()).unwrap().unwrap();
        self.processor = gate::restored(Partition(0), &self.policy, restored);
    }
}

/// Returns signals as text: facts with their code, and amounts.
pub(crate) fn told(signals: &EventSignals) -> String {
    let facts = signals.facts().iter().map(|fact| match &fact.code {
        Some(code) => format!("{} {code}", fact.kind.as_str()),
        None => fact.kind.as_str().to_owned(),
    });
    let volumes = signals.volumes().iter().map(|(kind, _, amount)| format!("{}={amount}", kind.as_str()));
    facts.chain(volumes).collect::<Vec<_>>().join(", ")
}

pub(crate) fn counting_under(controls: &Arc<Controls>) -> Counting {
    let chain = GuardrailChain::new(vec![Link { provider: Box::new(Script), tools: None }], true, None);
    Counting::new(Policy::under(&settings(&json!({})), Arc::clone(controls)).with_guardrails(chain).with_signals(interest()))
}

pub(crate) fn counting() -> Counting {
    counting_under(&Arc::new(controls()))
}

/// Returns a thread that is known already, so that its beginning is not in the way.
pub(crate) fn known_thread() -> Counting {
    let mut counting = counting();
    assert_eq!(counting.told(&turn("turn_start", json!({}))), "thread_start");
    counting
}

pub(crate) fn bash(id: &str) -> Value {
    call(id, "bash", json!({"x": 1}))
}

/// Returns a clean response that took so many tokens.
pub(crate) fn response_of(tokens: u64) -> Value {
    response(json!({"choices": [{"finish_reason": "stop", "message": {"content": "done"}}], "usage": {"total_tokens": tokens}}))
}
