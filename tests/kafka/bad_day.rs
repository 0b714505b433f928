//! Tests bad days of the process itself: nobody reads its log, and threads of it panic.

use std::fs::File;
use std::io::{PipeReader, pipe};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use tollgate_testkit::{Broker, Cluster, Deployment, Outgoing, TIME_MAX, Worker, wait_until};

/// How often a thread panics, since each time is told only until it is started over.
const PANICS: u32 = 3;

/// How often `/livez` is asked while something is about to be seen there.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

fn calls(from: usize, count: usize) -> Vec<Outgoing> {
    let call =
        |n| json!({"type": "tool_call", "event_id": format!("e{n}"), "tool_call_id": format!("c{n}"), "tool_name": "ls", "tool_input": {}});
    (from..from + count).map(|n| Outgoing::new(format!("t{}", n % 7), call(n).to_string())).collect()
}

fn spawn_with_pipe(deployment: &Deployment, adapt: impl FnOnce(&mut Command)) -> Result<(Worker, PipeReader)> {
    let (reader, writer) = pipe()?;
    let worker = deployment.spawn_adapted(|command| {
        command.stderr(writer);
        adapt(command);
    })?;
    Ok((worker, reader))
}

/// Whoever reads the log goes away: the worker decides, tells that lines are lost, and stops when it is asked to.
pub(crate) fn a_lost_reader_of_stderr_stops_nothing(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 2)?;
    let (worker, reader) = spawn_with_pipe(&deployment, |_| ())?;
    drop(reader);
    worker.wait_ready()?;
    cluster.produce(&deployment.events, &calls(0, 20))?;
    deployment.verdicts(cluster, 20)?;
    assert_eq!(worker.get("/livez")?, (200, "ok\n".to_owned()));
    worker.await_metric("tollgate_lost_log_lines_total", |lines| lines > 0.0)?;
    assert_eq!(worker.metric("tollgate_thread_panics_total")?, 0.0);
    cluster.await_committed(&deployment.group, &deployment.events, 20)?;
    assert!(worker.stop()?.success());
    Ok(())
}

/// Nobody reads the log, and it is long: no thread waits until somebody does.
pub(crate) fn a_full_stderr_stops_nothing(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 2)?;
    deployment.configure("/kafka/properties/debug", json!("all"));
    let (worker, reader) = spawn_with_pipe(&deployment, |command| _ = command.env("TOLLGATE__LOG__FILTER", "trace"))?;
    worker.wait_ready()?;
    let (deadline, mut sent) = (Instant::now() + TIME_MAX, 0);
    while worker.metric("tollgate_lost_log_lines_total")? == 0.0 {
        ensure!(Instant::now() < deadline, "the pipe did not get full");
        cluster.produce(&deployment.events, &calls(sent, 50))?;
        sent += 50;
    }
    deployment.verdicts(cluster, sent)?;
    assert_eq!(worker.get("/livez")?, (200, "ok\n".to_owned()));
    cluster.await_committed(&deployment.group, &deployment.events, sent)?;
    assert!(worker.stop()?.success());
    drop(reader);
    Ok(())
}

/// While the broker is away, `/readyz` and the log name it and the lag is unknown, until the broker is back.
pub(crate) fn a_broker_that_is_away_is_named_and_the_lag_unknown(cluster: &Cluster, broker: &mut Broker) -> Result<()> {
    let deployment = Deployment::new(cluster, 2)?;
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, &calls(0, 20))?;
    deployment.verdicts(cluster, 20)?;
    let has_lag = || Ok(worker.get("/metrics")?.1.contains("tollgate_lag_records{"));
    wait_until("the lag is known", has_lag)?;
    let problems = || {
        let report: serde_json::Value = serde_json::from_str(&worker.get("/readyz")?.1)?;
        anyhow::Ok(report["problems"].as_array().cloned().unwrap_or_default())
    };
    wait_until("there is no problem", || Ok(problems()?.is_empty()))?;
    let said = || worker.log().matches("no answer about topic").count();
    let (killed, known) = (Instant::now(), said());
    broker.kill()?;
    let address = broker.bootstrap();
    let names = |problem: &serde_json::Value| problem.as_str().is_some_and(|text| text.contains("since 2") && text.contains(&address));
    wait_until("the problem names the broker", || Ok(problems()?.iter().any(names)))?;
    wait_until("the lag is unknown", || Ok(!has_lag()?))?;
    ensure!(worker.get("/livez")?.0 == 200, "a broker that is down is no reason to restart a worker");
    let output = deployment
        .command("top")
        .args(["--once", "--output", "json", "--worker"])
        .arg(format!("127.0.0.1:{}", worker.admin_port()))
        .output()?;
    let view: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let shown = &view["workers"][0];
    assert!(shown["lag_records"].is_null() && shown["lag_seconds"].is_null() && shown["ready"] == false, "{view}");
    assert!(shown["problems"].as_array().is_some_and(|problems| problems.iter().any(names)), "{view}");
    worker.await_line(&["no answer about topic", &address])?;
    let (told, minutes) = (said() - known, killed.elapsed().as_secs() / 60);
    assert!(told as u64 <= 1 + minutes, "once a minute is enough:\n{}", worker.log());
    broker.start_again()?;
    wait_until("the problem is over", || Ok(problems()?.is_empty()))?;
    wait_until("the lag is known again", has_lag)?;
    worker.await_line(&["the brokers answer again"])?;
    assert_eq!(worker.metric("tollgate_member_restarts_total")?, 0.0);
    Ok(())
}

/// A panic in a thread that can be started over is seen at once and mended.
pub(crate) fn a_thread_that_panics_is_seen_and_started_over(cluster: &Cluster) -> Result<()> {
    for (place, thread) in [("member", "member-0"), ("controls", "controls"), ("state", "state-0")] {
        let mut deployment = Deployment::new(cluster, 1)?;
        deployment.miss_members_soon();
        // The first passages are spared, so that it happens in the middle of work.
        let spared = if place == "state" { 1 } else { 20 };
        let worker =
            deployment.spawn_adapted(|command| _ = command.env("FAILPOINTS", format!("{place}={spared}*off->{PANICS}*panic->off")))?;
        let (deadline, mut sent) = (Instant::now() + TIME_MAX, 0);
        let told = loop {
            ensure!(Instant::now() < deadline, "no panic in {place} was told:\n{}", worker.log());
            if place == "state" {
                cluster.produce(&deployment.events, &calls(sent, 1))?;
                sent += 1;
            }
            // The endpoint may not be there yet.
            match worker.get("/livez") {
                Ok((503, body)) => break body,
                _ => std::thread::sleep(LOOK_INTERVAL),
            }
        };
        assert_eq!(told, format!("thread {thread} panicked and is being started over\n"));
        worker.wait_ready()?;
        cluster.produce(&deployment.events, &calls(sent, 20))?;
        deployment.verdicts(cluster, sent + 20)?;
        let panics = || worker.metric("tollgate_thread_panics_total");
        while worker.get("/livez")?.0 != 200 || panics()? < f64::from(PANICS) {
            ensure!(Instant::now() < deadline, "{place} was not started over:\n{}", worker.log());
            std::thread::sleep(LOOK_INTERVAL);
        }
        worker.wait_ready()?;
        assert_eq!(panics()?, f64::from(PANICS), "{place}");
        worker.await_line(&["a thread panicked", thread, "src/"])?;
        assert!(worker.stop()?.success(), "{place}");
    }
    // The log's own thread goes on after a panic, and nothing but a line is lost.
    let deployment = Deployment::new(cluster, 1)?;
    let worker = deployment.spawn_adapted(|command| _ = command.env("FAILPOINTS", "log=1*panic->off"))?;
    worker.wait_ready()?;
    for name in ["tollgate_thread_panics_total", "tollgate_lost_log_lines_total"] {
        worker.await_metric(name, |count| count == 1.0)?;
    }
    worker.await_line(&[" restored "])?;
    assert!(worker.stop()?.success());
    Ok(())
}

/// A panic in a thread that cannot be started over ends the process, with a code of its own.
pub(crate) fn a_thread_that_cannot_be_started_over_ends_the_process(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 1)?;
    for thread in ["signals", "admin"] {
        let log = tempfile::NamedTempFile::new()?;
        let mut command = deployment.command("run");
        command.env("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0").env("FAILPOINTS", format!("{thread}=panic"));
        let status = command.stderr(File::create(log.path())?).status().context("it starts")?;
        let log = std::fs::read_to_string(log.path())?;
        assert_eq!(status.code(), Some(70), "{thread}: {log}");
        assert!(log.contains("a thread ended that has to run") && log.contains(thread), "{log}");
    }
    Ok(())
}
