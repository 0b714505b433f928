//! Tests the kill switch: what `tollgate control` writes, and what running workers make of it.

use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::membership::await_halves;
use tollgate_core::decide::controls::{Control, decode};
use tollgate_testkit::{Broker, Cluster, Deployment, Outgoing, Record, TIME_MAX, Worker, eventually, header, parsed};

const PARTITIONS: i32 = 8;
/// Stands for an id, a reason or a secret that must not be seen anywhere else.
const MARKER: &str = "MARKER-7f3a";

/// Returns a deployment whose subject hashes are keyed.
pub(crate) fn keyed_deployment(cluster: &Cluster, partitions: i32) -> Result<Deployment> {
    let mut deployment = Deployment::new(cluster, partitions)?;
    deployment.configure("/privacy/subject_key", json!("a key"));
    Ok(deployment)
}

pub(crate) fn control(deployment: &Deployment, arguments: &[&str]) -> Result<Output> {
    Ok(deployment.command("control").args(arguments).output()?)
}

/// Runs a command that must succeed, and reads the line that it prints.
pub(crate) fn run_control(deployment: &Deployment, arguments: &[&str]) -> Result<Value> {
    let output = control(deployment, arguments)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(!String::from_utf8_lossy(&[output.stdout.clone(), output.stderr].concat()).contains(MARKER), "an id was printed");
    Ok(serde_json::from_slice(&output.stdout)?)
}

pub(crate) fn user(id: &str) -> [&str; 6] {
    ["--kind", "user", "--tenant", "acme", "--id", id]
}

/// Returns the records of the controls topic without the notes of workers and commands.
pub(crate) fn switches(cluster: &Cluster, deployment: &Deployment) -> Result<Vec<Record>> {
    let mut records = cluster.read_all(&deployment.controls)?;
    records.retain(|record| !matches!(decode(record.key.as_deref(), record.value.as_deref()), Ok(Control::Note)));
    Ok(records)
}

/// Returns a call of a user on a partition.
fn call(partition: i32, user: &str, id: &str) -> Outgoing {
    // A thread's id may be logged, and shows nothing of the user.
    let thread = format!("thread-{partition}-{}", user.len());
    let event = json!({"type": "tool_call", "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {}, "user_id": user, "tenant_id": "acme"});
    Outgoing::new(thread, event.to_string()).partition(partition)
}

/// Has a user make a call on every partition, and returns the verdicts' codes.
pub(crate) fn codes(cluster: &Cluster, deployment: &Deployment, partitions: i32, user: &str) -> Result<Vec<String>> {
    let round = cluster.unique("round");
    let calls: Vec<_> = (0..partitions).map(|partition| call(partition, user, &format!("{round}/{partition}"))).collect();
    cluster.produce(&deployment.events, &calls)?;
    let is_of = |record: &Record| header(record, "event_id").starts_with(&format!("{round}/"));
    let verdicts =
        cluster.read_until(&deployment.decisions, |records| records.iter().filter(|record| is_of(record)).count() == calls.len())?;
    Ok(verdicts
        .iter()
        .filter(|record| is_of(record))
        .map(|record| parsed(record)["code"].as_str().unwrap_or_default().to_owned())
        .collect())
}

/// Waits until calls of a user get this code on every partition.
pub(crate) fn wait_for_code(cluster: &Cluster, deployment: &Deployment, partitions: i32, user: &str, code: &str) -> Result<()> {
    eventually(|| {
        let found = codes(cluster, deployment, partitions, user)?;
        ensure!(found.iter().all(|found| found == code), "not {code} everywhere: {found:?}");
        Ok(())
    })
}

fn wait_for_metric(worker: &Worker, name: &str, value: f64) -> Result<()> {
    worker.await_metric(name, |found| found == value)
}

/// One command stops a user on all partitions of all workers, and another lets them go on. A worker that starts later knows of it.
pub(crate) fn a_suspension_blocks_on_every_partition_of_two_workers(cluster: &Cluster) -> Result<()> {
    let mut deployment = keyed_deployment(cluster, PARTITIONS)?;
    deployment.miss_members_soon();
    let (first, second) = (deployment.start()?, deployment.start()?);
    await_halves(&first, &second, 4)?;
    wait_for_code(cluster, &deployment, PARTITIONS, MARKER, "allow")?;
    let line = run_control(&deployment, &[&["suspend"], &user(MARKER)[..], &["--reason", "chargeback"]].concat())?;
    let key = line["key"].as_str().context("a key")?;
    assert!(key.starts_with("subject/user/") && key.len() == 77, "{key}");
    assert_eq!(
        (&line["topic"], &line["value"]["state"], &line["value"]["reason"]),
        (&json!(deployment.controls), &json!("suspended"), &json!("chargeback"))
    );
    wait_for_code(cluster, &deployment, PARTITIONS, MARKER, "subject_suspended")?;
    wait_for_code(cluster, &deployment, PARTITIONS, "another", "allow")?;
    for worker in [&first, &second] {
        wait_for_metric(worker, "tollgate_controls_applied_total", 1.0)?;
        wait_for_metric(worker, "tollgate_control_delay_seconds_count", 1.0)?;
        worker.await_line(&["a control was applied"])?;
        assert!(!worker.log().contains(MARKER), "{}", worker.log());
    }
    first.kill()?;
    let third = deployment.start()?;
    wait_for_code(cluster, &deployment, PARTITIONS, MARKER, "subject_suspended")?;
    let listed = control(&deployment, &["list"])?;
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    assert_eq!((&listed["key"], &listed["state"], &listed["value"]), (&line["key"], &json!("in_force"), &line["value"]));

    // The id may come by stdin, and the hash may stand for it.
    let mut resume = deployment.command("control");
    resume.args(["resume", "--kind", "user", "--tenant", "acme", "--id", "-"]);
    let resumed = with_stdin(&mut resume, &format!("{MARKER}\n"))?;
    let said = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(resumed.status.success() && said.lines().count() == 1 && said.contains("carry the tenant_id acme"), "{said}");
    let resumed: Value = serde_json::from_slice(&resumed.stdout)?;
    assert_eq!((&resumed["key"], &resumed["value"]), (&line["key"], &Value::Null));
    wait_for_code(cluster, &deployment, PARTITIONS, MARKER, "allow")?;
    let again = control(&deployment, &["resume", "--kind", "user", "--hash", key.trim_start_matches("subject/user/")])?;
    assert_eq!(again.status.code(), Some(1));
    assert!(again.stdout.is_empty() && String::from_utf8_lossy(&again.stderr).contains("nothing was lifted, and nothing was written"));
    assert!(third.stop()?.success() && second.stop()?.success());
    Ok(())
}

fn with_stdin(command: &mut Command, input: &str) -> Result<Output> {
    use std::io::Write as _;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("a pipe")?.write_all(input.as_bytes())?;
    Ok(child.wait_with_output()?)
}

/// Events wait until the controls are read to their end, however many there are: the last of them decides too.
pub(crate) fn nothing_is_decided_before_the_controls_are_known(cluster: &Cluster) -> Result<()> {
    const PASSPORTS: usize = 100_000;
    let deployment = keyed_deployment(cluster, 2)?;
    let passports: Vec<_> = (0..PASSPORTS)
        .map(|number| {
            let agent = format!("agent-{number}");
            Outgoing::new(
                format!("passport/{agent}"),
                json!({"type": "passport", "agent_id": agent, "passport": {"status": "active"}}).to_string(),
            )
        })
        .collect();
    cluster.produce(&deployment.controls, &passports)?;
    // The command reads the topic for five seconds, and a busy machine may take longer.
    run_control(&deployment, &[&["suspend", "--force"], &user(MARKER)[..]].concat())?;
    let calls: Vec<_> = (0..100).map(|number| call(number % 2, MARKER, &format!("c{number}"))).collect();
    cluster.produce(&deployment.events, &calls)?;
    // The reading is held up in the middle, for long enough to be seen.
    let worker = deployment.spawn_adapted(|command| _ = command.env("FAILPOINTS", "controls=1000*off->1*sleep(5000)->off"))?;
    let (mut catching_up, deadline) = (0, Instant::now() + TIME_MAX);
    loop {
        let answer = worker.get("/readyz").ok();
        match answer.map(|(status, body)| (status, body.contains(r#""controls":"catching_up""#), body)) {
            Some((200, is_catching_up, body)) => {
                assert!(!is_catching_up, "{body}");
                break;
            }
            Some((status, true, body)) => {
                catching_up += 1;
                assert_eq!((status, body.contains(r#""members":[]"#)), (503, true), "{body}");
            }
            _ => {}
        }
        ensure!(Instant::now() < deadline, "not ready in time:\n{}", worker.log());
    }
    assert!(catching_up > 0, "it was never seen catching up");
    wait_for_metric(&worker, "tollgate_controls", PASSPORTS as f64 + 1.0)?;
    let verdicts = deployment.verdicts(cluster, calls.len())?;
    assert!(verdicts.iter().all(|verdict| parsed(verdict)["code"] == "subject_suspended"));
    Ok(())
}

/// A suspension that cannot be read suspends without end and says so loudly, in workers that run and in those that start later, and can be
/// resumed; passports come and go by command.
pub(crate) fn a_control_that_cannot_be_read_restricts(cluster: &Cluster) -> Result<()> {
    let deployment = keyed_deployment(cluster, 1)?;
    let worker = deployment.start()?;
    let line = run_control(&deployment, &[&["suspend"], &user("bob")[..]].concat())?;
    let key = line["key"].as_str().context("a key")?;
    run_control(&deployment, &[&["resume"], &user("bob")[..]].concat())?;
    wait_for_code(cluster, &deployment, 1, "bob", "allow")?;
    let mut malformed = line["value"].clone();
    malformed["until"] = json!(MARKER);
    let bad = [
        Outgoing::new(key, malformed.to_string()),
        Outgoing::new(format!("subject/user/{MARKER}"), json!({"type": "subject"}).to_string()),
    ];
    let positions = cluster.produce(&deployment.controls, &bad)?;
    wait_for_metric(&worker, "tollgate_control_rejections_total", 2.0)?;
    for code in ["until_invalid", "key_invalid"] {
        wait_for_metric(&worker, &format!("tollgate_control_rejections_total{{code=\"{code}\"}}"), 1.0)?;
        let line = worker.await_line(&[code])?;
        assert!(line.contains("ERROR") && line.contains(&deployment.controls) && line.contains("offset="), "{line}");
    }
    assert!(!worker.log().contains(MARKER) && !worker.log().contains("bob"), "{}", worker.log());
    wait_for_code(cluster, &deployment, 1, "bob", "subject_suspended")?;

    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().context("a path")?;
    // Every call would be denied under a passport of another version.
    std::fs::write(file.path(), "{ \"status\": \"active\" }")?;
    let set = control(&deployment, &["passport", "set", "coder", path])?;
    let said = String::from_utf8_lossy(&set.stderr).into_owned();
    assert!(set.status.code() == Some(1) && set.stdout.is_empty(), "{said}");
    for part in ["  spec_version: found nothing, expected", "every call of coder would be denied: oap.passport_version_mismatch", "--force"]
    {
        assert!(said.contains(part), "{said}");
    }
    // Stopping an agent asks for no second word.
    std::fs::write(file.path(), "{ \"spec_version\": \"oap/1.0\", \"status\": \"active\", \"revoked\": true }")?;
    let stopped = control(&deployment, &["passport", "set", "coder", path])?;
    ensure!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
    let text = "{ \"spec_version\": \"oap/1.0\", \"status\": \"active\",\n  \"score\": 1.10 }";
    std::fs::write(file.path(), format!("{text}\n"))?;
    let set = control(&deployment, &["passport", "set", "coder", path, "--wait", "2m"])?;
    let said = String::from_utf8_lossy(&set.stderr).into_owned();
    assert!(set.status.code() == Some(1) && said.contains("every worker has applied it"), "{said}");
    assert!(said.contains("without effect on the calls that these workers decide: "), "no provider of theirs reads passports: {said}");
    let digest = tollgate_passport::Passport::read(text.as_bytes())?.digest;
    assert!(said.contains(&format!("sha256:{digest}")), "{said}");
    let compact = "\"passport\":{\"spec_version\":\"oap/1.0\",\"status\":\"active\",\"score\":1.10}";
    assert!(String::from_utf8_lossy(&set.stdout).contains(compact));
    wait_for_metric(&worker, "tollgate_controls", 2.0)?;

    let listed = control(&deployment, &["list"])?;
    assert_eq!(listed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&listed.stderr).contains("controls in force: 1, refused records: 2"));
    let lines: Vec<Value> = String::from_utf8_lossy(&listed.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let effects: Vec<_> = lines.iter().map(|line| (line["key"].as_str(), line["effect"].as_str())).collect();
    assert_eq!(effects, [(Some("passport/coder"), None), (Some(key), Some("subject_suspended")), (None, Some("none"))]);
    assert_eq!(lines[1]["offset"].as_i64(), Some(positions[0].offset));

    assert!(worker.stop()?.success());
    let worker = deployment.start()?;
    wait_for_metric(&worker, "tollgate_controls", 2.0)?;
    wait_for_metric(&worker, "tollgate_control_rejections_total", 2.0)?;
    assert_eq!(codes(cluster, &deployment, 1, "bob")?, ["subject_suspended"]);
    run_control(&deployment, &["passport", "remove", "coder"])?;
    wait_for_metric(&worker, "tollgate_controls", 1.0)?;
    run_control(&deployment, &[&["resume"], &user("bob")[..]].concat())?;
    wait_for_code(cluster, &deployment, 1, "bob", "allow")?;
    Ok(())
}

/// A controls topic that is missing or would lose controls by age ends the worker at once, and what is wrong with a command is said.
pub(crate) fn what_does_not_fit_is_named(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 3)?;
    let fails = |deployment: &Deployment, arguments: &[&str], code: i32, says: &str| -> Result<()> {
        let mut command = deployment.command(arguments[0]);
        let output = command.args(&arguments[1..]).env("TOLLGATE__ADMIN", "null").output()?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(code) && log.contains(says), "{arguments:?}: {log}");
        ensure!(output.stdout.is_empty(), "{arguments:?} printed something");
        Ok(())
    };
    for (arguments, code, says) in [
        (&["suspend", "--kind", "user"][..], 2, "--id <ID>|--hash <HEX>"),
        (&["suspend", "--kind", "bot", "--id", "x"], 2, "[possible values: user, tenant, agent, thread]"),
        (&["suspend", "--kind", "user", "--hash", "AB"], 2, "write 64 lower-case hex digits"),
        (&["suspend", "--kind", "user", "--id", ""], 1, "--id: it is empty"),
        (&["suspend", "--kind", "agent", "--id", "coder-*"], 1, "--id: ids are compared as they are"),
        (&["exempt", "--kind", "user", "--id", "42 "], 1, "--id: ids are compared as they are"),
        (&["passport", "set", "coder-*", "/no/such/file"], 1, "AGENT: ids are compared as they are"),
        (&["suspend", "--kind", "tenant", "--tenant", "acme", "--id", "acme"], 1, "--tenant: a tenant has none itself"),
        (&["suspend", "--kind", "user", "--id", "x", "--until", "2020-01-01T00:00:00Z"], 1, "--until: that moment has passed"),
        (&["suspend", "--kind", "user", "--id", "x", "--until", "tomorrow"], 2, "write a duration such as 90s, 10m, 2h or 1d"),
        (&["suspend", "--kind", "user", "--id", "x", "--wait", "soon"], 2, "write a duration such as 90s, 10m, 2h or 1d"),
        (&["resume", "--kind", "user", "--id", "x"], 1, "nothing was lifted, and nothing was written"),
        (&["passport", "remove", "coder"], 1, "nothing was written: there is no passport of coder"),
        (&["passport", "set", "coder", "/no/such/file"], 1, "/no/such/file: cannot be read"),
    ] {
        fails(&deployment, &[&["control"], arguments].concat(), code, says)?;
    }
    assert_eq!(cluster.read_all(&deployment.controls)?.len(), 0);

    deployment.configure("/kafka/topics/controls", json!("no.such.controls"));
    fails(&deployment, &["run"], 1, "tollgate topics apply --execute")?;
    fails(&deployment, &["control", "list"], 1, "no such topic: no.such.controls (kafka.topics.controls)")?;
    fails(
        &deployment,
        &["control", "suspend", "--kind", "user", "--id", "x"],
        1,
        "no such topic: no.such.controls (kafka.topics.controls)",
    )?;
    deployment.configure("/kafka/topics/controls", json!(cluster.topic("by-age", 1, &[("cleanup.policy", "delete")])?));
    fails(&deployment, &["run"], 1, "controls would be deleted by age")
}

/// A record on a partition that its key does not hash to lifts nothing, and a command that writes the control removes that record.
pub(crate) fn no_partition_lifts_what_another_restricts(cluster: &Cluster) -> Result<()> {
    let mut deployment = keyed_deployment(cluster, 1)?;
    let topic = cluster.topic("controls-two", 2, &[("cleanup.policy", "compact")])?;
    deployment.configure("/kafka/topics/controls", json!(topic));
    let worker = deployment.start()?;
    let line = run_control(&deployment, &[&["suspend"], &user("bob")[..]].concat())?;
    let (key, value) = (line["key"].as_str().context("a key")?, line["value"].to_string());
    let other = 1 - i32::try_from(line["partition"].as_i64().context("a partition")?)?;
    let exempt = value.replace("suspended", "exempt");
    cluster.produce(&topic, &[Outgoing::new(key, exempt).partition(other)])?;
    wait_for_metric(&worker, "tollgate_controls_applied_total", 2.0)?;
    wait_for_code(cluster, &deployment, 1, "bob", "subject_suspended")?;
    cluster.produce(&topic, &[Outgoing::new(key, value).partition(other)])?;
    wait_for_metric(&worker, "tollgate_controls_applied_total", 3.0)?;
    assert!(worker.stop()?.success());
    let worker = deployment.start()?;
    wait_for_code(cluster, &deployment, 1, "bob", "subject_suspended")?;
    let resumed = control(&deployment, &[&["resume", "--wait"], &user("bob")[..]].concat())?;
    let said = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(resumed.status.success() && said.contains(&format!("partition {other} of {topic} had this control too")), "{said}");
    assert_eq!(codes(cluster, &deployment, 1, "bob")?, ["allow"], "{said}");
    assert!(worker.stop()?.success());
    Ok(())
}

/// While the brokers are away what was last known stays in force, and how long that is can be seen; when they are back, news comes again.
pub(crate) fn the_table_outlives_a_broker_restart(cluster: &Cluster, broker: &mut Broker) -> Result<()> {
    let deployment = keyed_deployment(cluster, 1)?;
    let worker = deployment.start()?;
    run_control(&deployment, &[&["suspend"], &user("bob")[..]].concat())?;
    wait_for_code(cluster, &deployment, 1, "bob", "subject_suspended")?;
    wait_for_metric(&worker, "tollgate_controls_stale_seconds", 0.0)?;
    broker.kill()?;
    worker.await_metric("tollgate_controls_stale_seconds", |seconds| seconds >= 2.0)?;
    assert_eq!((worker.get("/livez")?.0, worker.metric("tollgate_controls")?), (200, 1.0));
    broker.start_again()?;
    assert_eq!(codes(cluster, &deployment, 1, "bob")?, ["subject_suspended"]);
    run_control(&deployment, &[&["resume"], &user("bob")[..]].concat())?;
    wait_for_code(cluster, &deployment, 1, "bob", "allow")?;
    wait_for_metric(&worker, "tollgate_controls_stale_seconds", 0.0)?;
    assert_eq!(worker.metric("tollgate_control_feed_restarts_total")?, 0.0);
    assert!(worker.stop()?.success());
    Ok(())
}
