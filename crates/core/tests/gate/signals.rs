//! Tests which signals an event gives, and what they hold.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::evaluate::FAILURES;
use tollgate_core::decide::guardrail::{GuardrailChain, GuardrailDecision, GuardrailProvider, GuardrailRequest, Link, Step};
use tollgate_core::decide::ruling::{GuardrailReason, SubjectKind};
use tollgate_core::decide::signal::{Interest, KeyKind};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_fixtures::checks::check_each;
use tollgate_fixtures::controls::{controls, hash, suspend};
use tollgate_fixtures::gate;
use tollgate_json::digest::Digest;

use super::counting::*;
use super::stories::*;

/// Tells the stories of signals in `fixtures/stories.yaml`.
#[test]
fn every_story_counts_as_it_is_written() {
    let file = file();
    let check = |story: &&Value| {
        let mut counting = match &story["under"] {
            Value::Null => counting(),
            under => Counting::new(gate::policy(under).with_signals(interest())),
        };
        for (step, (event, expected)) in steps_of(&file, &story["steps"]).iter().enumerate() {
            assert_eq!(*expected, counting.told(event), "step {step}: {event}");
        }
    };
    check_each(file["signals"].as_array().unwrap(), |story| story["story"].to_string(), check);
}

#[test]
fn what_is_stopped_before_counts_as_that_alone() {
    let controls = Arc::new(controls());
    let mut counting = counting_under(&controls);
    counting.feed(&cut_off(&[("s1", "bash")]));
    counting.feed(&clean_response());
    suspend(&controls, SubjectKind::User, "acme", "42", &json!({}));
    for (event, expected) in [
        (bash("c1"), "suspended_call subject_suspended"),
        (bash("deny-1"), "suspended_call subject_suspended"),
        (bash("s1"), "suppressed_call suppressed_tool_call"),
        (result("c1", "bash", true), ""),
    ] {
        assert_eq!(counting.told(&event), expected, "{event}");
    }
}

/// A provider that denies with the tool's name as its code.
#[derive(Debug)]
struct Named;

impl GuardrailProvider for Named {
    fn name(&self) -> &str {
        "named"
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        let reasons = vec![GuardrailReason::new(request.tool_name.to_owned(), "no")];
        Step::Decided(Ok(GuardrailDecision { allow: false, reasons }))
    }
}

#[test]
fn failures_of_the_provider_are_no_denials() {
    let chain = GuardrailChain::new(vec![Link { provider: Box::new(Named), tools: None }], true, None);
    let mut counting = Counting::new(gate::default_policy().with_guardrails(chain).with_signals(Interest::default()));
    let codes =
        FAILURES.into_iter().chain(["oap.passport_suspended", "oap.passport_expired", "oap.tool_not_allowed", "oap.unknown_capability"]);
    for (number, code) in codes.enumerate() {
        let expected = if FAILURES.contains(&code) { String::new() } else { format!("denial {code}") };
        assert_eq!(counting.told(&call(&format!("c{number}"), code, json!({}))), expected);
    }
}

#[test]
fn a_thread_that_begins_is_counted_for_its_user() {
    let mut counting = counting();
    let started = counting.feed(&turn("turn_start", json!({})));
    assert_eq!(started.points((Partition(0), Offset(0))).map(|point| point.subject.kind).collect::<Vec<_>>(), [KeyKind::User]);
}

#[test]
fn a_point_holds_every_dimension_that_is_known() {
    let mut counting = known_thread();
    let source = (Partition(5), Offset(7));
    let points: Vec<_> = counting.feed(&as_event(bash("deny-1"), "d")).points(source).map(|point| point.subject).collect();
    let args = Digest::parse(&args_hash(r#"{"x":1}"#)).unwrap();
    assert_eq!(points.iter().map(|subject| subject.kind).collect::<Vec<_>>(), KeyKind::ALL);
    assert_eq!(points[0].hash, hash(SubjectKind::User, "acme", "42"));
    assert_eq!(points[1].hash, hash(SubjectKind::Tenant, "", "acme"));
    assert_eq!(points[2].hash, hash(SubjectKind::Agent, "acme", "coder"));
    assert_eq!(points[3].hash, hash(SubjectKind::Thread, "acme", "t"));
    assert_eq!(points[4].hash, controls().call_hash("bash", &args));
    let point = counting.out.signals.points(source).next().unwrap();
    assert_eq!((point.source, point.offset, point.time_ms), (Partition(5), Offset(7), NOW_MS));
    assert_eq!((&*point.thread_id, &*point.event_id), ("t", "d"));
    let dimensions = (point.tool.as_deref(), point.code.as_deref(), point.args_hash);
    assert_eq!(dimensions, (Some("bash"), Some("acme.budget_spent"), Some(args)));
}

#[test]
fn a_safety_stop_tells_what_is_known_of_it() {
    let of = |event: Value| {
        let mut counting = known_thread();
        let signals = counting.feed(&event).clone();
        let fact = &signals.facts()[0];
        [fact.category, fact.stage, fact.provider.as_deref(), fact.detector].map(|text| text.unwrap_or_default().to_owned())
    };
    let openai = || cut_off(&[]);
    assert_eq!(of(openai()), ["safety", "output", "openai", "openai_compatible_content_filter"]);
    assert_eq!(of(event(openai(), json!({"provider": "azure_openai"})))[2], "azure_openai");
    assert_eq!(of(event(openai(), json!({"provider": ""})))[2], "openai");
    assert_eq!(of(response(json!({"stop_reason": "refusal", "content": []}))), ["refusal", "output", "anthropic", "anthropic_refusal"]);
    assert_eq!(of(response(json!({"candidates": [{"finishReason": "SPII"}]}))), ["pii", "output", "gemini", "gemini_safety"]);
    let message = json!({"type": "model_response", "message": {"type": "ai", "response_metadata": {"finish_reason": "content_filter"}}});
    assert_eq!(of(event(message, json!({})))[2], "");
}

#[test]
fn user_42_of_two_tenants_is_two_users() {
    let mut counting = known_thread();
    let mut of = |tenant: Value| {
        let signals = counting.feed(&event(bash("deny-1"), json!({"tenant_id": tenant})));
        let points = signals.points((Partition(0), Offset(0)));
        points.map(|point| (point.subject.kind, point.subject.hash)).collect::<Vec<_>>()
    };
    let (acme, globex, nobody) = (of(json!("acme")), of(json!("globex")), of(Value::Null));
    let of_kind = |points: &[(KeyKind, Digest)], kind| points.iter().find(|(found, _)| *found == kind).map(|(_, hash)| *hash);
    for kind in [KeyKind::User, KeyKind::Agent, KeyKind::Thread] {
        let hashes = [&acme, &globex, &nobody].map(|points| of_kind(points, kind).unwrap());
        assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2], "{kind:?}");
    }
    assert_eq!(of_kind(&nobody, KeyKind::Tenant), None);
    assert_eq!(of_kind(&acme, KeyKind::Call), of_kind(&globex, KeyKind::Call), "the same call is one thing for all");
}

#[test]
fn an_event_without_a_user_is_unattributed_if_there_is_something_to_count() {
    let mut counting = known_thread();
    // An empty id names nobody: all who send none would be one.
    for (number, none) in [json!(null), json!("")].into_iter().enumerate() {
        let nobody = |event_value: Value| event(event_value, json!({"user_id": none, "tenant_id": none}));
        let signals = counting.feed(&nobody(bash(&format!("deny-1{number}"))));
        assert!(signals.is_unattributed() && !signals.names_user(), "{none}");
        assert!(signals.points((Partition(0), Offset(0))).all(|point| point.user.is_none() && point.tenant.is_none()), "{none}");
        assert_eq!(told(signals), "denial acme.budget_spent", "there is no tenant to count the call for");
        assert!(!counting.feed(&nobody(bash(&format!("c{number}")))).is_unattributed());
    }
    let signals = counting.feed(&bash("deny-2"));
    assert!(!signals.is_unattributed() && signals.names_user());
}

#[test]
fn forged_times_count_as_the_records() {
    let mut counting = known_thread();
    let at = |time: &str| event(bash("deny-1"), json!({"timestamp": time}));
    let mut time_of = |event: &Value, record| (counting.feed_at(event, record).time_ms(), told(&counting.out.signals).is_empty());
    assert_eq!(time_of(&at("2026-01-01T00:04:59.999Z"), Some(NOW_MS)), (Some(NOW_MS + 299_999), false));
    assert_eq!(time_of(&at("2026-01-01T00:05:00Z"), Some(NOW_MS)), (Some(NOW_MS), false));
    assert_eq!(time_of(&at("2030-01-01T00:00:00Z"), Some(NOW_MS)), (Some(NOW_MS), false));
    assert_eq!(time_of(&at("2025-12-31T23:55:00Z"), Some(NOW_MS)), (Some(NOW_MS - 300_000), false));
    assert_eq!(time_of(&at("1970-01-01T00:00:00Z"), Some(NOW_MS)), (Some(NOW_MS), false));
    assert_eq!(time_of(&at("2030-01-01T00:00:00Z"), None).0, Some(1_893_456_000_000));
    // Of unknown time, the partition's counts. It goes on by steps.
    let clock = counting.processor.stage().threads().clock().now_ms();
    assert!(clock.is_some_and(|clock| clock > NOW_MS));
    assert_eq!(counting.feed_at(&bash("deny-2"), None).time_ms(), clock);
    let mut counting = counting_under(&Arc::default());
    assert!(counting.feed_at(&bash("deny-1"), None).is_untimed());
    assert_eq!((counting.out.signals.time_ms(), counting.out.signals.is_empty()), (None, true));
    assert!(!counting.feed_at(&turn("turn_end", json!({})), None).is_untimed(), "there was nothing to count");
}

#[test]
fn what_is_not_decided_on_gives_nothing() {
    let mut counting = Counting::new(gate::policy(&json!({"limits": {"threads_per_partition_max": 1}})).with_signals(interest()));
    assert_eq!(counting.told(&cut_off(&[("s1", "bash")])), "thread_start, safety_stop, response=1");
    let other = |event_value: Value| event(event_value, json!({"thread_id": "other"}));
    assert_eq!(counting.told(&other(bash("c1"))), "", "the store is full");
    assert_eq!(counting.out.signals.time_ms(), Some(NOW_MS));
    assert_eq!(counting.told(&event(bash("c1"), json!({"tool_name": 7}))), "", "it is no event");
    assert_eq!(counting.out.signals.time_ms(), None);
    let unseen = json!({"type": "tool_result", "tool_call_id": "c9", "tool_name": "bash", "result": "Error: no"});
    assert_eq!(counting.told(&event(unseen, json!({}))), "", "its call was not seen");
    let mut counting = Counting::new(gate::policy(&json!({"limits": {"verdict_bytes_max": 16_384}})).with_signals(interest()));
    counting.feed(&turn("turn_start", json!({})));
    assert_eq!(counting.told(&cut_off(&[(&"s".repeat(20_000), "bash")])), "", "its verdict would be too large");
}
