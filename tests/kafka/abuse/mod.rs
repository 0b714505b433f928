//! Tests abuse seen across the fleet on a real broker: signals of deciding, alerts and controls of the abuse stage.

mod chaos;
mod reference;
pub(crate) mod warming;

pub(crate) use chaos::kills_change_nothing;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::controls::{self, switches};
use tollgate_testkit::{Cluster, Deployment, Outgoing, Worker, parsed, text, wait_until};

const PARTITIONS: i32 = 4;
const SIGNAL_PARTITIONS: i32 = 3;
const KILLS: u64 = 20;
/// A user that nobody suspends, and one that is suspended.
const HONEST: &str = "user-honest";
const PLANTED: &str = "user-planted";

pub(crate) fn kills_change_no_signal_alert_or_control(cluster: &Cluster) -> Result<()> {
    kills_change_nothing(cluster, KILLS, |_| Ok(()))
}

/// Returns a deployment that suspends for 15 minutes who is stopped five times within an hour.
fn deployment(cluster: &Cluster) -> Result<Deployment> {
    let mut deployment = Deployment::new(cluster, PARTITIONS)?;
    deployment.miss_members_soon();
    deployment.watch_for_abuse(cluster, SIGNAL_PARTITIONS)?;
    deployment.configure("/privacy/subject_key", json!("a key"));
    deployment.configure("/abuse", json!({"pack": "off", "rules": [planted()]}));
    Ok(deployment)
}

fn planted() -> Value {
    json!({
        "id": "planted", "level": "high", "mode": "enforce", "detection": {"signal": "safety_stop"},
        "correlation": {"type": "event_count", "group-by": ["user"], "timespan": "1h", "condition": {"gte": 5}},
        "escalation": {"steps": ["15m"], "decay": "24h"},
    })
}

/// Returns an event of a user on a partition.
fn event(partition: i32, user: &str, id: &str, mut fields: Value) -> Outgoing {
    let thread = format!("stopped-{partition}-{}", user.len());
    for (key, value) in [("thread_id", thread.as_str()), ("event_id", id), ("user_id", user), ("tenant_id", "acme")] {
        fields[key] = json!(value);
    }
    Outgoing::new(thread, fields.to_string()).partition(partition)
}

/// Returns a response that is cut off, in a turn of its own, on a thread that calls no tool: after a stop new calls wait for an answer.
fn cut_off(partition: i32, user: &str, id: &str) -> Outgoing {
    let response = json!({"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]});
    event(partition, user, id, json!({"type": "model_response", "turn_id": id, "response": response}))
}

/// Has a user make a call on every partition, and returns the codes of the verdicts.
fn codes(cluster: &Cluster, deployment: &Deployment, user: &str) -> Result<Vec<String>> {
    controls::codes(cluster, deployment, PARTITIONS, user)
}

/// Stops on several partitions are counted together; who is caught is blocked on all of them, and an alert says so, no sooner than the
/// control. Two workers decide, and a third one counts alone.
pub(crate) fn a_repeat_offender_is_suspended_on_every_partition(cluster: &Cluster) -> Result<()> {
    let deployment = deployment(cluster)?;
    let topics = deployment.abuse.clone().context("its topics")?;
    let deciding = [deployment.start_with(&["--stage", "decide"])?, deployment.start_with(&["--stage", "decide"])?];
    let counting = deployment.start_with(&["--stage", "abuse"])?;
    let stops = |user: &'static str, from: i32, count: i32| {
        (from..from + count).map(move |number| cut_off(number % PARTITIONS, user, &format!("stop-{}-{number}", user.len())))
    };
    cluster.produce(&deployment.events, &stops(PLANTED, 0, 4).chain(stops(HONEST, 0, 3)).collect::<Vec<_>>())?;
    ensure!(codes(cluster, &deployment, PLANTED)?.iter().all(|code| code == "allow"), "four are no reason");
    cluster.produce(&deployment.events, &stops(PLANTED, 4, 1).collect::<Vec<_>>())?;

    let alerts = cluster.read_until(&topics.alerts, |records| !records.is_empty())?;
    let controls = switches(cluster, &deployment)?;
    let (alert, control) = (parsed(&alerts[0]), controls.first().map(parsed).context("an alert came before its control")?);
    ensure!((&alert["rule"], &alert["status"], &alert["count"]) == (&json!("planted"), &json!("firing"), &json!(5)), "{alert}");
    ensure!((&control["state"], &control["rule"]) == (&json!("suspended"), &json!("planted")), "{control}");
    ensure!(control["alert_id"] == alert["alert_id"] && control["until"] == alert["until"], "{control}\n{alert}");
    let key = String::from_utf8(controls[0].key.clone().unwrap_or_default())?;
    let subject = String::from_utf8(alerts[0].key.clone().unwrap_or_default())?;
    ensure!(key == format!("subject/{subject}/abuse"), "{key} {subject}");
    for leak in [PLANTED, HONEST] {
        ensure!(!alerts.iter().chain(&controls).any(|record| text(record).contains(leak)), "an id leaked");
        ensure!(!cluster.read_all(&topics.signals)?.iter().any(|record| text(record).contains(leak)), "an id leaked");
    }

    // Workers know of the control within moments.
    controls::wait_for_code(cluster, &deployment, PARTITIONS, PLANTED, "subject_suspended")?;
    ensure!(codes(cluster, &deployment, HONEST)?.iter().all(|code| code == "allow"), "another user is blocked");
    // Members hand their counts over once a second.
    let written =
        || deciding.iter().map(|worker| worker.metric(r#"tollgate_signals_written_total{signal="safety_stop"}"#)).sum::<Result<f64>>();
    wait_until("eight stops are counted, each for user, tenant and thread", || Ok(written()? >= 8.0 * 3.0))?;
    let firings = || counting.metric(r#"tollgate_abuse_firings_total{mode="enforce",rule="planted"}"#);
    wait_until("the firing is counted", || Ok(firings()? >= 1.0))?;
    counting.await_metric(r#"tollgate_assigned_partitions{member="0",stage="abuse"}"#, |count| count == 3.0)?;
    let (_, ready) = counting.get("/readyz")?;
    let ready: Value = serde_json::from_str(&ready)?;
    ensure!((&ready["members"][0]["stage"], &ready["controls"]) == (&json!("abuse"), &json!("not_read")), "{ready}");
    for worker in deciding.into_iter().chain([counting]) {
        ensure!(worker.stop()?.success(), "a worker did not stop as asked");
    }
    Ok(())
}

/// One worker does both, goes on where it was, and commits for both groups.
pub(crate) fn one_worker_runs_both_stages(cluster: &Cluster) -> Result<()> {
    let deployment = deployment(cluster)?;
    let topics = deployment.abuse.clone().context("its topics")?;
    let group = format!("{}-abuse", deployment.group);
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, &(0..4).map(|number| cut_off(number, PLANTED, &format!("e-{number}"))).collect::<Vec<_>>())?;
    let counted = || Ok(worker.metric(r#"tollgate_abuse_signals_total{outcome="applied"}"#)? >= 12.0);
    wait_until("four stops are counted", counted)?;
    cluster.await_committed(&deployment.group, &deployment.events, 4)?;
    wait_until("signals are committed in a group of their own", || Ok(!cluster.committed(&group, &topics.signals)?.is_empty()))?;
    ensure!(worker.stop()?.success());

    let worker: Worker = deployment.start()?;
    cluster.produce(&deployment.events, &[cut_off(0, PLANTED, "e-4")])?;
    let alerts = cluster.read_until(&topics.alerts, |records| !records.is_empty())?;
    ensure!(parsed(&alerts[0])["count"] == json!(5), "{}", text(&alerts[0]));
    ensure!(worker.stop()?.success());
    Ok(())
}

/// A cluster from before gets an error that names what to do, and a worker that has no rules needs none of the topics.
pub(crate) fn a_missing_topic_of_abuse_is_named(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 1)?;
    deployment.start()?.stop()?;
    deployment.watch_for_abuse(cluster, 2)?;
    let [signals, alerts] = [cluster.unique("no-signals"), cluster.unique("no-alerts")];
    deployment.configure("/kafka/topics/signals", json!(signals));
    deployment.configure("/kafka/topics/alerts", json!(alerts));
    for (stage, missing) in [(None, format!("{alerts}, {signals}")), (Some("decide"), signals.clone())] {
        let output =
            deployment.command("run").env("TOLLGATE__ADMIN", "null").args(stage.iter().flat_map(|stage| ["--stage", *stage])).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let wanted = format!("no such topic: {missing}; create what is missing: tollgate topics apply --execute");
        ensure!(!output.status.success() && said.contains(&wanted), "{said}");
    }
    deployment.configure("/abuse/pack", json!("off"));
    let output = deployment.command("run").env("TOLLGATE__ADMIN", "null").args(["--stage", "abuse"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(2) && said.contains("--stage abuse: there are no rules to count by"), "{said}");
    Ok(())
}
