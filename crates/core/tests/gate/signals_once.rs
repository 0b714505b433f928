//! Tests that an event gives its signals once: however often it comes, whatever is restored, and whenever it is decided.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_core::decide::deciding::VerdictBuffer;
use tollgate_core::decide::guardrail::ProviderError;
use tollgate_core::decide::signal::EventSignals;
use tollgate_core::engine::processor::Applied;
use tollgate_core::engine::stage::{Progress, Resumed};
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::gate;

use super::counting::*;
use super::stories::*;

#[test]
fn without_signals_nothing_is_counted() {
    let mut counting = Counting::new(closed());
    for event in [turn("turn_start", json!({})), bash("deny-1"), cut_off(&[]), response_of(5)] {
        assert_eq!(*counting.feed(&event), EventSignals::default());
    }
    let state = format!("{:?}", counting.processor.stage().threads().get("t").unwrap());
    assert!(state.contains("counted_stop: false"), "{state}");
}

/// What waits for a policy server gives its signals once it is decided, and so does what waits behind it.
#[test]
fn what_waits_gives_its_signals_when_it_is_decided() {
    let config = json!({"guardrails": {"enabled": true, "provider": {"use": "http", "config": {"url": "http://127.0.0.1:1/"}}}});
    let policy = Arc::new(gate::policy(&config).with_signals(interest()));
    let (mut processor, mut out) = (gate::processor(Partition(0), &policy), VerdictBuffer::default());
    for (offset, id) in (0..).zip(["a", "b"]) {
        let event = event(bash(id), json!({"event_id": id, "user_id": "42", "tenant_id": "acme"})).to_string();
        let record = Record { timestamp_ms: Some(NOW_MS), ..gate::record(Partition(0), Offset(offset), event.as_bytes()) };
        let applied = processor.apply(&record, &mut out).unwrap();
        assert!(!matches!(applied, Applied::Taken(Progress::Done(_))), "{applied:?}");
        assert!(out.signals.is_empty());
    }
    let denial = |code: &str| Ok(json!({"allow": false, "reasons": [{"code": code}]}).to_string().into_bytes());
    processor.answer(Offset(0), denial("acme.no"));
    assert!(matches!(processor.resume(&mut out), Some(Resumed::Done { .. })));
    assert_eq!(told(&out.signals), "thread_start, denial acme.no, call=1");
    assert!(matches!(processor.resume(&mut out), Some(Resumed::Asks(Offset(1), _))));
    assert!(out.signals.is_empty());
    processor.answer(Offset(1), Err(ProviderError::TimedOut));
    assert!(matches!(processor.resume(&mut out), Some(Resumed::Done { .. })));
    assert_eq!((told(&out.signals).as_str(), out.signals.time_ms()), ("call=1", Some(NOW_MS)), "the server failed");
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
