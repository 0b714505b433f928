//! Rights that the brokers refuse: principal, operation and resource are named once, and the line that is printed grants them.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use tollgate_testkit::{Broker, Cluster, Deployment, Outgoing, Worker, eventually, grant, header};

/// What every refusal says.
const REFUSED: &str = "User:worker lacks the right to ";

/// Returns the grants in a log: the commands to the end of their lines.
fn grants(log: &str) -> Vec<String> {
    let lines = log.lines().filter(|line| line.contains(REFUSED));
    lines.filter_map(|line| line.split_once("grant it: ")).map(|(_, command)| command.to_owned()).collect()
}

/// Waits until a worker's log has a grant with all of these parts, and returns it.
fn await_grant(worker: &Worker, parts: &[&str]) -> Result<String> {
    eventually(|| {
        let log = worker.log();
        let found = grants(&log).into_iter().find(|line| parts.iter().all(|part| line.contains(part)));
        found.with_context(|| format!("no grant with {parts:?}:\n{log}"))
    })
}

/// Waits until a worker is not ready, because of this.
fn check_unready(worker: &Worker, because: &str) -> Result<()> {
    eventually(|| {
        let (status, body) = worker.get("/readyz")?;
        ensure!(status == 503 && body.contains(because), "{status}: {body}");
        Ok(())
    })
}

fn secured(cluster: &Cluster, broker: &Broker, password: &str) -> Result<Deployment> {
    let mut deployment = Deployment::new(cluster, 2)?;
    deployment.configure("/kafka/brokers", json!(broker.secured_bootstrap()?));
    for (property, value) in
        [("security.protocol", "sasl_plaintext"), ("sasl.mechanism", "PLAIN"), ("sasl.username", "worker"), ("sasl.password", password)]
    {
        deployment.configure(&format!("/kafka/properties/{property}"), json!(value));
    }
    Ok(deployment)
}

pub(crate) fn each_refusal_is_named_once_with_its_grant(shared: &Cluster) -> Result<()> {
    let broker = Broker::start_secured(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        &shared.directory().join("secured-broker.log"),
        &[("worker", "s3cret")],
    )?;
    let cluster = shared.at(broker.bootstrap())?;
    a_wrong_password_is_said(&cluster, &broker)?;
    let deployment = secured(&cluster, &broker, "s3cret")?;
    let Deployment { events, decisions, dlq, state, controls, group, .. } = &deployment;

    // Without any right the worker ends, and names all that it can know by then.
    let mut worker = deployment.spawn("")?;
    ensure!(worker.wait()?.code() == Some(1), "{}", worker.log());
    let wanted = grants(&worker.log());
    let topics = [("Read", events), ("Write", decisions), ("Write", dlq), ("Read", controls), ("Read", state), ("Write", state)]
        .map(|(operation, topic)| format!("--allow-principal User:worker --operation {operation} --topic {topic}"));
    for part in topics.iter().chain([&format!("--allow-principal User:worker --operation Read --group {group}")]) {
        ensure!(wanted.iter().filter(|line| line.ends_with(part.as_str())).count() == 1, "{part} is not named once:\n{}", worker.log());
    }
    ensure!(wanted.len() == 7, "{wanted:?}");
    let listed = deployment.command("state").arg("list").output()?;
    let listed = String::from_utf8_lossy(&listed.stderr).into_owned();
    ensure!(grants(&listed).len() == 1 && listed.contains(&format!("to Read on topic {state};")), "{listed}");

    // Two rights are wanting that show only at work: the group and the decisions may be described, and no more.
    for line in &wanted {
        let shows_late = line.ends_with(group.as_str()) || line.ends_with(decisions.as_str());
        let line = if shows_late {
            line.replace("--operation Read", "--operation Describe").replace("--operation Write", "--operation Describe")
        } else {
            line.clone()
        };
        grant(cluster.bootstrap(), &line)?;
    }
    // Describing the group is enough to ask for its offsets; the transactional ids are the next that a check misses.
    let check = || Ok::<_, anyhow::Error>(deployment.command("config").args(["check", "--connect"]).output()?);
    let checked = check()?;
    let stderr = String::from_utf8_lossy(&checked.stderr).into_owned();
    ensure!(
        checked.status.code() == Some(1) && stderr.contains("--connect: User:worker lacks the right to Write and Describe on tr"),
        "{stderr}"
    );
    let worker = deployment.spawn("")?;
    let line = await_grant(&worker, &["--operation Read", &format!("--group {group}")])?;
    check_unready(&worker, &format!("to Read on group {group}"))?;
    grant(cluster.bootstrap(), &line)?;
    let line = await_grant(
        &worker,
        &["--operation Write --operation Describe", &format!("--transactional-id {group}/ --resource-pattern-type prefixed")],
    )?;
    check_unready(&worker, &format!("to Write and Describe on transactional ids that begin with {group}/"))?;
    grant(cluster.bootstrap(), &line)?;
    worker.wait_ready()?;
    // A worker is ready without the right to tell commands what it has applied.
    let line = await_grant(&worker, &["--operation Write", &format!("--topic {controls}")])?;
    grant(cluster.bootstrap(), &line)?;
    let call = r#"{"type":"tool_call","event_id":"e","tool_call_id":"c","tool_name":"ls","tool_input":{}}"#;
    cluster.produce(events, &[Outgoing::new("t", call)])?;
    let line = await_grant(&worker, &["--operation Write", &format!("--topic {decisions}")])?;
    check_unready(&worker, &format!("to Write on topic {decisions}"))?;
    grant(cluster.bootstrap(), &line)?;
    let verdicts = deployment.verdicts(&cluster, 1)?;
    ensure!(header(verdicts.first().context("a verdict")?, "event_id") == "e");
    worker.wait_ready()?;
    let rights = [format!("group {group}"), format!("transactional ids that begin with {group}/"), format!("topic {decisions}")];
    for right in &rights {
        worker.await_line(&[&format!("{right} is there now")])?;
    }
    let log = worker.log();
    // How the topics are configured is nice to know, and each topic is named for it.
    let required = grants(&log).into_iter().filter(|line| !line.contains("DescribeConfigs")).count();
    ensure!(required == 4, "a refusal was said more than once:\n{log}");
    for right in rights {
        ensure!(log.matches(&format!("{right} is there now")).count() == 1, "{right}:\n{log}");
    }
    ensure!(worker.stop()?.success());
    let checked = check()?;
    ensure!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    Ok(())
}

fn a_wrong_password_is_said(cluster: &Cluster, broker: &Broker) -> Result<()> {
    let deployment = secured(cluster, broker, "wrong-7f3a")?;
    let mut worker = deployment.spawn("")?;
    let says = "check sasl.mechanism, sasl.username and sasl.password in kafka.properties";
    worker.await_line(&[says])?;
    worker.signal("INT")?;
    ensure!(worker.wait()?.success());
    ensure!(worker.log().matches(says).count() == 1 && !worker.log().contains("wrong-7f3a"), "{}", worker.log());
    Ok(())
}
