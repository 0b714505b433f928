//! Tests the worker without decisions, with which benchmarks compare the gate.

use anyhow::Result;
use serde_json::json;

use tollgate_testkit::{Cluster, Deployment, Outgoing, header, parsed};

/// Readable or not, every record gets the constant verdict, and all of them are committed.
pub(crate) fn a_pass_through_answers_every_record_and_commits(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 2)?;
    deployment.configure("/guardrails", json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["bash"]}}}));
    let call = json!({"type": "tool_call", "event_id": "e1", "tool_call_id": "c", "tool_name": "bash", "tool_input": {}});
    let events = [
        Outgoing::new("thread", call.to_string()).partition(0).header("correlation_id", "17"),
        Outgoing::new("thread", json!({"type": "turn_end"}).to_string()).partition(0),
        Outgoing::new("other", "not JSON").partition(1).header("authorization", "secret"),
        Outgoing { key: None, ..Outgoing::new("", "x").partition(1) },
    ];
    cluster.produce(&deployment.events, &events)?;
    let worker = deployment.start_with(&["--pass-through"])?;
    worker.await_line(&["NOTHING IS DECIDED"])?;
    let verdicts = cluster.read_until(&deployment.decisions, |records| records.len() == events.len())?;
    let mut found: Vec<_> = verdicts
        .iter()
        .map(|verdict| {
            let value = parsed(verdict);
            assert_eq!(
                (&value["action"], &value["code"], &value["policy_version"]),
                (&json!("allow"), &json!("pass_through"), &json!("pass-through"))
            );
            let key = String::from_utf8(verdict.key.clone().unwrap_or_default()).unwrap();
            (header(verdict, "event_id"), key, header(verdict, "correlation_id"), verdict.partition)
        })
        .collect();
    found.sort();
    let at = |partition: i32, offset: i64| format!("{}/{partition}/{offset}", deployment.events);
    let text = str::to_owned;
    let expected = [
        (at(0, 0), text("thread"), text("17"), 0),
        (at(0, 1), text("thread"), String::new(), 0),
        (at(1, 0), text("other"), String::new(), 1),
        (at(1, 1), at(1, 1), String::new(), 1),
    ];
    assert_eq!(found, expected);
    cluster.await_committed(&deployment.group, &deployment.events, 4)?;
    assert!(worker.stop()?.success());
    assert!(cluster.read_all(&deployment.dlq)?.is_empty());
    Ok(())
}
