//! Fuzzes the requests of agent hosts on every wire.

use tollgate_hosts::{LITELLM, OPA, Request, Unanswered, Wire, wires};

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
        let first = answered(wire, path, body);
        assert_eq!(answered(wire, path, body), first, "a request is read as something else the second time");
    }
}

/// Returns the events of a request and the answer to it without a verdict, as text.
fn answered(wire: &dyn Wire, path: &str, body: &[u8]) -> String {
    match wire.read(&Request { path, headers: &[], body }) {
        Ok(question) => {
            let events = format!("{:?}", question.events);
            for event in &question.events {
                let id = |name: &str| event.get(name).and_then(|id| id.as_str()).map_or(0, str::len);
                assert!((1..=256).contains(&id("thread_id")), "a thread id of {} bytes", id("thread_id"));
                assert!(id("event_id") <= 128, "an event id of {} bytes", id("event_id"));
            }
            let unanswered = Unanswered { code: "deadline_exceeded", message: "no worker has answered".to_owned() };
            let answer = (question.answer)(Err(&unanswered));
            let text = answer.body.map(|body| body.to_string()).unwrap_or_default();
            assert!(answer.status == 200 && !text.contains(SECRET), "an answer repeats the request");
            events + &text
        }
        Err(answer) => {
            let text = answer.body.map(|body| body.to_string()).unwrap_or_default();
            assert!(answer.status == 200 && !text.contains(SECRET), "a refusal repeats the request");
            text
        }
    }
}
