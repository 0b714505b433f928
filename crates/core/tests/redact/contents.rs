//! What stands for what: arguments, results and users stay equal where they were, and different where they were.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_core::decide::loops::{arguments_digest, classify, result_digest};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_core::redact::Redactor;
use tollgate_fixtures::gate::{default_policy, record};
use tollgate_fixtures::pair::{KEY, Pair};
use tollgate_json::digest::Digest;
use tollgate_json::{Parser, Shape, Text};
use tollgate_passport::ToolInput;

/// Returns a value of an event after redaction, given and returned as JSON.
fn redacted(redactor: &mut Redactor, field: &str, json: &str) -> String {
    let begin = format!(
        "{{\"type\":\"tool_result\",\"thread_id\":\"t\",\"tool_call_id\":\"c\",\"tool_name\":\"bash\",\"tool_input\":{{}},\"{field}\":"
    );
    let is_input = matches!(field, "tool_input" | "arguments");
    let begin = if is_input { begin.replace("\"tool_input\":{},", "\"result\":null,") } else { begin };
    let value = format!("{begin}{json}}}");
    let record = record(Partition(0), Offset(0), value.as_bytes());
    let out = String::from_utf8(redactor.redact(&record).unwrap_or_else(|error| panic!("{error}: {value}")).value.unwrap()).unwrap();
    assert_eq!(out.len(), value.len());
    out.strip_prefix(&begin).unwrap().strip_suffix('}').unwrap().to_owned()
}

/// A value spelled in one of several ways, some of which mean the same. There are few of them, so that many are equal.
fn spelled() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "0",
        "-0",
        "1",
        "2",
        "10",
        "1.0",
        "1e0",
        "1.50",
        "15e-1",
        "0.1",
        "1e400",
        "2e400",
        "NaN",
        "null",
        "true",
        "\"\"",
        "\"a\"",
        r#""\u0061""#,
        r#""b""#,
        r#""\n""#,
        r#""\u000A""#,
        r#""é""#,
        r#""\u00e9""#,
        r#""😀""#,
        r#""\ud83d\ude00""#,
        r#""\ud83d""#,
        r#""a b""#,
        r#""error""#,
        r#""\/""#,
        r#""/""#,
        "12345678901234567890",
        "0.30000000000000004",
    ]);
    let key = prop::sample::select(vec![r#""a""#, r#""\u0061""#, r#""b""#, r#""error""#, r#""exit_code""#, r#""ab""#, r#""""#]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 4, move |inner| {
        let comma = prop::sample::select(vec![",", " , "]);
        prop_oneof![
            (vec(inner.clone(), 0..4), comma.clone()).prop_map(|(items, comma)| format!("[{}]", items.join(comma))),
            (vec((key.clone(), inner), 0..4), comma).prop_map(|(members, comma)| {
                let members: Vec<_> = members.iter().map(|(key, value)| format!("{key}:{value}")).collect();
                format!("{{{}}}", members.join(comma))
            }),
        ]
    })
}

/// Checks that digests are equal after redaction where they were before, and nowhere else.
#[derive(Default)]
struct Bijection {
    there: HashMap<Digest, Digest>,
    back: HashMap<Digest, Digest>,
}

impl Bijection {
    fn check(&mut self, before: Digest, after: Digest, what: &str) {
        assert_eq!(*self.there.entry(before).or_insert(after), after, "equal ones differ: {what}");
        assert_eq!(*self.back.entry(after).or_insert(before), before, "different ones are equal: {what}");
    }
}

/// Returns the outline of a value: what is left of it when names, texts and numbers are not looked at.
fn outline(text: &str) -> Vec<(Shape, usize)> {
    let mut parser = Parser::new();
    let mut open = vec![parser.parse(text.as_bytes(), 64).unwrap()];
    let mut found = Vec::new();
    while let Some(value) = open.pop() {
        let length = value.as_text().map_or(value.source().len(), |text| text.as_bytes().len());
        found.push((value.shape(), length));
        open.extend(value.items());
        open.extend(value.members().flat_map(|(key, member)| [key, member]));
    }
    found
}

fn of_arguments(json: &str) -> Digest {
    arguments_digest(&ToolInput::Encoded(Text::plain(json.as_bytes())), &mut Vec::new())
}

fn of_result(text: &str) -> Digest {
    result_digest(Some(&Text::plain(text.as_bytes())))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arguments_and_results_keep_equality_and_outline(values in vec(spelled(), 24)) {
        let mut redactor = Redactor::new(KEY);
        let (mut arguments, mut results) = (Bijection::default(), Bijection::default());
        for value in &values {
            let object = format!("{{\"k\":{value}}}");
            let after = redacted(&mut redactor, "tool_input", &object);
            prop_assert_eq!(outline(&after), outline(&object));
            arguments.check(of_arguments(&object), of_arguments(&after), &object);
            // The same arguments as a JSON text in a string have the same stand-in.
            let quoted = Value::from(object.as_str()).to_string();
            let inner: String = serde_json::from_str(&redacted(&mut redactor, "arguments", &quoted)).unwrap();
            prop_assert_eq!(&inner, &after);
            let after = redacted(&mut redactor, "result", value);
            prop_assert_eq!(outline(&after), outline(value));
            let text: Option<String> = serde_json::from_str(value).ok();
            let text_after: Option<String> = serde_json::from_str(&after).ok();
            let (seen, seen_after) = (text.as_deref().unwrap_or(value), text_after.as_deref().unwrap_or(&after));
            if !value.starts_with(r#""\ud83d""#) && value != "null" {
                results.check(of_result(seen), of_result(seen_after), value);
            }
        }
    }

    #[test]
    fn results_that_are_texts_keep_equality_and_class(texts in vec("[ -~]{0,3}|[a-e \"{}:,0-9]{0,8}|.{0,12}|(error|Error|\"error\"|traceback|[a-z :\"]{1,3}){1,4}", 24)) {
        let (mut redactor, mut results) = (Redactor::new(KEY), Bijection::default());
        for text in &texts {
            let after = redacted(&mut redactor, "result", &Value::from(text.as_str()).to_string());
            let after: String = serde_json::from_str(&after).unwrap();
            prop_assert_eq!(after.len(), text.len());
            results.check(of_result(text), of_result(&after), text);
            for tool in ["bash", "terminal", "memory"] {
                let class = |text: &str| classify(tool, Some(&Text::plain(text.as_bytes())));
                prop_assert_eq!(class(text), class(&after), "{} as {}", text, after);
            }
        }
    }
}

#[test]
fn every_short_result_has_a_stand_in_of_its_own() {
    let (mut redactor, mut results) = (Redactor::new(KEY), Bijection::default());
    for first in ' '..='~' {
        for text in [first.to_string(), format!("{first}1"), format!("{first}]"), format!("[{first}")] {
            let after = redacted(&mut redactor, "result", &Value::from(text.as_str()).to_string());
            let after: String = serde_json::from_str(&after).unwrap();
            results.check(of_result(&text), of_result(&after), &text);
        }
    }
}

#[test]
fn users_stay_apart_and_agents_stay() {
    let mut pair = Pair::new(default_policy);
    let mut of = |user: &str| {
        let event = json!({"type": "turn_end", "thread_id": "t", "user_id": user, "agent_id": "coder", "tenant_id": "acme", "run_id": "r", "user_role": "owner"});
        let after = pair.event(&event);
        for field in ["thread_id", "agent_id", "tenant_id", "run_id"] {
            assert_eq!(after[field], event[field]);
        }
        assert_ne!(after["user_role"], "owner");
        after["user_id"].as_str().unwrap().to_owned()
    };
    let users: Vec<_> = (100..1_000).map(|number| of(&format!("user-{number}"))).collect();
    let distinct: std::collections::HashSet<_> = users.iter().collect();
    assert_eq!(distinct.len(), users.len());
    assert_eq!(of("user-100"), users[0]);
    assert!(users.iter().all(|user| !user.starts_with("user")));
}

#[test]
fn another_key_gives_other_stand_ins_and_the_same_key_the_same() {
    let of = |key: &[u8]| redacted(&mut Redactor::new(key), "tool_input", r#"{"path":"/etc/passwd","limit":4711}"#);
    assert_eq!(of(b"one"), of(b"one"));
    assert_ne!(of(b"one"), of(b"two"));
}

/// Read as it is spelled, the result tells of a failure: by the letter of an escape and what follows. Decoded, it does not.
#[test]
fn a_record_that_would_be_decided_otherwise_is_left_out() {
    let value = br#"{"type":"tool_result","thread_id":"t","tool_call_id":"c","tool_name":"bash","tool_input":{},"result":["\traceback"]}"#;
    let error = Pair::new(default_policy).record(None, Some(value), &[]).unwrap_err();
    let expected = "the record at agent.events/0/0 cannot be redacted: the redacted record would differ in whether it failed; leave it out";
    assert_eq!(error.to_string(), expected);
}
