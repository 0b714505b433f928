//! A partition with a single replica, on a broker that is away: whoever needs the partition names it, until the broker is back.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tollgate_testkit::harness::Place;
use tollgate_testkit::{Brokers, Deployment, Worker, wait_until};

use super::run::HEAL_TIME_MAX;
use crate::serve::{SentRequest, Served};

const PARTITIONS: i32 = 4;
/// How long a request waits for its verdict, in milliseconds.
const WAIT_MS: u32 = 10_000;

/// A broker is killed that alone has a partition of the events and of the replies. The worker, the servers and the commands name the
/// partitions, and the lag is unknown.
pub(super) fn a_partition_without_a_leader_is_named(place: &Place, brokers: &mut Brokers) -> Result<()> {
    let cluster = &place.cluster(brokers.bootstrap())?;
    let mut served = Served::new(cluster)?;
    let (events, replies) = (cluster.topic_of_one_replica("events", PARTITIONS)?, cluster.topic_of_one_replica("replies", PARTITIONS)?);
    let (leads_events, leads_replies) = (brokers.leaders(&events)?, brokers.leaders(&replies)?);
    let (event_partition, node) = leads_events.first_key_value().context("a partition of the events")?;
    let on = |is_lost: bool| leads_replies.iter().find(|(_, leader)| (*leader == node) == is_lost).map(|(partition, _)| *partition);
    let (lost, kept) = (on(true).context("a partition of the replies there")?, on(false).context("a partition of the replies elsewhere")?);
    served.deployment.configure("/kafka/topics/replies", json!(replies));
    served.set_events(events.clone());
    let worker = served.deployment.start()?;
    let mut start = |partition: i32| {
        served.deployment.configure("/serve/partition", json!(partition));
        served.start()
    };
    let ((cut_off, _), (server, address)) = (start(lost)?, start(kept)?);
    ask_all(&address, 0)?;
    let has_lag = || Ok(worker.get("/metrics")?.1.contains("tollgate_lag_records{"));
    wait_until("the lag is known", has_lag)?;

    brokers.kill(*node)?;
    let [of_events, of_replies] = [(&events, *event_partition), (&replies, lost)]
        .map(|(topic, partition)| format!("partition {partition} of topic {topic} has no leader"));
    wait_until("the worker names the partition", || names(&worker, "problems", &of_events))?;
    wait_until("the lag is unknown", || Ok(!has_lag()?))?;
    worker.await_line(&["no answer about topic", &of_events])?;
    wait_until("the server whose replies are away names their partition", || names(&cut_off, "problems", &of_replies))?;
    wait_until("the other server names the partition of the events", || names(&server, "warnings", &of_events))?;
    ensure!(server.get("/readyz")?.0 == 200, "the threads on other partitions get verdicts");
    let address_of_worker = format!("127.0.0.1:{}", worker.admin_port());
    says(&served.deployment, &["top", "--once", "--output", "json", "--worker", &address_of_worker], &of_events)?;
    says(&served.deployment, &["topics", "apply"], &of_events)?;
    says(&served.deployment, &["config", "check", "--connect"], &of_events)?;

    brokers.heal(HEAL_TIME_MAX)?;
    for process in [&worker, &server, &cut_off] {
        process.wait_ready()?;
        wait_until("nothing is named any more", || Ok(!names(process, "problems", "leader")? && !names(process, "warnings", "leader")?))?;
    }
    wait_until("the lag is known again", has_lag)?;
    ask_all(&address, 1)?;
    for process in [worker, server, cut_off] {
        ensure!(process.stop()?.success());
    }
    Ok(())
}

/// Returns whether a list of the health report has a sentence with this text.
fn names(process: &Worker, list: &str, text: &str) -> Result<bool> {
    let report: Value = serde_json::from_str(&process.get("/readyz")?.1)?;
    let sentences = report[list].as_array().cloned().unwrap_or_default();
    Ok(sentences.iter().any(|sentence| sentence.as_str().is_some_and(|sentence| sentence.contains(text))))
}

/// Waits until a command says this.
fn says(deployment: &Deployment, arguments: &[&str], text: &str) -> Result<()> {
    wait_until(&format!("{arguments:?} says {text}"), || {
        let output = deployment.command(arguments[0]).args(&arguments[1..]).output()?;
        Ok([output.stdout, output.stderr].iter().any(|said| String::from_utf8_lossy(said).contains(text)))
    })
}

/// Asks about calls of threads on every partition, and again until each has its verdict.
fn ask_all(address: &str, round: usize) -> Result<()> {
    for thread in 0..4 * PARTITIONS {
        let call = json!({"type": "tool_call", "thread_id": format!("t{thread}"), "event_id": format!("e{round}"),
            "tool_call_id": format!("c{round}"), "tool_name": "ls", "tool_input": {}});
        wait_until("there is a verdict", || Ok(SentRequest::send(address, &call.to_string(), WAIT_MS)?.answer()?.0 == 200))?;
    }
    Ok(())
}
