//! Tests `tollgate why`, and `tollgate tap` between two times, on a real broker.

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::controls::{keyed_deployment, run_control, user, wait_for_code};
use tollgate_testkit::{Cluster, Deployment, Outgoing, parsed};

/// What stands in arguments, results and ids of users, and must not be told.
const MARKER: &str = "MARKER-7f3a";

fn event(thread: &str, id: &str, fields: Value) -> Outgoing {
    let mut event =
        json!({"thread_id": thread, "event_id": id, "turn_id": "turn-1", "agent_id": "coder", "tenant_id": "acme", "user_id": MARKER});
    fields.as_object().expect("an object").iter().for_each(|(key, value)| event[key] = value.clone());
    Outgoing::new(thread, event.to_string())
}

fn call(thread: &str, id: &str) -> Outgoing {
    let fields = json!({"type": "tool_call", "tool_call_id": id, "tool_name": "deploy", "tool_input": {"path": MARKER}});
    event(thread, &format!("{id}/call"), fields)
}

/// A turn in which the same call fails twice and is stopped the third time.
fn stuck(thread: &str) -> Vec<Outgoing> {
    let failed = |id: &str| {
        let fields = json!({"type": "tool_result", "tool_call_id": id, "tool_name": "deploy", "result": MARKER, "failed": true});
        event(thread, &format!("{id}/result"), fields)
    };
    let start = event(thread, "start", json!({"type": "turn_start"}));
    vec![start, call(thread, "c1"), failed("c1"), call(thread, "c2"), failed("c2"), call(thread, "c3")]
}

fn run(deployment: &Deployment, command: &str, arguments: &[&str]) -> Result<Output> {
    Ok(deployment.command(command).args(arguments).output()?)
}

/// Returns what `why` answers as JSON, which holds nothing that must not be told.
fn why(deployment: &Deployment, arguments: &[&str]) -> Result<Value> {
    let output = run(deployment, "why", arguments)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && said.is_empty(), "{arguments:?}: {said}");
    let answer = String::from_utf8(output.stdout)?;
    ensure!(!answer.contains(MARKER), "{answer}");
    Ok(serde_json::from_str(&answer)?)
}

fn strings<'v>(list: &'v Value, member: &str) -> Vec<&'v str> {
    list.as_array().into_iter().flatten().map(|entry| entry[member].as_str().unwrap_or("-")).collect()
}

/// The events of the turn that led to a stop are told with their codes, and the same verdict comes of them again.
pub(crate) fn it_tells_what_led_to_a_stop(cluster: &Cluster) -> Result<()> {
    let mut deployment = keyed_deployment(cluster, 3)?;
    let worker = deployment.start()?;
    // Another turn before it, and another thread beside it, are no part of the answer.
    let earlier =
        event("t", "old", json!({"type": "tool_call", "turn_id": "turn-0", "tool_call_id": "c0", "tool_name": "ls", "tool_input": {}}));
    cluster.produce(&deployment.events, &[vec![earlier], stuck("t"), stuck("u")].concat())?;
    deployment.verdicts(cluster, 11)?;

    let answer = why(&deployment, &["c3", "--thread", "t"])?;
    ensure!(answer["verdict"]["code"] == "repeated_exact_failure_block" && answer["verdict"]["agent_id"] == "coder", "{answer}");
    let reason = &answer["reasons"][0];
    ensure!(reason["hit"] == "tool_loop_guardrails.exact_failure_block_after is 2, and the count is 2", "{reason}");
    ensure!(reason["page"] == "docs/runbook.md#somebody-asks-why", "{reason}");
    assert_eq!(strings(&answer["turn"], "event_id"), ["start", "c1/call", "c1/result", "c2/call", "c2/result", "c3/call"]);
    let codes = ["-", "allow", "allow", "allow", "repeated_exact_failure_warning", "repeated_exact_failure_block"];
    assert_eq!(strings(&answer["turn"], "code"), codes);
    ensure!(answer["turn"].as_array().context("a list")?.iter().skip(1).all(|step| step["is_same_call"] == true), "{answer}");
    ensure!(answer["is_whole_turn"] == true && answer["is_own_policy"] == true && answer["again"]["result"] == "same", "{answer}");

    // By agent and time it is the nearest stop, with the other one beside it.
    let nearest = why(&deployment, &["--agent", "coder", "--at", "0s"])?;
    assert_eq!((&nearest["verdict"]["code"], nearest["others"].as_array().map(Vec::len)), (&answer["verdict"]["code"], Some(1)));
    let table = String::from_utf8(run(&deployment, "why", &["c3", "--thread", "t", "-o", "table"])?.stdout)?;
    ensure!(table.contains("what came before in this turn") && table.contains("c2/result") && !table.contains(MARKER), "{table}");

    // Under another policy the same events may give another verdict, and this is said.
    deployment.configure("/tool_loop_guardrails", json!({"exact_failure_block_after": 3}));
    let other = why(&deployment, &["c3", "--thread", "t"])?;
    ensure!(other["is_own_policy"] == false && other["again"]["result"] == "differs" && other["again"]["action"] == "allow", "{other}");
    ensure!(other["reasons"][0].get("hit").is_none(), "{other}");
    assert!(worker.stop()?.success());
    Ok(())
}

/// A denial by a passport's list of commands is told with the entry that was nearest, and without the command.
pub(crate) fn it_tells_the_nearest_entry_of_a_list(cluster: &Cluster) -> Result<()> {
    let mut deployment = keyed_deployment(cluster, 1)?;
    let passport = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/passports/restrictive.json");
    let provider = json!({"use": "oap_passport", "config": {"passport_path": passport}});
    deployment.configure("/guardrails", json!({"enabled": true, "provider": provider}));
    let worker = deployment.start()?;
    let input = json!({"command": format!("git push {MARKER}")});
    let push = json!({"type": "tool_call", "tool_call_id": "c1", "tool_name": "bash", "tool_input": input});
    cluster.produce(&deployment.events, &[event("t", "push", push)])?;
    let verdict = parsed(&deployment.verdicts(cluster, 1)?[0]);
    ensure!(!verdict.to_string().contains("nearest"), "{verdict}");
    let reason = &why(&deployment, &["c1"])?["reasons"][0];
    let nearest = "the nearest entry of allowed_commands is 'git diff', and the command departs from it at word 2, where the entry has 'diff'; to allow \
         every command of the line, add to limits.system.command.execute.allowed_commands: \"git push\"";
    ensure!(reason["code"] == "oap.command_not_allowed" && reason["nearest"] == nearest, "{reason}");
    assert!(worker.stop()?.success());
    Ok(())
}

/// A suspension is told with who switched it, then and now.
pub(crate) fn it_tells_who_switched_a_control(cluster: &Cluster) -> Result<()> {
    let deployment = keyed_deployment(cluster, 1)?;
    let worker = deployment.start()?;
    let bob = user("bob");
    run_control(&deployment, &[&["suspend", "--by", "alice", "--reason", "chargeback"], &bob[..]].concat())?;
    wait_for_code(cluster, &deployment, 1, "bob", "subject_suspended")?;
    let stopped = cluster.read_all(&deployment.decisions)?.iter().map(parsed).find(|verdict| verdict["code"] == "subject_suspended");
    let id = stopped.context("a stop")?["verdict_id"].as_str().context("an id")?.to_owned();
    let answer = why(&deployment, &[&id])?;
    let control = &answer["controls"][0];
    ensure!(
        control["now"]["state"] == "suspended" && control["then"]["by"] == "alice" && control["then"]["reason"] == "chargeback",
        "{answer}"
    );
    ensure!(answer["next"][0].as_str().is_some_and(|step| step.starts_with("`tollgate control resume --kind user --hash ")), "{answer}");
    assert_eq!(answer["again"]["result"], "same");

    run_control(&deployment, &[&["resume"], &bob[..]].concat())?;
    let lifted = why(&deployment, &[&id])?;
    ensure!(lifted["controls"][0]["now"].is_null() && lifted["controls"][0]["then"]["state"] == "suspended", "{lifted}");
    ensure!(lifted["again"]["result"] == "differs" && lifted["again"]["code"] == "allow", "{lifted}");
    assert!(worker.stop()?.success());
    Ok(())
}

/// What is not found is said with what to try, and without the words that were asked for.
pub(crate) fn what_is_not_found_is_said(cluster: &Cluster) -> Result<()> {
    let deployment = keyed_deployment(cluster, 2)?;
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, &[call("t", "c1"), call("u", "c1")])?;
    deployment.verdicts(cluster, 2)?;
    for (arguments, says) in [
        (&[MARKER][..], "look further back with --since 7d"),
        (&["--agent", MARKER, "--at", "0s"], "no verdict fits: look at more time with --within 1h"),
        (&["--agent", "coder", "--at", "0s"], "2 verdicts fit, and all of them allow"),
        (&["c1"], "2 threads: \"t\", \"u\"; name the thread with --thread"),
    ] {
        let output = run(&deployment, "why", arguments)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(1) && said.contains(says) && !said.contains(MARKER), "{arguments:?}: {said}");
    }
    assert!(worker.stop()?.success());
    Ok(())
}

/// With an end, verdicts of all partitions come in the order of their times, and those of another time or agent are left out.
pub(crate) fn a_range_of_verdicts_is_in_the_order_of_times(cluster: &Cluster) -> Result<()> {
    let deployment = keyed_deployment(cluster, 4)?;
    let worker = deployment.start()?;
    let calls = |from: usize| (from..from + 24).map(|number| call(&format!("t{number}"), "c1")).collect::<Vec<_>>();
    cluster.produce(&deployment.events, &calls(0))?;
    let first = deployment.verdicts(cluster, 24)?;
    cluster.produce(&deployment.events, &calls(24))?;
    deployment.verdicts(cluster, 48)?;
    let tap = |arguments: &[&str]| -> Result<Vec<Value>> {
        let output = run(&deployment, "tap", &[&["-o", "json"], arguments].concat())?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    };
    let all = tap(&["--since", "1h", "--end"])?;
    let time = |verdict: &Value| tollgate_json::time::parse_timestamp(verdict["published"].as_str().unwrap_or_default());
    ensure!(all.len() == 48 && all.iter().map(time).is_sorted() && all.iter().all(|verdict| time(verdict).is_some()), "{all:?}");
    // The last time of the first half splits the range in two, whatever has the same time.
    let until_ms = first.iter().filter_map(|verdict| verdict.timestamp).max().context("a time")?;
    let until = tollgate_json::time::rfc_3339(until_ms).context("a year of four digits")?;
    let (before, behind) = (tap(&["--from-beginning", "--until", &until])?, tap(&["--since", &until, "--end"])?);
    assert_eq!((before.len() + behind.len(), before.iter().all(|verdict| time(verdict) < Some(until_ms))), (48, true));
    assert_eq!(tap(&["--since", "1h", "--end", "--agent", "coder", "--thread", "t7"])?.len(), 1);
    assert_eq!(tap(&["--since", "1h", "--end", "--agent", "nobody"])?.len(), 0);
    assert!(worker.stop()?.success());
    Ok(())
}
