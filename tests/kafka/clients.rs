//! Runs the example clients as a user would run them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use tollgate_testkit::{Cluster, Deployment};

/// The steps of the examples' scripted agent: the end of the step's event id, its code, and what was done.
const STEPS: [(&str, &str, &str); 5] = [
    ("/call_1/result", "allow", "ran"),
    ("/call_2/call", "oap.tool_not_allowed", "synthetic"),
    ("/call_3/result", "allow", "ran"),
    ("/call_4/result", "repeated_exact_failure_warning", "ran"),
    ("/call_5/call", "repeated_exact_failure_block", "stopped"),
];

pub(crate) fn the_python_client_does_what_verdicts_say(cluster: &Cluster) -> Result<()> {
    let python = python()?;
    check_client(cluster, || {
        let mut command = Command::new(&python);
        command.arg("examples/orchestrator.py");
        command
    })
}

pub(crate) fn the_rust_client_does_what_verdicts_say(cluster: &Cluster) -> Result<()> {
    // With the features of all packages, as `./test` has built it before.
    let built = Command::new(env!("CARGO")).args(["build", "--quiet", "--workspace", "--example", "orchestrator"]).status()?;
    ensure!(built.success(), "the example does not build");
    // This test stands in target/<profile>/deps, examples in target/<profile>/examples.
    let binary = std::env::current_exe()?.with_file_name("").join("../examples/orchestrator");
    check_client(cluster, || Command::new(&binary))
}

/// Checks both ways to await a verdict, and a deadline that passes since nobody decides.
fn check_client(cluster: &Cluster, client: impl Fn() -> Command) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 3)?;
    let replies = cluster.topic("client-replies", 2, &[])?;
    deployment.configure("/kafka/reply_topics", json!([replies]));
    deployment.configure("/guardrails", json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["bash"]}}}));
    let run = |via: &str, deadline_ms: &str| {
        let mut command = client();
        command.args(["--brokers", cluster.bootstrap(), "--events", &deployment.events, "--decisions", &deployment.decisions]);
        command.args(["--reply-topic", &replies, "--via", via, "--thread", &format!("thread-{via}"), "--deadline-ms", deadline_ms]);
        command.output().context("the client does not start")
    };
    // Time enough for all but a verdict.
    let timed_out = run("decisions", "20000")?;
    assert_eq!(timed_out.status.code(), Some(1), "{}", String::from_utf8_lossy(&timed_out.stderr));
    assert!(steps(&timed_out.stdout).first().is_some_and(|step| step["code"] == "verdict_timeout" && step["did"] == "timeout"));

    let worker = deployment.start()?;
    for via in ["reply", "decisions"] {
        let output = run(via, "240000")?;
        assert!(output.status.success(), "{via}: {}", String::from_utf8_lossy(&output.stderr));
        let steps = steps(&output.stdout);
        assert_eq!(steps.len(), STEPS.len(), "{via}: {steps:?}");
        for (step, (event, code, did)) in steps.iter().zip(STEPS) {
            assert!(step["event_id"].as_str().is_some_and(|id| id.ends_with(event)), "{via}: {step} is not {event}");
            assert_eq!((&step["code"], &step["did"]), (&json!(code), &json!(did)), "{via}: {step}");
        }
    }
    assert!(worker.stop()?.success());
    Ok(())
}

fn steps(stdout: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(stdout).lines().map(|line| serde_json::from_str(line).expect("a step is JSON")).collect()
}

/// Returns a Python that has confluent-kafka: the one that `./test` has made, or the system's.
fn python() -> Result<PathBuf> {
    let target = std::env::current_exe()?.ancestors().nth(3).context("a target folder")?.to_owned();
    let candidates = [target.join("test-venv/bin/python"), PathBuf::from("python3")];
    let has_client = |python: &Path| {
        let probe = Command::new(python).args(["-c", "import confluent_kafka"]).output();
        probe.is_ok_and(|output| output.status.success())
    };
    candidates.into_iter().find(|python| has_client(python)).context("no Python with confluent-kafka: ./test makes one")
}
