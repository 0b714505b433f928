//! `tollgate state reset`: a control event that has a thread forget, and only with `--execute` published.

use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow};
use clap::Args;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, ProducerContext};
use serde::Serialize;

use crate::decode::{EventType, Offset, Partition, TURN_ID_BYTES_MAX};
use crate::publish::producer_config;
use crate::settings::KafkaSettings;

use super::lookup::look_up;
use super::topics::{Topic, Topics};
use super::{ThreadArgs, read_id, warn_of_other_owner};

/// How long the brokers may take to acknowledge the event.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
/// How much later librdkafka may say that they did not.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to serve the producer at a time.
const POLL: Duration = Duration::from_millis(10);
/// More than the event takes, which is at most two ids of full length.
const BATCH_BYTES_MAX: u64 = 100_000;

#[derive(Debug, Args)]
pub(in crate::commands) struct ResetArgs {
    #[command(flatten)]
    thread: ThreadArgs,
    /// Reset this turn only: if another one is running by then, nothing changes
    #[arg(long, value_name = "TURN_ID", value_parser = read_turn_id)]
    turn: Option<String>,
    /// Publish the event
    #[arg(long)]
    execute: bool,
}

/// What is published.
#[derive(Debug, Serialize)]
struct Reset<'a> {
    #[serde(rename = "type")]
    event_type: &'static str,
    thread_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
    event_id: String,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report<'a> {
    topic: &'a str,
    partition: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<i64>,
    event: &'a Reset<'a>,
}

fn read_turn_id(text: &str) -> Result<String, String> {
    read_id(text, TURN_ID_BYTES_MAX)
}

pub(super) fn execute(args: &ResetArgs, kafka: &KafkaSettings) -> anyhow::Result<ExitCode> {
    let topics = Topics::new(kafka)?;
    let topic = topics.events()?;
    let partition = topic.partition_of(&args.thread)?;
    let reset = Reset::new(args, SystemTime::now(), std::process::id());
    if args.execute {
        let offset = publish(kafka, topic, partition, &reset)?;
        print(topic, partition, Some(offset), &reset)?;
        eprintln!("published; `tollgate state show` tells its effect after the next checkpoint");
        return Ok(ExitCode::SUCCESS);
    }
    print(topic, partition, None, &reset)?;
    match topics.state().and_then(|state| look_up(&topics, state, partition, &args.thread.thread_id)) {
        Ok(known) => {
            if let Some(owner) = known.owner() {
                warn_of_other_owner(kafka, owner);
            }
            eprintln!("{}", known.summary(args.turn.as_deref()));
        }
        // The event can be published all the same.
        Err(error) => eprintln!("what is known of the thread cannot be told: {error:#}"),
    }
    eprintln!("nothing was changed; --execute publishes the event");
    Ok(ExitCode::SUCCESS)
}

fn print(topic: Topic<'_>, partition: Partition, offset: Option<Offset>, reset: &Reset<'_>) -> anyhow::Result<()> {
    let report = Report { topic: topic.name, partition: partition.0, offset: offset.map(|offset| offset.0), event: reset };
    Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&report)?)?)
}

impl<'a> Reset<'a> {
    /// The event of a process that was asked at a time: no other has its id.
    fn new(args: &'a ResetArgs, now: SystemTime, process_id: u32) -> Self {
        let now_ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Self {
            event_type: EventType::ThreadReset.as_str(),
            thread_id: &args.thread.thread_id,
            turn_id: args.turn.as_deref(),
            event_id: format!("reset-{now_ms:x}-{process_id:x}"),
        }
    }
}

/// Publishes the event and waits for its acknowledgement; the answer is where it stands.
fn publish(kafka: &KafkaSettings, topic: Topic<'_>, partition: Partition, reset: &Reset<'_>) -> anyhow::Result<Offset> {
    let mut config = producer_config(kafka, BATCH_BYTES_MAX);
    // Verdicts are tried for ever; here somebody waits at a terminal. The second name is an alias, which would win or lose by chance.
    config.set("message.timeout.ms", PUBLISH_TIMEOUT.as_millis().to_string()).remove("delivery.timeout.ms");
    let producer: BaseProducer<Acknowledgements> = config.create_with_context(Acknowledgements).context("kafka.properties")?;
    let (acknowledgement, value) = (Acknowledgement::default(), serde_json::to_vec(reset)?);
    let record: BaseRecord<'_, str, [u8], Acknowledgement> =
        BaseRecord::with_opaque_to(topic.name, Arc::clone(&acknowledgement)).partition(partition.0).key(reset.thread_id).payload(&value);
    let name = topic.name;
    producer.send(record).map_err(|(error, _)| anyhow!("the event cannot be published to partition {partition} of {name}: {error}"))?;
    let deadline = Instant::now() + PUBLISH_TIMEOUT + REPORT_TIMEOUT;
    let outcome = loop {
        producer.poll(POLL);
        match acknowledgement.get() {
            Some(outcome) => break outcome.clone(),
            None if Instant::now() >= deadline => break Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut)),
            None => {}
        }
    };
    outcome.map_err(|error| match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::MessageTimedOut) => anyhow!(
            "the brokers did not acknowledge the event within {} s: whether it stands in partition {partition} of {name} is unknown (event_id {})",
            PUBLISH_TIMEOUT.as_secs(),
            reset.event_id
        ),
        _ => anyhow!("the event was not published to partition {partition} of {name}: {error}"),
    })
}

type Acknowledgement = Arc<OnceLock<Result<Offset, KafkaError>>>;

/// Files the delivery report where the sender looks for it.
struct Acknowledgements;

impl ClientContext for Acknowledgements {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        crate::librdkafka::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "librdkafka", %error, reason, "producer");
    }
}

impl ProducerContext for Acknowledgements {
    type DeliveryOpaque = Acknowledgement;

    fn delivery(&self, result: &DeliveryResult<'_>, acknowledgement: Acknowledgement) {
        let outcome = match result {
            Ok(message) => Ok(Offset(message.offset())),
            Err((error, _)) => Err(error.clone()),
        };
        // A message is reported once.
        let _set = acknowledgement.set(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Body, EVENT_ID_BYTES_MAX, Record, decode};
    use crate::json::Parser;

    fn args(turn: Option<String>) -> ResetArgs {
        let thread = ThreadArgs { thread_id: "é\"".repeat(85), partition: None };
        ResetArgs { thread, turn, execute: false }
    }

    #[test]
    fn what_is_published_is_an_event_that_the_gate_reads() {
        for turn in [None, Some("t".repeat(TURN_ID_BYTES_MAX))] {
            let args = args(turn);
            let reset = Reset::new(&args, SystemTime::now(), u32::MAX);
            assert!(reset.event_id.len() <= EVENT_ID_BYTES_MAX);
            let value = serde_json::to_vec(&reset).unwrap();
            let (partition, offset) = (Partition(0), Offset(0));
            let key = Some(args.thread.thread_id.as_bytes());
            let record = Record { topic: "t", partition, offset, timestamp_ms: None, key, value: Some(&value), headers: &[] };
            let mut parser = Parser::new();
            let event = decode(&record, &mut parser, 10_000).unwrap();
            assert!(matches!(event.body, Body::ThreadReset));
            assert_eq!((&*event.thread_id, event.turn_id.as_deref()), (args.thread.thread_id.as_str(), args.turn.as_deref()));
        }
    }

    #[test]
    fn every_reset_has_an_id_of_its_own() {
        let args = args(None);
        let id = |ms, process| Reset::new(&args, UNIX_EPOCH + Duration::from_millis(ms), process).event_id;
        assert_eq!(id(255, 16), "reset-ff-10");
        assert!(id(1, 2) != id(1, 3) && id(1, 2) != id(2, 2));
    }
}
