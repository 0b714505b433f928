//! Tests which records are controls, and which rule each of the others breaks. A case is a line in `fixtures/`; those that are too large
//! for a line are built here.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_core::decide::controls::{ControlRejectionCode, Controls, Subject, SubjectHasher, decode};
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_fixtures::cases::{Case, jsonl};
use tollgate_fixtures::checks::check_each;
use tollgate_json::digest::Digest;

/// Stands for text that an operator wrote into a wrong place. It must not come out again.
const MARKER: &str = "MARKER-7f3a";

fn cases() -> Vec<Case> {
    let hash = "ab".repeat(32);
    let large = json!({"type": "subject", "kind": "user", "hash": hash, "state": "suspended", "note": MARKER.repeat(100_000)});
    let mut cases: Vec<_> = jsonl("tests/fixtures/controls.jsonl").iter().map(Case::read).collect();
    cases.push(Case {
        name: "more than a mebibyte".to_owned(),
        key: Some(format!("subject/user/{hash}").into_bytes()),
        value: Some(large.to_string().into_bytes()),
        expect: json!({"code": "value_too_large", "field": "value", "found": "bytes"}),
        ..Case::default()
    });
    cases
}

#[test]
fn every_record_is_a_control_or_says_what_to_mend() {
    check_each(
        cases(),
        |case| case.name.clone(),
        |case| {
            let read = decode(case.key.as_deref(), case.value.as_deref());
            let Some(code) = case.expect["code"].as_str() else {
                read.unwrap();
                return;
            };
            let rejection = read.unwrap_err();
            assert_eq!((rejection.code.as_str(), rejection.field), (code, case.expect["field"].as_str().unwrap()));
            let found = case.expect["found"].as_str().unwrap_or_default();
            assert!(rejection.found.contains(found), "{rejection}");
            assert!(!rejection.to_string().contains(MARKER) && !rejection.fix.is_empty(), "{rejection}");
        },
    );
}

#[test]
fn every_code_has_a_case() {
    let covered: BTreeSet<_> = cases().iter().filter_map(|case| case.expect["code"].as_str().map(str::to_owned)).collect();
    let missing: Vec<_> = ControlRejectionCode::ALL.iter().map(|code| code.as_str()).filter(|code| !covered.contains(*code)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What is refused is in force as the strictest control of its key, and changes nothing if its key names none.
#[test]
fn a_refused_record_restricts_whom_its_key_names() {
    check_each(
        cases().into_iter().filter(|case| !case.expect["code"].is_null()),
        |case| case.name.clone(),
        |case| {
            let controls = Controls::default();
            let rejection = controls.apply(case.key.as_deref(), case.value.as_deref()).unwrap_err();
            let restricted = SubjectKind::ALL.map(|kind| controls.suspended_count(kind)).iter().sum::<usize>() + controls.passport_count();
            assert_eq!(restricted, usize::from(!rejection.code.is_of_key()));
            assert!(controls.passport("coder").is_none_or(|passport| passport.is_err()));
        },
    );
}

/// Every subject has the hash that is published: other systems compute it too. The same id of another kind or tenant is another subject.
#[test]
fn hashes_are_those_that_are_published() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("fixtures/subject_hashes.json")).unwrap();
    let text = |vector: &Value, field: &str| vector[field].as_str().unwrap().to_owned();
    for vector in &vectors {
        let hasher = SubjectHasher::new(vector["key"].as_str());
        let hash = match SubjectKind::from_name(vector["kind"].as_str().unwrap()) {
            Some(kind) => hasher.hash(&Subject { kind, tenant: &text(vector, "tenant"), id: &text(vector, "id") }),
            None => hasher.call_hash(&text(vector, "tool"), &Digest::parse(&text(vector, "args_hash")).unwrap()),
        };
        assert_eq!(hash.to_string(), text(vector, "hash"), "{vector}");
    }
    let distinct: BTreeSet<_> = vectors.iter().map(|vector| text(vector, "hash")).collect();
    let kinds: BTreeSet<_> = vectors.iter().map(|vector| text(vector, "kind")).collect();
    assert_eq!((distinct.len(), kinds.len()), (vectors.len(), 5));
}

/// A passport's digest is that of the text as it stands in the record, whatever stands around it.
#[test]
fn a_passport_is_read_from_its_own_text() {
    let text = r#"{ "status" : "active", "limit": 1.10, "name": "\u00e9" }"#;
    let controls = Controls::default();
    controls.apply(Some(b"passport/a"), Some(format!(r#"{{"type":"passport", "agent_id":"a","passport":{text} }}"#).as_bytes())).unwrap();
    let expected = tollgate_passport::Passport::read(text.as_bytes()).unwrap();
    assert_eq!(controls.passport("a").unwrap().as_deref(), Ok(&expected));
}

#[test]
fn lines_hold_records() {
    let hash = "ab".repeat(32);
    let key = format!("subject/user/{hash}");
    let value = json!({"type": "subject", "kind": "user", "hash": hash, "state": "suspended"});
    let controls = Controls::default();
    let count_after = |line: Value| {
        controls.apply_line(line.to_string().as_bytes()).unwrap();
        controls.suspended_count(SubjectKind::User)
    };
    assert_eq!(count_after(json!({"key": key, "value": value, "offset": 7})), 1);
    assert_eq!(count_after(json!({"key": key, "value": null})), 0);
    assert_eq!(count_after(json!({"key": key, "value": value.to_string()})), 1);
    for (line, code, field) in [
        ("", "value_empty", "value"),
        ("[]", "value_not_an_object", "value"),
        ("{}", "key_missing", "key"),
        (r#"{"key":1,"value":null}"#, "key_missing", "key"),
        (r#"{"key":"passport/a"}"#, "value_empty", "value"),
        (r#"{"key":"passport/a","value":7}"#, "value_not_an_object", "value"),
        (r#"{"key":"passport/a","value":""}"#, "value_empty", "value"),
        (r#"{"key":"passport/a","key":"passport/a","value":null}"#, "field_repeated", "key"),
        (r#"{"key":"passport/a","value":null,"value":null}"#, "field_repeated", "value"),
        (r#"{"key":"passport/a","value":{}}"#, "type_missing", "type"),
    ] {
        let rejection = controls.apply_line(line.as_bytes()).unwrap_err();
        assert_eq!((rejection.code.as_str(), rejection.field), (code, field), "{line}");
    }
    assert_eq!(controls.suspended_count(SubjectKind::User), 1);
    assert!(controls.passport("a").unwrap().is_err(), "it is restricted by each line whose key can be read");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Records are hostile: no bytes whatever make the table panic.
    #[test]
    fn no_bytes_harm(key in proptest::option::of("(passport/|subject/)?(user/|agent/)?[a-f0-9/é]{0,70}(/abuse)?"), value in proptest::collection::vec(any::<u8>(), 0..60)) {
        let controls = Controls::default();
        let _read = controls.apply(key.as_deref().map(str::as_bytes), Some(&value));
        let _read = controls.apply_line(&value);
    }

    /// A record that is cut short anywhere, or has one byte changed, is a control or is refused.
    #[test]
    fn no_damage_harms(at in 0_usize..200, byte in any::<u8>()) {
        let hash = "ab".repeat(32);
        let mut value = json!({"type": "subject", "kind": "user", "hash": hash, "state": "suspended", "reason": "é", "until": "2026-01-01T00:00:00Z"}).to_string().into_bytes();
        let key = format!("subject/user/{hash}");
        prop_assert!(decode(Some(key.as_bytes()), Some(&value[..at.min(value.len() - 1)])).is_err());
        let at = at % value.len();
        value[at] = byte;
        let _read = decode(Some(key.as_bytes()), Some(&value));
    }
}
