//! The script for the reasons of a decision, and suspended subjects.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::guardrail::{GuardrailChain, GuardrailDecision, GuardrailProvider, GuardrailRequest, Link, Step};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::{Evidence, GuardrailReason, SubjectKind};
use tollgate_core::decide::thread::read_thread;
use tollgate_core::engine::checkpoint::{Checkpoint, StateRecord, VERSION};
use tollgate_fixtures::controls::{controls, suspend};
use tollgate_fixtures::gate;
use tollgate_json::digest::Digest;

use super::script::{PARTITION, checkpoint, feed};
use super::{Script, check_golden, restore, values};

/// Decides by the tool's name, on a document of the kind that it names.
#[derive(Debug)]
struct Documented;

impl GuardrailProvider for Documented {
    fn name(&self) -> &str {
        "documented"
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        let digest = Digest::of(request.tool_name.as_bytes());
        let evidence = if request.tool_name.contains("answer") { Evidence::Answer(digest) } else { Evidence::Passport(digest) };
        let allow = request.tool_name.starts_with("may");
        let (code, message) = if allow { ("oap.allowed", "") } else { ("acme.no", "nicht ohne Antrag – später") };
        let reason = GuardrailReason {
            policy_id: Some("acme.v1".into()),
            evidence: Some(evidence),
            ..GuardrailReason::new(code.to_owned(), message.to_owned())
        };
        Step::Decided(Ok(GuardrailDecision { allow, reasons: vec![reason] }))
    }
}

pub fn policy() -> Policy {
    let controls = controls();
    suspend(&controls, SubjectKind::User, "acme", "42", &json!({"reason": "Rückbuchung"}));
    suspend(&controls, SubjectKind::Tenant, "", "late", &json!({}));
    suspend(&controls, SubjectKind::Agent, "acme", "rogue", &json!({}));
    suspend(&controls, SubjectKind::Thread, "acme", "held", &json!({}));
    let policy = Policy::under(&gate::settings(&json!({})), Arc::new(controls));
    policy.with_guardrails(GuardrailChain::new(vec![Link { provider: Box::new(Documented), tools: None }], true, None))
}

fn events() -> Vec<Value> {
    let call = |thread: &str, tool: &str, with: Value| {
        let mut event = json!({
            "type": "tool_call", "thread_id": thread, "event_id": thread, "tool_call_id": "c1", "tool_name": tool, "tool_input": {},
            "timestamp": "2026-01-01T00:00:00Z", "tenant_id": "acme",
        });
        with.as_object().unwrap().iter().for_each(|(name, value)| event[name] = value.clone());
        event
    };
    vec![
        call("allowed by a passport", "may", json!({})),
        call("allowed by an answer", "may, says the answer", json!({})),
        call("denied by a passport", "no", json!({})),
        call("denied by an answer", "no, says the answer", json!({})),
        call("no tool, no name", "", json!({})),
        call("a suspended user's", "may", json!({"user_id": "42"})),
        call("a suspended tenant's", "may", json!({"tenant_id": "late"})),
        call("a suspended agent's", "may", json!({"agent_id": "rogue"})),
        call("held", "may", json!({})),
    ]
}

/// Returns the verdicts on the script's events, and the checkpoint behind them.
pub fn scripted(policy: &Arc<Policy>) -> (Vec<Vec<u8>>, Checkpoint) {
    let mut processor = gate::processor(PARTITION, policy);
    let verdicts = verdicts(&mut processor);
    (verdicts, checkpoint(&mut processor))
}

/// Returns the verdicts on the script's events.
fn verdicts(processor: &mut gate::Processor) -> Vec<Vec<u8>> {
    feed(processor, &events()).into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn every_reason_is_given_and_written_as_the_golden_says() {
    let (verdicts, checkpoint) = scripted(&Arc::new(policy()));
    let codes: Vec<_> = verdicts.iter().map(|bytes| serde_json::from_slice::<Value>(bytes).unwrap()["code"].clone()).collect();
    let expected = [&["allow"; 2][..], &["acme.no"; 3], &["subject_suspended"; 4]].concat();
    assert_eq!(codes, expected);
    check_golden(Script::Reasons, &checkpoint);
}

/// Repeated events under new offsets are answered from what is remembered, byte for byte.
#[test]
fn every_version_remembers_what_decisions_stood_on() {
    let policy = Arc::new(policy());
    let (expected, written) = scripted(&policy);
    let threads = |records: &[StateRecord]| -> Vec<_> {
        let thread = |(key, value): (&str, &[u8])| key.starts_with("thread/").then(|| (key.to_owned(), read_thread(value).unwrap()));
        values(records).filter_map(thread).collect()
    };
    for version in 1..=VERSION {
        let golden = Script::Reasons.golden(version);
        assert_eq!(threads(&golden), threads(&written.records), "version {version}");
        let mut restored = gate::restored(PARTITION, &policy, restore(&golden, &policy));
        assert_eq!(verdicts(&mut restored), expected, "version {version}");
    }
}
