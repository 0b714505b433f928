//! Tests which records become events, and which rule each of the others breaks. A case is a line in `fixtures/`; those that are too large
//! for a line are built here.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::decide::policy::Policy;
use tollgate_core::engine::processor::Applied;
use tollgate_core::engine::stage::Progress;
use tollgate_core::event::decode::{Body, Event, ModelBody, PartialEvent, Rejection, RejectionCode, decode};
use tollgate_core::event::record::{Header, Partition};
use tollgate_fixtures::cases::{Case, jsonl};
use tollgate_fixtures::checks::{assert_has, check_each};
use tollgate_fixtures::gate::{self, Gate, default_policy, policy};
use tollgate_fixtures::measure::processor_time;
use tollgate_json::Parser;
use tollgate_passport::ToolInput;

/// Stands for what a user said or a tool was given. It is put where a rule is broken, and must not come out again.
const MARKER: &str = "MARKER-7f3a";

fn fixture_cases() -> Vec<Case> {
    jsonl("tests/fixtures/rejections.jsonl").iter().map(Case::read).collect()
}

fn call_with(field: &str, value: &str) -> String {
    let mut event =
        json!({"type": "tool_call", "thread_id": "t", "event_id": "e", "tool_call_id": "c", "tool_name": "bash", "tool_input": {}});
    event[field] = Value::from(value);
    event.to_string()
}

/// Returns a call with half a million numbers and more in this field, between this beginning and end.
fn list_call(field: &str, begin: &str, end: &str) -> String {
    call_of_values(field, begin, end, 500_000)
}

/// Returns a call with so many numbers and one more in this field, between this beginning and end.
fn call_of_values(field: &str, begin: &str, end: &str, count: usize) -> String {
    let numbers = "1,".repeat(count);
    format!(
        r#"{{"type":"tool_call","thread_id":"t","event_id":"e","tool_call_id":"c","tool_name":"bash","{field}":{begin}{numbers}1{end}}}"#
    )
}

/// Returns `length` bytes that hold the marker.
fn long(length: usize) -> String {
    format!("{MARKER}{}", "x".repeat(length - MARKER.len()))
}

/// Returns the cases that are too large for a fixture.
fn large_cases() -> Vec<Case> {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let case = |name: &str, value: String, code: &str, field: &str, [thread_id, event_id]: [Option<&str>; 2], found: &str| Case {
        name: name.to_owned(),
        value: Some(value.into_bytes()),
        expect: json!({"code": code, "field": field, "thread_id": thread_id, "event_id": event_id, "found": found}),
        ..Case::default()
    };
    let none = [None; 2];
    let deep_input = format!(r#"{{"type":"tool_call","thread_id":"t","tool_input":{}"#, r#"{"a":"#.repeat(100_000));
    let (list, text) = (list_call("tool_input", "{\"a\":[", "]}"), list_call("arguments", "\"{\\\"a\\\":[", "]}\""));
    let mut cases = vec![
        case("10 MiB", call_with("user_id", &long(10 << 20)), "value_too_large", "value", none, "bytes"),
        case("a byte too many", long(8_388_609), "value_too_large", "value", none, "8388609 bytes"),
        case("100,000 open lists", nested(100_000), "value_too_deep", "value", none, "nested too deep"),
        case("100,000 open objects in the input", deep_input, "value_too_deep", "value", none, "nested too deep"),
        case("half a million values", list, "value_too_many_values", "value", none, "500000 values"),
        case("half a million values in a text", text, "value_too_many_values", "arguments", [Some("t"), Some("e")], "500000 values"),
    ];
    let lengths = [("thread_id", 257), ("event_id", 129), ("turn_id", 257), ("tool_call_id", 4097), ("tool_name", 513)];
    for (field, length) in lengths.into_iter().chain([("thread_id", 1_000_000), ("event_id", 1_000_000)]) {
        // An id that is too long is not told again.
        let ids = [("thread_id", "t"), ("event_id", "e")].map(|(name, id)| (name != field).then_some(id));
        let (name, code) = (format!("{field} of {length} bytes"), format!("{field}_too_long"));
        cases.push(case(&name, call_with(field, &long(length)), &code, field, ids, &format!("{length} bytes")));
    }
    cases
}

/// Returns a case whose verdict would be too large, and a policy that allows less than the default.
fn too_large_a_verdict() -> (Policy, Case) {
    let calls: Vec<_> =
        (0..1_000).map(|n| json!({"id": format!("{MARKER}-{n}"), "function": {"name": "bash", "arguments": "{\"pa"}})).collect();
    let response = json!({"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": calls}}]});
    let event = json!({"type": "model_response", "thread_id": "t", "event_id": "e", "response": response});
    let expect = json!({"code": "verdict_too_large", "field": "value", "thread_id": "t", "event_id": "e", "fix": "fewer calls"});
    let case = Case { name: "a verdict too large".to_owned(), value: Some(event.to_string().into_bytes()), expect, ..Case::default() };
    (policy(&json!({"limits": {"verdict_bytes_max": 16_384}})), case)
}

#[test]
fn every_broken_rule_is_named() {
    let cases = fixture_cases().into_iter().chain(large_cases());
    check_each(cases, |case| case.name.clone(), |case| check_rejected(default_policy(), case));
    let (policy, case) = too_large_a_verdict();
    check_rejected(policy, &case);
}

fn check_rejected(policy: Policy, case: &Case) {
    let (name, expect) = (&case.name, &case.expect);
    let mut gate = Gate::new(policy);
    let (outcome, verdict) = case.feed(&mut gate);
    let Outcome::DeadLetter(rejection) = outcome else { panic!("{name}: {outcome:?}") };
    assert_eq!(rejection.code.as_str(), expect["code"].as_str().unwrap(), "{name}");
    assert_eq!(rejection.field, expect["field"].as_str().unwrap(), "{name}");
    assert_eq!(rejection.event.thread_id.as_deref(), expect["thread_id"].as_str(), "{name}: the thread that is told");
    assert_eq!(rejection.event.event_id.as_deref(), expect["event_id"].as_str(), "{name}: the event that is told");
    let found = expect["found"].as_str().unwrap_or_default();
    assert!(rejection.found.contains(found), "{name}: found {} instead of {found}", rejection.found);
    let fix = expect["fix"].as_str().unwrap_or_default();
    assert!(rejection.fix.contains(fix), "{name}: fix {} instead of {fix}", rejection.fix);
    // These are the dead letter's message, and what is published with it.
    let message = rejection.to_string();
    assert!(message.starts_with(rejection.field) && message.len() < 300, "{name}: {message}");
    if rejection.code == RejectionCode::ValueIsAVerdict {
        assert!(verdict.is_empty(), "{name}: a verdict is answered with a verdict");
        assert!(!message.contains(MARKER), "{name}: {message}");
        return;
    }
    check_invalid_event(name, &rejection.event, &message, &verdict, rejection.code);
    assert!(!message.contains(MARKER), "{name}: {message}");
}

/// Checks the verdict for a client that waits: it blocks, bears the ids of the partial event, and repeats nothing of the record.
fn check_invalid_event(name: &str, event: &PartialEvent, message: &str, bytes: &[u8], code: RejectionCode) {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(!text.contains(MARKER), "{name}: {text}");
    let verdict: Value = serde_json::from_str(text).unwrap();
    let expected = json!({
        "event_id": event.event_id.as_deref().unwrap_or("agent.events/0/0"),
        "thread_id": event.thread_id,
        "action": "block",
        "allows_execution": false,
        "should_halt": false,
        "code": "invalid_event",
        "message": format!("{}: {message}", code.as_str()),
        "decided_by": "envelope",
        "reasons": [{"source": "envelope", "code": code.as_str(), "message": message, "policy_id": null}],
    });
    assert_has(name, &verdict, &expected);
}

/// Header names are read before there is a record. A reader that cannot read one rejects the record, and the processor answers it.
#[test]
fn a_record_that_its_reader_rejects_is_answered_too() {
    let mut out = VerdictBuffer::default();
    let found = "a header whose name is not UTF-8";
    let rejection = Rejection::new(RejectionCode::HeaderInvalid, "headers", found, "name headers in UTF-8");
    let case = Case { key: Some(b"t".to_vec()), value: Some(b"{}".to_vec()), ..Case::default() };
    let mut processor = gate::processor(Partition(0), &Arc::new(default_policy()));
    let applied = processor.reject(&case.record(&[]), rejection, &mut out);
    let Ok(Applied::Taken(Progress::Done(Outcome::DeadLetter(rejection)))) = applied else { panic!("{applied:?}") };
    assert_eq!(rejection.event.thread_id.as_deref(), Some("t"));
    assert_eq!((out.thread_id.as_str(), out.event_id.as_str()), ("t", "agent.events/0/0"));
    check_invalid_event("a header", &rejection.event, &rejection.to_string(), &out.json, RejectionCode::HeaderInvalid);
}

/// A verdict that comes back as an event, in whichever envelope and under whichever key, ends as a dead letter and gets no verdict.
#[test]
fn no_verdict_is_read_as_an_event() {
    let event = |kind: &str| {
        format!(
            r#"{{"type":"{kind}","thread_id":"t","event_id":"e","tool_call_id":"c","tool_name":"ls","tool_input":{{}},"result":"","response":{{}}}}"#
        )
    };
    let events = ["model_response", "tool_call", "tool_result", "other"].map(event);
    for event in &events {
        let mut gate = Gate::new(default_policy());
        let (_, verdict) = gate.record(None, Some(event.as_bytes()), &[]);
        let text = std::str::from_utf8(&verdict).unwrap();
        assert!(text.contains("\"thread_id\":\"t\""), "{text}");
        let structured = format!(r#"{{"specversion":"1.0","source":"s","id":"1","type":"tool_call","subject":"t","data":{text}}}"#);
        let prefixed = [b"\0\0\0\0\x01", text.as_bytes()].concat();
        let reply = [Header { name: "kafka_replyTopic", value: Some(b"r") }];
        for (value, headers) in [(text.as_bytes(), &[][..]), (structured.as_bytes(), &[]), (&prefixed, &reply)] {
            let (outcome, answer) = gate.record(Some(b"t"), Some(value), headers);
            let Outcome::DeadLetter(rejection) = outcome else { panic!("{text}: {outcome:?}") };
            assert_eq!((rejection.code, answer.as_slice()), (RejectionCode::ValueIsAVerdict, b"".as_slice()), "{text}");
            assert_eq!(*rejection.event, PartialEvent::default());
        }
    }
    // An event may repeat some of a verdict's fields; only all of them make a verdict.
    let quoting = r#"{"type":"turn_end","thread_id":"t","verdict_id":"x","policy_version":"y"}"#;
    assert!(matches!(Gate::new(default_policy()).record(None, Some(quoting.as_bytes()), &[]).0, Outcome::Boundary(_)));
}

/// Headers of one name are no two keys of a fixture.
#[test]
fn a_header_of_the_envelope_that_stands_twice_is_refused() {
    let event = br#"{"tool_call_id":"c","tool_name":"bash","tool_input":{}}"#;
    let attributes = [("ce_specversion", "1.0"), ("ce_id", "e"), ("ce_type", "tool_call"), ("ce_subject", "t"), ("ce_acmeregion", "eu")];
    let field_of = |headers: &[(&str, &str)], value: &[u8]| {
        let headers: Vec<_> = headers.iter().map(|(name, value)| Header { name, value: Some(value.as_bytes()) }).collect();
        match Gate::new(default_policy()).record(Some(b"t"), Some(value), &headers).0 {
            Outcome::DeadLetter(rejection) => Some((rejection.code, rejection.field)),
            _ => None,
        }
    };
    assert_eq!(field_of(&attributes, event), None);
    let twice = [("ce_id", "ce_id"), ("ce_subject", "ce_subject"), ("ce_type", "ce_type"), ("ce_specversion", "ce_specversion")];
    for (name, field) in twice.into_iter().chain([("ce_acmeregion", "headers"), ("Ce_AcmeRegion", "headers")]) {
        for value in ["x", "1.0"] {
            let headers = [&attributes[..], &[(name, value)]].concat();
            assert_eq!(field_of(&headers, event), Some((RejectionCode::FieldRepeated, field)), "{name}");
            assert_eq!(field_of(&headers, b""), Some((RejectionCode::FieldRepeated, field)), "{name}, without data");
        }
    }
    let typed = [("content-type", "application/json"), ("content-type", "application/json")];
    let plain = br#"{"type":"turn_end"}"#;
    assert_eq!(field_of(&typed[..1], plain), None);
    assert_eq!(field_of(&typed, plain), Some((RejectionCode::FieldRepeated, "content-type")));
    // What is not of the envelope may stand as often as Kafka allows.
    assert_eq!(field_of(&[("trace", "a"), ("trace", "b")], plain), None);
}

/// Every rule has a case, so that each was seen at work.
#[test]
fn every_code_has_a_case() {
    let mut cases = fixture_cases();
    cases.extend(large_cases());
    cases.push(too_large_a_verdict().1);
    let seen: BTreeSet<_> = cases.iter().map(|case| case.expect["code"].as_str().unwrap().to_owned()).collect();
    // Headers are read before there is a record, so no record can break that rule; it has a test of its own above.
    let of_records = RejectionCode::ALL.iter().filter(|code| **code != RejectionCode::HeaderInvalid);
    let known: BTreeSet<_> = of_records.map(|code| code.as_str().to_owned()).collect();
    assert_eq!(known.difference(&seen).collect::<Vec<_>>(), Vec::<&String>::new(), "codes without a case");
    assert_eq!(seen.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "cases of a code that is not");
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "two cases share a name");
    let marked = cases.iter().filter(|case| case.value.as_ref().is_some_and(|value| holds(value, MARKER))).count();
    assert!(marked >= 40, "only {marked} cases could show a leak");
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A record that is refused costs no more than one that is accepted and has nearly all the values that an event may have.
#[test]
fn a_large_record_costs_no_more_than_reading_it() {
    /// How much dearer one may be: both are measured, and not to the last bit.
    const DEARER_MAX: u32 = 4;
    let cost = |value: Option<&[u8]>| {
        let measure = || {
            let mut gate = Gate::new(default_policy());
            let started = processor_time();
            gate.record(None, value, &[]);
            processor_time() - started
        };
        (0..5).map(|_| measure()).min().unwrap()
    };
    let largest = call_of_values("tool_input", "{\"a\":[", "]}", 400_000);
    assert!(matches!(Gate::new(default_policy()).record(None, Some(largest.as_bytes()), &[]).0, Outcome::Verdict { .. }));
    let accepted = cost(Some(largest.as_bytes()));
    for case in large_cases() {
        let refused = cost(case.value.as_deref());
        assert!(refused < DEARER_MAX * accepted, "{}: {refused:?}, and {accepted:?} for one that is accepted", case.name);
    }
}

#[test]
fn what_is_accepted() {
    check_each(jsonl("tests/fixtures/accepted.jsonl").iter().map(Case::read), |case| case.name.clone(), check_accepted);
}

fn check_accepted(case: &Case) {
    let mut parser = Parser::new();
    let headers = case.headers();
    let event = decode(&case.record(&headers), &mut parser, 8 << 20).unwrap_or_else(|rejection| panic!("{}: {rejection}", case.name));
    assert_has(&case.name, &describe(&event), &case.expect);
}

/// Returns an event as JSON, to be compared with what a case expects.
fn describe(event: &Event<'_>) -> Value {
    let who = &event.attribution;
    let mut described = json!({
        "type": event.event_type().as_str(),
        "thread_id": event.thread_id,
        "event_id": event.event_id,
        "turn_id": event.turn_id,
        "time_ms": event.time_ms,
        "agent_id": who.agent_id,
        "is_subagent": who.is_subagent,
        "user_id": who.user_id,
        "user_role": who.user_role,
        "tenant_id": who.tenant_id,
        "run_id": who.run_id,
        "attended": event.attended,
        "provider": event.provider,
    });
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let input = |input: &ToolInput<'_>| match input {
        ToolInput::Absent { null: true } => "null".to_owned(),
        ToolInput::Absent { null: false } => "absent".to_owned(),
        ToolInput::Value(value) => format!("value {}", lossy(value.source())),
        ToolInput::Encoded(text) => format!("text {}", lossy(text.as_bytes())),
    };
    match &event.body {
        Body::TurnStart | Body::TurnEnd | Body::ThreadReset => {}
        Body::ModelResponse(body) => {
            let (name, value) = match body {
                ModelBody::Response(value) => ("response", value),
                ModelBody::Message(value) => ("message", value),
                ModelBody::Error(value) => ("error", value),
            };
            described["body"] = Value::from(format!("{name} {}", lossy(value.source())));
        }
        Body::ToolCall(call) => {
            described["tool_call_id"] = json!(call.tool_call_id);
            described["tool_name"] = json!(call.tool_name);
            described["input"] = Value::from(input(&call.input));
        }
        Body::ToolResult(result) => {
            described["tool_call_id"] = json!(result.tool_call_id);
            described["tool_name"] = json!(result.tool_name);
            described["input"] = Value::from(input(&result.input));
            described["result"] = json!(result.result.as_ref().map(|text| lossy(text.as_bytes())));
            described["failed"] = json!(result.failed);
        }
    }
    described
}

/// Ids of exactly the longest length are accepted.
#[test]
fn ids_of_full_length_are_accepted() {
    for (field, length) in [("thread_id", 256), ("event_id", 128), ("turn_id", 256), ("tool_call_id", 512), ("tool_name", 512)] {
        let (outcome, _) = Gate::new(default_policy()).record(None, Some(call_with(field, &"é".repeat(length / 2)).as_bytes()), &[]);
        assert!(matches!(outcome, Outcome::Verdict { .. }), "{field} of {length} bytes: {outcome:?}");
    }
    let depth = 1_024;
    let input = format!("{}{}", r#"{"a":"#.repeat(depth - 1), format_args!("{{}}{}", "}".repeat(depth - 1)));
    let event = format!(r#"{{"type":"tool_call","thread_id":"t","tool_call_id":"c","tool_name":"bash","tool_input":{input}}}"#);
    let (outcome, _) = Gate::new(default_policy()).record(None, Some(event.as_bytes()), &[]);
    assert!(matches!(outcome, Outcome::Verdict { .. }), "an input {depth} deep: {outcome:?}");
}

/// The verdict on an event that cannot be read has fields in a fixed order, without those that are not known.
#[test]
fn the_verdict_on_an_invalid_event_to_the_byte() {
    let version = default_policy().version().to_owned();
    let event = r#"{"type":"tool_call","thread_id":"t","event_id":"e","turn_id":"u","tool_call_id":"c","tool_name":"bash","user_id":7}"#;
    check_bytes(
        event.as_bytes(),
        &format!(
            concat!(
                r#"{{"verdict_id":"{id}","event_id":"e","type":"tool_call","thread_id":"t","turn_id":"u","tool_call_id":"c","tool_name":"bash","#,
                r#""action":"block","allows_execution":false,"should_halt":false,"code":"invalid_event","#,
                r#""message":"user_id_invalid: user_id: found a number; send a string","decided_by":"envelope","#,
                r#""reasons":[{{"source":"envelope","code":"user_id_invalid","message":"user_id: found a number; send a string","policy_id":null}}],"#,
                r#""synthetic_result":"Tool call not executed: the event that asks for it could not be read "#,
                r#"(user_id_invalid: user_id: found a number; send a string).","policy_version":"{version}"}}"#
            ),
            id = gate::verdict_id("t", "e"),
            version = version,
        ),
    );
    check_bytes(
        b"7",
        &format!(
            concat!(
                r#"{{"verdict_id":"{id}","event_id":"agent.events/0/0","action":"block","allows_execution":false,"should_halt":false,"#,
                r#""code":"invalid_event","message":"value_not_an_object: value: found a number; send one JSON object per record","#,
                r#""decided_by":"envelope","reasons":[{{"source":"envelope","code":"value_not_an_object","#,
                r#""message":"value: found a number; send one JSON object per record","policy_id":null}}],"synthetic_result":"Tool call not executed: the event "#,
                r#"that asks for it could not be read (value_not_an_object: value: found a number; send one JSON object per record).","policy_version":"{version}"}}"#
            ),
            id = gate::verdict_id("", "agent.events/0/0"),
            version = version,
        ),
    );
}

fn check_bytes(value: &[u8], expected: &str) {
    let (_, bytes) = Gate::new(default_policy()).record(None, Some(value), &[]);
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}
