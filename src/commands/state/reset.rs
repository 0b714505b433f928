//! `tollgate state reset`: makes an event that has a thread forget, and publishes it only with `--execute`.

use std::io::Write;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde::Serialize;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;
use tollgate_core::event::decode::{EventType, TURN_ID_BYTES_MAX};
use tollgate_core::event::record::{Offset, Partition};

use super::lookup::look_up;
use super::{ThreadArgs, read_id, warn_of_other_owner};
use crate::commands::shared::Finding;
use tollgate_operations::{Outgoing, Topic, Topics, publish};

#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    thread: ThreadArgs,
    /// Reset this turn only: if another one is running by then, nothing changes
    #[arg(long, value_name = "TURN_ID", value_parser = read_turn_id)]
    turn: Option<String>,
    /// Publish the event
    #[arg(long)]
    execute: bool,
}

/// The event that is published.
#[derive(Debug, Serialize)]
struct Reset<'a> {
    #[serde(rename = "type")]
    event_type: &'static str,
    thread_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
    event_id: String,
}

/// What is printed on stdout.
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
    let topic = topics.find(TopicRole::Events)?;
    let partition = args.thread.partition_in(topic)?;
    let reset = Reset::new(args, SystemTime::now(), std::process::id());
    if args.execute {
        let value = serde_json::to_vec(&reset)?;
        let what = format!("the event (event_id {})", reset.event_id);
        let outgoing =
            Outgoing { topic: topic.name, partition: Some(partition), key: Some(reset.thread_id), value: Some(&value), what: &what };
        let (_, offset) = publish(kafka, &outgoing)?;
        print(topic, partition, Some(offset), &reset)?;
        say!("published; `tollgate state show` tells its effect after the next checkpoint");
        return Ok(ExitCode::SUCCESS);
    }
    print(topic, partition, None, &reset)?;
    match topics.find(TopicRole::State).and_then(|state| look_up(&topics, state, partition, &args.thread.thread_id)) {
        Ok(known) => {
            if let Some(owner) = known.owner() {
                warn_of_other_owner(kafka, owner);
            }
            say!("{}", known.summary(args.turn.as_deref()));
        }
        // The event can be published all the same.
        Err(error) => say!("what is known of the thread cannot be told: {error:#}"),
    }
    say!("nothing was changed; --execute publishes the event");
    Ok(ExitCode::SUCCESS)
}

fn print(topic: Topic<'_>, partition: Partition, offset: Option<Offset>, reset: &Reset<'_>) -> anyhow::Result<()> {
    let report = Report { topic: topic.name, partition: partition.0, offset: offset.map(|offset| offset.0), event: reset };
    Ok(writeln!(Finding, "{}", serde_json::to_string_pretty(&report)?)?)
}

impl<'a> Reset<'a> {
    /// Returns the event of a process that was called at a time. No other event has its id.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tollgate_core::event::decode::{Body, EVENT_ID_BYTES_MAX, decode};
    use tollgate_core::event::record::Record;
    use tollgate_json::Parser;

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
