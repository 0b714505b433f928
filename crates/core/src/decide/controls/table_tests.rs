//! Tests of the table of controls.

use std::borrow::Cow;

use super::*;
use crate::decide::controls::{ControlRejectionCode, SubjectHasher};
use crate::event::decode::{Attribution, Body};

const UNTIL: i64 = 1_767_225_600_000;

fn hash(key: &str, kind: SubjectKind, tenant: &str, id: &str) -> Digest {
    SubjectHasher::new(Some(key)).hash(&Subject { kind, tenant, id })
}

fn event<'e>(user: Option<&'e str>, tenant: Option<&'e str>, time_ms: Option<i64>) -> Event<'e> {
    let attribution = Attribution { user_id: user.map(Cow::Borrowed), tenant_id: tenant.map(Cow::Borrowed), ..Attribution::default() };
    Event {
        thread_id: "t".into(),
        event_id: "e".into(),
        turn_id: None,
        timestamp: None,
        time_ms,
        record_ms: None,
        attribution,
        attended: None,
        provider: None,
        body: Body::TurnEnd,
    }
}

#[test]
fn what_restricts_counts_before_it_is_committed_and_goes_if_it_is_aborted() {
    let table = Controls::new(["k"]);
    let (key, value) = record(SubjectKind::User, "", "7", "");
    let (partition, offset) = (Partition(0), Offset(5));
    let early = |value: Option<&str>, offset| table.apply_early(Some(key.as_bytes()), value.map(str::as_bytes), (partition, offset));
    let event = event(Some("7"), None, Some(0));
    assert!(early(Some(&value), offset));
    assert!(table.suspension(&event).is_some() && table.suspended_count(SubjectKind::User) == 0);
    assert!(!early(None, Offset(6)), "what permits waits for its commit");
    assert!(table.suspension(&event).is_some());
    table.settle(Partition(1), Offset(9));
    table.settle(partition, offset);
    assert!(table.suspension(&event).is_some(), "another partition, and nothing in front of it");
    table.settle(partition, Offset(6));
    assert!(table.suspension(&event).is_none(), "it was aborted");
    assert!(table.apply(Some(key.as_bytes()), Some(value.as_bytes())).is_ok() && table.suspension(&event).is_some());
}

fn record(kind: SubjectKind, tenant: &str, id: &str, more: &str) -> (String, String) {
    let hash = hash("k", kind, tenant, id);
    let kind = kind.as_str();
    let value = format!(r#"{{"type":"subject","kind":"{kind}","hash":"{hash}","state":"suspended"{more}}}"#);
    (format!("subject/{kind}/{hash}"), value)
}

fn set(controls: &Controls, (key, value): &(String, String)) -> Effect {
    controls.apply(Some(key.as_bytes()), Some(value.as_bytes())).unwrap().effect
}

fn remove(controls: &Controls, (key, _): &(String, String)) -> Effect {
    controls.apply(Some(key.as_bytes()), None).unwrap().effect
}

#[test]
fn a_suspended_thread_takes_all_threads_below_it_with_it() {
    let controls = Controls::new(Some("k"));
    let of = |thread_id: &str, tenant| {
        let event = Event { thread_id: thread_id.to_owned().into(), ..event(Some("42"), tenant, Some(UNTIL)) };
        controls.suspension(&event).map(|suspension| suspension.reason.unwrap_or_default())
    };
    set(&controls, &record(SubjectKind::Thread, "acme", "a/b", r#","reason":"b""#));
    // A user's id with a slash has no users above it.
    set(&controls, &record(SubjectKind::User, "acme", "a", ""));
    for (thread_id, reason) in [
        ("a/b", Some("b")),
        ("a/b/c", Some("b")),
        ("a/b/c//d/", Some("b")),
        ("a/b/", Some("b")),
        ("a", None),
        ("a/bc", None),
        ("a/c", None),
        ("b", None),
        ("/a/b", None),
        ("x/a/b", None),
    ] {
        assert_eq!(of(thread_id, Some("acme")).as_deref(), reason, "{thread_id}");
    }
    assert_eq!(of("a/b/c", Some("other")), None);
    // The nearest one is told, and one that is over does not hide those above it.
    set(&controls, &record(SubjectKind::Thread, "acme", "a", r#","reason":"a""#));
    assert_eq!((of("a/b/c", Some("acme")).as_deref(), of("a/c", Some("acme")).as_deref()), (Some("b"), Some("a")));
    set(&controls, &record(SubjectKind::Thread, "acme", "a/b", r#","reason":"b","until":"2026-01-01T00:00:00Z""#));
    assert_eq!(of("a/b/c", Some("acme")).as_deref(), Some("a"));
    assert_eq!(of(&"/".repeat(256), Some("acme")), None);
}

#[test]
fn a_suspension_is_over_by_the_time_of_the_event() {
    let controls = Controls::new(Some("k"));
    set(&controls, &record(SubjectKind::User, "", "42", r#","reason":"chargeback","until":"2026-01-01T00:00:00Z""#));
    let at = |time| controls.suspension(&event(Some("42"), None, time)).and_then(|suspension| suspension.reason);
    assert_eq!(at(Some(UNTIL - 1)).as_deref(), Some("chargeback"));
    assert_eq!(at(Some(UNTIL)), None);
    assert_eq!(at(None).as_deref(), Some("chargeback"));
    let ahead = |record_ms| controls.suspension(&Event { record_ms: Some(record_ms), ..event(Some("42"), None, Some(UNTIL + 9)) });
    assert_eq!([UNTIL - 1, UNTIL].map(|record_ms| ahead(record_ms).is_some()), [true, false], "anybody can write a time");
}

/// Returns the abuse stage's record about a user.
fn machines(key: &str, id: &str, until: &str) -> (String, String) {
    let hash = hash(key, SubjectKind::User, "", id);
    let more = format!(r#""until":"{until}","rule":"safety-stop-user","step":1,"alert_id":"a1""#);
    let value = format!(r#"{{"type":"subject","kind":"user","hash":"{hash}","state":"suspended",{more}}}"#);
    (format!("subject/user/{hash}/abuse"), value)
}

#[test]
fn the_machines_record_is_another_than_the_operators() {
    let controls = Controls::new(Some("k"));
    let at = |time| controls.suspension(&event(Some("42"), None, Some(time))).and_then(|suspension| suspension.reason);
    let (operators, machines) =
        (record(SubjectKind::User, "", "42", r#","reason":"chargeback""#), machines("k", "42", "2026-01-01T00:00:00Z"));
    set(&controls, &machines);
    assert_eq!((at(UNTIL - 1).as_deref(), at(UNTIL)), (Some("abuse rule safety-stop-user"), None));
    set(&controls, &operators);
    assert_eq!((at(0).as_deref(), controls.suspended_count(SubjectKind::User)), (Some("chargeback"), 1));
    assert_eq!(remove(&controls, &operators), Effect::Removed);
    assert_eq!(at(0).as_deref(), Some("abuse rule safety-stop-user"));
    let exempt = (operators.0.clone(), operators.1.replace("suspended", "exempt"));
    set(&controls, &exempt);
    assert_eq!((at(0), controls.suspended_count(SubjectKind::User)), (None, 0));
    assert_eq!((remove(&controls, &machines), remove(&controls, &machines)), (Effect::Removed, Effect::Absent));
    assert_eq!(remove(&controls, &exempt), Effect::Removed);
    assert!(controls.subjects.is_empty());
}

#[test]
fn what_was_written_under_an_earlier_key_is_still_found() {
    let controls = Controls::new(["k", "old", "older"]);
    let of = |user| controls.suspension(&event(Some(user), None, Some(UNTIL))).map(|suspension| suspension.reason.unwrap_or_default());
    for (key, user) in [("k", "1"), ("old", "2"), ("older", "3"), ("foreign", "4")] {
        set(&controls, &machines(key, user, "2026-02-01T00:00:00Z"));
        assert_eq!(of(user).is_some(), key != "foreign", "{key}");
    }
    let user = |id| Subject { kind: SubjectKind::User, tenant: "", id };
    assert_eq!(controls.subject_hash(&user("2")), hash("k", SubjectKind::User, "", "2"));
    // Of two records of the machine the longer one counts, and of two operators' records the stricter one.
    set(&controls, &machines("k", "2", "2026-01-01T00:00:00Z"));
    assert!(of("2").is_some());
    let operators = |key: &str, state: &str| {
        let hash = hash(key, SubjectKind::User, "", "2");
        (format!("subject/user/{hash}"), format!(r#"{{"type":"subject","kind":"user","hash":"{hash}","state":"{state}"}}"#))
    };
    set(&controls, &operators("old", "suspended"));
    assert_eq!(of("2").as_deref(), Some(""));
    set(&controls, &operators("k", "exempt"));
    assert_eq!(of("2").as_deref(), Some(""), "an exemption lifts no suspension");
    remove(&controls, &operators("old", "suspended"));
    assert_eq!(of("2"), None);
    let (mut ended, suspended) = (operators("k", "suspended"), operators("old", "suspended"));
    ended.1 = ended.1.replace('}', r#","until":"2025-12-31T00:00:00Z"}"#);
    set(&controls, &ended);
    set(&controls, &suspended);
    assert_eq!(of("2").as_deref(), Some(""), "a suspension that has ended hides no other");
}

#[test]
fn a_long_tenant_is_hashed_like_any_other() {
    let controls = Controls::new(["k", "old"]);
    for (tenant, id) in [("t".repeat(300), "a/b/c"), ("t\0".repeat(200), "a/b/c"), ("t".repeat(300), "a/b\0/c"), ("t".to_owned(), "a/b/c")]
    {
        let (hash, mut event) = (hash("old", SubjectKind::Thread, &tenant, "a"), event(None, Some(&tenant), Some(0)));
        event.thread_id = id.into();
        let key = format!("subject/thread/{hash}");
        let value = format!(r#"{{"type":"subject","kind":"thread","hash":"{hash}","state":"suspended"}}"#);
        assert!(controls.suspension(&event).is_none());
        controls.apply(Some(key.as_bytes()), Some(value.as_bytes())).unwrap();
        assert!(controls.suspension(&event).is_some(), "{} bytes of tenant, thread {id:?}", tenant.len());
        controls.apply(Some(key.as_bytes()), None).unwrap();
    }
}

#[test]
fn counts_follow_what_is_set_and_removed() {
    let controls = Controls::new(Some("k"));
    let (one, other) = (record(SubjectKind::User, "", "1", ""), record(SubjectKind::User, "", "2", ""));
    let count = || controls.suspended_count(SubjectKind::User);
    let effects = [set(&controls, &one), set(&controls, &one), set(&controls, &other), remove(&controls, &one), remove(&controls, &one)];
    assert_eq!((effects, count()), ([Effect::Set, Effect::Set, Effect::Set, Effect::Removed, Effect::Absent], 1));
    assert_eq!((remove(&controls, &other), count()), (Effect::Removed, 0));
    assert_eq!(controls.suspended_count(SubjectKind::Agent), 0);
}

#[test]
fn what_cannot_be_read_is_the_strictest_control_of_its_key_until_it_is_written_anew() {
    let controls = Controls::new(Some("k"));
    let user = record(SubjectKind::User, "", "42", r#","until":"2026-01-01T00:00:00Z""#);
    let suspended = || controls.suspension(&event(Some("42"), None, Some(UNTIL))).map(|suspension| suspension.reason.unwrap_or_default());
    let apply = |key: &str, value: &str| controls.apply(Some(key.as_bytes()), Some(value.as_bytes()));
    set(&controls, &user);
    assert_eq!(suspended(), None, "its end has come");
    let refused = apply(&user.0, &user.1.replace("2026-01-01T00:00:00Z", "soon")).unwrap_err();
    assert_eq!(refused.code, ControlRejectionCode::UntilInvalid);
    assert_eq!(suspended().as_deref(), Some("its control record cannot be read (until_invalid)"));
    set(&controls, &user);
    assert_eq!(suspended(), None);
    let machines = machines("k", "42", "2026-01-01T00:00:00Z");
    assert!(apply(&machines.0, "{}").is_err());
    assert_eq!(suspended().as_deref(), Some("its control record cannot be read (type_missing)"));
    assert_eq!((remove(&controls, &machines), suspended()), (Effect::Removed, None));

    let passport = || controls.passport("coder").map(|passport| passport.map_err(|fault| fault.to_string()));
    apply("passport/coder", r#"{"type":"passport","agent_id":"coder","passport":{"status":"active"}}"#).unwrap();
    assert!(passport().unwrap().is_ok());
    assert_eq!(apply("passport/coder", "{").unwrap_err().code, ControlRejectionCode::ValueNotJson);
    assert_eq!(passport(), Some(Err("its control record cannot be read (value_not_json)".to_owned())));
    controls.apply(Some(b"passport/coder"), None).unwrap();
    assert_eq!((passport(), controls.passport_count()), (None, 0));
}

#[test]
fn what_cannot_be_read_restricts_before_it_is_committed() {
    let controls = Controls::new(Some("k"));
    let (key, _) = record(SubjectKind::User, "", "7", "");
    let early = |key: &str| controls.apply_early(Some(key.as_bytes()), Some(b"{"), (Partition(0), Offset(5)));
    assert!(early(&key) && early("passport/coder") && !early("passport/") && !early("worker/a"));
    assert!(controls.suspension(&event(Some("7"), None, None)).is_some());
    assert!(controls.narrowing_passports("coder")[0].is_err());
    controls.settle(Partition(0), Offset(6));
    assert!(controls.suspension(&event(Some("7"), None, None)).is_none() && controls.narrowing_passports("coder").is_empty());
}

#[test]
fn no_partition_lifts_what_another_one_restricts_whichever_is_read_first() {
    let user = record(SubjectKind::User, "", "7", "");
    let exempt = user.1.replace("suspended", "exempt");
    let machines = machines("k", "7", "2026-01-01T00:00:00Z");
    let passport = |status: &str| format!(r#"{{"type":"passport","agent_id":"coder","passport":{{"status":"{status}"}}}}"#);
    let (narrow, wide) = (passport("suspended"), passport("active"));
    let records = [
        (0, user.0.as_str(), Some(user.1.as_str())),
        (1, &user.0, Some(&exempt)),
        (2, &user.0, None),
        (0, &machines.0, Some(&machines.1)),
        (0, "passport/coder", Some(&narrow)),
        (1, "passport/coder", Some(&wide)),
        (2, "passport/coder", None),
    ];
    for rotation in 0..records.len() {
        let controls = Controls::new(Some("k"));
        let apply = |(partition, key, value): (i32, &str, Option<&str>)| {
            controls.apply_from(Partition(partition), Some(key.as_bytes()), value.map(str::as_bytes)).unwrap().effect
        };
        let passports = || controls.passport("coder").into_iter().chain(controls.narrowing_passports("coder")).count();
        let is_suspended = || controls.suspension(&event(Some("7"), None, Some(0))).is_some();
        for index in 0..records.len() {
            apply(records[(rotation + index) % records.len()]);
        }
        assert!(is_suspended() && controls.suspended_count(SubjectKind::User) == 1);
        assert_eq!((passports(), controls.passport_count()), (2, 1), "a call has to be allowed by both");
        assert_eq!((apply((0, &user.0, None)), is_suspended()), (Effect::Removed, false), "the exemption is left");
        assert_eq!((apply((1, &user.0, None)), is_suspended()), (Effect::Removed, true), "the abuse stage's record is left");
        assert_eq!((apply((0, "passport/coder", None)), passports()), (Effect::Removed, 1));
        assert_eq!((apply((1, "passport/coder", None)), controls.passport_count()), (Effect::Removed, 0));
        assert_eq!((apply((0, &machines.0, None)), controls.suspended_count(SubjectKind::User)), (Effect::Removed, 0));
    }
}

#[test]
fn a_note_changes_nothing_whatever_it_holds() {
    let controls = Controls::new(["k", "old"]);
    for value in [Some(&b"{"[..]), Some(b"\xff"), None] {
        let change = controls.apply(Some(b"worker/tollgate/host-1"), value).unwrap();
        assert_eq!((change.control_type, change.effect, change.is_operators), ("note", Effect::Absent, false));
        assert!(!controls.apply_early(Some(b"history/passport/coder"), value, (Partition(0), Offset(0))));
    }
    assert_eq!((controls.passport_count(), controls.suspended_count(SubjectKind::User)), (0, 0));
    let fingerprints = ["k", "old"].map(|key| SubjectHasher::new(Some(key)).fingerprint().unwrap());
    assert_eq!((controls.key_fingerprints(), Controls::default().key_fingerprints()), (fingerprints.to_vec(), Vec::new()));
}

#[test]
fn readers_on_many_threads_see_what_one_writer_sets() {
    let controls = Controls::new(Some("k"));
    let user = record(SubjectKind::User, "", "42", "");
    let seen = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                while controls.suspension(&event(Some("42"), None, None)).is_none() {
                    std::thread::yield_now();
                }
                seen.fetch_add(1, Ordering::AcqRel);
                while controls.suspension(&event(Some("42"), None, None)).is_some() {
                    std::thread::yield_now();
                }
            });
        }
        set(&controls, &user);
        while seen.load(Ordering::Acquire) < 4 {
            std::thread::yield_now();
        }
        remove(&controls, &user);
    });
}
