//! Tests which signals an event gives: each kind, what gives none, and that a restore changes nothing.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_core::checkpoint::Restore;
use tollgate_core::controls::{Controls, Subject, SubjectHasher, parse_hash};
use tollgate_core::deciding::{Outcome, VerdictBuffer};
use tollgate_core::digest::Digest;
use tollgate_core::evaluate::FAILURES;
use tollgate_core::guardrail::{GuardrailChain, GuardrailDecision, GuardrailProvider, GuardrailRequest, Link, Step};
use tollgate_core::policy::Policy;
use tollgate_core::record::{Offset, Partition, Record};
use tollgate_core::ruling::{GuardrailReason, SubjectKind};
use tollgate_core::signal::{EventSignals, Interest, KeyKind, SignalKind};

use crate::stories::*;
use crate::support::{self, Processor, settings};

const OWNER: &str = "tollgate/agent.events";
const KEY: &str = "a key";
/// The time of the records, in milliseconds since the epoch: 2026-01-01T00:00:00Z.
const NOW_MS: i64 = 1_767_225_600_000;

/// Returns an interest in everything: volumes by tenant, failures by agent, and beginnings by user.
fn interest() -> Interest {
    let mut interest = Interest::default();
    for (signal, kind) in [
        ("call", KeyKind::Tenant),
        ("response", KeyKind::Tenant),
        ("tokens", KeyKind::Tenant),
        ("tool_failure", KeyKind::Agent),
        ("thread_start", KeyKind::User),
    ] {
        interest.add(SignalKind::from_name(signal).unwrap(), kind);
    }
    interest
}

/// A partition that is fed events, and what there is to count of each.
struct Counting {
    policy: Arc<Policy>,
    processor: Processor,
    next: i64,
    out: VerdictBuffer,
}

impl Counting {
    fn new(policy: Policy) -> Self {
        let policy = Arc::new(policy);
        let processor = support::processor(Partition(0), &policy);
        Self { policy, processor, next: 0, out: VerdictBuffer::default() }
    }

    /// Feeds an event of user 42 of acme, by agent coder, unless it says otherwise.
    fn feed(&mut self, event: &Value) -> &EventSignals {
        self.feed_at(event, Some(NOW_MS))
    }

    fn feed_at(&mut self, event: &Value, timestamp_ms: Option<i64>) -> &EventSignals {
        let by = json!({"event_id": format!("e{}", self.next), "user_id": "42", "tenant_id": "acme", "agent_id": "coder"});
        let value = crate::stories::event(by, event.clone()).to_string().into_bytes();
        let offset = Offset(self.next);
        self.next += 1;
        let (topic, partition, value) = ("agent.events", Partition(0), Some(value.as_slice()));
        let record = Record { topic, partition, offset, timestamp_ms, key: None, value, headers: &[] };
        let applied = self.processor.apply(&record, &mut self.out).unwrap();
        let outcome = support::decided(&mut self.processor, offset, applied, &mut self.out);
        assert!(!matches!(outcome, Outcome::DeadLetter(_)) || self.out.signals.is_empty(), "a record that is rejected gives signals");
        self.processor.published(offset, 0).unwrap();
        &self.out.signals
    }

    fn told(&mut self, event: &Value) -> String {
        told(self.feed(event))
    }

    /// Goes on as the next owner of the partition would.
    fn restore(&mut self) {
        self.processor.freeze(OWNER);
        let checkpoint = self.processor.take_checkpoint().expect("everything is acknowledged");
        self.processor.checkpoint_written();
        let mut restore = Restore::default();
        for (record, offset) in checkpoint.records.iter().zip(0..) {
            restore.take(Offset(offset), Some(record.key.as_bytes()), record.value.as_deref());
        }
        // A checkpoint holds what has changed since the last one; here each is the first.
        let restored = restore.finish(OWNER, self.policy.store_limits()).unwrap().unwrap();
        self.processor = support::restored(Partition(0), &self.policy, restored);
    }
}

/// Returns signals as text: facts with their code, and amounts.
fn told(signals: &EventSignals) -> String {
    let facts = signals.facts().iter().map(|fact| match &fact.code {
        Some(code) => format!("{} {code}", fact.kind.as_str()),
        None => fact.kind.as_str().to_owned(),
    });
    let volumes = signals.volumes().iter().map(|(kind, _, amount)| format!("{}={amount}", kind.as_str()));
    facts.chain(volumes).collect::<Vec<_>>().join(", ")
}

fn counting_under(controls: &Arc<Controls>) -> Counting {
    let chain = GuardrailChain::new(vec![Link { provider: Box::new(Script), tools: None }], true, None);
    Counting::new(Policy::under(&settings(&json!({})), Arc::clone(controls)).with_guardrails(chain).with_signals(interest()))
}

fn counting() -> Counting {
    counting_under(&Arc::new(Controls::new(Some(KEY))))
}

/// Returns a thread that is known already, so that its beginning is not in the way.
fn begun() -> Counting {
    let mut counting = counting();
    assert_eq!(counting.told(&turn("turn_start", json!({}))), "thread_start");
    counting
}

fn hash(kind: SubjectKind, tenant: &str, id: &str) -> Digest {
    SubjectHasher::new(Some(KEY)).hash(&Subject { kind, tenant, id })
}

fn suspend(controls: &Controls, kind: SubjectKind, tenant: &str, id: &str) {
    let hash = hash(kind, tenant, id);
    let value = json!({"type": "subject", "kind": kind.as_str(), "hash": hash.to_string(), "state": "suspended"});
    let key = format!("subject/{}/{hash}", kind.as_str());
    controls.apply(Some(key.as_bytes()), Some(value.to_string().as_bytes())).unwrap();
}

fn bash(id: &str) -> Value {
    call(id, "bash", json!({"x": 1}))
}

/// Returns a clean response that took so many tokens.
fn response_of(tokens: u64) -> Value {
    response(json!({"choices": [{"finish_reason": "stop", "message": {"content": "done"}}], "usage": {"total_tokens": tokens}}))
}

/// Checks what a script's events give, one after the other.
fn check(counting: &mut Counting, script: &[(Value, &str)]) {
    for (step, (event, expected)) in script.iter().enumerate() {
        assert_eq!(counting.told(event), *expected, "step {step}: {event}");
    }
}

#[test]
fn each_kind_of_signal() {
    check(
        &mut begun(),
        &[
            (bash("c1"), "call=1"),
            (result("c1", "bash", true), "tool_failure"),
            (bash("c2"), "call=1"),
            (result("c2", "bash", false), ""),
            (bash("deny-1"), "denial acme.budget_spent, call=1"),
            (bash("twice-1"), "denial acme.first, call=1"),
            (bash("mute-1"), "denial oap.denied, call=1"),
            (response_of(12), "response=1, tokens=12"),
            (response_of(0), "response=1"),
            (cut_off(&[("s1", "bash")]), "safety_stop, response=1"),
            (bash("s1"), "suppressed_call suppressed_tool_call"),
        ],
    );
}

#[test]
fn loops_count_where_they_stop_something() {
    check(
        &mut begun(),
        &[
            (bash("f1"), "call=1"),
            (result("f1", "bash", true), "tool_failure"),
            (bash("f2"), "call=1"),
            // It warns, which stops nothing.
            (result("f2", "bash", true), "tool_failure"),
            (bash("f3"), "loop_stop repeated_exact_failure_block, call=1"),
            // It was not executed.
            (result("f3", "bash", true), ""),
        ],
    );
    let halts = json!({"tool_loop_guardrails": {"same_tool_failure_warn_after": 1, "same_tool_failure_halt_after": 2}});
    let mut counting = Counting::new(support::policy(&halts).with_signals(interest()));
    counting.feed(&turn("turn_start", json!({})));
    for (step, expected) in ["tool_failure", "loop_stop same_tool_failure_halt, tool_failure"].into_iter().enumerate() {
        let id = format!("h{step}");
        assert_eq!(counting.told(&call(&id, "bash", json!({"step": step}))), "call=1");
        assert_eq!(counting.told(&result(&id, "bash", true)), expected);
    }
}

#[test]
fn what_is_stopped_before_counts_as_that_alone() {
    let controls = Arc::new(Controls::new(Some(KEY)));
    let mut counting = counting_under(&controls);
    counting.feed(&cut_off(&[("s1", "bash")]));
    suspend(&controls, SubjectKind::User, "acme", "42");
    check(
        &mut counting,
        &[
            (bash("c1"), "suspended_call subject_suspended"),
            (bash("deny-1"), "suspended_call subject_suspended"),
            (bash("s1"), "suppressed_call suppressed_tool_call"),
            (result("c1", "bash", true), ""),
        ],
    );
    // A failure of the provider says nothing of the call.
    let mut counting = begun();
    check(&mut counting, &[(bash("fail-1"), "call=1"), (bash("ask-1"), "call=1"), (bash("deny-1"), "denial acme.budget_spent, call=1")]);
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
    let mut counting = Counting::new(support::default_policy().with_guardrails(chain).with_signals(Interest::default()));
    let codes =
        FAILURES.into_iter().chain(["oap.passport_suspended", "oap.passport_expired", "oap.tool_not_allowed", "oap.unknown_capability"]);
    for (number, code) in codes.enumerate() {
        let expected = if FAILURES.contains(&code) { String::new() } else { format!("denial {code}") };
        assert_eq!(counting.told(&call(&format!("c{number}"), code, json!({}))), expected);
    }
}

#[test]
fn what_comes_again_counts_once() {
    let mut counting = begun();
    let again = |event: Value, id: &str| as_event(event, id);
    let cut = || again(cut_off(&[("s1", "bash")]), "r2");
    check(
        &mut counting,
        &[
            (again(response_of(5), "r1"), "response=1, tokens=5"),
            (again(response_of(5), "r1"), ""),
            (again(bash("c1"), "a"), "call=1"),
            (again(bash("c1"), "a"), ""),
            (again(result("c1", "bash", true), "b"), "tool_failure"),
            (again(result("c1", "bash", true), "b"), ""),
            // Another result of the same call changes nothing either.
            (again(result("c1", "bash", true), "c"), ""),
            (again(bash("deny-1"), "d"), "denial acme.budget_spent, call=1"),
            (again(bash("deny-1"), "d"), ""),
            (again(bash("deny-1"), "d2"), "denial acme.budget_spent, call=1"),
            (cut(), "safety_stop, response=1"),
            (cut(), ""),
            (again(bash("s1"), "s"), "suppressed_call suppressed_tool_call"),
            (again(bash("s1"), "s"), ""),
            (again(response(json!({"error": "overloaded"})), "x"), "response=1"),
        ],
    );
    // An API error is no response.
    assert_eq!(counting.told(&event(json!({"type": "model_response", "error": {"message": "overloaded"}}), json!({}))), "");
}

#[test]
fn a_turn_has_one_safety_stop() {
    let stop = "safety_stop, response=1";
    let cut = || cut_off(&[]);
    check(
        &mut begun(),
        &[
            (cut(), stop),
            (cut(), "response=1"),
            (turn("turn_start", json!({})), ""),
            (cut(), stop),
            (cut(), "response=1"),
            (in_turn(cut(), "u1"), stop),
            (in_turn(cut(), "u1"), "response=1"),
            (in_turn(cut(), "u2"), stop),
            // A response of a turn that is over is late.
            (in_turn(cut(), "u1"), ""),
            (in_turn(bash("late"), "u1"), "call=1"),
            (in_turn(result("late", "bash", true), "u1"), ""),
            (in_turn(cut(), "u2"), "response=1"),
        ],
    );
}

#[test]
fn a_thread_begins_where_nothing_is_remembered() {
    let mut counting = counting();
    let of = |thread: &str, event_value: Value| event(event_value, json!({"thread_id": thread}));
    check(
        &mut counting,
        &[
            (of("a", turn("turn_start", json!({}))), "thread_start"),
            (of("a", bash("c1")), "call=1"),
            (of("b", bash("c1")), "thread_start, call=1"),
            (of("c", turn("turn_end", json!({}))), ""),
            (of("d", turn("thread_reset", json!({}))), ""),
            (of("a", turn("turn_end", json!({}))), ""),
            (of("a", turn("turn_start", json!({}))), "thread_start"),
        ],
    );
    let started = counting.feed(&of("e", turn("turn_start", json!({}))));
    assert_eq!(started.points((Partition(0), Offset(0))).map(|point| point.subject.kind).collect::<Vec<_>>(), [KeyKind::User]);
}

#[test]
fn a_point_holds_every_dimension_that_is_known() {
    let mut counting = begun();
    let source = (Partition(5), Offset(7));
    let points: Vec<_> = counting.feed(&as_event(bash("deny-1"), "d")).points(source).map(|point| point.subject).collect();
    let args = parse_hash(&args_hash(r#"{"x":1}"#)).unwrap();
    assert_eq!(points.iter().map(|subject| subject.kind).collect::<Vec<_>>(), KeyKind::ALL);
    assert_eq!(points[0].hash, hash(SubjectKind::User, "acme", "42"));
    assert_eq!(points[1].hash, hash(SubjectKind::Tenant, "", "acme"));
    assert_eq!(points[2].hash, hash(SubjectKind::Agent, "acme", "coder"));
    assert_eq!(points[3].hash, hash(SubjectKind::Thread, "acme", "t"));
    assert_eq!(points[4].hash, SubjectHasher::new(Some(KEY)).call_hash("bash", &args));
    let point = counting.out.signals.points(source).next().unwrap();
    assert_eq!((point.source, point.offset, point.time_ms), (Partition(5), Offset(7), NOW_MS));
    assert_eq!((&*point.thread_id, &*point.event_id), ("t", "d"));
    let dimensions = (point.tool.as_deref(), point.code.as_deref(), point.args_hash);
    assert_eq!(dimensions, (Some("bash"), Some("acme.budget_spent"), Some(args)));
}

#[test]
fn a_safety_stop_tells_what_is_known_of_it() {
    let of = |event: Value| {
        let mut counting = begun();
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
    let mut counting = begun();
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
    let mut counting = begun();
    let nobody = |event_value: Value| event(event_value, json!({"user_id": null, "tenant_id": null}));
    let signals = counting.feed(&nobody(bash("deny-1")));
    assert!(signals.is_unattributed() && !signals.names_user());
    assert_eq!(told(signals), "denial acme.budget_spent", "there is no tenant to count the call for");
    assert!(!counting.feed(&nobody(bash("c"))).is_unattributed());
    let signals = counting.feed(&bash("deny-2"));
    assert!(!signals.is_unattributed() && signals.names_user());
}

#[test]
fn forged_times_count_as_the_records() {
    let mut counting = begun();
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
    let mut counting = Counting::new(support::policy(&json!({"limits": {"threads_per_partition_max": 1}})).with_signals(interest()));
    assert_eq!(counting.told(&cut_off(&[("s1", "bash")])), "thread_start, safety_stop, response=1");
    let other = |event_value: Value| event(event_value, json!({"thread_id": "other"}));
    assert_eq!(counting.told(&other(bash("c1"))), "", "the store is full");
    assert_eq!(counting.out.signals.time_ms(), Some(NOW_MS));
    assert_eq!(counting.told(&event(bash("c1"), json!({"tool_name": 7}))), "", "it is no event");
    assert_eq!(counting.out.signals.time_ms(), None);
    let unseen = json!({"type": "tool_result", "tool_call_id": "c9", "tool_name": "bash", "result": "Error: no"});
    assert_eq!(counting.told(&event(unseen, json!({}))), "", "its call was not seen");
    let mut counting = Counting::new(support::policy(&json!({"limits": {"verdict_bytes_max": 16_384}})).with_signals(interest()));
    counting.feed(&turn("turn_start", json!({})));
    assert_eq!(counting.told(&cut_off(&[(&"s".repeat(20_000), "bash")])), "", "its verdict would be too large");
}

#[test]
fn without_signals_there_is_nothing_and_nothing_is_noted() {
    let mut counting = Counting::new(closed());
    for event in [turn("turn_start", json!({})), bash("deny-1"), cut_off(&[]), response_of(5)] {
        assert_eq!(*counting.feed(&event), EventSignals::default());
    }
    // So its state is that of one that never had any.
    let state = format!("{:?}", counting.processor.stage().threads().get("t").unwrap());
    assert!(state.contains("counted: Counted { response: 0, safety_stop: false }"), "{state}");
}

/// A checkpoint in the middle of a turn remembers what was counted.
#[test]
fn a_restore_in_the_middle_of_a_turn_counts_nothing_twice() {
    let mut counting = begun();
    counting.feed(&as_event(cut_off(&[]), "r1"));
    counting.feed(&as_event(bash("deny-1"), "d1"));
    counting.restore();
    check(
        &mut counting,
        &[
            (as_event(cut_off(&[]), "r1"), ""),
            (as_event(bash("deny-1"), "d1"), ""),
            (as_event(cut_off(&[]), "r2"), "response=1"),
            (as_event(response_of(3), "r3"), "response=1, tokens=3"),
        ],
    );
    counting.restore();
    assert_eq!(counting.told(&as_event(response_of(3), "r3")), "");
}

fn any_event() -> impl Strategy<Value = Value> {
    let threads = prop::sample::select(vec!["a", "b", "b/c"]);
    let ids = prop::sample::select(vec!["c1", "c2", "deny-1", "fail-1", "ask-1", "s1"]);
    let turns = prop::sample::select(vec![Value::Null, Value::Null, json!("u1"), json!("u2")]);
    let kinds = prop_oneof![
        3 => ids.clone().prop_map(bash),
        3 => (ids, any::<bool>()).prop_map(|(id, failed)| result(id, "bash", failed)),
        2 => (0..3_u64).prop_map(response_of),
        2 => prop::sample::select(vec![vec![], vec![("s1", "bash")]]).prop_map(|calls| cut_off(&calls)),
        1 => prop::sample::select(vec!["turn_start", "turn_end", "thread_reset"]).prop_map(|kind| turn(kind, json!({}))),
    ];
    (threads, kinds, turns, 0..12_u8)
        .prop_map(|(thread, kind, turn_id, id)| event(kind, json!({"thread_id": thread, "turn_id": turn_id, "event_id": format!("e{id}")})))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Wherever a partition is taken over, each event gives what it would have given, and an event that comes again gives nothing.
    #[test]
    fn a_restore_anywhere_changes_no_signal(log in prop::collection::vec(any_event(), 1..40), at in any::<prop::sample::Index>()) {
        let (mut whole, mut restored) = (counting(), counting());
        let at = at.index(log.len());
        for (place, event) in log.iter().enumerate() {
            let before = whole.feed(event).clone();
            prop_assert_eq!(&before, restored.feed(event), "{} of {:?}", place, log);
            if place == at {
                restored.restore();
                // What was decided and not yet committed comes again, under later offsets here.
                let again = restored.feed(event).clone();
                let is_call = event["type"] == "tool_call";
                prop_assert!(!is_call || again.is_empty(), "{} {}", event, told(&again));
                whole.feed(event);
            }
        }
    }
}
