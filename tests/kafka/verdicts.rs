//! Checks that verdicts through Kafka are those of `eval`, in order, whichever worker decides.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::json;

use crate::traffic::{awaited, conversations};
use tollgate_testkit::{Cluster, Deployment, Outgoing, by_thread, header, parsed, text, wait_until};

/// A thousand threads over eight partitions and two members of one process get the verdicts of `eval`.
pub(crate) fn a_thousand_threads_get_the_verdicts_of_eval(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 8)?;
    deployment.configure("/worker/members", json!(2));
    deployment.configure("/guardrails", json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["patch"]}}}));
    let worker = deployment.start()?;
    let events = conversations(1_000, 7);
    agree(cluster, &deployment, &events)?;
    // Members hand their counts over once a second.
    wait_until("every verdict is counted", || Ok(worker.metric("tollgate_verdicts_total")? >= awaited(&events) as f64))?;
    assert_eq!(worker.metric("tollgate_verdicts_total")?, awaited(&events) as f64);
    assert!(worker.stop()?.success());
    Ok(())
}

/// Produces the events, awaits their verdicts and compares: thread by thread the same bytes in the same order.
fn agree(cluster: &Cluster, deployment: &Deployment, events: &[Outgoing]) -> Result<()> {
    cluster.produce(&deployment.events, events)?;
    let verdicts = deployment.verdicts(cluster, awaited(events))?;
    let expected = by_thread(deployment.eval(events)?);
    let found = by_thread(verdicts.iter().map(text));
    assert_eq!(found.len(), expected.len());
    for (thread, verdicts) in &expected {
        assert_eq!(&found[thread], verdicts, "{thread}");
    }
    for verdict in &verdicts {
        assert_eq!(verdict.key.as_deref(), parsed(verdict)["thread_id"].as_str().map(str::as_bytes));
        assert_eq!(header(verdict, "event_id"), parsed(verdict)["event_id"]);
        assert_eq!(header(verdict, "content-type"), "application/json");
    }
    Ok(())
}

/// Verdicts go to the partition of their event, with the headers that correlate them.
pub(crate) fn a_verdict_follows_its_event(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 4)?;
    let worker = deployment.start()?;
    let call = json!({"type": "tool_call", "tool_call_id": "c", "tool_name": "ls", "tool_input": {}, "event_id": "e"});
    let misplaced = Outgoing::new("a thread", call.to_string())
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .header("correlation_id", [0xff, 0x00])
        .header("kafka_correlationId", [1, 2, 3])
        .header("authorization", "secret");
    let home = cluster.produce(&deployment.events, std::slice::from_ref(&misplaced))?[0].partition;
    cluster.produce(&deployment.events, &[misplaced.partition((home + 1) % 4)])?;
    let verdicts = cluster.read_until(&deployment.decisions, |records| records.len() == 2)?;
    let partitions: BTreeSet<_> = verdicts.iter().map(|verdict| verdict.partition).collect();
    assert_eq!(partitions, BTreeSet::from([home, (home + 1) % 4]));
    for verdict in &verdicts {
        let names: Vec<_> = verdict.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["event_id", "content-type", "traceparent", "correlation_id", "kafka_correlationId"]);
        assert_eq!(verdict.headers[3].1, Some(vec![0xff, 0x00]));
    }
    wait_until("it is counted", || Ok(worker.metric("tollgate_misplaced_records_total")? >= 1.0))?;
    worker.await_line(&["partitioner=murmur2_random"])?;
    let log = worker.log();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("partitioner=murmur2_random")).collect();
    let sample = format!("came_on={} belongs_on={home}", (home + 1) % 4);
    assert!(warnings.len() == 1 && warnings[0].contains("key=\"a thread\"") && warnings[0].contains(&sample), "{warnings:?}");
    Ok(())
}

/// Both CloudEvents envelopes and a schema-registry prefix are read.
pub(crate) fn envelopes_are_opened(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 2)?;
    let _worker = deployment.start()?;
    let fields = json!({"tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
    let structured = json!({"specversion": "1.0", "id": "ce-1", "source": "/agents", "type": "com.acme.agent.tool_call.v1", "subject": "t", "data": fields});
    let plain = json!({"type": "tool_call", "event_id": "plain-1", "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
    let events = [
        Outgoing::new("t", structured.to_string()).header("content-type", "application/cloudevents+json; charset=utf-8"),
        Outgoing::new("t", fields.to_string())
            .header("ce_specversion", "1.0")
            .header("ce_id", "ce-2")
            .header("ce_type", "com.acme.agent.tool_call.v1")
            .header("ce_subject", "t"),
        Outgoing::new("t", [&[0, 0, 0, 0, 9][..], plain.to_string().as_bytes()].concat()),
    ];
    cluster.produce(&deployment.events, &events)?;
    let verdicts = deployment.verdicts(cluster, 3)?;
    let ids: Vec<_> = verdicts.iter().map(|verdict| header(verdict, "event_id")).collect();
    assert_eq!(ids, ["ce-1", "ce-2", "plain-1"]);
    assert!(verdicts.iter().all(|verdict| parsed(verdict)["code"] == "allow"));
    Ok(())
}
