//! The worker without decisions, and the benchmark that it is there for.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::context::{Context, Outgoing};
use crate::gate::{Gate, header, parsed};

const TIME_MAX: Duration = Duration::from_secs(60);

/// Readable or not, every record gets the constant verdict, and all of them are committed.
pub(crate) fn a_pass_through_answers_every_record_and_commits(context: &Context) -> Result<()> {
    let mut gate = Gate::new(context, 2)?;
    gate.configure("/guardrails", json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["bash"]}}}));
    let call = json!({"type": "tool_call", "event_id": "e1", "tool_call_id": "c", "tool_name": "bash", "tool_input": {}});
    let events = [
        Outgoing::new("thread", call.to_string()).partition(0).header("correlation_id", "17"),
        Outgoing::new("thread", json!({"type": "turn_end"}).to_string()).partition(0),
        Outgoing::new("other", "not JSON").partition(1).header("authorization", "secret"),
        Outgoing { key: None, ..Outgoing::new("", "x").partition(1) },
    ];
    context.produce(&gate.events, &events)?;
    let worker = gate.start_with(&["--pass-through"])?;
    ensure!(worker.log().contains("NOTHING IS DECIDED"), "no warning:\n{}", worker.log());
    let verdicts = context.read_until(&gate.decisions, TIME_MAX, |records| records.len() == events.len())?;
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
    let at = |partition: i32, offset: i64| format!("{}/{partition}/{offset}", gate.events);
    let text = str::to_owned;
    let expected = [
        (at(0, 0), text("thread"), text("17"), 0),
        (at(0, 1), text("thread"), String::new(), 0),
        (at(1, 0), text("other"), String::new(), 1),
        (at(1, 1), at(1, 1), String::new(), 1),
    ];
    assert_eq!(found, expected);
    assert!(worker.stop()?.success());
    assert_eq!(context.committed(&gate.group, &gate.events)?.into_iter().collect::<Vec<_>>(), [(0, 2), (1, 2)]);
    assert!(context.read_all(&gate.dlq)?.is_empty());
    Ok(())
}

/// A short measurement of each kind on this cluster: the figures are there, and no verdict is missing.
pub(crate) fn a_benchmark_measures_and_cleans_up(context: &Context) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let run = |arguments: &[&str]| -> Result<Value> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(["bench", "--json", "--brokers", context.bootstrap(), "--partitions", "2", "--threads", "200"]);
        let output = command.args(arguments).current_dir(directory.path()).output()?;
        ensure!(output.status.success(), "bench {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let found = run(&["--rate", "300", "--duration", "2"])?;
    let latency = &found["latency"];
    assert_eq!((&latency["misses"], &latency["duplicates"], &latency["refused"]), (&json!(0), &json!(0), &json!(0)), "{latency}");
    assert!(latency["awaited"].as_u64().unwrap() > 500, "{latency}");
    assert!(latency["latency_ms"]["p50"].as_f64().unwrap() > 0.0, "{latency}");
    assert!((270.0..330.0).contains(&latency["achieved_per_second"].as_f64().unwrap()), "{latency}");

    let found = run(&["--drain", "20000", "--rounds", "1"])?;
    let verdicts: Vec<_> =
        found["drained"].as_array().unwrap().iter().map(|drained| drained["rounds"][0]["verdicts"].as_u64().unwrap()).collect();
    // The pass-through answers turn boundaries too.
    assert!(verdicts.len() == 2 && verdicts[0] < 20_000 && verdicts[1] == 20_000, "{found}");

    let failed = Command::new(env!("CARGO_BIN_EXE_tollgate")).args(["bench", "--brokers", "127.0.0.1:1"]).output()?;
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(failed.status.code() == Some(1) && said.contains("127.0.0.1:1 do not answer"), "{said}");
    Ok(())
}
