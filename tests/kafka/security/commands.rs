//! Commands that talk to brokers: each logs in by every mechanism that a worker logs in by.

use std::process::{Child, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use tollgate_testkit::{Cluster, Deployment};

use super::mechanisms::{Mechanism, mechanisms};
use super::{SENTINEL, Secured, decides, documented_rights};

/// How many commands run side by side: the machine has two cores, other cases run meanwhile, and a command gives up on brokers after 10 s.
const SIDE_BY_SIDE: usize = 3;

/// The exit code of `topics apply --check` where something differs from what is asked for.
const DIFFERS: i32 = 3;

/// Returns the words of every command that reads or writes topics, and ends by itself. The last command sends what the first has captured.
fn commands(deployment: &Deployment, file: &str) -> Vec<Vec<String>> {
    let events = &deployment.events;
    [
        format!("capture --topic {events} {file}"),
        "topics apply --check".to_owned(),
        "config check --connect".to_owned(),
        "tap --from-beginning --count 1".to_owned(),
        "state list".to_owned(),
        "state show t".to_owned(),
        "state reset t --execute".to_owned(),
        "control list".to_owned(),
        "control suspend --kind agent --id a --reason tried".to_owned(),
        "control history".to_owned(),
        "why e".to_owned(),
        "abuse blocklist".to_owned(),
        "dlq list".to_owned(),
        "dlq redrive --execute".to_owned(),
        format!("replay {file} --to {events} --yes --rate max"),
    ]
    .map(|line| line.split(' ').map(str::to_owned).collect())
    .to_vec()
}

/// Each command reads or writes with each mechanism, and shows no secret.
pub(crate) fn every_command_logs_in_by_every_mechanism(shared: &Cluster) -> Result<()> {
    // Another case counts the tokens that the shared broker's endpoint gives.
    let secured = Secured::start()?;
    let cluster = secured.cluster(shared)?;
    for mechanism in mechanisms(&secured, shared)? {
        check(&secured, &cluster, &mechanism).with_context(|| mechanism.name)?;
    }
    Ok(())
}

fn check(secured: &Secured, cluster: &Cluster, mechanism: &Mechanism) -> Result<()> {
    let Mechanism { deployment, principal, .. } = mechanism;
    let topics = [&deployment.events, &deployment.decisions, &deployment.dlq, &deployment.state, &deployment.controls];
    let rights = ["Read", "Write", "DescribeConfigs"];
    let on_topics = topics.iter().flat_map(|topic| rights.map(|right| format!("--operation {right} --topic {topic}")));
    secured.grant(principal, &documented_rights(deployment).into_iter().chain(on_topics).collect::<Vec<_>>())?;
    let worker = deployment.spawn_adapted(|command| mechanism.log_in(command))?;
    worker.wait_ready()?;
    decides(cluster, deployment, "e")?;
    cluster.read_until(&deployment.dlq, |letters| !letters.is_empty())?;
    ensure!(worker.stop()?.success());

    let capture = secured.path(&format!("{}.jsonl", deployment.events));
    for batch in commands(deployment, &capture).chunks(SIDE_BY_SIDE) {
        let running: Vec<_> = batch.iter().map(|words| start(mechanism, words)).collect::<Result<_>>()?;
        for (words, child) in batch.iter().zip(running) {
            check_end(mechanism, words, &child.wait_with_output()?)?;
        }
    }
    Ok(())
}

fn start(mechanism: &Mechanism, words: &[String]) -> Result<Child> {
    let mut command = mechanism.deployment.command(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    mechanism.log_in(&mut command);
    Ok(command.spawn()?)
}

fn check_end(mechanism: &Mechanism, words: &[String], ended: &Output) -> Result<()> {
    let shown = [String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr)].concat();
    // rdkafka's client for administration has no way to be given a token, and the command says so.
    if words[0] == "topics" && mechanism.name.starts_with("OAUTHBEARER") {
        ensure!(shown.contains("the client for administration takes no OAUTHBEARER tokens"), "{shown}");
        return Ok(());
    }
    let is_good = ended.status.success() || words.iter().any(|word| word == "--check") && ended.status.code() == Some(DIFFERS);
    ensure!(is_good && !shown.contains(SENTINEL), "{}: {}\n{}", words.join(" "), ended.status, shown.replace(SENTINEL, "SECRET"));
    Ok(())
}
