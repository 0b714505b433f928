//! Shared by several test binaries: the policy of a configuration, and events fed through a partition processor.
#![allow(dead_code, reason = "each test binary uses its own part")]

mod checks;

#[allow(unused_imports, reason = "each test binary uses its own part")]
pub use checks::{assert_has, check_each};

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tollgate_core::checkpoint::Restored;
use tollgate_core::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::guardrail::{ProviderError, Question};
use tollgate_core::policy::Policy;
use tollgate_core::policy::PolicySettings;
use tollgate_core::processor::{Applied, PartitionProcessor};
use tollgate_core::record::{Header, Offset, Partition, Record};
use tollgate_core::signal::EventSignals;
use tollgate_core::stage::{Progress, Resumed};
use tollgate_core::thread::ThreadStore;

/// Returns the settings of a configuration over the built-in defaults.
pub fn settings(user: &Value) -> PolicySettings {
    PolicySettings::from_value(user).expect("a valid configuration")
}

/// Returns the settings of a configuration of Hermes'. Its thresholds may be in an order that ours refuse, such as a warning behind its block.
pub fn hermes_settings(config: &Value) -> PolicySettings {
    let mut lists = config.clone();
    lists.as_object_mut().expect("a configuration").retain(|_, value| !value.is_u64());
    let mut settings = self::settings(&json!({"tool_loop_guardrails": lists}));
    let repetition = settings.tool_loop_guardrails.repetition.as_mut().expect("it is always in force");
    for (key, value) in config.as_object().expect("a configuration") {
        let Some(value) = value.as_u64() else { continue };
        let threshold = match key.as_str() {
            "exact_failure_warn_after" => &mut repetition.exact_failure_warn_after,
            "exact_failure_block_after" => &mut repetition.exact_failure_block_after,
            "same_tool_failure_warn_after" => &mut repetition.same_tool_failure_warn_after,
            "same_tool_failure_halt_after" => &mut repetition.same_tool_failure_halt_after,
            "no_progress_warn_after" => &mut repetition.no_progress_warn_after,
            "no_progress_block_after" => &mut repetition.no_progress_block_after,
            other => panic!("{other} is no threshold"),
        };
        *threshold = u32::try_from(value).expect("a small number");
    }
    settings
}

/// Returns the policy of a configuration over the built-in defaults.
pub fn policy(user: &Value) -> Policy {
    Policy::new(&settings(user))
}

/// Returns the default policy.
pub fn default_policy() -> Policy {
    policy(&json!({}))
}

/// A partition processor that gives verdicts.
pub type Processor = PartitionProcessor<Deciding>;

/// Returns a processor that has seen nothing.
pub fn processor(partition: Partition, policy: &Arc<Policy>) -> Processor {
    Processor::new(partition, Deciding::new(Arc::clone(policy)))
}

/// Returns a processor with the threads that a checkpoint left.
pub fn restored(partition: Partition, policy: &Arc<Policy>, restored: Restored<ThreadStore>) -> Processor {
    let Restored { next, state } = restored;
    Processor::restored(partition, Deciding::with_threads(Arc::clone(policy), state), next)
}

/// Goes on with a record until it is decided. Instead of asking a policy server it answers every question with an error.
pub fn decided(processor: &mut Processor, offset: Offset, applied: Applied<Outcome, Question>, out: &mut VerdictBuffer) -> Outcome {
    let Applied::Taken(mut progress) = applied else { panic!("{offset} was applied before") };
    loop {
        match progress {
            Progress::Done(outcome) => return outcome,
            Progress::Waits => panic!("{offset} waits, and nothing is before it"),
            Progress::Asks(_) => processor.answer(offset, Err(ProviderError::NotAsked)),
        }
        progress = match processor.resume(out).expect("an event that was answered goes on") {
            Resumed::Done { outcome, .. } => Progress::Done(outcome),
            Resumed::Asks(_, question) => Progress::Asks(question),
        };
    }
}

/// A processor that is fed values one after the other.
pub struct Gate {
    processor: Processor,
    offset: i64,
    /// The timestamp of the records, in milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    out: VerdictBuffer,
}

impl Gate {
    pub fn new(policy: Policy) -> Self {
        let processor = processor(Partition(0), &Arc::new(policy));
        Self { processor, offset: 0, timestamp_ms: None, out: VerdictBuffer::default() }
    }

    pub fn threads(&self) -> &ThreadStore {
        self.processor.stage().threads()
    }

    /// Returns what there is to count of the last record.
    pub fn signals(&self) -> &EventSignals {
        &self.out.signals
    }

    /// Feeds a record's parts, and returns what it became and the verdict's bytes (empty if there is none).
    pub fn record(&mut self, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header<'_>]) -> (Outcome, Vec<u8>) {
        let offset = Offset(self.offset);
        self.offset += 1;
        self.out.json.clear();
        let (topic, partition, timestamp_ms) = ("agent.events", Partition(0), self.timestamp_ms);
        let record = Record { topic, partition, offset, timestamp_ms, key, value, headers };
        let applied = self.processor.apply(&record, &mut self.out).expect("the records come in order");
        let outcome = decided(&mut self.processor, offset, applied, &mut self.out);
        (outcome, self.out.json.clone())
    }

    /// Feeds an event, and returns its verdict's bytes, empty if there is none.
    pub fn bytes(&mut self, event: &Value) -> Vec<u8> {
        self.record(None, Some(event.to_string().as_bytes()), &[]).1
    }

    /// Feeds an event and parses its verdict.
    pub fn event(&mut self, event: &Value) -> Value {
        let bytes = self.bytes(event);
        if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).expect("a verdict is JSON") }
    }
}

/// Reads the lines of a JSONL fixture; an empty one is a broken test, not a passed one.
pub fn jsonl(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a fixture line is JSON")).collect();
    assert!(!lines.is_empty(), "{path} is empty");
    lines
}

/// A record as a fixture writes it, with the expected result.
///
/// `value` is an event as JSON (null is a tombstone), `raw` the value's text, `raw_hex` its bytes; `key` or `key_hex`; `headers` and
/// `headers_hex` by name.
#[derive(Debug, Default)]
pub struct Case {
    pub name: String,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Vec<u8>)>,
    pub expect: Value,
}

impl Case {
    pub fn read(case: &Value) -> Self {
        let bytes = |text: &str, hex: &str| match (case.get(text), case.get(hex)) {
            (Some(text), _) => Some(text.as_str().expect("a text").as_bytes().to_vec()),
            (_, hex) => hex.map(unhex),
        };
        let headers = case["headers"].as_object().into_iter().flatten();
        let headers = headers.map(|(name, value)| (name.clone(), value.as_str().expect("a text").as_bytes().to_vec()));
        let headers_hex = case["headers_hex"].as_object().into_iter().flatten().map(|(name, value)| (name.clone(), unhex(value)));
        Self {
            name: case["name"].as_str().expect("a name").to_owned(),
            key: bytes("key", "key_hex"),
            value: case
                .get("value")
                .map_or_else(|| bytes("raw", "raw_hex"), |value| (!value.is_null()).then(|| value.to_string().into_bytes())),
            headers: headers.chain(headers_hex).collect(),
            expect: case["expect"].clone(),
        }
    }

    pub fn headers(&self) -> Vec<Header<'_>> {
        self.headers.iter().map(|(name, value)| Header { name, value: Some(value) }).collect()
    }

    pub fn record<'c>(&'c self, headers: &'c [Header<'c>]) -> Record<'c> {
        let (key, value) = (self.key.as_deref(), self.value.as_deref());
        Record { topic: "agent.events", partition: Partition(0), offset: Offset(0), timestamp_ms: None, key, value, headers }
    }

    pub fn feed(&self, gate: &mut Gate) -> (Outcome, Vec<u8>) {
        gate.record(self.key.as_deref(), self.value.as_deref(), &self.headers())
    }
}

pub fn unhex(hex: &Value) -> Vec<u8> {
    let digits: Vec<u32> = hex.as_str().expect("a text").chars().map(|digit| digit.to_digit(16).expect("a hex digit")).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("two hex digits")).collect()
}

/// Returns the id of the verdict on an event.
pub fn verdict_id(thread_id: &str, event_id: &str) -> String {
    tollgate_core::evaluate::verdict::verdict_id(thread_id, event_id).to_string()
}

/// Returns the time that the processor has given to this thread.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
