//! The sample: bundled traffic, played as an orchestrator would play it, with a wait for every verdict.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::Context;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::Value;

use crate::kafka::PlainContext;
use crate::settings::KafkaSettings;
use crate::stop::Stop;

use super::{PARTITIONS, table};

/// The sample, one event a line as `thread<TAB>value`, so that a broken record has a thread too.
const SAMPLE: &str = include_str!("sample.tsv");
/// How long to wait for one verdict.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(10);

/// Plays the sample and prints each verdict as soon as it has come.
pub(super) fn play(kafka: &KafkaSettings, stop: &Stop) -> anyhow::Result<()> {
    let waiter = Waiter::new(kafka)?;
    let is_table = std::io::stdout().is_terminal();
    let mut out = std::io::stdout().lock();
    if is_table {
        writeln!(out, "\n{}", table::head())?;
    }
    let (started, mut events, mut verdicts) = (Instant::now(), 0, 0);
    for line in SAMPLE.lines() {
        if stop.is_given() {
            return Ok(());
        }
        let (thread, value) = line.split_once('\t').context("the bundled sample is broken")?;
        let sent = Instant::now();
        waiter.send(thread, value)?;
        events += 1;
        if !is_awaited(value) {
            continue;
        }
        let Some(verdict) = waiter.verdict(stop)? else { return Ok(()) };
        verdicts += 1;
        if is_table {
            let parsed: Value = serde_json::from_slice(&verdict)?;
            writeln!(out, "{}", table::verdict(&parsed, sent.elapsed().as_secs_f64() * 1_000.0))?;
        } else {
            out.write_all(&verdict)?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
    }
    say!("played {events} events, {verdicts} verdicts in {} ms", started.elapsed().as_millis());
    Ok(())
}

/// Returns whether an event gets a verdict. Turn boundaries get none; everything else does, even what cannot be read.
fn is_awaited(value: &str) -> bool {
    let parsed: Value = serde_json::from_str(value).unwrap_or_default();
    !matches!(parsed.get("type").and_then(Value::as_str), Some("turn_start" | "turn_end"))
}

/// The orchestrator's side: it publishes events, and reads all decisions that are published after it began.
struct Waiter {
    producer: BaseProducer,
    consumer: BaseConsumer<PlainContext>,
    events: String,
}

impl Waiter {
    fn new(kafka: &KafkaSettings) -> anyhow::Result<Self> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &kafka.brokers).set("linger.ms", "0");
        let producer = config.clone().set("partitioner", "murmur2_random").create()?;
        // A waiter reads every partition itself; joining a group would only delay it.
        config.set("group.id", "tollgate-sample").set("enable.auto.commit", "false").set("fetch.wait.max.ms", "1");
        let consumer: BaseConsumer<PlainContext> = config.create_with_context(PlainContext)?;
        let mut partitions = TopicPartitionList::new();
        for partition in 0..i32::try_from(PARTITIONS)? {
            partitions.add_partition_offset(&kafka.topics.decisions, partition, Offset::Beginning)?;
        }
        consumer.assign(&partitions)?;
        Ok(Self { producer, consumer, events: kafka.topics.events.clone() })
    }

    fn send(&self, thread: &str, value: &str) -> anyhow::Result<()> {
        let record = BaseRecord::to(&self.events).key(thread).payload(value);
        self.producer.send(record).map_err(|(error, _)| error).context("the sample cannot be published")?;
        self.producer.poll(Duration::ZERO);
        Ok(())
    }

    /// Waits for the next verdict; returns `None` if the process is to stop.
    fn verdict(&self, stop: &Stop) -> anyhow::Result<Option<Vec<u8>>> {
        let deadline = Instant::now() + VERDICT_TIMEOUT;
        while !stop.is_given() {
            if let Some(message) = self.consumer.poll(Duration::from_millis(100)) {
                return Ok(Some(message?.payload().unwrap_or_default().to_vec()));
            }
            anyhow::ensure!(Instant::now() < deadline, "no verdict came within {} s", VERDICT_TIMEOUT.as_secs());
        }
        Ok(None)
    }
}
