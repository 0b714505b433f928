//! Tests `tollgate state` beside a worker: what it shows of threads, and what a reset clears.

use std::collections::BTreeSet;
use std::process::Output;
use std::thread::scope;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::stderr;
use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, eventually, header, parsed, wait_until};

const COMMAND: &str = "kubectl apply -f deploy.yaml";

fn event(thread: &str, id: &str, fields: Value) -> Outgoing {
    let mut event = json!({"thread_id": thread, "event_id": id, "turn_id": "turn-8"});
    for (key, value) in fields.as_object().expect("an object") {
        event[key] = value.clone();
    }
    Outgoing::new(thread, event.to_string())
}

fn call(thread: &str, call: &str) -> Outgoing {
    let fields = json!({"type": "tool_call", "tool_call_id": call, "tool_name": "terminal", "tool_input": {"command": COMMAND}});
    event(thread, &format!("{call}/call"), fields)
}

fn failure(thread: &str, call: &str) -> Outgoing {
    let fields =
        json!({"type": "tool_result", "tool_call_id": call, "tool_name": "terminal", "result": "Error: forbidden", "failed": true});
    event(thread, &format!("{call}/result"), fields)
}

/// Returns a call that fails twice and is blocked the third time.
fn blocked(thread: &str) -> Vec<Outgoing> {
    vec![call(thread, "c1"), failure(thread, "c1"), call(thread, "c2"), failure(thread, "c2"), call(thread, "c3")]
}

/// Returns a response that was cut off.
fn suppressed(thread: &str) -> Outgoing {
    let calls = json!([{"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": "{\"pa"}}]);
    let response = json!({"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": calls}}]});
    event(thread, "response", json!({"type": "model_response", "response": response}))
}

fn state(deployment: &Deployment, arguments: &[&str]) -> Result<Output> {
    Ok(deployment.command("state").args(arguments).output()?)
}

fn json_of(output: &Output) -> Result<Value> {
    ensure!(output.status.success(), "{}", stderr(output));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Shows a thread once a checkpoint knows the event at this offset.
fn show_as_of(deployment: &Deployment, thread: &str, applied: i64) -> Result<Value> {
    eventually(|| {
        let shown = json_of(&state(deployment, &["show", thread])?)?;
        ensure!(shown["applied"].as_i64() >= Some(applied), "no checkpoint as of {applied}: {shown}");
        Ok(shown)
    })
}

/// Produces the events and returns the position of the last.
fn produce(cluster: &Cluster, deployment: &Deployment, events: &[Outgoing]) -> Result<(i64, i64)> {
    let positions = cluster.produce(&deployment.events, events)?;
    let last = positions.last().expect("some events");
    Ok((last.partition.into(), last.offset))
}

/// Returns the code of the verdict on an event.
fn verdict_on(cluster: &Cluster, deployment: &Deployment, id: &str) -> Result<Value> {
    let is_it = |record: &Record| header(record, "event_id") == id;
    let records = cluster.read_until(&deployment.decisions, |records| records.iter().any(is_it))?;
    Ok(records.iter().find(|record| is_it(record)).map(parsed).expect("it was read")["code"].clone())
}

pub(crate) fn threads_are_shown_and_listed(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 3)?;
    let _worker = deployment.start()?;
    let (partition, offset) = produce(cluster, &deployment, &blocked("nightly-deploy"))?;
    let (_, cut_off) = produce(cluster, &deployment, &[suppressed("cut-off")])?;
    let (of_ended, end) = produce(cluster, &deployment, &[call("ended", "c1"), event("ended", "end", json!({"type": "turn_end"}))])?;
    // A checkpoint may know a call and not the end of its turn.
    let of_ended = i32::try_from(of_ended)?;
    let is_written = || Ok(cluster.committed(&deployment.group, &deployment.events)?.get(&of_ended) > Some(&end));
    wait_until("the end of the turn is written", is_written)?;
    cluster.await_transactions(&deployment.state)?;
    let shown = show_as_of(&deployment, "nightly-deploy", offset)?;
    let owner = format!("{}/{}", deployment.group, deployment.events);
    assert_eq!((&shown["thread_id"], &shown["owner"]), (&json!("nightly-deploy"), &json!(owner)));
    assert_eq!((shown["partition"].as_i64(), shown["applied"].as_i64()), (Some(partition), Some(offset)));
    assert!(shown["next"].as_i64() > Some(offset) && shown["last_event"].as_str().is_some_and(|time| time.starts_with("20")));
    assert_eq!(
        (&shown["holds_a_stop"], &shown["turn"]["id"], &shown["turn"]["has_ended"]),
        (&json!(true), &json!("turn-8"), &json!(false))
    );
    assert_eq!((&shown["loops"]["tools"][0]["failures"], &shown["loops"]["signatures"][0]["is_stopped"]), (&json!(2), &json!(true)));
    let calls = shown["calls"].as_array().expect("calls");
    let ruled = |answer: &Value| (answer["action"].clone(), answer["codes"].clone());
    assert_eq!(calls.len(), 3);
    assert_eq!(ruled(&calls[1]["result"]), (json!("warn"), json!(["repeated_exact_failure_warning"])));
    assert_eq!(ruled(&calls[2]["call"]), (json!("block"), json!(["repeated_exact_failure_block"])));
    assert_eq!((&calls[2]["result"], &calls[2]["is_open"]), (&Value::Null, &json!(false)));
    // The output holds no arguments, no results and no names of tools.
    let text = shown.to_string();
    assert!(!text.contains("kubectl") && !text.contains("forbidden") && !text.contains("terminal"), "{text}");

    let shown = show_as_of(&deployment, "cut-off", cut_off)?;
    assert_eq!((&shown["suppression"]["ids"], &shown["holds_a_stop"]), (&json!(1), &json!(true)));
    let elsewhere = ((partition + 1) % 3).to_string();
    for (arguments, says) in [
        (vec!["show", "ended"], "nothing is known of thread ended in partition ".to_owned()),
        (vec!["show", "nightly-deploy", "--partition", &elsewhere], format!("of thread nightly-deploy in partition {elsewhere}, ")),
    ] {
        let output = state(&deployment, &arguments)?;
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{}", stderr(&output));
        assert!(stderr(&output).contains(&says) && stderr(&output).contains("ended leaves nothing"), "{}", stderr(&output));
    }
    lists(&deployment)
}

/// Checks the lists: the blocked thread remembers the most, and is the older one.
fn lists(deployment: &Deployment) -> Result<()> {
    let list = |arguments: &[&str]| -> Result<(Vec<Value>, String)> {
        let output = state(deployment, &[&["list"], arguments].concat())?;
        ensure!(output.status.success(), "{}", stderr(&output));
        let lines = String::from_utf8_lossy(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok((lines, stderr(&output)))
    };
    let ids = |lines: &[Value]| lines.iter().map(|line| line["thread_id"].as_str().expect("a thread").to_owned()).collect::<Vec<_>>();
    let (all, totals) = list(&[])?;
    assert_eq!(ids(&all), ["nightly-deploy", "cut-off"]);
    assert_eq!((&all[0]["calls"], &all[0]["holds_a_stop"]), (&json!(3), &json!(true)));
    assert!(totals.contains("partitions: 3, threads: 2, bytes: ") && totals.contains("that hold a stop: 2"), "{totals}");
    let bytes: u64 = all.iter().filter_map(|line| line["bytes"].as_u64()).sum();
    assert!(totals.contains(&format!("bytes: {bytes},")), "{totals}");
    assert_eq!(ids(&list(&["--largest", "1"])?.0), ["nightly-deploy"]);
    assert_eq!(ids(&list(&["--oldest", "1"])?.0), ["nightly-deploy"]);
    // Every partition on its own gives what all of them together give.
    let mut found = BTreeSet::new();
    for partition in ["0", "1", "2"] {
        let (lines, totals) = list(&["--partition", partition])?;
        assert!(totals.contains("partitions: 1, "), "{totals}");
        assert!(lines.iter().all(|line| line["partition"].as_u64() == partition.parse().ok()));
        found.extend(ids(&lines));
    }
    assert_eq!(found.len(), 2);
    Ok(())
}

pub(crate) fn a_reset_clears_what_blocks_a_thread(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 3)?;
    let _worker = deployment.start()?;
    let (partition, offset) = produce(cluster, &deployment, &blocked("t"))?;
    show_as_of(&deployment, "t", offset)?;
    let events = || Ok::<_, anyhow::Error>(cluster.read_all(&deployment.events)?.len());
    let before = events()?;

    let output = state(&deployment, &["reset", "t"])?;
    let plan = json_of(&output)?;
    assert_eq!((&plan["topic"], plan["partition"].as_i64(), &plan["offset"]), (&json!(deployment.events), Some(partition), &Value::Null));
    assert_eq!((&plan["event"]["type"], &plan["event"]["thread_id"]), (&json!("thread_reset"), &json!("t")));
    let message = stderr(&output);
    assert!(message.contains(&format!("thread t as of offset {offset}: turn turn-8, 3 calls remembered, it holds a stop")), "{message}");
    assert!(message.contains("nothing was changed; --execute publishes the event"), "{message}");
    let output = state(&deployment, &["reset", "nobody"])?;
    assert!(json_of(&output).is_ok() && stderr(&output).contains("nothing is known of thread nobody"), "{}", stderr(&output));
    assert_eq!(events()?, before);

    // A reset of another turn leaves the block.
    let done = json_of(&state(&deployment, &["reset", "t", "--turn", "turn-7", "--execute"])?)?;
    assert_eq!((done["partition"].as_i64(), done["offset"].as_i64()), (Some(partition), Some(offset + 1)));
    cluster.produce(&deployment.events, &[call("t", "c4")])?;
    assert_eq!(verdict_on(cluster, &deployment, "c4/call")?, "repeated_exact_failure_block");

    let done = json_of(&state(&deployment, &["reset", "t", "--turn", "turn-8", "--execute"])?)?;
    let (_, offset) = produce(cluster, &deployment, &[call("t", "c5")])?;
    assert_eq!(verdict_on(cluster, &deployment, "c5/call")?, "allow");
    let shown = show_as_of(&deployment, "t", offset)?;
    assert_eq!((&shown["turn"]["id"], &shown["holds_a_stop"]), (&json!("turn-8"), &json!(false)));
    assert_eq!(shown["calls"].as_array().map(Vec::len), Some(1));

    // A reset of the whole thread clears it, and the event that was announced is the one that is published.
    let whole = json_of(&state(&deployment, &["reset", "t", "--execute"])?)?;
    let published = cluster.read_all(&deployment.events)?;
    for report in [done, whole] {
        let is_it = |record: &&Record| Some(record.offset) == report["offset"].as_i64() && i64::from(record.partition) == partition;
        let record = published.iter().find(is_it).expect("it was published");
        assert_eq!((record.key.as_deref(), parsed(record)), (Some(b"t".as_slice()), report["event"].clone()));
    }
    wait_until("the thread is gone", || Ok(!state(&deployment, &["show", "t"])?.status.success()))
}

/// Partitions and topics that are not there, and state that cannot be read, are named.
pub(crate) fn what_is_not_there_is_named(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 2)?;
    let fails = |deployment: &Deployment, arguments: &[&str], says: &str| -> Result<()> {
        let output = state(deployment, arguments)?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
        Ok(())
    };
    fails(&deployment, &["show", "t"], "of which nothing was ever written down")?;
    for arguments in [["show", "t", "--partition", "2"].as_slice(), &["list", "--partition", "2"], &["reset", "t", "--partition", "2"]] {
        fails(&deployment, arguments, "--partition 2: topic ")?;
    }
    let broken = [Outgoing::new("thread/t", [0xff]).partition(1), Outgoing::new("thread/t", [0, 0]).partition(1)];
    let broken = [broken.as_slice(), &[Outgoing::new("nonsense", "x").partition(0)]].concat();
    cluster.produce(&deployment.state, &broken)?;
    fails(&deployment, &["show", "t", "--partition", "1"], &format!("partition 1 of {}, record at offset 1: ", deployment.state))?;
    fails(&deployment, &["list"], &format!("partition 0 of {}, record at offset 0: the record has a key of 8 bytes", deployment.state))?;
    fails(&deployment, &["list"], &format!("partition 1 of {}, record at offset 1: ", deployment.state))?;
    fails(&deployment, &["list"], "partitions: 2, threads: 0, bytes: 0, threads that hold a stop: 0, unreadable records: 2")?;
    fails(&deployment, &["show", "t", "--partition", "0"], "nothing is known of thread t in partition 0")?;
    let output = state(&deployment, &["reset", "t", "--partition", "1"])?;
    assert!(output.status.success() && stderr(&output).contains("cannot be told: partition 1 of "), "{}", stderr(&output));

    deployment.configure("/kafka/topics/state", json!("no.such.state"));
    deployment.configure("/kafka/topics/events", json!("no.such.events"));
    fails(&deployment, &["show", "t"], "no such topic: no.such.state (kafka.topics.state)")?;
    fails(&deployment, &["list"], "no such topic: no.such.state (kafka.topics.state)")?;
    fails(&deployment, &["reset", "t", "--execute"], "no such topic: no.such.events (kafka.topics.events)")
}

pub(crate) fn brokers_that_are_away_end_every_command(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 1)?;
    deployment.configure("/kafka/brokers", json!("127.0.0.1:1"));
    let commands = [["show", "t"].as_slice(), &["list"], &["reset", "t"], &["reset", "t", "--execute"]].map(|arguments| {
        let mut command = deployment.command("state");
        command.args(arguments);
        command
    });
    scope(|threads| {
        let running = commands.map(|mut command| threads.spawn(move || command.output()));
        for output in running {
            let output = output.join().expect("no panic")?;
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
            assert!(stderr(&output).contains("the brokers at 127.0.0.1:1 (kafka.brokers) do not answer"), "{}", stderr(&output));
        }
        anyhow::Ok(())
    })?;
    Ok(())
}
