//! Makes random logs of one partition, and folds them with a processor that is never interrupted.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use tollgate_core::decide::deciding::{self, VerdictBuffer};
use tollgate_core::decide::guardrail::Question;
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::{StoredThread, ThreadStore};
use tollgate_core::engine::checkpoint::Restored;
use tollgate_core::engine::processor::Applied;
use tollgate_core::engine::stage::{Progress, Resumed};
use tollgate_core::event::decode::decode;
use tollgate_core::event::record::{Departures, Offset, OwnedRecord, Partition, Record, StreamClock};
use tollgate_fixtures::gate::{self, Processor};
use tollgate_json::Parser;

use super::servers::{self, answer_to};

pub const PARTITION: Partition = Partition(0);

/// One record of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    pub offset: Offset,
    pub value: Option<String>,
}

impl Logged {
    pub fn record(&self) -> Record<'_> {
        let value = self.value.as_deref().map(str::as_bytes);
        Record { topic: "agent.events", partition: PARTITION, offset: self.offset, timestamp_ms: None, key: None, value, headers: &[] }
    }

    /// Returns its thread, if it is an event.
    fn thread_id(&self, policy: &Policy) -> Option<String> {
        let event_bytes_max = policy.limits().event_bytes_max;
        decode(&self.record(), &mut Parser::new(), event_bytes_max).ok().map(|event| event.thread_id.into_owned())
    }

    /// Returns the bytes that it takes while it waits, about.
    pub fn bytes(&self) -> usize {
        OwnedRecord::of(&self.record()).bytes()
    }
}

/// The outcome of a record: the same for every processor that applies it.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub applied: Applied<deciding::Outcome, Question>,
    pub json: Vec<u8>,
    pub thread_id: String,
    pub event_id: String,
}

impl Outcome {
    /// Applies a record; its outcome holds nothing that a record before it left in `out`.
    pub fn of(processor: &mut Processor, logged: &Logged, out: &mut VerdictBuffer) -> Self {
        *out = VerdictBuffer::default();
        let applied = processor.apply(&logged.record(), out).expect("the records come in order");
        Self::read(applied, out)
    }

    /// Returns what was applied, with what it left in the buffer.
    pub fn read(applied: Applied<deciding::Outcome, Question>, out: &VerdictBuffer) -> Self {
        Self { applied, json: out.json.clone(), thread_id: out.thread_id.clone(), event_id: out.event_id.clone() }
    }

    /// Returns what was applied, with nothing published.
    pub fn silent(applied: Applied<deciding::Outcome, Question>) -> Self {
        Self::read(applied, &VerdictBuffer::default())
    }

    /// Returns how many publications it waits for: a verdict; a dead letter, and its verdict where the thread is known; none for a control.
    pub fn due(&self) -> u32 {
        match &self.applied {
            Applied::Taken(Progress::Done(deciding::Outcome::Verdict { .. })) => 1,
            Applied::Taken(Progress::Done(deciding::Outcome::DeadLetter(rejection))) => 1 + u32::from(rejection.event.thread_id.is_some()),
            Applied::Taken(Progress::Done(deciding::Outcome::Boundary(_)) | Progress::Asks(_) | Progress::Waits) | Applied::Redelivered => {
                0
            }
        }
    }
}

/// The whole state of a partition. The threads stand in the order of touch.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub next: Offset,
    clock: StreamClock,
    threads: Vec<(String, StoredThread)>,
}

impl Snapshot {
    fn new(next: Offset, store: &ThreadStore) -> Self {
        let mut threads: Vec<_> = store.iter().map(|(id, stored)| (id.to_owned(), stored.clone())).collect();
        threads.sort_by_key(|(_, stored)| stored.applied);
        Self { next, clock: store.clock(), threads }
    }

    pub fn of_processor(processor: &Processor) -> Self {
        Self::new(processor.next(), processor.stage().threads())
    }

    pub fn of_restored(restored: &Restored<ThreadStore>) -> Self {
        Self::new(restored.next, &restored.state)
    }

    /// Leaves some threads out.
    pub fn without(mut self, is_left_out: impl Fn(&str) -> bool) -> Self {
        self.threads.retain(|(id, _)| !is_left_out(id));
        self
    }
}

/// The log, and its outcomes where nothing goes wrong.
#[derive(Debug)]
pub struct Truth {
    pub log: Vec<Logged>,
    /// The outcomes by record.
    pub outcomes: Vec<Outcome>,
    /// The questions about each record, in order.
    pub questions: Vec<Vec<Question>>,
    /// Each record's thread, if it is an event.
    pub thread_ids: Vec<Option<String>>,
    /// The state before each record, and behind the last one.
    snapshots: Vec<Snapshot>,
    pub departures: Departures,
}

impl Truth {
    /// Folds a log with one processor from its beginning to its end, which gets every answer at once.
    pub fn of(policy: &Arc<Policy>, log: Vec<Logged>) -> Self {
        let (mut processor, mut out) = (gate::processor(PARTITION, policy), VerdictBuffer::default());
        let mut snapshots = vec![Snapshot::of_processor(&processor)];
        let (mut outcomes, mut questions) = (Vec::new(), Vec::new());
        for logged in &log {
            let mut asked = Vec::new();
            let mut outcome = Outcome::of(&mut processor, logged, &mut out);
            while let Applied::Taken(Progress::Asks(question)) = outcome.applied {
                assert!(asked.iter().all(|earlier: &Question| earlier.provider < question.provider), "at {}", logged.offset);
                processor.answer(logged.offset, answer_to(&question));
                asked.push(question);
                out = VerdictBuffer::default();
                let progress = match processor.resume(&mut out).expect("what is answered goes on") {
                    Resumed::Asks(_, question) => Progress::Asks(question),
                    Resumed::Done { outcome, .. } => Progress::Done(outcome),
                };
                outcome = Outcome::read(Applied::Taken(progress), &out);
            }
            outcomes.push(outcome);
            questions.push(asked);
            snapshots.push(Snapshot::of_processor(&processor));
        }
        let thread_ids = log.iter().map(|logged| logged.thread_id(policy)).collect();
        let truth = Self { log, outcomes, questions, thread_ids, snapshots, departures: processor.stage().threads().departures() };
        truth.check(policy);
        truth
    }

    /// Checks that each server that is asked has a say in the verdict, and that none is asked about an event that its thread has twice
    /// running.
    fn check(&self, policy: &Policy) {
        let is_server = |provider: &usize| servers::NAMES.contains(&policy.guardrails().name_of(*provider));
        let mut last = BTreeMap::new();
        for (record, asked) in self.questions.iter().enumerate() {
            if let Applied::Taken(Progress::Done(deciding::Outcome::Verdict { decided, .. })) = &self.outcomes[record].applied {
                let called = decided.provider_calls.iter().map(|(provider, _)| *provider).filter(is_server);
                assert!(called.eq(asked.iter().map(|question| question.provider)), "record {record}");
            } else {
                assert_eq!(asked, &[], "record {record}");
            }
            let before = self.thread_ids[record].as_ref().and_then(|id| last.insert(id, record));
            if let Some(before) = before.filter(|before| self.log[*before].value == self.log[record].value) {
                assert_eq!(asked, &[], "record {record} is {before} again");
            }
        }
    }

    /// Returns the first record at an offset or behind it: a committed offset may stand in a gap.
    pub fn index_of(&self, offset: Offset) -> usize {
        self.log.partition_point(|logged| logged.offset < offset)
    }

    /// Returns the state as of an offset.
    pub fn snapshot(&self, next: Offset) -> &Snapshot {
        &self.snapshots[self.index_of(next)]
    }

    pub fn last_snapshot(&self) -> &Snapshot {
        self.snapshots.last().unwrap()
    }
}

/// Returns configurations with so little room that threads are expired, evicted, refused and trimmed.
pub fn config() -> impl Strategy<Value = Value> {
    (3..8_u8, select(vec![1, 30, 600]), select(vec![4_096, 65_536])).prop_map(|(threads, idle, bytes)| {
        json!({
            "limits": {"threads_per_partition_max": threads, "thread_idle_seconds_max": idle, "thread_bytes_max": bytes},
            "guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["terminal"]}}},
        })
    })
}

/// The shape of a random log.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// How many threads it has at most.
    pub threads: u8,
    /// The weight of calls, where that of results is ten.
    pub calls: u32,
    /// Whether so much time passes in it that threads expire.
    pub has_pauses: bool,
}

/// The next entry of a log.
#[derive(Debug, Clone)]
enum Entry {
    /// An event of a thread. `wander` moves the time for all that follow, `outlier` is the time of a broken clock, and an event that is not
    /// `is_timed` has no timestamp.
    Event { thread: u8, event: Value, wander: i64, outlier: Option<i64>, is_timed: bool },
    /// Bytes that are no event, or no value at all.
    Unreadable(Option<&'static str>),
    /// A copy of an earlier record.
    Repeat(Index),
    /// Enough events from a day later to move the partition's time past the idle limit, which expires every thread that can expire.
    Pause { thread: u8 },
}

fn entry(shape: Shape) -> impl Strategy<Value = Entry> {
    let wander = prop_oneof![12 => 0..40_i64, 2 => -300..0_i64, 1 => Just(2_000_i64)];
    let outlier = weighted(0.05, select(vec![-200_000_i64, 200_000]));
    let event = (0..shape.threads, happening(shape.calls), wander, outlier, proptest::bool::weighted(0.9));
    prop_oneof![
        100 => event.prop_map(|(thread, event, wander, outlier, is_timed)| Entry::Event { thread, event, wander, outlier, is_timed }),
        4 => select(vec![None, Some("{"), Some("[]"), Some(r#"{"type": "tool_call", "thread_id": "thread-1", "event_id": "told"}"#)])
            .prop_map(Entry::Unreadable),
        12 => any::<Index>().prop_map(Entry::Repeat),
        1 => (0..shape.threads, Just(shape.has_pauses)).prop_map(|(thread, is_long)| if is_long { Entry::Pause { thread } } else { Entry::Unreadable(None) }),
    ]
}

/// Returns what a thread does next: short turns with few ids and tools, so that threads come and go, and many of them hold a stop.
fn happening(calls: u32) -> impl Strategy<Value = Value> {
    let (id, tool) = ((0..6_u8).prop_map(|n| format!("c{n}")), select(vec!["bash", "read_file", "terminal"]));
    let cut_off = |id: String, tool: &str| {
        let message = json!({"tool_calls": [{"id": id, "function": {"name": tool}}]});
        json!({"type": "model_response", "response": {"choices": [{"finish_reason": "content_filter", "message": message}]}})
    };
    let unnamed = |tool: &str| {
        let content = json!({"parts": [{"functionCall": {"name": tool}}]});
        json!({"type": "model_response", "response": {"candidates": [{"finishReason": "SAFETY", "content": content}]}})
    };
    let body = prop_oneof![
        calls => (id.clone(), tool.clone(), 0..2_u8)
            .prop_map(|(id, tool, x)| json!({"type": "tool_call", "tool_call_id": id, "tool_name": tool, "tool_input": {"x": x}})),
        10 => (id.clone(), tool.clone(), 0..2_u8, select(vec!["ok", "Error: no", "Error: no"]))
            .prop_map(|(id, tool, x, result)| json!({"type": "tool_result", "tool_call_id": id, "tool_name": tool, "tool_input": {"x": x}, "result": result})),
        // Only a result whose call was seen may leave the arguments out.
        2 => (id.clone(), tool.clone()).prop_map(|(id, tool)| json!({"type": "tool_result", "tool_call_id": id, "tool_name": tool, "failed": true})),
        2 => (id, tool.clone()).prop_map(move |(id, tool)| cut_off(id, tool)),
        1 => tool.prop_map(unnamed),
        2 => Just(json!({"type": "turn_start"})),
        5 => Just(json!({"type": "turn_end"})),
        1 => Just(json!({"type": "thread_reset"})),
        2 => Just(json!({"type": "model_response", "response": {}})),
        1 => Just(json!({"type": "nonsense"})),
    ];
    (body, weighted(0.3, 0..3_u8)).prop_map(|(mut event, turn)| {
        if let Some(turn) = turn {
            event["turn_id"] = Value::from(format!("u{turn}"));
        }
        event
    })
}

/// How many events from a day later move the time past twice the idle limit: time goes by steps.
const PAUSE_EVENTS: usize = 530;

/// Returns logs whose offsets have gaps, as transaction markers and retention leave them.
pub fn log(shape: Shape) -> impl Strategy<Value = Vec<Logged>> {
    let gap = prop_oneof![8 => Just(1_i64), 1 => 2..5_i64];
    (0..50_i64, vec((entry(shape), gap), 1..160)).prop_map(|(start, entries)| {
        let (mut seconds, mut offset) = (86_400 * 9, start);
        let mut log: Vec<Logged> = Vec::new();
        for (index, (entry, gap)) in entries.into_iter().enumerate() {
            for value in values(entry, index, &mut seconds, &log) {
                log.push(Logged { offset: Offset(offset), value });
                offset += gap;
            }
        }
        log
    })
}

fn values(entry: Entry, index: usize, seconds: &mut i64, log: &[Logged]) -> Vec<Option<String>> {
    let text = |event: &Value| Some(event.to_string());
    match entry {
        Entry::Unreadable(found) => vec![found.map(str::to_owned)],
        Entry::Repeat(_) if log.is_empty() => Vec::new(),
        Entry::Repeat(at) => vec![log[at.index(log.len())].value.clone()],
        Entry::Event { thread, mut event, wander, outlier, is_timed } => {
            *seconds += wander;
            event["thread_id"] = Value::from(format!("thread-{thread}"));
            event["event_id"] = Value::from(format!("e{index}"));
            if is_timed {
                event["timestamp"] = Value::from(in_january(*seconds + outlier.unwrap_or_default()));
            }
            vec![text(&event)]
        }
        Entry::Pause { thread } => {
            *seconds += 86_400;
            let event = json!({"type": "turn_end", "thread_id": format!("thread-{thread}"), "event_id": format!("e{index}"), "timestamp": in_january(*seconds)});
            vec![text(&event); PAUSE_EVENTS]
        }
    }
}

/// Returns a moment of January 2026, by the seconds since the month began.
fn in_january(seconds: i64) -> String {
    let seconds = seconds.clamp(0, 86_400 * 31 - 1);
    let (day, rest) = (seconds / 86_400 + 1, seconds % 86_400);
    format!("2026-01-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest % 3_600 / 60, rest % 60)
}
