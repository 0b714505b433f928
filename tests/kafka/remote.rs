//! Tests a policy server in the chain, with a real broker and a real worker: which threads wait, and what is asked again after a crash.

use std::collections::BTreeMap;
use std::sync::RwLock;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use tollgate_testkit::PolicyServer;
use tollgate_testkit::{Cluster, Deployment, Outgoing, by_thread, header, parsed, text, wait_until};

/// A gate of each case: while it is held for writing, slow threads get no answer.
static GATE: RwLock<()> = RwLock::new(());
static GATE_OF_CRASH: RwLock<()> = RwLock::new(());

/// Allows everything but `rm`, and answers slow threads when the gate is open.
fn decide_behind(gate: &RwLock<()>, input: &Value) -> (Duration, Value) {
    if is_slow(input) {
        drop(gate.read());
    }
    decide(input)
}

fn is_slow(input: &Value) -> bool {
    input["thread_id"].as_str().is_some_and(|id| id.starts_with("slow"))
}

/// Allows everything but `rm`.
fn decide(input: &Value) -> (Duration, Value) {
    let denial = json!({"allow": false, "reasons": [{"code": "acme.no_rm", "message": "rm is not for agents"}], "policy_id": "acme.v1"});
    (Duration::ZERO, if input["tool_name"] == "rm" { denial } else { json!(true) })
}

fn guarded(cluster: &Cluster, partitions: i32, server: &PolicyServer, config: Value) -> Result<Deployment> {
    let mut settings = json!({"url": server.url(), "dialect": "opa", "timeout_ms": 240_000});
    config.as_object().into_iter().flatten().for_each(|(key, value)| settings[key] = value.clone());
    let mut deployment = Deployment::new(cluster, partitions)?;
    deployment.configure("/guardrails", json!({"enabled": true, "provider": {"use": "http", "config": settings}}));
    deployment.configure("/worker/checkpoint_interval_ms", json!(200));
    Ok(deployment)
}

fn call(thread: &str, id: &str, tool: &str) -> Outgoing {
    let event = json!({
        "type": "tool_call", "thread_id": thread, "event_id": id, "tool_call_id": id, "tool_name": tool, "tool_input": {"id": id},
        "timestamp": "2026-01-01T00:00:00Z",
    });
    Outgoing::new(thread, event.to_string())
}

/// On one partition, a thread that waits delays no other; its own events come in order behind it.
pub(crate) fn a_thread_that_waits_delays_no_other(cluster: &Cluster) -> Result<()> {
    let closed = GATE.write().expect("nobody panicked");
    let server = PolicyServer::start(|input| decide_behind(&GATE, input));
    let deployment = guarded(cluster, 1, &server, json!({}))?;
    let worker = deployment.start()?;
    worker.wait_ready()?;
    let mut events = vec![call("slow", "s0", "ls"), call("slow", "s1", "rm")];
    events.extend((0..200).map(|number| call(&format!("quick-{}", number % 20), &format!("q{number}"), "ls")));
    events.push(call("slow", "s2", "ls"));
    cluster.produce(&deployment.events, &events)?;
    let quick = deployment.verdicts(cluster, 200)?;
    assert!(quick.iter().all(|verdict| header(verdict, "event_id").starts_with('q')), "{quick:?}");
    wait_until("the gauge says that three events wait", || Ok(worker.metric("tollgate_waiting_events")? == 3.0))?;
    assert_eq!(
        cluster.committed(&deployment.group, &deployment.events)?.get(&0).copied().unwrap_or(0),
        0,
        "the first event is not decided"
    );
    drop(closed);
    let all = deployment.verdicts(cluster, 203)?;
    let slow: Vec<_> = all.iter().map(parsed).filter(|verdict| verdict["thread_id"] == "slow").collect();
    let decided: Vec<_> = slow.iter().map(|verdict| (verdict["event_id"].as_str().unwrap(), verdict["code"].as_str().unwrap())).collect();
    assert_eq!(decided, [("s0", "allow"), ("s1", "acme.no_rm"), ("s2", "allow")]);
    assert_eq!(slow[1]["reasons"][0]["policy_id"], "acme.v1");
    assert!(slow.iter().all(|verdict| verdict["reasons"][0]["answer_digest"].is_string()), "{slow:?}");
    cluster.await_committed(&deployment.group, &deployment.events, 203)?;
    assert_eq!(server.asked().len(), 203, "every call is asked about once");
    Ok(())
}

/// A worker that is killed while threads wait loses the answers; its successor asks once more, and the verdicts are those of `eval`.
pub(crate) fn a_crash_asks_again_at_most_once(cluster: &Cluster) -> Result<()> {
    const SLOW_THREADS: usize = 12;
    let closed = GATE_OF_CRASH.write().expect("nobody panicked");
    let server = PolicyServer::start(|input| decide_behind(&GATE_OF_CRASH, input));
    let deployment = guarded(cluster, 4, &server, json!({}))?;
    let worker = deployment.spawn("pod-a")?;
    worker.wait_ready()?;
    let events: Vec<_> = (0..120)
        .map(|number| {
            let thread = if number % 10 == 0 { format!("slow-{number}") } else { format!("quick-{}", number % 17) };
            call(&thread, &format!("e{number}"), if number % 7 == 0 { "rm" } else { "ls" })
        })
        .collect();
    cluster.produce(&deployment.events, &events)?;
    let waiting = || server.asked().iter().filter(|input| is_slow(input)).count();
    wait_until("the slow threads are asked about", || Ok(waiting() == SLOW_THREADS))?;
    worker.kill()?;
    drop(closed);
    // A static member has its partitions back at once, whatever its session.
    let heir = deployment.spawn("pod-a")?;
    heir.wait_ready()?;
    let verdicts = deployment.verdicts(cluster, 120)?;
    let (mut first, mut in_order) = (BTreeMap::new(), Vec::new());
    for verdict in &verdicts {
        match first.insert(header(verdict, "event_id"), text(verdict)) {
            None => in_order.push(text(verdict)),
            Some(copy) => assert_eq!(copy, text(verdict), "two copies differ"),
        }
    }
    let mut asked = BTreeMap::<String, usize>::new();
    for input in server.asked() {
        *asked.entry(input["tool_call_id"].as_str().context("an id")?.to_owned()).or_default() += 1;
    }
    assert!(asked.values().all(|times| *times <= 2), "{asked:?}");
    assert!(asked.values().filter(|times| **times == 2).count() >= SLOW_THREADS, "an answer that was lost is asked for again: {asked:?}");
    assert_eq!(by_thread(in_order), by_thread(deployment.eval(&events)?));
    Ok(())
}

/// A server that is down closes every call at once and is left alone; when it is back, calls are allowed again.
pub(crate) fn a_server_that_is_down_closes_calls(cluster: &Cluster) -> Result<()> {
    let server = PolicyServer::start(decide);
    let url = "http://127.0.0.1:9/";
    for (fail_closed, code) in [(true, "oap.evaluator_error"), (false, "guardrail_failed_open")] {
        let mut deployment =
            guarded(cluster, 1, &server, json!({"url": url, "breaker_failures": 3, "breaker_open_ms": 600_000, "name": "acme"}))?;
        deployment.configure("/guardrails/fail_closed", json!(fail_closed));
        let worker = deployment.start()?;
        worker.wait_ready()?;
        let events: Vec<_> = (0..40).map(|number| call(&format!("t{}", number % 8), &format!("e{number}"), "ls")).collect();
        cluster.produce(&deployment.events, &events)?;
        let verdicts = deployment.verdicts(cluster, 40)?;
        assert!(verdicts.iter().map(parsed).all(|verdict| verdict["code"] == code && verdict["allows_execution"] == !fail_closed));
        let outcome = if fail_closed { "failed_closed" } else { "failed_open" };
        let counted = || worker.metric(&format!("tollgate_guardrail_provider_calls_total{{outcome=\"{outcome}\",provider=\"acme\"}}"));
        wait_until("every failure is counted", || Ok(counted()? >= 40.0))?;
        for (reason, least) in [("connection", 3.0), ("circuit_open", 1.0)] {
            let name = format!("tollgate_guardrail_errors_total{{provider=\"acme\",reason=\"{reason}\"}}");
            worker.await_metric(&name, |count| count >= least)?;
        }
    }
    Ok(())
}
