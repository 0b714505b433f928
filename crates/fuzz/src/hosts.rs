//! Fuzzes the requests of agent hosts on every wire.

use tollgate_hosts::{Answer, LITELLM, OPA, Question, Request, Unanswered, ext_mcp, wires};

use crate::SECRET;

/// Checks a request. The first line is the name of the wire, and behind a space the end of the path; the rest of the input is the body.
pub fn check(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (line, rest) = input.split_at(end);
    let Ok(line) = std::str::from_utf8(line) else { return };
    let (name, path) = line.split_once(' ').unwrap_or((line, ""));
    let body = rest.get(1..).unwrap_or_default();
    let all = wires().iter().copied().chain([OPA, LITELLM]);
    for wire in all.filter(|wire| wire.name() == name) {
        check_twice(|| text_of(wire.read(&Request { path, headers: &[], body }), json_text));
    }
    match line {
        "ext_mcp CheckRequest" => check_twice(|| text_of(ext_mcp::check_request(body, "c1".to_owned()), message_text)),
        "ext_mcp CheckResponse" => check_twice(|| text_of(ext_mcp::check_response(body), message_text)),
        _ => {}
    }
}

fn check_twice(read: impl Fn() -> String) {
    let first = read();
    assert_eq!(read(), first, "a request is read as something else the second time");
}

/// Returns the events of a request and the answer to it without a verdict, as text.
fn text_of<A>(read: Result<Question<A>, A>, answer_text: fn(A) -> String) -> String {
    let (events, answer) = match read {
        Ok(question) => {
            let events = format!("{:?}", question.events);
            for event in &question.events {
                let id = |name: &str| event.get(name).and_then(|id| id.as_str()).map_or(0, str::len);
                assert!((1..=256).contains(&id("thread_id")), "a thread id of {} bytes", id("thread_id"));
                assert!(id("event_id") <= 128, "an event id of {} bytes", id("event_id"));
            }
            let unanswered = Unanswered { code: "deadline_exceeded", message: "no worker has answered".to_owned() };
            (events, (question.answer)(Err(&unanswered)))
        }
        Err(answer) => (String::new(), answer),
    };
    let text = answer_text(answer);
    assert!(!text.contains(SECRET), "an answer repeats the request");
    events + &text
}

fn json_text(answer: Answer) -> String {
    assert_eq!(answer.status, 200);
    answer.body.map(|body| body.to_string()).unwrap_or_default()
}

fn message_text(answer: Vec<u8>) -> String {
    // Every answer without a verdict is an error: the third field of the message.
    assert_eq!(answer.first(), Some(&0x1a), "a message without a verdict is answered with leave");
    String::from_utf8_lossy(&answer).into_owned()
}
