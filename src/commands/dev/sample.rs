//! The sample: bundled traffic, played as an orchestrator would play it, with a wait for every verdict.

use std::time::{Duration, Instant};

use anyhow::Context;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;

use crate::kafka::{Linger, producer_config};
use crate::settings::KafkaSettings;

use super::super::verdicts::Verdict;

/// The sample, one event a line as `thread<TAB>value`, so that a broken record has a thread too.
const SAMPLE: &str = include_str!("sample.tsv");
/// How long to wait for one verdict.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(10);
/// The size limit of a batch in bytes.
const BATCH_BYTES_MAX: u64 = 1_000_000;

/// The orchestrator's side: it publishes the sample's events, each once the verdict on the one before has come.
pub(super) struct Sample {
    producer: BaseProducer,
    topic: String,
    lines: std::str::Lines<'static>,
    awaited: Option<Awaited>,
    started: Instant,
    events: usize,
    verdicts: usize,
}

/// The event whose verdict is awaited.
struct Awaited {
    thread: &'static str,
    sent: Instant,
}

impl Sample {
    pub(super) fn new(kafka: &KafkaSettings) -> anyhow::Result<Self> {
        let producer = producer_config(kafka, BATCH_BYTES_MAX, Linger::None).create().context("kafka.properties")?;
        let (topic, started) = (kafka.topics.events.clone(), Instant::now());
        Ok(Self { producer, topic, lines: SAMPLE.lines(), awaited: None, started, events: 0, verdicts: 0 })
    }

    /// Publishes what comes before the next verdict, unless one is awaited. It returns `false` once everything has been played.
    pub(super) fn go_on(&mut self) -> anyhow::Result<bool> {
        self.producer.poll(Duration::ZERO);
        if let Some(awaited) = &self.awaited {
            anyhow::ensure!(awaited.sent.elapsed() < VERDICT_TIMEOUT, "no verdict came within {} s", VERDICT_TIMEOUT.as_secs());
            return Ok(true);
        }
        for line in self.lines.by_ref() {
            let (thread, value) = line.split_once('\t').context("the bundled sample is broken")?;
            let record = BaseRecord::to(&self.topic).key(thread).payload(value);
            self.producer.send(record).map_err(|(error, _)| error).context("the sample cannot be published")?;
            self.producer.poll(Duration::ZERO);
            self.events += 1;
            if is_awaited(value) {
                self.awaited = Some(Awaited { thread, sent: Instant::now() });
                return Ok(true);
            }
        }
        self.producer.flush(VERDICT_TIMEOUT).context("the sample cannot be published")?;
        Ok(false)
    }

    /// Returns how long a verdict was awaited in milliseconds, if it is the sample's.
    pub(super) fn receive(&mut self, verdict: &Verdict) -> Option<f64> {
        let awaited = self.awaited.take_if(|awaited| awaited.thread.as_bytes() == verdict.thread)?;
        self.verdicts += 1;
        Some(awaited.sent.elapsed().as_secs_f64() * 1_000.0)
    }

    /// Returns what was played, for people.
    pub(super) fn summary(&self) -> String {
        format!("played {} events, {} verdicts in {} ms", self.events, self.verdicts, self.started.elapsed().as_millis())
    }
}

/// Returns whether an event gets a verdict. Turn boundaries get none; everything else does, even what cannot be read.
fn is_awaited(value: &str) -> bool {
    let parsed: Value = serde_json::from_str(value).unwrap_or_default();
    !matches!(parsed.get("type").and_then(Value::as_str), Some("turn_start" | "turn_end"))
}
