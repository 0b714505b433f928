//! A worker with a policy server that is down, and traffic that gives reason for alerts.

use anyhow::Result;
use serde_json::{Value, json};
use tollgate_testkit::{Cluster, Deployment, Outgoing, Worker, free_ports};

/// How many threads of each kind a round has.
const THREADS: usize = 40;
/// How many events a round has: a call that is denied, three that fail twice, and what is no event, of each thread.
pub const EVENTS: usize = THREADS * 7;
/// Long ago, so that every verdict is late.
const TIME: &str = "2026-01-01T00:00:00Z";

/// Starts a worker: one tool is denied, and all others are asked about at a server that is not there, which lets them run.
pub fn start(cluster: &Cluster) -> Result<(Deployment, Worker)> {
    let [nobody] = free_ports()?;
    let mut deployment = Deployment::new(cluster, 4)?;
    deployment.watch_for_abuse(cluster, 2)?;
    let providers = json!([
        {"use": "allowlist", "config": {"denied_tools": ["bash"]}},
        {"use": "http", "config": {"url": format!("http://127.0.0.1:{nobody}/"), "dialect": "opa", "timeout_ms": 60_000}},
    ]);
    deployment.configure("/guardrails", json!({"enabled": true, "fail_closed": false, "providers": providers}));
    deployment.configure("/worker/checkpoint_interval_ms", json!(500));
    let worker = deployment.start()?;
    Ok((deployment, worker))
}

fn event(thread: &str, id: &str, kind: &str, tool: &str, more: &Value) -> Outgoing {
    let mut event = json!({
        "type": kind, "thread_id": thread, "event_id": format!("{id}/{kind}"), "tool_call_id": id, "tool_name": tool, "timestamp": TIME,
        "tool_input": {"path": "/srv"},
    });
    more.as_object().into_iter().flatten().for_each(|(key, value)| event[key] = value.clone());
    Outgoing::new(thread, event.to_string())
}

/// Sends a round: calls that are denied, calls that repeat what failed, what is no event, and a control that is none.
pub fn send(cluster: &Cluster, deployment: &Deployment, round: usize) -> Result<()> {
    let mut events = Vec::new();
    for number in 0..THREADS {
        let thread = format!("r{round}-{number}");
        events.push(event(&thread, "denied", "tool_call", "bash", &json!({})));
        for attempt in 0..3 {
            let id = format!("flaky-{attempt}");
            events.push(event(&thread, &id, "tool_call", "flaky", &json!({})));
            if attempt < 2 {
                events.push(event(&thread, &id, "tool_result", "flaky", &json!({"result": "no such host", "failed": true})));
            }
        }
        events.push(Outgoing::new(thread.as_str(), "no event"));
    }
    assert_eq!(events.len(), EVENTS);
    cluster.produce(&deployment.events, &events)?;
    cluster.produce(&deployment.controls, &[Outgoing::new("no/control", "{}".to_owned())])?;
    Ok(())
}
