//! Tests the formats that `tollgate eval` reads, on what kcat printed of a real topic.
//!
//! `tests/formats` holds what both printed of the same topic, the records as a capture has them, and the verdicts of the worker that read it.
//! `TOLLGATE_UPDATE_FIXTURES=1 cargo test --test kafka -- formats` writes it anew; `tests/kafka/formats.rs` says what that needs.

use crate::support::{Ran, assert_has, check_each, run, temporary, tollgate};
use serde_json::{Value, json};
use tollgate_fixtures::cases::jsonl;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/formats/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn eval(arguments: &[&str], input: &[u8]) -> Ran {
    run(tollgate().arg("eval").args(arguments), input)
}

/// Returns verdicts under a version of the policy that stays: the recorded one is that of a release.
fn unversioned(verdicts: &str) -> String {
    let version = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("a verdict");
        value["policy_version"].as_str().expect("a version").to_owned()
    };
    verdicts.lines().map(|line| line.replace(&version(line), "v") + "\n").collect()
}

/// Returns the verdicts on the events that say everything themselves: their ids are neither places nor in headers.
fn of_whole_events(verdicts: &str) -> String {
    let is_whole = |line: &&str| {
        let value: Value = serde_json::from_str(line).expect("a verdict");
        value["thread_id"].as_str().is_some_and(|thread| thread.starts_with("thread-"))
    };
    verdicts.lines().filter(is_whole).map(|line| line.to_owned() + "\n").collect()
}

/// Whatever printed the records, they get the verdicts that the worker gave, byte for byte.
#[test]
fn every_format_gets_the_verdicts_of_the_worker() {
    let recorded = unversioned(&String::from_utf8(fixture("verdicts.jsonl")).unwrap());
    assert!(recorded.lines().count() > 40);
    let reports = eval(&[], &fixture("envelope.jsonl")).stderr;
    assert!(reports.lines().count() >= 5, "{reports}");
    let cases: [(&str, &[&str]); 4] =
        [("envelope.jsonl", &[]), ("envelope.jsonl", &["--format", "envelope"]), ("kcat.txt", &[]), ("kcat.txt", &["--format", "kcat"])];
    check_each(
        cases,
        |(name, arguments)| format!("{name} {arguments:?}"),
        |(name, arguments)| {
            let events = serde_json::from_slice::<Value>(fixture("envelope.jsonl").split(|byte| *byte == b'\n').next().unwrap()).unwrap();
            let ran = run(
                tollgate().arg("eval").args(*arguments).env("TOLLGATE__KAFKA__TOPICS__EVENTS", events["topic"].as_str().unwrap()),
                &fixture(name),
            );
            assert_eq!((unversioned(&ran.stdout), ran.exit), (recorded.clone(), Some(3)), "{}", ran.stderr);
            assert_eq!(ran.stderr, reports);
        },
    );
}

/// Events that say everything themselves need neither keys nor places.
#[test]
fn whole_events_get_the_same_verdicts_without_their_records() {
    let recorded = of_whole_events(&unversioned(&String::from_utf8(fixture("verdicts.jsonl")).unwrap()));
    assert!(recorded.lines().count() > 30);
    let plain: String = String::from_utf8(fixture("envelope.jsonl"))
        .unwrap()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["value"].as_str().map(|value| value.to_owned() + "\n"))
        .filter(|line| line.contains("\"thread_id\":\"thread-"))
        .collect();
    assert_eq!(unversioned(&eval(&["--format", "events"], plain.as_bytes()).stdout), recorded);
    assert_eq!(eval(&[], plain.as_bytes()), eval(&["--format", "events"], plain.as_bytes()));
}

const BARE: &str = r#"{"type":"tool_call","tool_call_id":"c","tool_name":"ls"}"#;

fn kcat(offset: i64, key: &Value, payload: &str) -> Value {
    json!({"topic": "t", "partition": 0, "offset": offset, "tstype": "create", "ts": 1_700_000_000_000_i64, "broker": 1, "key": key, "payload": payload})
}

/// A line that two formats could read is decided by the documented order, and one whose format is unclear is refused. A case has the line, the
/// thread and the event's id of its verdict, and the code and the field of its report.
#[test]
fn the_format_of_a_line_is_found_or_refused() {
    check_each(jsonl("tests/eval_formats.jsonl"), |case| case["name"].to_string(), check_format);
}

fn check_format(case: &Value) {
    let line = case["line"].as_str().map_or_else(|| case["line"].to_string(), str::to_owned);
    let arguments: Vec<&str> = case["arguments"].as_array().into_iter().flatten().map(|argument| argument.as_str().unwrap()).collect();
    let ran = eval(&arguments, line.as_bytes());
    let verdicts: Vec<Value> = ran.json_lines().iter().map(|verdict| json!([verdict["thread_id"], verdict["event_id"]])).collect();
    let reports: Vec<Value> = ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let faults: Vec<Value> = reports.iter().map(|report| json!([report["code"], report["field"]])).collect();
    assert_eq!((json!(verdicts), json!(faults)), (case["verdicts"].clone(), case["reports"].clone()), "{ran:?}");
    assert!(reports.iter().all(|report| report["line"] == 1 && report["found"].is_string() && report["fix"].is_string()), "{ran:?}");
    assert_eq!(ran.exit, Some(if reports.is_empty() { 0 } else { 3 }), "{ran:?}");
}

/// A rejected record with a known thread is answered, as by a worker.
#[test]
fn a_record_that_is_no_event_is_answered_if_its_key_names_the_thread() {
    let ran = eval(&[], kcat(0, &json!("k"), "nonsense").to_string().as_bytes());
    assert_has("kcat", &ran.json_lines()[0], &json!({"thread_id": "k", "action": "block", "code": "invalid_event"}));
}

/// Every member of a record that is wrong is named, with what was found and what to write.
#[test]
fn members_that_are_wrong_are_named() {
    let cases: Vec<(&str, Value, &str)> = vec![
        ("topic", json!(7), "a number"),
        ("topic", Value::Null, "null"),
        ("partition", json!(-1), "a number"),
        ("partition", json!(3_000_000_000_u32), "a number"),
        ("offset", json!("7"), "a string"),
        ("offset", json!(1.5), "a number"),
        ("timestamp", json!("2026"), "a string"),
        ("key", json!(7), "a number"),
        ("key", json!({"base64": "?"}), "a string that is not base64"),
        ("key", json!({"base64": "aw==", "more": 1}), "an object"),
        ("value", json!({"type": "tool_call"}), "an object"),
        ("headers", json!("x"), "a string"),
        ("headers", json!(["name", "value"]), "a name without a value"),
        ("headers", json!([["name"]]), "a name without a value"),
        ("headers", json!([[null, "value"]]), "null in place of a name"),
        ("headers", json!([["name", 7]]), "a number"),
    ];
    let whole = json!({"topic": "t", "partition": 0, "offset": 0, "timestamp": 1, "key": "k", "headers": [], "value": BARE});
    for (name, value, found) in cases {
        let mut line = whole.clone();
        line[name] = value;
        let ran = eval(&["--format", "envelope"], line.to_string().as_bytes());
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(3), ""), "{line}: {ran:?}");
        let report: Value = serde_json::from_str(&ran.stderr).unwrap();
        assert_has(&line.to_string(), &report, &json!({"code": "record_invalid", "field": name, "found": found}));
    }
    let repeated = r#"{"topic":"t","topic":"t","partition":0,"offset":0,"key":null,"value":null}"#;
    assert!(eval(&["--format", "envelope"], repeated.as_bytes()).stderr.contains("more than once"));
    assert_eq!(eval(&["--format", "envelope"], whole.to_string().as_bytes()).exit, Some(0));
    // kcat's list of headers, and the map that some versions write.
    for headers in [
        json!(["ce_specversion", "1.0", "ce_id", "x", "ce_type", "tool_call"]),
        json!({"ce_specversion": ["1.0"], "ce_id": ["w", "x"], "ce_type": ["tool_call"]}),
    ] {
        let mut line = kcat(0, &json!("k"), BARE);
        line["headers"] = headers.clone();
        let ran = eval(&[], line.to_string().as_bytes());
        // The name `ce_id` stands twice in the map, which is refused, as by a worker.
        let event_id = ran.json_lines()[0]["event_id"].clone();
        assert_eq!((event_id, ran.exit), (json!("x"), Some(if headers.is_array() { 0 } else { 3 })), "{ran:?}");
    }
}

/// A header whose name is not UTF-8 makes a record unreadable, as in a worker; bytes in kcat's strings stay what they are.
#[test]
fn bytes_that_are_not_utf_8_stay_what_they_are() {
    let line = kcat(0, &json!("K"), BARE).to_string();
    let ran = eval(&[], &replaced(&line, "\"key\"", b"\"headers\":[\"\xff\",\"x\"],\"key\""));
    assert!(ran.stderr.contains("header_invalid") && ran.stdout.contains("\"thread_id\":\"K\""), "{ran:?}");
    let ran = eval(&[], &replaced(&line, "\"K\"", b"\"\xff\xfe\""));
    assert!(ran.stderr.contains("key_invalid") && ran.stderr.contains("2 bytes"), "{ran:?}");
}

fn replaced(line: &str, what: &str, with: &[u8]) -> Vec<u8> {
    let (before, behind) = line.split_once(what).expect("it is there");
    [before.as_bytes(), with, behind.as_bytes()].concat()
}

/// Each partition has its own threads, and a record that comes again is not decided again.
#[test]
fn partitions_and_offsets_count() {
    // A result without a call of its own would be the first one's copy.
    let failed_as =
        |id: &str| format!(r#"{{"type":"tool_result","tool_call_id":"{id}","tool_name":"ls","tool_input":{{}},"result":"Error: x"}}"#);
    let (failed, again) = (failed_as("c1"), failed_as("c2"));
    let at = |partition: i32, offset: i64, value: &str| {
        let mut line = kcat(offset, &json!("k"), value);
        line["partition"] = json!(partition);
        line.to_string()
    };
    let codes = |lines: &[String]| -> Vec<String> {
        let ran = eval(&[], lines.join("\n").as_bytes());
        ran.json_lines().iter().map(|verdict| verdict["code"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(codes(&[at(0, 0, &failed), at(0, 1, &again)]), ["allow", "repeated_exact_failure_warning"]);
    assert_eq!(codes(&[at(0, 0, &failed), at(1, 0, &again)]), ["allow", "allow"]);
    let ran = eval(&[], [at(0, 5, &failed), at(0, 5, &again), at(0, 4, &again), at(0, 6, &again)].join("\n").as_bytes());
    assert_eq!((ran.exit, ran.json_lines().len()), (Some(3), 2));
    // The threads begin with a result, which is said in a sentence.
    let reports: Vec<Value> = ran.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(reports.len(), 2);
    assert_has("again", &reports[0], &json!({"line": 2, "code": "offset_repeated", "field": "offset"}));
    assert_has("before", &reports[1], &json!({"line": 3, "code": "offset_repeated"}));
    let many: Vec<_> = (0..10_001).map(|partition| at(partition, 0, r#"{"type":"turn_end"}"#)).collect();
    let ran = eval(&[], many.join("\n").as_bytes());
    assert!(ran.exit == Some(1) && ran.stderr.contains("more than 10000 partitions"), "{ran:?}");
}

/// The time of a record counts: a suspension ends for the records that were written after its end.
#[test]
fn the_time_of_a_record_counts() {
    use tollgate_core::decide::controls::{Subject, SubjectHasher};
    use tollgate_core::decide::ruling::SubjectKind;
    let hash = SubjectHasher::new(None).hash(&Subject { kind: SubjectKind::User, tenant: "", id: "u" }).to_string();
    let control = json!({"key": format!("subject/user/{hash}"), "value": {"type": "subject", "kind": "user", "hash": hash, "state": "suspended", "until": "2023-11-14T22:13:20Z"}});
    let controls = temporary(&control.to_string());
    let of_u = BARE.replace("\"tool_call\",", "\"tool_call\",\"user_id\":\"u\",");
    let at = |offset: i64, ms: i64| {
        let mut line = kcat(offset, &json!("k"), &of_u);
        line["ts"] = json!(ms);
        line.to_string()
    };
    let controls = controls.path().to_str().unwrap();
    let lines = [at(0, 1_699_999_999_000), at(1, 1_700_000_001_000)];
    let ran = eval(&["--controls", controls], lines.join("\n").as_bytes());
    let codes: Vec<_> = ran.json_lines().iter().map(|verdict| verdict["code"].as_str().unwrap().to_owned()).collect();
    assert_eq!(codes, ["subject_suspended", "allow"], "{ran:?}");
}

/// The largest event fits its line in every format, and a line beyond that is refused without being held.
#[test]
fn lines_may_be_longer_than_events() {
    let event = format!(r#"{{"type":"tool_call","tool_call_id":"c","tool_name":"ls","tool_input":{{"a":"{}"}}}}"#, "\\\"".repeat(1_000));
    let limit = event.len().to_string();
    let with_limit = |limit: &str, line: &str| run(tollgate().arg("eval").env("TOLLGATE__LIMITS__EVENT_BYTES_MAX", limit), line.as_bytes());
    let line = kcat(0, &json!("k"), &event).to_string();
    assert!(line.len() > event.len() * 3 / 2);
    assert_eq!(with_limit(&limit, &line).exit, Some(0));
    let ran = with_limit(&(event.len() - 1).to_string(), &line);
    assert!(ran.stderr.contains("value_too_large") && ran.stdout.contains("\"thread_id\":\"k\""), "{ran:?}");
    let ran = with_limit("1000", &kcat(0, &json!("k"), &"x".repeat(2 << 20)).to_string());
    assert!(ran.exit == Some(3) && ran.stderr.contains("value_too_large") && ran.stdout.is_empty(), "{ran:?}");
}

#[test]
fn a_format_that_is_not_known_is_refused() {
    assert_eq!(eval(&["--format", "csv"], b"").exit, Some(2));
}
