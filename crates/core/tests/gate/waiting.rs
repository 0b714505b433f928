//! Tests threads that wait for a policy server: their events stay in order, other threads go on, and the state is as of one offset.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::deciding::{Outcome, VerdictBuffer};
use tollgate_core::decide::guardrail::{Answer, ProviderError, Question};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::engine::checkpoint::Checkpoint;
use tollgate_core::engine::processor::Applied;
use tollgate_core::engine::stage::{Progress, Resumed, Stage, Waiting};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_fixtures::gate::{self, Processor};

const OWNER: &str = "tollgate/agent.events";

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

/// A processor and its owner's records: what was asked, what was published, what is committable.
struct Desk {
    policy: Arc<Policy>,
    processor: Processor,
    next: i64,
    asked: Vec<(Offset, Question)>,
    /// Verdicts by event, in the order in which they came.
    verdicts: Vec<(String, Value)>,
    out: VerdictBuffer,
}

impl Desk {
    fn new(config: &Value) -> Self {
        let policy = Arc::new(gate::policy(config));
        let processor = gate::processor(Partition(0), &policy);
        Self { policy, processor, next: 0, asked: Vec::new(), verdicts: Vec::new(), out: VerdictBuffer::default() }
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

    fn committable(&self) -> Option<i64> {
        self.processor.committable().map(|offset| offset.0)
    }

    fn waiting(&self) -> Waiting {
        self.processor.stage().waiting()
    }

    fn threads(&self) -> &ThreadStore {
        self.processor.stage().threads()
    }
}

fn call(thread: &str, id: &str, tool: &str) -> Value {
    json!({"type": "tool_call", "thread_id": thread, "tool_call_id": id, "tool_name": tool, "tool_input": {"a": id}})
}

fn failed(thread: &str, id: &str, tool: &str) -> Value {
    json!({"type": "tool_result", "thread_id": thread, "tool_call_id": id, "tool_name": tool, "tool_input": {"a": id}, "result": "no", "failed": true})
}

fn yes() -> Answer {
    Ok(br#"{"allow": true, "policy_id": "p.v1"}"#.to_vec())
}

fn no() -> Answer {
    Ok(br#"{"allow": false, "reasons": [{"code": "acme.no", "message": "not today"}]}"#.to_vec())
}

#[test]
fn one_threads_wait_delays_no_other_thread_and_its_own_events_stay_in_order() {
    let mut desk = Desk::new(&config());
    desk.feed(&call("slow", "1", "bash"));
    desk.feed(&call("slow", "2", "ls"));
    desk.feed(&call("quick", "1", "ls"));
    desk.feed(&call("slow", "3", "bash"));
    desk.feed(&call("quick", "2", "ls"));
    assert_eq!(desk.codes(), [("e2", "allow"), ("e4", "allow")]);
    assert_eq!((desk.asked(), desk.committable(), desk.waiting().records), (vec![0], None, 3));
    desk.answer(0, no());
    assert_eq!(desk.codes()[2..], [("e0", "acme.no"), ("e1", "allow")]);
    assert_eq!((desk.asked(), desk.committable()), (vec![3], Some(3)));
    desk.answer(3, yes());
    assert_eq!(desk.codes()[4..], [("e3", "allow")]);
    assert_eq!((desk.committable(), desk.waiting()), (Some(5), Waiting { records: 0, bytes: 0 }));
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
fn the_second_server_is_asked_when_the_first_has_allowed() {
    let mut desk = Desk::new(&config());
    desk.feed(&call("t", "1", "deploy"));
    assert_eq!(desk.asked[0].1.provider, 1, "the list stands before the servers, wherever it was written");
    desk.answer(0, yes());
    assert_eq!((desk.asked(), desk.asked[0].1.provider), (vec![0], 2));
    assert!(desk.verdicts.is_empty());
    desk.answer(0, no());
    desk.feed(&call("t", "2", "deploy"));
    desk.answer(1, no());
    assert_eq!(desk.codes(), [("e0", "acme.no"), ("e1", "acme.no")]);
    assert!(desk.asked.is_empty(), "a denial stops the chain");
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
fn a_server_that_fails_closes_the_call_or_is_said_to_have_failed_open() {
    for (fail_closed, expected) in [(true, "oap.evaluator_error"), (false, "guardrail_failed_open")] {
        let mut config = config();
        config["guardrails"]["fail_closed"] = json!(fail_closed);
        for error in [ProviderError::TimedOut, ProviderError::CircuitOpen, ProviderError::Status(500), ProviderError::Overloaded] {
            let mut desk = Desk::new(&config);
            desk.feed(&call("t", "1", "bash"));
            desk.answer(0, Err(error));
            assert_eq!(desk.codes(), [("e0", expected)]);
            assert_eq!(desk.verdicts[0].1["allows_execution"], json!(!fail_closed));
        }
        let mut desk = Desk::new(&config);
        desk.feed(&call("t", "1", "bash"));
        desk.answer(0, Ok(b"<html>".to_vec()));
        assert_eq!(desk.codes(), [("e0", expected)]);
    }
}

#[test]
fn the_loop_controller_sees_calls_and_results_in_the_threads_order() {
    let mut desk = Desk::new(&config());
    let same = |kind: fn(&str, &str, &str) -> Value, id: &str| {
        let mut event = kind("t", id, "bash");
        event["tool_input"] = json!({});
        event
    };
    for id in ["1", "2", "3"] {
        desk.feed(&same(call, id));
        desk.feed(&same(failed, id));
    }
    assert_eq!(desk.asked(), [0]);
    for offset in [0, 2, 4] {
        desk.answer(offset, yes());
    }
    let codes: Vec<_> = desk.codes().into_iter().map(|(_, code)| code).collect();
    let warning = "repeated_exact_failure_warning";
    assert_eq!(codes, ["allow", "allow", "allow", warning, "repeated_exact_failure_block", "not_executed"]);
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

fn restore(desk: &Desk, checkpoints: &[Arc<Checkpoint>]) -> Processor {
    let restore = gate::restore(checkpoints.iter().flat_map(|checkpoint| &checkpoint.records));
    gate::restored(Partition(0), &desk.policy, restore.finish(OWNER, desk.policy.store_limits()).unwrap().unwrap())
}

fn threads(processor: &Processor) -> BTreeMap<String, String> {
    processor.stage().threads().iter().map(|(id, stored)| (id.to_string(), format!("{stored:?}"))).collect()
}

/// Reads the log to `frozen` and freezes there, then reads more of it, with answers in some order. Whatever happens, the
/// checkpoint is what a processor has that read so far and got every answer at once.
#[test]
fn a_checkpoint_is_as_of_one_offset_whoever_waits_and_however_answers_come() {
    let log: Vec<Value> = (0..12)
        .map(|number| {
            let (thread, id) = (["a", "b", "c"][number % 3], format!("{}", number / 3));
            call(thread, &id, if number % 4 == 3 { "ls" } else { "bash" })
        })
        .collect();
    let orders: [fn(&[i64]) -> i64; 3] = [|asked| asked[0], |asked| asked[asked.len() - 1], |asked| asked[asked.len() / 2]];
    for frozen in 1..log.len() {
        let mut truth = Desk::new(&config());
        for event in &log[..frozen] {
            truth.feed(event);
            while let Some(offset) = truth.asked().first().copied() {
                truth.answer(offset, yes());
            }
        }
        for order in orders {
            let mut desk = Desk::new(&config());
            log[..frozen].iter().for_each(|event| desk.feed(event));
            desk.processor.freeze(OWNER);
            log[frozen..].iter().for_each(|event| desk.feed(event));
            let mut checkpoint = desk.processor.take_checkpoint();
            while !desk.asked.is_empty() {
                assert!(checkpoint.is_none() || desk.committable() >= Some(i64::try_from(frozen).unwrap()));
                desk.answer(order(&desk.asked()), yes());
                checkpoint = checkpoint.or_else(|| desk.processor.take_checkpoint());
            }
            let checkpoint = checkpoint.expect("it was frozen, and everything before it is decided");
            assert_eq!(checkpoint.next, Offset(i64::try_from(frozen).unwrap()));
            let restored = restore(&desk, std::slice::from_ref(&checkpoint));
            assert_eq!(threads(&restored), threads(&truth.processor), "frozen at {frozen}");
            assert_eq!(restored.stage().threads().clock(), truth.threads().clock());
            // The records behind it are in the next one.
            desk.processor.checkpoint_written();
            desk.processor.freeze(OWNER);
            let second = desk.processor.take_checkpoint().expect("more was applied since");
            assert_eq!(threads(&restore(&desk, &[checkpoint, second])), threads(&desk.processor));
        }
    }
}
