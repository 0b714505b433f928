//! No body makes a wire panic, and no body but a valid request leads to an answer that the host reads as leave to run a call.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_hosts::{Unanswered, Wire};
use tollgate_json::{DEPTH_MAX, Parser};

use crate::support::{Reading, all, expected, read, reading, recorded};

/// The events that gate nothing, by host: an empty answer to them lets no call run. From the hosts' documentation.
fn gates_nothing(host: &str, event: &str) -> bool {
    match host {
        "gemini-cli" => !matches!(event, "BeforeTool" | "AfterTool"),
        "litellm" | "opa" => false,
        _ => {
            !matches!(event.to_ascii_lowercase().as_str(), "pretooluse" | "beforeshellexecution" | "beforemcpexecution" | "beforereadfile")
        }
    }
}

/// Checks what a wire makes of any body.
fn check(wire: &dyn Wire, path: &str, body: &[u8]) {
    let host = wire.name();
    let mut parser = Parser::new();
    let parsed = parser.parse(body, DEPTH_MAX).ok();
    let member = |name: &str| Some(String::from_utf8_lossy(parsed?.get(name)?.as_text()?.as_bytes()).into_owned());
    let event = member("hook_event_name").or_else(|| member("hookEventName")).unwrap_or_else(|| path.to_owned());
    let show = || format!("{host}: {path:?}: {}", String::from_utf8_lossy(body));
    let question = match read(wire, path, body) {
        Ok(question) => question,
        Err(answer) => {
            // Whoever sends what is no event of this host reads the denial as a denial of a call.
            let is_call = !gates_nothing(host, &event);
            let read_as = if host == "opa" { path } else { "PreToolUse" };
            assert!(!is_call || reading(host, read_as, &answer) == Reading::Blocked, "{}: {answer}", show());
            return;
        }
    };
    assert!(parsed.is_some_and(|body| body.is_object()), "{}", show());
    for event in &question.events {
        let is_text = |name: &str| event[name].as_str().is_some_and(|text| !text.is_empty());
        assert!(is_text("thread_id"), "{}", show());
        if event["type"] == "tool_call" {
            assert!(is_text("event_id") && is_text("tool_call_id") && is_text("tool_name"), "{}", show());
            let arguments: Value = serde_json::from_str(event["arguments"].as_str().unwrap()).unwrap();
            assert!(arguments.is_object(), "{}", show());
        }
    }
    let is_decided = expected(&question) > 0;
    let has_calls = question.events.iter().any(|event| event["type"] == "tool_call");
    let unanswered = Unanswered { code: "deadline_exceeded", message: "x".to_owned() };
    let answer = (question.answer)(Err(&unanswered)).body.unwrap();
    if has_calls {
        assert_eq!(reading(host, if host == "opa" { path } else { &event }, &answer), Reading::Blocked, "{}: {answer}", show());
    } else if !is_decided {
        let has_no_calls = host == "litellm" && member("input_type").is_some();
        assert!(has_no_calls || gates_nothing(host, &event), "{}: {answer}", show());
    }
}

/// Values of every shape, and such that have led readers astray.
fn odd_values() -> Vec<Value> {
    let mut values =
        vec![Value::Null, json!(true), json!(0), json!(-1.5e300), json!(""), json!("a/b"), json!("\u{0}"), json!("PreToolUse")];
    values.extend([json!([]), json!({}), json!([{}]), json!({"name": {}}), json!("{\"command\":\"ls\"}"), json!("x".repeat(5_000))]);
    values
}

/// Every member of every recorded request, at two depths, left out or replaced by every odd value.
#[test]
fn a_request_with_one_member_changed_is_refused_or_still_a_request() {
    let mut changed = 0;
    for wire in all() {
        for request in recorded(wire) {
            let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(&request.bytes()) else { continue };
            let inner = body.iter().filter_map(|(name, value)| Some((name, value.as_object()?)));
            let places = inner.flat_map(|(name, members)| members.keys().map(move |key| vec![name.clone(), key.clone()]));
            let places: Vec<_> = body.keys().map(|name| vec![name.clone()]).chain(places).collect();
            for place in places {
                for value in std::iter::once(None).chain(odd_values().into_iter().map(Some)) {
                    let mut body = Value::Object(body.clone());
                    let (last, outer) = place.split_last().unwrap();
                    let object = outer.iter().fold(&mut body, |value, name| &mut value[name.as_str()]).as_object_mut().unwrap();
                    match value {
                        Some(value) => object.insert(last.clone(), value),
                        None => object.remove(last),
                    };
                    check(wire, &request.path, body.to_string().as_bytes());
                    changed += 1;
                }
            }
        }
    }
    assert!(changed > 10_000, "{changed} requests");
}

/// Every recorded request at the path of every other wire.
#[test]
fn a_request_of_another_host_is_refused_or_read_alike() {
    for wire in all() {
        for other in all() {
            for request in recorded(other) {
                check(wire, &request.path, &request.bytes());
            }
        }
    }
}

#[test]
fn nesting_and_surrogates_end_in_an_answer() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for wire in all() {
        for request in recorded(wire) {
            let Ok(text) = String::from_utf8(request.bytes()) else { continue };
            let Some(rest) = text.strip_prefix('{') else { continue };
            for value in [deep(100), deep(5_000), deep(200_000), r#""\ud800""#.to_owned(), "1e999".to_owned()] {
                for name in ["extra", "tool_input", "tool_response", "session_id"] {
                    check(wire, &request.path, format!("{{\"{name}\":{value},{rest}").as_bytes());
                }
            }
        }
    }
}

/// A recorded request: the wire, the path and the body.
type Sent = (&'static dyn Wire, String, Vec<u8>);

/// Every recorded request.
static REQUESTS: LazyLock<Vec<Sent>> = LazyLock::new(|| {
    let requests =
        all().into_iter().flat_map(|wire| recorded(wire).into_iter().map(move |request| (wire, request.path.clone(), request.bytes())));
    requests.filter(|(_, _, body)| !body.is_empty()).collect()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_end_in_an_answer(body in prop::collection::vec(any::<u8>(), 0..200), path in "[a-zA-Z/]{0,12}") {
        for wire in all() {
            check(wire, &path, &body);
        }
    }

    #[test]
    fn a_request_with_bytes_changed_is_refused_or_still_a_request(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cuts in any::<bool>()) {
        let (wire, path, body) = &REQUESTS[pick.index(REQUESTS.len())];
        let mut body = body.clone();
        let at = at.index(body.len());
        if cuts { body.truncate(at) } else { body[at] = byte }
        check(*wire, path, &body);
    }
}
