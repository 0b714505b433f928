//! Tests of a group in which two releases, or two policies, are at work while a change rolls out.
//!
//! `TOLLGATE_EARLIER_RELEASE` is the binary of an earlier release. `tests/kafka/earlier-release` builds it, and `./test` has it built.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::membership::{under_load, under_load_meanwhile, wait_until};
use crate::security::await_line;
use crate::state::{quick_deployment, readiness};
use crate::traffic::{awaited, conversations};
use tollgate_testkit::harness::NotHere;
use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, by_thread, header, text};

const TIME_MAX: Duration = Duration::from_secs(240);
const PARTITIONS: i32 = 4;

/// Has the deployment's commands run by the earlier release, and returns the binary of this one.
fn use_earlier(deployment: &mut Deployment) -> Result<std::path::PathBuf> {
    let Some(earlier) = std::env::var_os("TOLLGATE_EARLIER_RELEASE") else {
        return Err(NotHere("no TOLLGATE_EARLIER_RELEASE, the binary of an earlier release".to_owned()).into());
    };
    Ok(deployment.use_binary(earlier.into()))
}

/// Returns a verdict without the digest of the policy, which may cover more in a later release.
fn without_version(verdict: &str) -> String {
    let mut verdict: Value = serde_json::from_str(verdict).expect("a verdict is JSON");
    verdict.as_object_mut().expect("a verdict is an object").remove("policy_version");
    verdict.to_string()
}

/// Checks that every event has the verdict of `eval` of this release, whichever release gave it.
fn verdicts_are_those_of_this_release(cluster: &Cluster, deployment: &Deployment, events: &[Outgoing]) -> Result<()> {
    let verdicts = deployment.verdicts(cluster, awaited(events), TIME_MAX)?;
    let mut first = BTreeMap::new();
    for verdict in &verdicts {
        first.entry((verdict.key.clone(), header(verdict, "event_id"))).or_insert_with(|| without_version(&text(verdict)));
    }
    let expected: BTreeMap<_, _> = by_thread(deployment.eval(events)?);
    let mut missing = 0;
    for verdict in expected.into_values().flatten() {
        let value: Value = serde_json::from_str(&verdict)?;
        let name = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        match first.get(&(Some(name("thread_id").into_bytes()), name("event_id"))) {
            Some(found) => assert_eq!(*found, without_version(&verdict)),
            None => missing += 1,
        }
    }
    ensure!(missing == 0, "{missing} events have no verdict");
    Ok(())
}

/// State that an earlier release has left, killed in the middle of its work, is gone on with.
pub(crate) fn state_of_an_earlier_release_is_taken_over(cluster: &Cluster) -> Result<()> {
    let mut deployment = quick_deployment(cluster, PARTITIONS)?;
    let this = use_earlier(&mut deployment)?;
    let events = conversations(600, 43);
    let (before, after) = events.split_at(events.len() / 2);
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, before)?;
    deployment.verdicts(cluster, awaited(before), TIME_MAX)?;
    worker.kill()?;
    deployment.use_binary(this);
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, after)?;
    verdicts_are_those_of_this_release(cluster, &deployment, &events)?;
    for partition in 0..PARTITIONS {
        await_line(&worker, &[" restored ", &format!("partition={partition} ")])?;
    }
    assert!(worker.stop()?.success());
    Ok(())
}

/// Two workers are upgraded one after the other. In between the new one fails, and the older one gets partitions whose state it cannot read:
/// they wait, which is seen, and go on as soon as a new worker has them. No verdict is lost, and none differs.
pub(crate) fn an_older_release_waits_where_the_state_is_newer(cluster: &Cluster) -> Result<()> {
    let mut deployment = quick_deployment(cluster, PARTITIONS)?;
    let this = use_earlier(&mut deployment)?;
    let (first, second) = (deployment.start()?, deployment.start()?);
    wait_until("both have partitions", || Ok(first.partitions()?.len() == 2 && second.partitions()?.len() == 2))?;
    deployment.use_binary(this);
    // Of these, only as many are sent as there is time for.
    let (mut events, probes) = (conversations(12_000, 47), one_call_to_each_partition());
    let mut workers = Vec::new();
    let sent = under_load_meanwhile(cluster, &deployment, &events, || {
        wait_until("they have written state", || Ok(!versions_of_state(cluster, &deployment)?.is_empty()))?;
        ensure!(first.stop()?.success());
        let version_before = newest_version(cluster, &deployment)?;
        let upgraded = deployment.start()?;
        wait_until("the upgraded worker has partitions", || Ok(upgraded.partitions()?.len() == 2))?;
        cluster.produce(&deployment.events, &probes)?;
        wait_until("its state is of a newer version on both", || {
            let newer = partitions_of_newer_state(cluster, &deployment, version_before)?;
            Ok(upgraded.partitions()?.iter().all(|partition| newer.contains(partition)))
        })?;
        upgraded.kill()?;
        wait_until("the older worker has all partitions", || Ok(second.partitions()?.len() == PARTITIONS as usize))?;
        wait_until("it says that two of them wait", || {
            let ready = readiness(&second)?;
            Ok(ready["members"][0]["failed"].as_array().is_some_and(|failed| failed.len() == 2))
        })
        .with_context(|| format!("the older worker's log:\n{}", second.log()))?;
        wait_until("its gauge says so too", || Ok(second.metric("tollgate_unrestored_partitions")? >= 2.0))?;
        await_line(&second, &["the record is of version"])?;
        let upgraded = deployment.start()?;
        wait_until("the upgraded worker has partitions again", || Ok(upgraded.partitions()?.len() == 2))?;
        ensure!(second.stop()?.success());
        let last = deployment.start()?;
        wait_until("both are upgraded", || Ok(upgraded.partitions()?.len() == 2 && last.partitions()?.len() == 2))?;
        upgraded.wait_ready()?;
        last.wait_ready()?;
        workers.extend([upgraded, last]);
        Ok(())
    })?;
    events.truncate(sent);
    events.extend(probes);
    verdicts_are_those_of_this_release(cluster, &deployment, &events)?;
    for worker in workers {
        assert!(worker.stop()?.success());
    }
    Ok(())
}

/// Returns a call for each partition, of threads that have no other event.
fn one_call_to_each_partition() -> Vec<Outgoing> {
    let call = |partition| {
        let thread = format!("probe-{partition}");
        let event =
            json!({"type": "tool_call", "thread_id": thread, "event_id": thread, "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
        Outgoing::new(thread, event.to_string()).partition(partition)
    };
    (0..PARTITIONS).map(call).collect()
}

/// Returns the partition and the version, which is the first byte, of each record of state.
fn versions_of_state(cluster: &Cluster, deployment: &Deployment) -> Result<Vec<(i64, u8)>> {
    let records = cluster.read_all(&deployment.state)?;
    let version = |record: &Record| Some((i64::from(record.partition), *record.value.as_ref()?.first()?));
    Ok(records.iter().filter_map(version).collect())
}

fn newest_version(cluster: &Cluster, deployment: &Deployment) -> Result<u8> {
    versions_of_state(cluster, deployment)?.iter().map(|(_, version)| *version).max().context("the earlier release has written state")
}

fn partitions_of_newer_state(cluster: &Cluster, deployment: &Deployment, version: u8) -> Result<BTreeSet<i64>> {
    let records = versions_of_state(cluster, deployment)?;
    Ok(records.into_iter().filter(|(_, found)| *found > version).map(|(partition, _)| partition).collect())
}

/// A change of policy is rolled out, worker by worker. Every verdict names the policy that gave it, and each thread goes from the one to the
/// other once.
pub(crate) fn two_policies_share_a_group_while_a_change_rolls_out(cluster: &Cluster) -> Result<()> {
    let mut deployment = quick_deployment(cluster, PARTITIONS)?;
    let denying = |tool: &str| json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": [tool]}}});
    deployment.configure("/guardrails", denying("patch"));
    // Nobody is missed who is only slow: partitions go to the new workers, and never back.
    deployment.configure("/kafka/properties/session.timeout.ms", json!(60_000));
    let (old, first, second) = (deployment.policy()?, deployment.start()?, deployment.start()?);
    wait_until("both have partitions", || Ok(first.partitions()?.len() == 2 && second.partitions()?.len() == 2))?;
    let events = conversations(1_200, 53);
    let by_old = verdicts_by_id(deployment.eval(&events)?)?;
    deployment.configure("/guardrails", denying("web_search"));
    let (new, by_new) = (deployment.policy()?, verdicts_by_id(deployment.eval(&events)?)?);
    let mut workers = Vec::new();
    // Threads have events before the change, during it, and behind it.
    let (before, rest) = events.split_at(events.len() / 3);
    let (during, behind) = rest.split_at(rest.len() / 2);
    cluster.produce(&deployment.events, before)?;
    deployment.verdicts(cluster, awaited(before), TIME_MAX)?;
    under_load(cluster, &deployment, during, || {
        ensure!(first.stop()?.success());
        let third = deployment.start()?;
        wait_until("it has partitions", || Ok(third.partitions()?.len() == 2 && second.partitions()?.len() == 2))?;
        wait_until("it decides", || Ok(third.metric("tollgate_verdicts_total")? > 0.0))?;
        ensure!(second.stop()?.success());
        workers.push(deployment.start()?);
        wait_until("both have partitions", || Ok(third.partitions()?.len() == 2))?;
        workers.push(third);
        Ok(())
    })?;
    cluster.produce(&deployment.events, behind)?;
    let verdicts = deployment.verdicts(cluster, awaited(&events), TIME_MAX)?;
    let versions = [old.version().to_owned(), new.version().to_owned()];
    let mut of_thread: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for verdict in &verdicts {
        let value: Value = serde_json::from_str(&text(verdict))?;
        let policy = versions.iter().position(|version| value["policy_version"] == **version).context("a verdict of neither policy")?;
        let id = (value["thread_id"].to_string(), value["event_id"].to_string());
        // What a provider says depends on the call alone; what the loop controller says, on what was let through before.
        if value["decided_by"] == "guardrail" || [&by_old, &by_new][policy][&id]["decided_by"] == "guardrail" {
            assert_eq!(value, [&by_old, &by_new][policy][&id]);
        }
        let policies = of_thread.entry(id.0.clone()).or_default();
        if policies.is_empty() {
            assert!(policy == 1 || value == by_old[&id], "the first verdict of a thread is that of its policy");
        }
        policies.push(policy);
    }
    assert!(of_thread.values().all(|policies| policies.is_sorted()), "a thread goes from one policy to the other once");
    let mixed = of_thread.values().filter(|policies| policies.first() != policies.last()).count();
    assert!(mixed > 0, "no thread has seen both policies");
    for worker in workers {
        assert!(worker.stop()?.success());
    }
    Ok(())
}

fn verdicts_by_id(lines: Vec<String>) -> Result<BTreeMap<(String, String), Value>> {
    lines
        .iter()
        .map(|line| {
            let value: Value = serde_json::from_str(line)?;
            Ok(((value["thread_id"].to_string(), value["event_id"].to_string()), value))
        })
        .collect()
}
