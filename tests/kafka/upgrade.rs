//! Tests of a group in which two policies are at work while a change rolls out.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::membership::{await_halves, under_load};
use crate::state::quick_deployment;
use crate::traffic::{awaited, conversations};
use tollgate_testkit::{Cluster, text, wait_until};

const PARTITIONS: i32 = 4;

/// A change of policy is rolled out, worker by worker. Every verdict names the policy that gave it, and each thread goes from the one to the
/// other once.
pub(crate) fn two_policies_share_a_group_while_a_change_rolls_out(cluster: &Cluster) -> Result<()> {
    let mut deployment = quick_deployment(cluster, PARTITIONS)?;
    let denying = |tool: &str| json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": [tool]}}});
    deployment.configure("/guardrails", denying("patch"));
    // Nobody is missed who is only slow: partitions go to the new workers, and never back.
    deployment.configure("/kafka/properties/session.timeout.ms", json!(60_000));
    let (old, first, second) = (deployment.policy()?, deployment.start()?, deployment.start()?);
    await_halves(&first, &second, 2)?;
    let events = conversations(1_200, 53);
    let by_old = verdicts_by_id(deployment.eval(&events)?)?;
    deployment.configure("/guardrails", denying("web_search"));
    let (new, by_new) = (deployment.policy()?, verdicts_by_id(deployment.eval(&events)?)?);
    let mut workers = Vec::new();
    // Threads have events before the change, during it, and behind it.
    let (before, rest) = events.split_at(events.len() / 3);
    let (during, behind) = rest.split_at(rest.len() / 2);
    cluster.produce(&deployment.events, before)?;
    deployment.verdicts(cluster, awaited(before))?;
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
    let verdicts = deployment.verdicts(cluster, awaited(&events))?;
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
