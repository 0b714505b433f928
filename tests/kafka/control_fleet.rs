//! Tests what `tollgate control` knows of the workers and of what was switched before: keys, waiting, history.

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::controls::{control, keyed_deployment, run_control, switches, user, wait_for_code};
use tollgate_testkit::{Cluster, Deployment};

/// Returns what a command said to people, once it has ended with this code.
fn said(output: &Output, code: i32) -> Result<String> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(code), "{:?}: {said}", output.status);
    Ok(said)
}

fn under_key(deployment: &Deployment, key: &str, arguments: &[&str]) -> Result<Output> {
    Ok(deployment.command("control").env("TOLLGATE__PRIVACY__SUBJECT_KEY", key).args(arguments).output()?)
}

/// A command whose key the workers do not have is refused and writes nothing, unless it is forced.
pub(crate) fn a_switch_that_no_worker_would_find_is_refused(cluster: &Cluster) -> Result<()> {
    let deployment = keyed_deployment(cluster, 2)?;
    let suspend = [&["suspend"], &user("bob")[..]].concat();
    // Without a worker nobody knows the keys, and nobody is kept from suspending.
    let unknown = said(&control(&deployment, &suspend)?, 0)?;
    ensure!(unknown.contains("no worker has said under which subject key"), "{unknown}");
    let worker = deployment.start()?;
    said(&control(&deployment, &[&suspend[..], &["--wait", "120s"]].concat())?, 0)?;
    let written_before = switches(cluster, &deployment)?.len();
    let (unset, other) = ("privacy.subject_key is not set, and the workers have a key", "the workers do not have this key");
    let unseen = "the workers look subjects up under other keys than this command has";
    for (key, says) in [("null", [unset; 3]), ("another", [other, other, unseen])] {
        for (command, says) in ["suspend", "exempt", "resume"].into_iter().zip(says) {
            let refused = under_key(&deployment, key, &[&[command], &user("eve")[..]].concat())?;
            let refusal = said(&refused, 1)?;
            ensure!(refused.stdout.is_empty() && refusal.contains(says) && refusal.contains("--force"), "{refusal}");
        }
    }
    ensure!(switches(cluster, &deployment)?.len() == written_before, "a refused command wrote something");
    let forced = under_key(&deployment, "another", &[&["suspend", "--force"], &user("eve")[..]].concat())?;
    ensure!(said(&forced, 0)?.contains("the workers do not have this key"), "it is forced in silence");
    wait_for_code(cluster, &deployment, 2, "bob", "subject_suspended")?;
    wait_for_code(cluster, &deployment, 2, "eve", "allow")?;
    // A worker that has stopped says nothing any more.
    ensure!(worker.stop()?.success());
    let unknown = said(&under_key(&deployment, "another", &suspend)?, 0)?;
    ensure!(unknown.contains("no worker has said under which subject key"), "{unknown}");
    Ok(())
}

/// A topic that cannot be read holds up no suspension for long. The subject's id is then refused unless it is forced, because nobody can check its
/// key. A hash is written at once. Nobody is resumed unseen unless that is forced.
pub(crate) fn a_suspension_does_not_wait_for_a_topic_that_cannot_be_read(cluster: &Cluster) -> Result<()> {
    let mut deployment = keyed_deployment(cluster, 1)?;
    // A record that is larger than what this command takes can be written and not be read.
    cluster.produce(&deployment.controls, &[tollgate_testkit::Outgoing::new("history/large", "x".repeat(9_000))])?;
    for (property, bytes) in [("message.max.bytes", 1_000), ("fetch.max.bytes", 1_000), ("receive.message.max.bytes", 1_512)] {
        deployment.configure(&format!("/kafka/properties/{property}"), json!(bytes.to_string()));
    }
    let suspend = [&["suspend"], &user("bob")[..]].concat();
    let refusal = said(&control(&deployment, &suspend)?, 1)?;
    ensure!(
        refusal.contains("nothing was written: whether the workers have this subject key cannot be told: the controls topic"),
        "{refusal}"
    );
    ensure!(refusal.contains("could not be read within 5 s; write --force"), "{refusal}");
    ensure!(switches(cluster, &deployment)?.is_empty(), "a refused command wrote something");
    let forced = said(&control(&deployment, &[&suspend[..], &["--force"]].concat())?, 0)?;
    ensure!(forced.contains("cannot be told") && forced.contains("`control history` will not tell of it"), "{forced}");
    let by_hash = said(&control(&deployment, &["suspend", "--kind", "user", "--hash", &"ab".repeat(32)])?, 0)?;
    ensure!(!by_hash.contains("subject key") && by_hash.contains("`control history` will not tell of it"), "{by_hash}");
    ensure!(switches(cluster, &deployment)?.len() == 2, "a suspension was not written");
    let resume = [&["resume"], &user("bob")[..]].concat();
    let resumed = said(&control(&deployment, &resume)?, 1)?;
    ensure!(resumed.contains("nothing was written: whether the workers have this subject key cannot be told"), "{resumed}");
    let resumed = said(&control(&deployment, &["resume", "--kind", "user", "--hash", &"ab".repeat(32)])?, 1)?;
    ensure!(resumed.contains("nothing was written: what is in force cannot be told"), "{resumed}");
    ensure!(switches(cluster, &deployment)?.len() == 2, "a refused command wrote something");
    let forced = said(&control(&deployment, &[&resume[..], &["--force"]].concat())?, 0)?;
    ensure!(forced.contains("it is written; whether anybody was suspended or exempt cannot be told"), "{forced}");
    Ok(())
}

/// When the wait has ended every worker blocks the subject, and a worker that does not answer is named.
pub(crate) fn a_suspension_waits_for_every_worker(cluster: &Cluster) -> Result<()> {
    let deployment = keyed_deployment(cluster, 4)?;
    let (first, second) = (deployment.start()?, deployment.start()?);
    let wait = |id: &str, time: &str| control(&deployment, &[&["suspend", "--wait", time], &user(id)[..]].concat());
    let told = said(&wait("bob", "120s")?, 0)?;
    ensure!(told.contains("every worker has applied it: workers: ") && told.contains("partitions: 4, after "), "{told}");
    wait_for_code(cluster, &deployment, 4, "bob", "subject_suspended")?;
    let told = said(&control(&deployment, &[&["resume", "--wait", "120s"], &user("bob")[..]].concat())?, 0)?;
    ensure!(told.contains("every worker has applied it: workers: "), "{told}");
    wait_for_code(cluster, &deployment, 4, "bob", "allow")?;
    // A frozen worker has applied nothing, and a killed worker neither before others have its partitions.
    second.signal("STOP")?;
    let told = said(&wait("eve", "2s")?, 1)?;
    ensure!(told.contains(&format!("-{}, which holds the event partitions ", second.id())), "{told}");
    ensure!(!told.contains(&format!("-{},", first.id())), "{told}");
    second.signal("CONT")?;
    said(&wait("eve", "120s")?, 0)?;
    second.kill()?;
    let told = said(&wait("mallory", "120s")?, 0)?;
    ensure!(told.contains("workers: 1, partitions: 4"), "{told}");
    ensure!(first.stop()?.success());
    Ok(())
}

/// The list says who has switched what is in force, and the history what was switched before, also where compaction has removed it.
pub(crate) fn the_history_says_who_switched_what(cluster: &Cluster) -> Result<()> {
    let deployment = keyed_deployment(cluster, 1)?;
    let bob = user("bob");
    let first = run_control(&deployment, &[&["suspend", "--by", "alice", "--reason", "chargeback", "--until", "10m"], &bob[..]].concat())?;
    ensure!(first["value"]["by"] == "alice" && first["value"]["until"].as_str().is_some_and(|until| until.ends_with('Z')), "{first}");
    run_control(&deployment, &[&["resume", "--by", "carol", "--reason", "case 4711"], &bob[..]].concat())?;
    run_control(&deployment, &[&["suspend"], &user("eve")[..]].concat())?;
    // A record of another program, as older ones are.
    let key = format!("subject/agent/{}", "ab".repeat(32));
    let old = json!({"type": "subject", "kind": "agent", "hash": "ab".repeat(32), "state": "suspended"});
    cluster.produce(&deployment.controls, &[tollgate_testkit::Outgoing::new(key.as_str(), old.to_string())])?;

    let lines = |arguments: &[&str]| -> Result<Vec<Value>> {
        let output = control(&deployment, arguments)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    };
    let changes = lines(&["history", "user:bob", "--tenant", "acme"])?;
    let told = |change: &Value| ["key", "state", "by", "reason"].map(|name| change[name].as_str().unwrap_or_default().to_owned());
    let key_of_bob = first["key"].as_str().context("a key")?;
    assert_eq!(
        changes.iter().map(told).collect::<Vec<_>>(),
        [[key_of_bob, "suspended", "alice", "chargeback"], [key_of_bob, "resumed", "carol", "case 4711"]]
    );
    assert_eq!((&changes[0]["offset"], &changes[0]["at"]), (&first["offset"], &first["value"]["at"]));
    let all = lines(&["history"])?;
    assert_eq!((all.len(), &all[0]["key"], &all[0]["by"]), (4, &json!(key), &Value::Null));
    let listed = lines(&["list"])?;
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().any(|line| line["value"]["by"].is_string() && line["value"]["tool"].is_string()), "{listed:?}");
    Ok(())
}
