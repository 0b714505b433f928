//! What version 2 can say besides: what a decision stood on, and who was suspended. Its golden is `tests/fixtures/state-v2-reasons.jsonl`.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::checkpoint::{Restore, StateRecord};
use tollgate_core::controls::Controls;
use tollgate_core::deciding::Outcome;
use tollgate_core::digest::Digest;
use tollgate_core::guardrail::{GuardrailChain, GuardrailDecision, GuardrailProvider, GuardrailRequest, Link, Step};
use tollgate_core::policy::Policy;
use tollgate_core::record::Offset;
use tollgate_core::ruling::{Evidence, GuardrailReason};

use crate::script::{OWNER, PARTITION, checkpoint, feed};
use crate::{UPDATE, line, support};

const GOLDEN: &str = "tests/fixtures/state-v2-reasons.jsonl";

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

fn policy() -> Policy {
    let controls = Controls::new(Some("a key for this test"));
    let suspend = |kind: &str, tenant: &str, id: &str, reason: Option<&str>| {
        let hasher = tollgate_core::controls::SubjectHasher::new(Some("a key for this test"));
        let kind = tollgate_core::ruling::SubjectKind::from_name(kind).unwrap();
        let hash = hasher.hash(&tollgate_core::controls::Subject { kind, tenant, id }).to_string();
        let mut value = json!({"type": "subject", "kind": kind.as_str(), "hash": hash, "state": "suspended"});
        if let Some(reason) = reason {
            value["reason"] = json!(reason);
        }
        let key = format!("subject/{}/{hash}", kind.as_str());
        controls.apply(Some(key.as_bytes()), Some(value.to_string().as_bytes())).unwrap();
    };
    suspend("user", "acme", "42", Some("Rückbuchung"));
    suspend("tenant", "", "late", None);
    suspend("agent", "acme", "rogue", None);
    suspend("thread", "acme", "held", None);
    let policy = Policy::under(&support::settings(&json!({})), Arc::new(controls));
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

fn golden() -> Vec<StateRecord> {
    let read = |line: &Value| StateRecord {
        key: line["key"].as_str().unwrap().to_owned(),
        value: Some(&line["value_hex"]).filter(|value| !value.is_null()).map(support::unhex),
    };
    support::jsonl(GOLDEN).iter().map(read).collect()
}

#[test]
fn what_decisions_stood_on_is_written_as_ever_and_read_back() {
    let policy = Arc::new(policy());
    let mut processor = support::processor(PARTITION, &policy);
    let verdicts = feed(&mut processor, &events());
    let codes: Vec<_> = verdicts.iter().map(|(_, bytes)| serde_json::from_slice::<Value>(bytes).unwrap()["code"].clone()).collect();
    assert_eq!(
        codes,
        json!([
            "allow",
            "allow",
            "acme.no",
            "acme.no",
            "acme.no",
            "subject_suspended",
            "subject_suspended",
            "subject_suspended",
            "subject_suspended"
        ])
        .as_array()
        .unwrap()[..]
    );
    let written = checkpoint(&mut processor);
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
        let lines: String = written.records.iter().map(|record| format!("{}\n", line(record))).collect();
        std::fs::write(GOLDEN, lines).unwrap();
    }
    assert_eq!(written.records, golden(), "the layout has changed: it needs a new version");
    let mut restore = Restore::default();
    for (record, offset) in golden().iter().zip(0..) {
        restore.take(Offset(offset), Some(record.key.as_bytes()), record.value.as_deref());
    }
    let mut restored = support::restored(PARTITION, &policy, restore.finish(OWNER, policy.store_limits()).unwrap().unwrap());
    // The same events under new offsets: answered from what is remembered, byte for byte.
    let bytes = |verdicts: Vec<(Outcome, Vec<u8>)>| verdicts.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>();
    assert_eq!(bytes(feed(&mut restored, &events())), bytes(verdicts));
}
