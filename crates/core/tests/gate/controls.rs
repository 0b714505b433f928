//! Tests suspended subjects, through whole verdicts.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::evaluate::{Tools, fold, prepare};
use tollgate_core::decide::guardrail::{GuardrailChain, Link};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::decide::signal::EventSignals;
use tollgate_core::decide::thread::Thread;
use tollgate_core::event::decode::decode;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_fixtures::checks::assert_has;
use tollgate_fixtures::controls::{controls, hash, lift, suspend};
use tollgate_fixtures::gate::{self, Gate, settings};
use tollgate_json::Parser;

use super::stories::*;

/// Returns a gate under controls that the test may change.
fn gate() -> (Gate, Arc<Controls>) {
    let controls = Arc::new(controls());
    (Gate::new(policy_under(&controls)), controls)
}

fn policy_under(controls: &Arc<Controls>) -> Policy {
    let chain = GuardrailChain::new(vec![Link { provider: Box::new(Script), tools: None }], true, None);
    Policy::under(&settings(&json!({})), Arc::clone(controls)).with_guardrails(chain)
}

/// Returns a call of user 42 of acme, by agent coder.
fn call_of(id: &str, more: Value) -> Value {
    let by = json!({"event_id": id, "user_id": "42", "tenant_id": "acme", "agent_id": "coder"});
    event(event(call(id, "bash", json!({"x": 1})), by), more)
}

fn suspended(kind: &str, reason: Option<&str>) -> Value {
    let message = reason.map_or_else(|| format!("The {kind} is suspended."), |reason| format!("The {kind} is suspended: {reason}"));
    let text = message.trim_end_matches('.');
    json!({
        "action": "block", "allows_execution": false, "should_halt": false, "code": "subject_suspended", "message": message,
        "decided_by": "control", "count": null, "signature": null, "guidance": null,
        "reasons": [{"source": "control", "code": "subject_suspended", "message": message, "policy_id": null}],
        "synthetic_result": format!("Tool call not executed (subject_suspended): {text}. Do not retry: no tool will run until the suspension is lifted."),
    })
}

#[test]
fn a_call_of_a_suspended_subject_is_blocked_until_it_is_resumed() {
    for (kind, tenant, id) in [
        (SubjectKind::User, "acme", "42"),
        (SubjectKind::Tenant, "", "acme"),
        (SubjectKind::Agent, "acme", "coder"),
        (SubjectKind::Thread, "acme", "t"),
    ] {
        let (mut gate, controls) = gate();
        assert_has("before", &gate.event(&call_of("c1", json!({}))), &allow());
        suspend(&controls, kind, tenant, id, &json!({"reason": "chargeback"}));
        assert_has(kind.as_str(), &gate.event(&call_of("c2", json!({}))), &suspended(kind.as_str(), Some("chargeback")));
        suspend(&controls, kind, tenant, id, &json!({}));
        assert_has(kind.as_str(), &gate.event(&call_of("c3", json!({}))), &suspended(kind.as_str(), None));
        lift(&controls, kind, tenant, id);
        assert_has("after", &gate.event(&call_of("c4", json!({}))), &allow());
    }
}

#[test]
fn others_go_on() {
    let (mut gate, controls) = gate();
    suspend(&controls, SubjectKind::User, "acme", "42", &json!({}));
    for (id, other) in [
        ("c1", json!({"user_id": "43"})),
        ("c2", json!({"tenant_id": "other"})),
        ("c3", json!({"tenant_id": null})),
        ("c4", json!({"user_id": null})),
    ] {
        let mut call = call_of(id, json!({}));
        for (field, value) in other.as_object().unwrap() {
            call[field] = value.clone();
        }
        assert_has(id, &gate.event(&call), &allow());
    }
}

#[test]
fn only_calls_are_blocked_and_their_results_change_nothing() {
    let (mut gate, controls) = gate();
    suspend(&controls, SubjectKind::User, "acme", "42", &json!({}));
    let by = json!({"user_id": "42", "tenant_id": "acme"});
    assert_has(
        "a response",
        &gate.event(&event(clean_response(), json!({"event_id": "r", "user_id": "42", "tenant_id": "acme"}))),
        &allow(),
    );
    for number in 0..3 {
        let id = format!("c{number}");
        gate.event(&call_of(&id, json!({})));
        let answer = gate.event(&event(event(result(&id, "bash", true), by.clone()), json!({"event_id": format!("{id}/result")})));
        assert_has("its result", &answer, &says("allow", "not_executed"));
    }
    lift(&controls, SubjectKind::User, "acme", "42");
    // The loop controller has observed none of them.
    assert_has("afterwards", &gate.event(&call_of("c4", json!({}))), &allow());
}

#[test]
fn a_suspension_stands_behind_a_suppressed_call_and_before_the_providers() {
    let (mut gate, controls) = gate();
    suspend(&controls, SubjectKind::User, "acme", "42", &json!({}));
    assert_has("a call that would be denied", &gate.event(&call_of("deny-1", json!({}))), &suspended("user", None));
    gate.event(&as_event(cut_off(&[("c1", "bash")]), "cut"));
    assert_has("a suppressed call", &gate.event(&call_of("c1", json!({}))), &says("block", "suppressed_tool_call"));
}

#[test]
fn a_repeated_event_gets_what_was_ruled_before() {
    let (mut gate, controls) = gate();
    let allowed = gate.bytes(&call_of("c1", json!({})));
    suspend(&controls, SubjectKind::User, "acme", "42", &json!({}));
    assert_eq!(gate.bytes(&call_of("c1", json!({}))), allowed);
    let blocked = gate.bytes(&call_of("c2", json!({})));
    lift(&controls, SubjectKind::User, "acme", "42");
    assert_eq!(gate.bytes(&call_of("c2", json!({}))), blocked);
    // Under another event id it is decided anew.
    assert_has("under another event id", &gate.event(&call_of("c2", json!({"event_id": "again"}))), &allow());
}

#[test]
fn neither_user_ids_nor_hashes_stand_in_a_verdict() {
    let (mut gate, controls) = gate();
    let by = json!({"user_id": "MARKER-7f3a", "tenant_id": "acme"});
    suspend(&controls, SubjectKind::User, "acme", "MARKER-7f3a", &json!({}));
    let hash = hash(SubjectKind::User, "acme", "MARKER-7f3a");
    let verdict = String::from_utf8(gate.bytes(&call_of("c1", by))).unwrap();
    assert!(verdict.contains("subject_suspended") && !verdict.contains("MARKER") && !verdict.contains(&hash.to_string()), "{verdict}");
}

/// Controls change while a call waits for a remote provider: what was in force when it was prepared decides as well as what is now. A call
/// that waits for nobody is prepared and decided at once.
#[test]
fn a_change_between_asking_and_deciding_never_opens() {
    let controls = Arc::new(controls());
    let server = json!({"use": "http", "config": {"url": "http://127.0.0.1:1/"}});
    let remote = settings(&json!({"guardrails": {"enabled": true, "provider": server}}));
    let (local, remote) = (policy_under(&controls), Policy::under(&remote, Arc::clone(&controls)));
    let decide = |policy: &Policy, id: &str, meanwhile: &dyn Fn()| {
        let value = call_of(id, json!({})).to_string();
        let record = gate::record(Partition(0), Offset(0), value.as_bytes());
        let mut parser = Parser::new();
        let event = decode(&record, &mut parser, 10_000).unwrap();
        let (mut thread, mut out) = (Thread::default(), Vec::new());
        let prepared = prepare(policy, &mut Tools::default(), &mut thread, &event, &mut Vec::new());
        let is_asking = prepared.question().is_some();
        meanwhile();
        fold(policy, &mut thread, &event, prepared, &mut out, &mut EventSignals::default()).unwrap();
        (is_asking, serde_json::from_slice::<Value>(&out).unwrap())
    };
    let stop = || suspend(&controls, SubjectKind::User, "acme", "42", &json!({}));
    let resume = || lift(&controls, SubjectKind::User, "acme", "42");
    // The provider would deny this one, and was not asked while the user was suspended.
    stop();
    let (_, resumed) = decide(&local, "deny-1", &resume);
    assert_has("resumed meanwhile", &resumed, &suspended("user", None));
    let (is_asking, stopped) = decide(&remote, "c1", &stop);
    assert!(is_asking);
    assert_has("suspended meanwhile", &stopped, &suspended("user", None));
}
