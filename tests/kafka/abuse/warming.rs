//! Rules that are new to a state: they are shown what the log holds, while the others go on.

use std::collections::HashSet;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use tollgate_testkit::{Cluster, Deployment, Record, Worker, eventually, parsed, wait_until};

use super::{PARTITIONS, PLANTED, SIGNAL_PARTITIONS, cut_off, deployment, planted};

/// What the log says where a warm-up begins.
const SHOWN: &str = "rules that are new are shown the log";
const IN_FORCE: &str = "the new rules are in force";
/// A user with four stops, the last of them behind the warm-up.
const EARLIER: &str = "user-known-before";

/// Returns the rule that is new.
fn new_rule() -> Value {
    json!({
        "id": "four", "level": "low", "mode": "alert", "detection": {"signal": "safety_stop"},
        "correlation": {"type": "event_count", "group-by": ["user"], "timespan": "1h", "condition": {"gte": 4}},
    })
}

fn warming(worker: &Worker) -> Result<f64> {
    worker.metric(r#"tollgate_abuse_warming_rules{rule="four"}"#)
}

/// Returns the rule and the count of each alert. A kill can repeat an alert, byte for byte.
fn rules_of(alerts: &[Record]) -> Vec<String> {
    let mut seen = HashSet::new();
    let first = alerts.iter().filter(|alert| seen.insert(&alert.value));
    first.map(|alert| format!("{} {}", parsed(alert)["rule"].as_str().unwrap_or_default(), parsed(alert)["count"])).collect()
}

/// Has every partition of signals something to do: a stage takes a warm-up over before its next record, and a quiet source sends a record only
/// once a minute.
fn keep_busy(cluster: &Cluster, deployment: &Deployment) -> Result<()> {
    let users: Vec<_> = (0..6).map(|_| cluster.unique("user-busy")).collect();
    cluster.produce(&deployment.events, &users.iter().map(|user| cut_off(0, user, user)).collect::<Vec<_>>())?;
    Ok(())
}

/// The first readers of the log panic, which is seen; the next one never gets on, and meanwhile the other rule suspends somebody. The next worker
/// shows the rule the log.
pub(crate) fn a_new_rule_warms_up_while_the_others_go_on(cluster: &Cluster) -> Result<()> {
    let mut deployment = deployment(cluster)?;
    let topics = deployment.abuse.clone().ok_or_else(|| anyhow::anyhow!("no topics"))?;
    let stops = |user: &'static str, numbers: std::ops::Range<i32>| {
        numbers.map(|number| cut_off(number % PARTITIONS, user, &format!("stop-{}-{number}", user.len()))).collect::<Vec<_>>()
    };
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, &stops(EARLIER, 0..3))?;
    let counted = || Ok(worker.metric(r#"tollgate_abuse_signals_total{outcome="applied"}"#)? >= 9.0);
    wait_until("three stops are counted", counted)?;
    ensure!(!worker.log().contains(SHOWN), "a rule that is there from the beginning has nothing to be shown");
    ensure!(worker.stop()?.success());

    deployment.configure("/abuse/rules", json!([planted(), new_rule()]));
    // More than one panics, because each is told for a second only.
    let failures = "warm-up=3*panic->1*sleep(3600000)->off";
    let worker = deployment.spawn_adapted(|command| _ = command.env("FAILPOINTS", failures))?;
    let livez = eventually(|| {
        let (status, body) = worker.get("/livez")?;
        ensure!(status == 503, "no panic was told:\n{}", worker.log());
        Ok(body)
    })?;
    ensure!(livez.starts_with("thread abuse-warm-up-") && livez.ends_with(" panicked and is being started over\n"), "{livez}");
    wait_until("it is ready meanwhile", || Ok(worker.get("/readyz")?.0 == 200))?;
    cluster.produce(&deployment.events, &stops(PLANTED, 0..5))?;
    let alerts = cluster.read_until(&topics.alerts, |records| !records.is_empty())?;
    let still_warming = warming(&worker)?;
    ensure!(rules_of(&alerts) == ["planted 5"], "{:?}", rules_of(&alerts));
    ensure!(still_warming > 0.0, "the new rule was in force before the other one had fired");
    wait_until("the readers are started over", || Ok(worker.get("/livez")?.0 == 200))?;
    worker.kill()?;

    // Of each partition of events and of signals.
    let restored_in_all = usize::try_from(PARTITIONS + SIGNAL_PARTITIONS)?;
    let worker = deployment.start()?;
    let told = |what: &str| worker.log().matches(what).count();
    wait_until("both stages have their state", || Ok(told(" restored ") == restored_in_all))?;
    let is_in_force = || {
        keep_busy(cluster, &deployment)?;
        Ok(told(SHOWN) > 0 && told(IN_FORCE) == told(SHOWN) && warming(&worker)? == 0.0)
    };
    wait_until("the new rule comes into force", is_in_force)?;
    cluster.produce(&deployment.events, &stops(EARLIER, 3..4))?;
    let alerts = cluster.read_until(&topics.alerts, |records| rules_of(records).len() >= 2)?;
    ensure!(rules_of(&alerts) == ["planted 5", "four 4"], "it knows of three stops before: {:?}", rules_of(&alerts));
    // Once in force, it is so for whoever comes next.
    worker.kill()?;
    let worker = deployment.start()?;
    let counted = || Ok(worker.metric(r#"tollgate_abuse_clock_lag_seconds{partition="0",stage="abuse"}"#).is_ok());
    wait_until("it counts again", counted)?;
    ensure!(!worker.log().contains(SHOWN), "it does not begin anew:\n{}", worker.log());
    ensure!(worker.stop()?.success());
    Ok(())
}
