//! Tests that an open transaction on the controls topic holds up no suspension, and that everybody is told of the transaction.

use anyhow::{Result, ensure};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::controls::{control, keyed_deployment, run_control, user, wait_for_code};
use tollgate_testkit::{Cluster, TIME_MAX, Worker, eventually};

/// Begins a transaction on a topic, and leaves it open.
fn open_transaction(cluster: &Cluster, topic: &str) -> Result<BaseProducer> {
    let mut config = cluster.client();
    config.set("transactional.id", cluster.unique("stranger")).set("transaction.timeout.ms", "600000");
    let producer: BaseProducer = config.create()?;
    producer.init_transactions(TIME_MAX)?;
    producer.begin_transaction()?;
    producer.send(BaseRecord::to(topic).partition(0).key("passport/mirrored").payload("{}")).map_err(|(error, _)| error)?;
    producer.flush(TIME_MAX)?;
    Ok(producer)
}

/// Waits until the health report holds a text, and returns the report.
fn wait_for_report(worker: &Worker, text: &str) -> Result<String> {
    eventually(|| {
        let (_, body) = worker.get("/readyz")?;
        ensure!(body.contains(text), "no {text} in {body}\n{}", worker.log());
        Ok(body)
    })
}

/// A suspension behind an open transaction blocks at once, and the list, the command that writes it, the health report, the metrics and the log
/// name the transaction. What permits waits for the end of the transaction. A worker that starts waits too.
pub(crate) fn an_open_transaction_holds_up_no_suspension(cluster: &Cluster) -> Result<()> {
    let deployment = keyed_deployment(cluster, 1)?;
    let worker = deployment.start()?;
    run_control(&deployment, &[&["suspend"], &user("earlier")[..]].concat())?;
    wait_for_code(cluster, &deployment, 1, "earlier", "subject_suspended")?;
    let stranger = open_transaction(cluster, &deployment.controls)?;

    let suspended = control(&deployment, &[&["suspend"], &user("bob")[..]].concat())?;
    let said = String::from_utf8_lossy(&suspended.stderr).into_owned();
    ensure!(suspended.status.success() && said.contains("an open transaction hides partition 0 from offset"), "{said}");
    wait_for_code(cluster, &deployment, 1, "bob", "subject_suspended")?;
    wait_for_code(cluster, &deployment, 1, "another", "allow")?;
    let report = wait_for_report(&worker, r#""controls":"open_transaction""#)?;
    ensure!(report.contains(r#""ready":true"#) && report.contains("an open transaction hides"), "{report}");
    worker.await_metric("tollgate_controls_hidden_seconds", |seconds| seconds >= 1.0)?;
    worker.await_metric("tollgate_controls_lag_records", |records| records > 0.0)?;
    worker.await_line(&["an open transaction hides"])?;
    let listed = control(&deployment, &["list"])?;
    ensure!(String::from_utf8_lossy(&listed.stderr).contains("an open transaction hides"), "the list says nothing");

    // What permits is written and waits.
    run_control(&deployment, &[&["resume"], &user("earlier")[..]].concat())?;
    wait_for_code(cluster, &deployment, 1, "earlier", "subject_suspended")?;
    let late = deployment.spawn("late")?;
    let report = wait_for_report(&late, "an open transaction hides")?;
    ensure!(report.contains(r#""ready":false"#) && report.contains(r#""controls":"catching_up""#), "{report}");

    stranger.abort_transaction(TIME_MAX)?;
    late.wait_ready()?;
    wait_for_report(&worker, r#""controls":"caught_up""#)?;
    wait_for_code(cluster, &deployment, 1, "earlier", "allow")?;
    wait_for_code(cluster, &deployment, 1, "bob", "subject_suspended")?;
    ensure!(late.stop()?.success() && worker.stop()?.success(), "a worker did not end well");
    Ok(())
}

/// A suspension that is written in a transaction blocks before it is committed, and no more once it is aborted.
pub(crate) fn a_suspension_that_is_aborted_goes_again(cluster: &Cluster) -> Result<()> {
    let deployment = keyed_deployment(cluster, 1)?;
    let worker = deployment.start()?;
    let line = run_control(&deployment, &[&["suspend"], &user("bob")[..]].concat())?;
    run_control(&deployment, &[&["resume"], &user("bob")[..]].concat())?;
    wait_for_code(cluster, &deployment, 1, "bob", "allow")?;
    let stranger = open_transaction(cluster, &deployment.controls)?;
    let (key, value) = (line["key"].as_str().unwrap_or_default(), line["value"].to_string());
    stranger.send(BaseRecord::to(&deployment.controls).partition(0).key(key).payload(&value)).map_err(|(error, _)| error)?;
    stranger.flush(TIME_MAX)?;
    wait_for_code(cluster, &deployment, 1, "bob", "subject_suspended")?;
    stranger.abort_transaction(TIME_MAX)?;
    wait_for_code(cluster, &deployment, 1, "bob", "allow")?;
    ensure!(worker.stop()?.success(), "the worker did not end well");
    Ok(())
}
