//! Tests threads that wait for a policy server: what they are asked about, and the room that they hold. `checkpoints` tests their order.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::decide::guardrail::{Answer, Question};
use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::engine::processor::Applied;
use tollgate_core::engine::stage::{Progress, Resumed};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_fixtures::gate::{self, Processor};

/// Returns a configuration of two servers behind a list: `http` is asked about every tool but `ls`, `second` about `deploy` only.
fn config() -> Value {
    let server = |name: &str, tools: Value| json!({"use": "http", "tools": tools, "config": {"url": "http://127.0.0.1:1/", "name": name}});
    json!({"guardrails": {"enabled": true, "providers": [
        server("first", json!(["bash", "deploy"])),
        server("second", json!(["deploy"])),
        {"use": "allowlist", "config": {"denied_tools": ["format_disk"]}},
    ]}})
}

fn with(config: &mut Value, key: &str, value: Value) {
    config["limits"][key] = value;
}

/// A processor and its owner's records: what was asked and what was published.
struct Desk {
    processor: Processor,
    next: i64,
    asked: Vec<(Offset, Question)>,
    /// Verdicts by event, in the order in which they came.
    verdicts: Vec<(String, Value)>,
    out: VerdictBuffer,
}

impl Desk {
    fn new(config: &Value) -> Self {
        let processor = gate::processor(Partition(0), &Arc::new(gate::policy(config)));
        Self { processor, next: 0, asked: Vec::new(), verdicts: Vec::new(), out: VerdictBuffer::default() }
    }

    /// Feeds an event; its id is its offset's, unless it brings one.
    fn feed(&mut self, event: &Value) {
        let offset = Offset(self.next);
        self.next += 1;
        let mut event = event.clone();
        if event.get("event_id").is_none() {
            event["event_id"] = json!(format!("e{offset}"));
        }
        match self.processor.apply(&gate::record(Partition(0), offset, event.to_string().as_bytes()), &mut self.out).unwrap() {
            Applied::Taken(Progress::Asks(question)) => self.asked.push((offset, question)),
            Applied::Taken(Progress::Done(outcome)) => self.publish(offset, &outcome),
            Applied::Taken(Progress::Waits) | Applied::Redelivered => {}
        }
    }

    /// Publishes the outcome of a record, without an acknowledgement.
    fn publish(&mut self, offset: Offset, outcome: &Outcome) {
        if matches!(outcome, Outcome::Verdict { .. }) {
            let verdict = serde_json::from_slice(&self.out.json).unwrap();
            self.verdicts.push((self.out.event_id.clone(), verdict));
        }
        self.processor.published(offset, 0).unwrap();
    }

    /// Answers what was asked under an offset, and goes on as far as possible.
    fn answer(&mut self, offset: i64, answer: Answer) {
        let at = self.asked.iter().position(|(asked, _)| *asked == Offset(offset)).expect("it was asked");
        self.asked.remove(at);
        self.processor.answer(Offset(offset), answer);
        while let Some(resumed) = self.processor.resume(&mut self.out) {
            match resumed {
                Resumed::Asks(offset, question) => self.asked.push((offset, question)),
                Resumed::Done { record, outcome, .. } => self.publish(record.with_borrowed(|record| record.offset), &outcome),
            }
        }
    }

    fn asked(&self) -> Vec<i64> {
        self.asked.iter().map(|(offset, _)| offset.0).collect()
    }

    fn codes(&self) -> Vec<(&str, &str)> {
        self.verdicts.iter().map(|(event, verdict)| (event.as_str(), verdict["code"].as_str().unwrap())).collect()
    }

    fn threads(&self) -> &ThreadStore {
        self.processor.stage().threads()
    }
}

fn call(thread: &str, id: &str, tool: &str) -> Value {
    json!({"type": "tool_call", "thread_id": thread, "tool_call_id": id, "tool_name": tool, "tool_input": {"a": id}})
}

fn yes() -> Answer {
    Ok(br#"{"allow": true, "policy_id": "p.v1"}"#.to_vec())
}

fn no() -> Answer {
    Ok(br#"{"allow": false, "reasons": [{"code": "acme.no", "message": "not today"}]}"#.to_vec())
}

#[test]
fn a_verdict_says_which_answer_it_used() {
    let mut desk = Desk::new(&config());
    desk.feed(&call("t", "1", "bash"));
    desk.answer(0, yes());
    let digest = format!("sha256:{}", tollgate_json::digest::Digest::of(&yes().unwrap()));
    let verdict = &desk.verdicts[0].1;
    assert_eq!((&verdict["action"], &verdict["code"], &verdict["decided_by"]), (&json!("allow"), &json!("allow"), &json!("none")));
    let reason = json!({"source": "guardrail", "code": "oap.allowed", "message": "", "policy_id": "p.v1", "answer_digest": digest});
    assert_eq!(verdict["reasons"], json!([reason]));
}

#[test]
fn nobody_is_asked_about_what_a_list_denies_or_what_was_answered_before() {
    let mut desk = Desk::new(&config());
    desk.feed(&call("t", "1", "format_disk"));
    let mut again = call("t", "2", "bash");
    again["event_id"] = json!("again");
    desk.feed(&again);
    desk.feed(&again);
    assert_eq!(desk.asked(), [1], "the second one waits behind the first");
    desk.answer(1, no());
    desk.feed(&again);
    assert!(desk.asked.is_empty());
    let verdicts: Vec<_> = desk.verdicts.iter().filter(|(event, _)| event == "again").map(|(_, verdict)| verdict).collect();
    assert_eq!(verdicts.len(), 3);
    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0] && verdict["code"] == "acme.no"));
}

#[test]
fn a_thread_with_too_long_a_queue_is_not_asked_about() {
    let mut config = config();
    with(&mut config, "thread_queue_max", json!(3));
    let mut desk = Desk::new(&config);
    for number in 0..8 {
        desk.feed(&call("t", &number.to_string(), "bash"));
    }
    desk.answer(0, yes());
    // Those with three or more behind them are closed at once; the fifth is asked about again.
    let closed = "oap.evaluator_error";
    assert_eq!(desk.codes(), [("e0", "allow"), ("e1", closed), ("e2", closed), ("e3", closed), ("e4", closed)]);
    assert_eq!(desk.asked(), [5]);
}

#[test]
fn a_waiting_thread_neither_expires_nor_makes_room() {
    let mut config = config();
    with(&mut config, "threads_per_partition_max", json!(2));
    with(&mut config, "thread_idle_seconds_max", json!(60));
    let mut desk = Desk::new(&config);
    let at = |mut event: Value, time: &str| {
        event["timestamp"] = json!(time);
        event
    };
    desk.feed(&at(call("slow", "1", "bash"), "2026-01-01T00:00:00Z"));
    for (id, time) in [("a", "2026-01-01T00:01:00Z"), ("b", "2026-01-01T00:02:00Z"), ("c", "2026-01-01T00:30:00Z")] {
        desk.feed(&at(call(id, "1", "ls"), time));
    }
    assert!(desk.threads().get("slow").is_some());
    desk.answer(0, no());
    assert_eq!(desk.codes().last(), Some(&("e0", "acme.no")));
    // Threads that wait hold both places: there is no room for a third.
    let mut desk = Desk::new(&config);
    desk.feed(&call("a", "1", "bash"));
    desk.feed(&call("b", "1", "bash"));
    desk.feed(&call("c", "1", "bash"));
    assert_eq!(desk.codes(), [("e2", "thread_store_full")]);
}
