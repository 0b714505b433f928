//! Tests that no control record opens a gate unless it is proven to permit. The records are hostile or written wrongly, and come through the
//! decoder that workers use. A case is a line of `fixtures/odd_controls.jsonl`.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::guardrail::{GuardrailChain, Link, OapPassport};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_fixtures::cases::{Case, jsonl};
use tollgate_fixtures::checks::check_each;
use tollgate_fixtures::controls::{controls, hash};
use tollgate_fixtures::gate::{Gate, settings};
use tollgate_passport::{Passport, Terms};

/// Stands in the cases for the hash of the user.
const HASH: &str = "abababababababababababababababababababababababababababababababab";

/// A key and a value, as a record has them.
type Keyed = (Option<Vec<u8>>, Option<Vec<u8>>);

fn open_passport() -> Value {
    json!({
        "spec_version": "oap/1.0", "status": "active", "capabilities": [{"id": "system.command.execute"}],
        "limits": {"system.command.execute": {"allowed_commands": ["*"]}},
    })
}

/// Returns whether a call of user 42 of acme, by agent coder, may run. The configured passport allows every command.
fn is_open(controls: &Arc<Controls>) -> bool {
    let passport = Passport::read(open_passport().to_string().as_bytes()).map(Arc::new);
    let provider = Box::new(OapPassport::new(Arc::clone(controls), Some(passport), Terms::default()));
    let chain = GuardrailChain::new(vec![Link { provider, tools: None }], true, None);
    let mut gate = Gate::new(Policy::under(&settings(&json!({})), Arc::clone(controls)).with_guardrails(chain));
    let verdict = gate.event(&json!({
        "type": "tool_call", "event_id": "e", "tool_call_id": "c", "thread_id": "t", "tool_name": "bash", "tool_input": {"command": "ls"},
        "user_id": "42", "tenant_id": "acme", "agent_id": "coder", "timestamp": "2026-06-01T00:00:00Z",
    }));
    verdict["allows_execution"].as_bool().unwrap()
}

fn user_hash() -> String {
    hash(SubjectKind::User, "acme", "42").to_string()
}

/// Returns the record of a case, about the user whose call is tried.
fn record_of(line: &Value) -> Keyed {
    let case = Case::read(line);
    let about = |text: Vec<u8>| match String::from_utf8(text) {
        Ok(text) => text.replace(HASH, &user_hash()).into_bytes(),
        Err(error) => error.into_bytes(),
    };
    let mut value = case.value.map(about);
    if let (Some(pad), Some(value)) = (line["pad"].as_u64(), &mut value) {
        value.resize(value.len() + usize::try_from(pad).unwrap(), b' ');
    }
    (case.key.map(about), value)
}

fn apply(controls: &Controls, (key, value): &Keyed) {
    let _rejected = controls.apply(key.as_deref(), value.as_deref());
}

/// Returns records after which the call may run.
fn permitting() -> Vec<Keyed> {
    let (hash, keyed) =
        (user_hash(), |key: String, value: Option<Value>| (Some(key.into_bytes()), value.map(|value| value.to_string().into_bytes())));
    let subject = |more: Value| {
        let mut value = json!({"type": "subject", "kind": "user", "hash": hash, "state": "suspended"});
        more.as_object().unwrap().iter().for_each(|(name, content)| value[name] = content.clone());
        Some(value)
    };
    let (user, abuse) = (format!("subject/user/{hash}"), format!("subject/user/{hash}/abuse"));
    let passport = json!({"type": "passport", "agent_id": "coder", "passport": open_passport()});
    vec![
        keyed(user.clone(), None),
        keyed(user.clone(), subject(json!({"until": "2026-01-01T00:00:00Z"}))),
        keyed(user, subject(json!({"state": "exempt", "until": "2026-01-01T00:00:00Z"}))),
        keyed(abuse.clone(), None),
        keyed(abuse, subject(json!({"until": "2026-01-01T00:00:00Z", "rule": "r"}))),
        keyed("passport/coder".to_owned(), None),
        keyed("passport/coder".to_owned(), Some(passport)),
    ]
}

#[test]
fn no_odd_record_opens_a_gate() {
    check_each(
        jsonl("tests/fixtures/odd_controls.jsonl"),
        |line| line["name"].as_str().unwrap().to_owned(),
        |line| {
            let (odd, names_nothing) = (record_of(line), line["names_nothing"] == true);
            // What stands under other keys has no part in it.
            let permitting: Vec<_> = permitting().into_iter().filter(|record| record.0 == odd.0).collect();
            for before in std::iter::once(None).chain(permitting.iter().map(Some)) {
                let controls = Arc::new(controls());
                before.iter().for_each(|record| apply(&controls, record));
                assert!(is_open(&controls), "{before:?}");
                apply(&controls, &odd);
                assert_eq!(is_open(&controls), names_nothing, "after {before:?}");
                // What permits under the same key opens the gate again.
                permitting.iter().for_each(|record| {
                    apply(&controls, record);
                    assert!(is_open(&controls), "{record:?}");
                });
            }
            // It counts as soon as it can be read, and opens nothing that is closed.
            let controls = Arc::new(controls());
            assert_eq!(controls.apply_early(odd.0.as_deref(), odd.1.as_deref(), (Partition(0), Offset(0))), !names_nothing);
            assert_eq!(is_open(&controls), names_nothing);
        },
    );
}

/// Returns what compaction may leave of a history: the last record of each key, and any others. A last record that removes may go too, with
/// all earlier ones of its key.
fn compacted(history: &[Keyed], kept: &[bool]) -> Vec<Keyed> {
    let last = |at: usize| (at..history.len()).rfind(|later| history[*later].0 == history[at].0).unwrap_or(at);
    let is_gone = |at: usize| history[last(at)].1.is_none() && !kept[last(at)];
    let stays = |at: &usize| !is_gone(*at) && (kept[*at] || last(*at) == *at);
    (0..history.len()).filter(stays).map(|at| history[at].clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A worker that reads what compaction has left decides as one that has lived through all of it.
    #[test]
    fn a_compacted_topic_decides_as_the_whole_history(
        picks in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<bool>()), 1..12),
    ) {
        let odd: Vec<Keyed> = jsonl("tests/fixtures/odd_controls.jsonl").iter().map(record_of).collect();
        let permitting = permitting();
        let history: Vec<Keyed> =
            picks.iter().map(|(at, is_odd, _)| at.get(if *is_odd { &odd } else { &permitting }).clone()).collect();
        let kept: Vec<bool> = picks.iter().map(|(.., is_kept)| *is_kept).collect();
        let tables = [history.clone(), compacted(&history, &kept)].map(|records| {
            let controls = Arc::new(controls());
            records.iter().for_each(|record| apply(&controls, record));
            controls
        });
        let [lived, restarted] = tables.each_ref().map(|controls| {
            let counts = SubjectKind::ALL.map(|kind| controls.suspended_count(kind));
            (is_open(controls), controls.passport("coder"), counts)
        });
        prop_assert_eq!(lived, restarted, "{:?}", history);
    }
}
