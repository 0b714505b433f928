//! Tests a policy on trial: what it would have changed is what two runs of `eval` differ in, on the threads of the sample, and a restart
//! in the middle of turns shows nothing that is not so.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tollgate_core::decide::shadow::Sample;
use tollgate_json::digest::Digest;

use crate::traffic::{awaited, conversations};
use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, Worker, parsed, wait_until};

const PERCENT: f64 = 50.0;

/// What changes of a verdict: action and code of both policies, and the hash of the thread.
type Flips = BTreeMap<String, (String, String, String)>;

pub(crate) fn flips_are_those_of_two_runs(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 4)?;
    let shadow = cluster.topic("shadow", 4, &[])?;
    deployment.configure("/kafka/topics/shadow", json!(shadow));
    let trial = tempfile::NamedTempFile::new()?;
    std::fs::write(trial.path(), json!({"guardrails": denies(), "tool_loop_guardrails": stricter()}).to_string())?;
    let path = trial.path().to_string_lossy().into_owned();
    let arguments = ["--shadow", &path, "--sample", "50%"];
    // The first threads are in the middle of their turns at the restart, and the others begin after it.
    let (mut events, later): (Vec<_>, Vec<_>) =
        conversations(400, 11).into_iter().map(of_an_agent).partition(|event| event.key.as_deref() < Some(b"thread-00250".as_slice()));
    let half = events.len() / 2;
    events.extend(later);
    let (first, second) = events.split_at(half);
    let expected = expected(&mut deployment, &events, first)?;

    let worker = deployment.start_with(&arguments)?;
    cluster.produce(&deployment.events, first)?;
    deployment.verdicts(cluster, awaited(first))?;
    let in_first = expected.0.len();
    cluster.read_until(&shadow, |records| records.len() >= in_first)?;
    wait_until("they are counted", || Ok(worker.metric("tollgate_shadow_flips_total")? >= in_first as f64))?;
    assert_eq!(worker.metric("tollgate_shadow_flips_total")?, in_first as f64);
    assert_eq!(worker.metric("tollgate_shadow_left_out_total")?, 0.0);
    assert!(worker.stop()?.success());

    let worker = deployment.start_with(&arguments)?;
    cluster.produce(&deployment.events, second)?;
    deployment.verdicts(cluster, awaited(&events))?;
    let all: Flips = expected.0.into_iter().chain(expected.1).collect();
    assert!(in_first > 50 && all.len() > in_first + 5, "{in_first} of {}", all.len());
    cluster.read_until(&shadow, |records| records.len() >= all.len())?;
    // What should not be there would have come by now.
    std::thread::sleep(Duration::from_secs(2));
    let records = cluster.read_all(&shadow)?;
    assert_eq!(records.len(), all.len());
    assert_eq!(records.iter().map(published).collect::<Flips>(), all);
    is_reported(&deployment, &all)?;
    worker.await_metric("tollgate_shadow_left_out_total", |count| count > 0.0)?;
    assert_eq!(worker.metric("tollgate_shadow_dropped_total")?, 0.0);
    assert!(worker.stop()?.success());
    Ok(())
}

/// Names an agent in an event that can be read.
fn of_an_agent(mut event: Outgoing) -> Outgoing {
    if let Ok(mut fields @ Value::Object(_)) = serde_json::from_slice(event.value.as_deref().unwrap_or_default()) {
        fields["agent_id"] = "coder".into();
        event.value = Some(fields.to_string().into());
    }
    event
}

/// The report tells of these flips, and within bounds of time only of those that were published then.
fn is_reported(deployment: &Deployment, all: &Flips) -> Result<()> {
    let report = |arguments: &[&str]| -> Result<(String, String)> {
        let ran = deployment.command("shadow").arg("report").args(arguments).output()?;
        let [out, said] = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(ran.status.success(), "{said}");
        Ok((out, said))
    };
    let found: Value = serde_json::from_str(&report(&["--since", "1d"])?.0)?;
    let threads: BTreeSet<_> = all.values().map(|(_, _, thread)| thread).collect();
    let sum = |names: &str| found[names].as_array().unwrap().iter().map(|named| named["flips"].as_u64().unwrap()).sum::<u64>();
    assert_eq!((&found["flips"], &found["threads_with_flips"]), (&json!(all.len()), &json!(threads.len())), "{found}");
    assert_eq!((sum("changes"), sum("agents")), (all.len() as u64, all.len() as u64), "{found}");
    let patch = found["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "patch").unwrap();
    assert!(patch["flips"].as_u64() > Some(0) && found["agents"][0]["name"] == "coder", "{found}");
    let (table, _) = report(&["-o", "table"])?;
    assert!(table.contains(&format!("{} verdicts would have differed, in {} threads\n", all.len(), threads.len())), "{table}");
    assert!(["A → B", "Tools: verdicts that differ", "Agents: verdicts that differ"].iter().all(|part| table.contains(part)), "{table}");
    let (none, said) = report(&["--until", "1d"])?;
    let none: Value = serde_json::from_str(&none)?;
    assert!(none["flips"] == 0 && said.contains("holds no verdict that would have differed"), "{said}");
    Ok(())
}

/// A deployment with a topic for flips, and a policy to try.
struct Tried {
    deployment: Deployment,
    shadow: String,
    policy: tempfile::NamedTempFile,
}

impl Tried {
    fn new(cluster: &Cluster) -> Result<Self> {
        let mut deployment = Deployment::new(cluster, 4)?;
        let shadow = cluster.topic("shadow", 4, &[])?;
        deployment.configure("/kafka/topics/shadow", json!(shadow));
        let policy = tempfile::NamedTempFile::new()?;
        std::fs::write(policy.path(), json!({"guardrails": denies(), "tool_loop_guardrails": stricter()}).to_string())?;
        Ok(Self { deployment, shadow, policy })
    }

    /// Starts a worker whose judges fail as this says.
    fn start(&self, sample: &str, failure: &str) -> Result<Worker> {
        let worker = self.deployment.spawn_adapted(|command| {
            command.arg("--shadow").arg(self.policy.path()).args(["--sample", sample]).env("FAILPOINTS", format!("shadow={failure}"));
        })?;
        worker.wait_ready()?;
        Ok(worker)
    }
}

/// More events than may wait for a judge get their verdicts while no judge does anything, and what it misses is counted.
pub(crate) fn a_judge_that_stands_still_holds_no_verdict_up(cluster: &Cluster) -> Result<()> {
    const EVENTS: usize = 40_000;
    let tried = Tried::new(cluster)?;
    let worker = tried.start("100%", "sleep(600000)")?;
    let call = |number: usize| {
        let thread = format!("thread-{}", number % 100);
        let event = json!({"type": "tool_call", "thread_id": thread, "tool_call_id": number.to_string(), "tool_name": "patch",
            "event_id": number.to_string(), "turn_id": (number / 100).to_string(), "tool_input": {}});
        Outgoing::new(thread.as_str(), event.to_string())
    };
    cluster.produce(&tried.deployment.events, &(0..EVENTS).map(call).collect::<Vec<_>>())?;
    assert_eq!(tried.deployment.verdicts(cluster, EVENTS)?.len(), EVENTS);
    assert_eq!(worker.metric("tollgate_shadow_compared_total")?, 0.0);
    worker.await_metric("tollgate_shadow_dropped_total", |dropped| dropped > 0.0)?;
    assert!(worker.metric("tollgate_shadow_dropped_total")? < EVENTS as f64);
    assert_eq!(worker.get("/livez")?.0, 200);
    assert!(worker.stop()?.success());
    Ok(())
}

/// A panic of a judge is logged and counted. What it compares afterwards is right: nothing that differs only because it forgot.
pub(crate) fn a_judge_that_panics_starts_over(cluster: &Cluster) -> Result<()> {
    let mut tried = Tried::new(cluster)?;
    let events = conversations(400, 12);
    let all = expected(&mut tried.deployment, &events, &events)?.0;
    let worker = tried.start("50%", "300*off->1*panic->off")?;
    cluster.produce(&tried.deployment.events, &events)?;
    tried.deployment.verdicts(cluster, awaited(&events))?;
    let seen = || -> Result<f64> {
        let names = ["compared", "left_out"].map(|name| worker.metric(&format!("tollgate_shadow_{name}_total")));
        names.into_iter().sum()
    };
    let sampled = |event: &&Outgoing| {
        let thread = std::str::from_utf8(event.key.as_deref().unwrap_or_default()).unwrap_or_default();
        Sample::of_percent(PERCENT).is_some_and(|sample| sample.has(thread))
    };
    // One that panicked has no outcome; all others have one, but for those that cannot be read.
    let least = awaited(&events.iter().filter(sampled).cloned().collect::<Vec<_>>()) * 9 / 10;
    wait_until("most of them are seen", || Ok(seen()? >= least as f64))?;
    worker.await_metric("tollgate_thread_panics_total", |count| count == 1.0)?;
    worker.await_metric("tollgate_shadow_dropped_total", |count| count >= 1.0)?;
    worker.await_metric("tollgate_shadow_left_out_total", |count| count > 0.0)?;
    worker.await_line(&["the policy on trial starts over"])?;
    assert!(worker.stop()?.success());
    let found: Flips = cluster.read_all(&tried.shadow)?.iter().map(published).collect();
    assert!(found.len() > 20 && found.len() < all.len(), "{} of {}", found.len(), all.len());
    for (id, flip) in &found {
        assert_eq!(all.get(id), Some(flip), "{id}");
    }
    Ok(())
}

fn denies() -> Value {
    json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["patch"]}}})
}

fn stricter() -> Value {
    json!({"exact_failure_warn_after": 1, "exact_failure_block_after": 1, "same_tool_failure_halt_after": 3})
}

/// Returns what two runs of `eval` differ in, on the threads of the sample: in the first part of the events, and in the rest, of threads
/// that begin there.
fn expected(deployment: &mut Deployment, events: &[Outgoing], first: &[Outgoing]) -> Result<(Flips, Flips)> {
    let ours = deployment.eval(events)?;
    let before: BTreeSet<_> = verdicts_of(deployment.eval(first)?).into_keys().collect();
    deployment.configure("/guardrails", denies());
    deployment.configure("/tool_loop_guardrails", stricter());
    let theirs = verdicts_of(deployment.eval(events)?);
    deployment.configure("/guardrails", json!({"enabled": false}));
    deployment.configure("/tool_loop_guardrails", json!({}));
    let began: BTreeSet<_> = first.iter().filter_map(|event| event.key.clone()).collect();
    let sample = Sample::of_percent(PERCENT).expect("a share");
    let (mut in_first, mut in_second) = (Flips::new(), Flips::new());
    for (id, (thread, from)) in verdicts_of(ours) {
        let to = &theirs[&id].1;
        if from == *to || !sample.has(&thread) {
            continue;
        }
        let flip = (from, to.clone(), Digest::of(thread.as_bytes()).to_string());
        if before.contains(&id) {
            in_first.insert(id, flip);
        } else if !began.contains(thread.as_bytes()) {
            in_second.insert(id, flip);
        }
    }
    Ok((in_first, in_second))
}

/// Returns thread, and action and code, by the ids of verdicts.
fn verdicts_of(lines: impl IntoIterator<Item = String>) -> BTreeMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let verdict = |line: String| {
        let verdict: Value = serde_json::from_str(&line).expect("a verdict");
        (text(&verdict["verdict_id"]), (text(&verdict["thread_id"]), said(&verdict)))
    };
    lines.into_iter().map(verdict).collect()
}

fn said(value: &Value) -> String {
    format!("{} {}", value["action"], value["code"])
}

fn published(record: &Record) -> (String, (String, String, String)) {
    let flip = parsed(record);
    let text = |name: &str| flip[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(text("thread_hash"), Digest::of(record.key.as_deref().unwrap_or_default()).to_string());
    assert!(flip["policy_version"] != flip["shadow_policy_version"] && flip["offset"].is_u64() && flip["tool_name"].is_string(), "{flip}");
    (text("verdict_id"), (said(&flip["from"]), said(&flip["to"]), text("thread_hash")))
}

pub(crate) fn what_cannot_be_tried_is_refused(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 1)?;
    let write = |text: &str| -> Result<tempfile::NamedTempFile> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        Ok(file)
    };
    let asks = "guardrails: {enabled: true, provider: {use: http, config: {url: \"http://127.0.0.1:9/x\"}}}";
    let (same, asks, larger, broken) = (write("{}")?, write(asks)?, write("limits: {event_bytes_max: 9}")?, write("limit: {}")?);
    let other = write("tool_loop_guardrails: {no_progress_block_after: 9}")?;
    for (path, sample, exit, says) in [
        (same.path(), "5%", 2, "with the same policy_version"),
        (asks.path(), "5%", 2, "asks a policy server"),
        (larger.path(), "5%", 2, "another limits.event_bytes_max"),
        (broken.path(), "5%", 1, "found an unknown key"),
        (other.path(), "0%", 2, "more than 0% and at most 100%"),
        (other.path(), "101%", 2, "more than 0% and at most 100%"),
        (other.path(), "5%", 1, "no such topic: agent.shadow; create what is missing: tollgate topics apply --optional --execute"),
    ] {
        let mut command = deployment.command("run");
        command.env("TOLLGATE__ADMIN", "null").arg("--shadow").arg(path).args(["--sample", sample]);
        let ended = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?.wait_with_output()?;
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(exit) && stderr.contains(says), "{says}: {:?}\n{stderr}", ended.status);
    }
    let alone = deployment.command("run").args(["--sample", "5%"]).stderr(Stdio::piped()).spawn()?.wait_with_output()?;
    assert_eq!(alone.status.code(), Some(2));
    Ok(())
}
