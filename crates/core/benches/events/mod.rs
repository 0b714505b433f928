//! Shared by the benchmarks of the core: the policy of the defaults, events as orchestrators send them, and a partition processor that
//! takes them.
//!
//! Events are written field by field in the order in which an orchestrator builds them, and not sorted by name as `json!` would do: sorting
//! the arguments is a part of what is measured.

pub mod measure;
// The file is included by its path: the test kit itself would bring rdkafka into the tree of these benchmarks.
#[path = "../../../testkit/src/traffic/random.rs"]
#[allow(unused_imports, reason = "a benchmark compiles its tests and runs none")]
pub mod random;
pub mod rows;

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::controls::Controls;
use tollgate_core::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::guardrail::{GuardrailChain, GuardrailProvider, Link};
use tollgate_core::policy::{Policy, PolicySettings};
use tollgate_core::processor::{Applied, PartitionProcessor};
use tollgate_core::record::{Offset, Partition, Record};
use tollgate_core::signal::EventSignals;
use tollgate_core::stage::Progress;

/// The length of the target's tool call, in bytes.
pub const CALL_BYTES: usize = 600;
/// The text with which arguments are filled up.
const FILLER: &str = "look at how the total of the cart is computed before the discount is applied to it, and whether rounding comes first; \
                      then say which of the two functions would have to change, and what the tests say about orders without any items in them";

/// Returns the settings of a configuration over the defaults.
pub fn settings(user: &Value) -> PolicySettings {
    PolicySettings::from_value(user).expect("a valid configuration")
}

/// Returns the policy of the defaults.
pub fn policy() -> Arc<Policy> {
    Arc::new(Policy::new(&settings(&json!({}))))
}

/// Returns the policy of the defaults while somebody is suspended, so that every call's user has to be looked for.
pub fn policy_with_a_suspension() -> Arc<Policy> {
    let controls = Controls::new(Some("a key"));
    let hash = "ab".repeat(32);
    let value = json!({"type": "subject", "kind": "user", "hash": hash, "state": "suspended"}).to_string();
    controls.apply(Some(format!("subject/user/{hash}").as_bytes()), Some(value.as_bytes())).expect("a control");
    Arc::new(Policy::under(&settings(&json!({})), Arc::new(controls)))
}

/// Returns the policy of the defaults with one guardrail provider.
pub fn policy_with(provider: impl GuardrailProvider + 'static) -> Arc<Policy> {
    let chain = GuardrailChain::new(vec![Link { provider: Box::new(provider), tools: None }], true, None);
    Arc::new(Policy::new(&settings(&json!({}))).with_guardrails(chain))
}

/// The place of a call: its thread, its turn, and its number in that turn.
#[derive(Debug, Clone, Copy)]
pub struct At {
    pub thread: usize,
    pub turn: usize,
    pub call: usize,
}

impl At {
    /// Returns the fields that every event of an agent carries.
    fn head(self, event_type: &str) -> String {
        let Self { thread, turn, call } = self;
        let mut head = String::with_capacity(1_024);
        let _infallible = write!(
            head,
            r#"{{"type":"{event_type}","thread_id":"{thread:08x}-4a5b-4c6d-8e7f-0123456789ab","event_id":"t{turn:06}/c{call:06}/{event_type}","#
        );
        let _infallible = write!(
            head,
            r#""turn_id":"turn-{turn:06}","agent_id":"coder-7","user_id":"user-4711","tenant_id":"acme","run_id":"run-20260101-000017","#
        );
        head.push_str(r#""timestamp":"2026-01-01T00:00:00.000Z","#);
        head
    }

    /// Appends the fields of a call: its id, its tool and its arguments, which differ from call to call.
    fn push_call(self, event: &mut String, filler: &str) {
        let Self { thread, turn, call } = self;
        let (project, component, line) = (thread % 7, (turn * 8 + call) % 997, thread % 500);
        let _infallible = write!(
            event,
            r#""tool_call_id":"{}","tool_name":"read_file","tool_input":{{"path":"/work/project-{project}/src/component_{component}.py","#,
            self.call_id()
        );
        let _infallible = write!(event, r#""start_line":{line},"end_line":{},"encoding":"utf-8","reason":"{filler}"}}"#, line + 40 + call);
    }

    fn call_filled_with(self, filler: &str) -> String {
        let mut event = self.head("tool_call");
        self.push_call(&mut event, filler);
        event + "}"
    }

    /// Returns the text that makes the call as long as it is to be.
    fn filler(self) -> &'static str {
        &FILLER[..CALL_BYTES - self.call_filled_with("").len()]
    }

    /// Returns the id that the call has unless somebody gave it another one.
    pub fn call_id(self) -> String {
        format!("call_{:08x}{:08}{:08}", self.thread, self.turn, self.call)
    }

    /// Returns the start of the turn.
    pub fn turn_start(self) -> String {
        let mut event = self.head("turn_start");
        event.pop();
        event + "}"
    }

    /// Returns the end of the turn.
    pub fn turn_end(self) -> String {
        let mut event = self.head("turn_end");
        event.pop();
        event + "}"
    }

    /// Returns a tool call of exactly [`CALL_BYTES`] bytes.
    pub fn tool_call(self) -> String {
        self.call_filled_with(self.filler())
    }

    /// Returns the result of that call, which brings the arguments again: a file's text in which the gate itself has to see that it is no
    /// failure.
    pub fn tool_result(self) -> String {
        let mut event = self.head("tool_result");
        self.push_call(&mut event, self.filler());
        let _infallible = write!(
            event,
            r#","result":"def total(items):\n    return sum(item.price for item in items)  # {} of {}\n"}}"#,
            self.call, self.turn
        );
        event
    }

    /// Returns a result that says itself that the call failed.
    pub fn failed_result(self) -> String {
        let mut event = self.tool_result();
        event.pop();
        event + r#","failed":true}"#
    }

    /// Returns a response of OpenAI's Chat API that calls a tool.
    pub fn model_response(self) -> String {
        self.response("tool_calls")
    }

    /// Returns a response that the provider's content filter cut off.
    pub fn cut_off_response(self) -> String {
        self.response("content_filter")
    }

    fn response(self, finish_reason: &str) -> String {
        let (mut event, id) = (self.head("model_response"), self.call_id());
        let _infallible = write!(
            event,
            r#""response":{{"id":"chatcmpl-{:08x}","object":"chat.completion","model":"some-model","choices":[{{"index":0,"message":{{"role":"assistant","content":"{}","#,
            self.thread, FILLER
        );
        let _infallible = write!(
            event,
            r#""tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"read_file","arguments":"{{\"path\": \"/work/src/cart.py\"}}"}}}}]}},"#
        );
        let _infallible = write!(
            event,
            r#""finish_reason":"{finish_reason}"}}],"usage":{{"prompt_tokens":1742,"completion_tokens":96,"total_tokens":1838}}}}}}"#
        );
        event
    }
}

/// A partition processor that is fed with events as its worker would, from offset 0 on.
#[derive(Debug)]
pub struct Feed {
    pub processor: PartitionProcessor<Deciding>,
    out: VerdictBuffer,
    offset: i64,
}

impl Feed {
    pub fn new(policy: &Arc<Policy>) -> Self {
        let processor = PartitionProcessor::new(Partition(0), Deciding::new(Arc::clone(policy)));
        Self { processor, out: VerdictBuffer::default(), offset: 0 }
    }

    /// Decides on one event, and counts it as published. The record has no key, which events need not have, and no headers.
    pub fn apply(&mut self, event: &str) -> Outcome {
        let offset = Offset(self.offset);
        self.offset += 1;
        let value = Some(event.as_bytes());
        let record = Record { topic: "agent.events", partition: Partition(0), offset, timestamp_ms: None, key: None, value, headers: &[] };
        match self.processor.apply(&record, &mut self.out) {
            Ok(Applied::Taken(Progress::Done(outcome))) => {
                self.processor.published(offset, 0).expect("it was just taken");
                outcome
            }
            other => panic!("an event that is decided at once became {other:?}"),
        }
    }

    /// Decides on all these events.
    pub fn apply_all(&mut self, events: &[String]) {
        for event in events {
            std::hint::black_box(self.apply(event));
        }
    }

    /// Returns what there is to count of the last event.
    pub fn signals(&self) -> &EventSignals {
        &self.out.signals
    }

    /// Returns the verdict on the last event.
    pub fn verdict(&self) -> &[u8] {
        &self.out.json
    }
}
