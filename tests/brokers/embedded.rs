//! What a worker does with what comes, on the embedded broker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message, OwnedMessage};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{Value, json};

use super::dev::Dev;
use super::process::Process;
use crate::support::{run, temporary, tollgate};
use tollgate_testkit::TIME_MAX;

/// How long to look for what should not come.
const QUIET: Duration = Duration::from_secs(1);

/// Returns a reader of all of a topic.
pub(crate) fn reader(brokers: &str, topic: &str) -> BaseConsumer {
    let mut config = ClientConfig::new();
    let reader: BaseConsumer =
        config.set("bootstrap.servers", brokers).set("group.id", "test").set("fetch.wait.max.ms", "1").create().unwrap();
    let metadata = reader.fetch_metadata(Some(topic), TIME_MAX).unwrap();
    let mut list = TopicPartitionList::new();
    for partition in metadata.topics()[0].partitions() {
        list.add_partition_offset(topic, partition.id(), Offset::Beginning).unwrap();
    }
    reader.assign(&list).unwrap();
    reader
}

/// Returns the next record of a topic, if one comes in that time.
pub(crate) fn next(reader: &BaseConsumer, time_max: Duration) -> Option<OwnedMessage> {
    let deadline = Instant::now() + time_max;
    while Instant::now() < deadline {
        if let Some(Ok(message)) = reader.poll(Duration::from_millis(50)) {
            return Some(message.detach());
        }
    }
    None
}

fn text(message: &OwnedMessage) -> String {
    String::from_utf8(message.payload().unwrap().to_vec()).unwrap()
}

fn call(id: &str) -> String {
    format!(r#"{{"type":"tool_call","thread_id":"t","event_id":"{id}","tool_call_id":"{id}","tool_name":"ls","tool_input":{{}}}}"#)
}

/// A line of the log says which stage it is of.
#[test]
fn a_line_of_the_log_names_its_stage() {
    let config = temporary("{admin: null, log: {format: json, filter: tollgate_worker=info}}");
    let ran = run(tollgate().args(["dev", "--port", "0", "--sample", "--once", "--config"]).arg(config.path()), b"");
    let lines: Vec<Value> = ran.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let letter = lines.iter().find(|line| line["code"] == "value_not_json").unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(letter["span"], json!({"name": "work", "stage": "deciding"}));
    assert!(lines.iter().any(|line| line["message"] == "assigned" && line["span"]["stage"] == "abuse"), "{ran:?}");
}

/// `tollgate sample` shows the verdicts of its own threads, and not what goes on besides.
#[test]
fn a_sample_shows_its_own_threads() {
    let dev = Dev::configured("{}");
    let is_over = AtomicBool::new(false);
    let (ran, others) = std::thread::scope(|threads| {
        // A fleet that calls for as long as the sample is played: each call waits for a verdict, so that the worker keeps up.
        let fleet = threads.spawn(|| {
            let verdicts = reader(&dev.brokers, "agent.decisions");
            let numbers = (0..).take_while(|_| !is_over.load(Ordering::Relaxed));
            let sent = numbers.inspect(|number: &u32| {
                dev.send("t", &call(&number.to_string()));
                next(&verdicts, TIME_MAX).expect("a verdict");
            });
            sent.count()
        });
        let ran = run(tollgate().args(["sample", "-b", &dev.brokers]), b"");
        is_over.store(true, Ordering::Relaxed);
        (ran, fleet.join().unwrap())
    });
    let verdicts = ran.json_lines();
    // Behind the first call and its verdict the others came while the sample was played.
    assert!(ran.exit == Some(0) && verdicts.len() > 20 && others > 2, "{others} others: {ran:?}");
    assert!(verdicts.iter().all(|verdict| verdict["thread_id"] != "t"), "{ran:?}");
}

/// Without its broker `dev` cannot go on, and says so.
#[test]
fn a_broker_that_panics_ends_dev() {
    let config = temporary("admin: null");
    let mut command = tollgate();
    let ran = run(command.args(["dev", "--port", "0", "--config"]).arg(config.path()).env("FAILPOINTS", "embedded-broker=panic"), b"");
    assert_eq!(ran.exit, Some(70), "{ran:?}");
    assert!(ran.stderr.contains("a thread ended that has to run") && ran.stderr.contains("embedded-broker"), "{ran:?}");
}

/// A verdict that comes back as an event ends among the dead letters, and nothing follows from it.
#[test]
fn a_verdict_on_the_events_topic_multiplies_nothing() {
    let dev = Dev::configured("{}");
    let (decisions, dead_letters) = (reader(&dev.brokers, "agent.decisions"), reader(&dev.brokers, "agent.events.dlq"));
    let send = |value: &str| dev.send("t", value);
    send(&call("first"));
    let verdict = text(&next(&decisions, TIME_MAX).expect("a verdict"));
    send(&verdict);
    send(&call("second"));
    let after = text(&next(&decisions, TIME_MAX).expect("a verdict"));
    assert!(after.contains(r#""event_id":"second""#), "a verdict on a verdict: {after}");
    assert!(next(&decisions, QUIET).is_none());
    let letter = next(&dead_letters, TIME_MAX).expect("a dead letter");
    assert_eq!(text(&letter), verdict);
    let headers = letter.headers().unwrap();
    let class = headers.iter().find(|header| header.key == "__connect.errors.class.name").and_then(|header| header.value);
    assert_eq!(class, Some(b"value_is_a_verdict".as_slice()));
    assert!(next(&dead_letters, QUIET).is_none());
}

/// A pardon whose wait is interrupted stands in the log all the same, and the command says so.
#[test]
fn an_interrupted_pardon_is_requested() {
    let dev = Dev::configured("{}");
    let mut pardon = Process::start(tollgate().args(["abuse", "pardon", "user:x", "--wait", "60s", "-b", &dev.brokers]));
    assert!(next(&reader(&dev.brokers, "tollgate.signals"), TIME_MAX).is_some(), "{}", pardon.said());
    pardon.interrupt();
    assert_eq!(pardon.wait().code(), Some(130), "{}", pardon.said());
    assert!(pardon.said().contains("requested, and not known to be obeyed"), "{}", pardon.said());
}
