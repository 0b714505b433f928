//! Tests what `tollgate abuse` says from the topics alone, and pardons with a worker that counts.

use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use tollgate_testkit::{Cluster, Deployment, Outgoing, eventually, parsed};

const SIGNAL_PARTITIONS: i32 = 3;
/// Stands for an id that must not be seen anywhere else.
const MARKER: &str = "MARKER-51c9";

/// A deployment with the topics of the abuse stage.
struct Counting {
    deployment: Deployment,
    alerts: String,
    signals: String,
}

impl Counting {
    /// Returns a deployment of which three safety stops of a user within an hour suspend them for a quarter of an hour.
    fn new(cluster: &Cluster) -> Result<Self> {
        let mut deployment = Deployment::new(cluster, 4)?;
        let (alerts, signals) = (cluster.topic("alerts", 2, &[])?, cluster.topic("signals", SIGNAL_PARTITIONS, &[])?);
        let state = cluster.topic("abuse", SIGNAL_PARTITIONS, &[("cleanup.policy", "compact")])?;
        deployment.configure("/kafka/topics/alerts", json!(alerts));
        deployment.configure("/kafka/topics/signals", json!(signals));
        deployment.configure("/kafka/topics/abuse", json!(state));
        deployment.configure("/privacy/subject_keys", json!(["new", "old"]));
        deployment.configure("/worker/checkpoint_interval_ms", json!(200));
        let rule = json!({
            "id": "stops", "level": "high", "mode": "enforce",
            "detection": {"signal": "safety_stop"},
            "correlation": {"type": "event_count", "group-by": ["user"], "timespan": "1h", "condition": {"gte": 3}},
            "escalation": {"steps": ["15m"], "decay": "24h"},
        });
        deployment.configure("/abuse", json!({"pack": "off", "rules": [rule]}));
        Ok(Self { deployment, alerts, signals })
    }

    fn abuse(&self, arguments: &[&str]) -> Result<Output> {
        let output = self.deployment.command("abuse").args(arguments).output()?;
        let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        ensure!(!said.contains(MARKER), "an id was printed: {said}");
        Ok(output)
    }

    /// Runs a command that must succeed, and reads the lines that it prints.
    fn lines(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let output = self.abuse(arguments)?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    fn show(&self, subject: &str) -> Result<Value> {
        let tenant: &[&str] = if subject.contains('/') { &[] } else { &["--tenant", "acme"] };
        let lines = self.lines(&[&["show", subject, "-o", "json"], tenant].concat())?;
        lines.into_iter().next().context("a line")
    }
}

/// An alert with an id of its own: a second one under its id would be a copy.
fn alert(rule: &str, subject: &str, action: &str) -> Value {
    let id = format!("{rule}-{action}");
    json!({"alert_id": id, "rule": rule, "level": "high", "status": "firing", "mode": "enforce", "subject": subject, "count": 3, "threshold": 3,
        "step": 1, "action": action, "until": null, "suppressed": 1, "message": "m",
        "evidence": [{"thread_id": "t1", "event_id": "e1", "signal": "safety_stop", "timestamp": "2026-01-01T00:00:00Z"}]})
}

/// Everything that is said comes from the topics, whoever wrote them; without a worker a pardon stands in the log and says so.
pub(crate) fn a_subject_is_shown_listed_and_counted(cluster: &Cluster) -> Result<()> {
    let counting = Counting::new(cluster)?;
    let user = format!("user:{MARKER}");
    let unknown = counting.show(&user)?;
    assert_eq!(
        unknown["verdict"],
        "not suspended; no alert of this user; the counts are unknown, because the abuse stage has written no checkpoint yet"
    );
    assert!(unknown["state"].is_null(), "{unknown}");
    let name = unknown["subject"].as_str().context("a name")?.to_owned();
    let hash = name.strip_prefix("user/").context("a user")?;

    let control = json!({"type": "subject", "kind": "user", "hash": hash, "state": "suspended", "until": "2999-01-01T00:00:00Z", "rule": "stops",
        "step": 1, "alert_id": "stops-suspended"});
    cluster.produce(&counting.deployment.controls, &[Outgoing::new(format!("subject/{name}/abuse"), control.to_string())])?;
    let alerts = [alert("stops", &name, "suspended"), alert("stops", &name, "warned"), alert("other", &name, "warned")];
    let mut records: Vec<_> = alerts.iter().map(|alert| Outgoing::new(name.clone(), alert.to_string())).collect();
    records.push(Outgoing::new("rule/gone", alert("gone", "", "enforcement_paused").to_string()));
    records.push(Outgoing::new("x", "no alert"));
    cluster.produce(&counting.alerts, &records)?;

    let shown = counting.show(&user)?;
    assert_eq!(
        (&shown["suspended"], &shown["alerts_total"], shown["controls"].as_array().map(Vec::len)),
        (&json!(true), &json!(3), Some(1))
    );
    let verdict = shown["verdict"].as_str().unwrap_or_default();
    assert!(
        verdict
            .contains("by rule stops, step 1 of 1, because of 3 safety stops within 1h: thread t1 event e1; pardon it with: tollgate -c /")
            && verdict.ends_with(&format!(" abuse pardon {name}")),
        "{verdict}"
    );
    let brokers = cluster.bootstrap();
    let reached = counting.lines(&["show", &name, "-o", "json", "-b", brokers, "-X", "client.id=SECRET"])?;
    let verdict = reached[0]["verdict"].as_str().unwrap_or_default();
    assert!(verdict.ends_with(&format!(" -b {brokers} -X … abuse pardon {name}")) && !verdict.contains("SECRET"), "{verdict}");
    assert_eq!(counting.show(&name)?, shown, "the hash stands for the id");
    let table = counting.abuse(&["show", &name, "-o", "table"])?;
    let table = String::from_utf8(table.stdout)?;
    assert!(table.starts_with(&name) && table.contains("\ncontrols\n") && table.contains("\nalerts\n"), "{table}");

    let listed = counting.lines(&["blocklist", "-o", "json"])?;
    assert_eq!((listed.len(), &listed[0]["rule"], &listed[0]["by"]), (1, &json!("stops"), &json!("rule")));
    let top = counting.lines(&["top", "-o", "json"])?;
    let of = |kind: &str| top.iter().filter(|line| line["type"] == kind).cloned().collect::<Vec<_>>();
    let (rules, subjects) = (of("rule"), of("subject"));
    assert_eq!((&rules[0]["rule"], &rules[0]["firings"], &rules[0]["suspensions"]), (&json!("stops"), &json!(4), &json!(1)));
    assert_eq!((subjects.len(), &subjects[0]["firings"], &subjects[0]["suspended"]), (1, &json!(6), &json!(true)));
    let paused: Vec<_> = rules.iter().filter(|rule| !rule["paused"].is_null()).collect();
    assert_eq!((paused.len(), &paused[0]["rule"], &paused[0]["paused"]), (1, &json!("gone"), &json!("unknown")));
    let top = counting.abuse(&["top", "-o", "table"])?;
    assert!(String::from_utf8_lossy(&top.stderr).contains("paused: unknown, because the abuse stage has written no checkpoint yet"));
    requests_without_a_stage(cluster, &counting, &name)
}

/// Nobody counts: what is asked for stands in the log, and is not said to be done.
fn requests_without_a_stage(cluster: &Cluster, counting: &Counting, name: &str) -> Result<()> {
    let innocent = format!("user/{}", "ab".repeat(32));
    for (arguments, exit, says) in [
        (&["pardon", name, "--wait", "1s"][..], 1, "and not known to be obeyed: the pardon of user/"),
        (&["pardon", &innocent, "--wait", "1s"], 1, "and not known to be obeyed: the pardon of user/"),
        (&["pardon", &innocent, "--wait", "0s"], 0, "requested: the pardon of user/"),
        (&["pardon", "--rule", "stops"], 1, "--rule: 1 subjects are suspended by rule stops; add --yes to pardon them all"),
        (&["pardon", "--rule", "stops", "--yes", "--wait", "0s"], 0, "requested: the pardon of 1 of 1 subjects"),
        (&["pardon", "--rule", "nobody"], 2, "the configuration has no rule of this id"),
        (&["resume", "stops", "--wait", "1s"], 1, "and not known to be obeyed: that rule stops may enforce again, in 3 of 3 partitions"),
        (&["resume", "stop"], 2, "did you mean stops?"),
    ] {
        let ran = counting.abuse(&[arguments, &["-o", "table"]].concat())?;
        let said = String::from_utf8(ran.stderr)?;
        assert!(ran.status.code() == Some(exit) && said.contains(says), "{arguments:?}: {said}");
        assert!(!said.contains("forgotten") && ran.stdout.is_empty(), "{arguments:?}: {said}");
    }
    let resume = counting.lines(&["resume", "stops", "--wait", "0s"])?;
    let places: Vec<_> = resume.iter().map(|line| (line["partition"].as_i64(), line["outcome"].as_str())).collect();
    assert_eq!(places, [0, 1, 2].map(|partition| (Some(partition), Some("requested"))));
    let requests = cluster.read_all(&counting.signals)?;
    let of = |subject: &str| requests.iter().filter(|request| parsed(request)["pardon"]["subject"] == subject).count();
    assert_eq!((requests.len(), of(name), of(&innocent)), (10, 2, 2));
    let of_rule: Vec<_> =
        requests.iter().filter(|request| parsed(request)["resume"]["rule"] == "stops").map(|record| &record.key).collect();
    assert_eq!(of_rule, [&None; 6], "a key would belong on one partition only");
    Ok(())
}

/// Returns a response of a user that the provider cut off, in a thread of its own.
fn stop(user: &str, number: u32) -> Outgoing {
    let choice = json!({"index": 0, "finish_reason": "content_filter", "message": {"role": "assistant", "content": "x"}});
    let event = json!({"type": "model_response", "event_id": "m", "turn_id": "t", "user_id": user, "tenant_id": "acme", "provider": "openai",
        "response": {"id": "r", "object": "chat.completion", "choices": [choice]}});
    Outgoing::new(format!("stop-{number}"), event.to_string())
}

/// Has a user make a call, and returns the verdict's code.
fn code_of_call(cluster: &Cluster, deployment: &Deployment, user: &str) -> Result<String> {
    let id = cluster.unique("call");
    let event = json!({"type": "tool_call", "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {}, "user_id": user, "tenant_id": "acme"});
    cluster.produce(&deployment.events, &[Outgoing::new(id.clone(), event.to_string())])?;
    let is_it = |record: &tollgate_testkit::Record| parsed(record)["event_id"] == id.as_str();
    let verdicts = cluster.read_until(&deployment.decisions, |records| records.iter().any(is_it))?;
    let verdict = verdicts.iter().find(|record| is_it(record)).context("a verdict")?;
    Ok(parsed(verdict)["code"].as_str().unwrap_or_default().to_owned())
}

fn wait_for_code(cluster: &Cluster, deployment: &Deployment, user: &str, code: &str) -> Result<()> {
    eventually(|| {
        let found = code_of_call(cluster, deployment, user)?;
        ensure!(found == code, "{found} and not {code}");
        Ok(())
    })
}

/// A user is suspended for three safety stops on three partitions, is shown with what was counted, and goes on after a pardon; an operator's
/// suspension stays.
pub(crate) fn an_offender_is_suspended_and_pardoned(cluster: &Cluster) -> Result<()> {
    an_offender_is_dealt_with(cluster, || {})
}

/// The same with what is called once a worker decides.
pub(crate) fn an_offender_is_dealt_with(cluster: &Cluster, begin: impl FnOnce()) -> Result<()> {
    let counting = Counting::new(cluster)?;
    let worker = counting.deployment.start()?;
    // Both stages have a partition of each number.
    for stage in ["deciding", "abuse"] {
        worker.await_line(&[&format!("work{{stage=\"{stage}\"}}: "), "restored partition=0"])?;
    }
    begin();
    deal_with_offender(cluster, &counting).with_context(|| format!("the worker's log:\n{}", worker.log()))
}

fn deal_with_offender(cluster: &Cluster, counting: &Counting) -> Result<()> {
    let user = format!("user:{MARKER}");
    wait_for_code(cluster, &counting.deployment, MARKER, "allow")?;
    cluster.produce(&counting.deployment.events, &[stop(MARKER, 1), stop(MARKER, 2)])?;
    let counted = eventually(|| {
        let shown = counting.show(&user)?;
        ensure!(shown["state"][0]["counters"][0]["count"] == json!(2.0), "not counted: {shown}");
        Ok(shown)
    })?;
    assert_eq!((&counted["suspended"], &counted["state"][0]["counters"][0]["threshold"]), (&json!(false), &json!(3.0)));
    cluster.produce(&counting.deployment.events, &[stop(MARKER, 3)])?;
    wait_for_code(cluster, &counting.deployment, MARKER, "subject_suspended")?;
    wait_for_code(cluster, &counting.deployment, "another", "allow")?;
    // The alert is published once the control is acknowledged.
    eventually(|| {
        let shown = counting.show(&user)?;
        let verdict = shown["verdict"].as_str().unwrap_or_default();
        ensure!(verdict.contains("because of 3 safety stops within 1h: thread stop-"), "no reason is shown: {verdict}");
        Ok(())
    })?;
    assert_eq!(counting.lines(&["blocklist", "-o", "json"])?.len(), 1);

    let mut suspend = counting.deployment.command("control");
    suspend.args(["suspend", "--kind", "user", "--tenant", "acme", "--id", MARKER]);
    repeated(&mut suspend)?;
    let pardon = counting.abuse(&["pardon", &user, "--tenant", "acme", "--wait", "2m"])?;
    let said = String::from_utf8(pardon.stderr)?;
    assert!(pardon.status.success() && said.contains("pardoned: the suspension of user/"), "{said}");
    assert!(said.contains("an operator suspends user/"), "{said}");
    assert_eq!(code_of_call(cluster, &counting.deployment, MARKER)?, "subject_suspended");
    let mut resume = counting.deployment.command("control");
    resume.args(["resume", "--kind", "user", "--tenant", "acme", "--id", MARKER]);
    repeated(&mut resume)?;
    wait_for_code(cluster, &counting.deployment, MARKER, "allow")?;
    let again = counting.lines(&["pardon", &user, "--tenant", "acme", "--wait", "2m"])?;
    assert_eq!((again.len(), &again[0]["outcome"]), (2, &json!("not_suspended")), "one request for each key");
    Ok(())
}

/// Runs a command until it succeeds, as its operator does while a broker restarts: it waits for brokers for some seconds.
fn repeated(command: &mut Command) -> Result<()> {
    eventually(|| {
        let output = command.output()?;
        ensure!(output.status.success(), "the command fails: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    })
}

/// After a wave of false positives all whom a rule has suspended are pardoned at once, and the rule is resumed; no request counts as misplaced.
pub(crate) fn a_rule_is_forgiven_and_resumed(cluster: &Cluster) -> Result<()> {
    let counting = Counting::new(cluster)?;
    let worker = counting.deployment.start()?;
    for (user, threads) in [("one", 1..=3), ("two", 4..=6)] {
        wait_for_code(cluster, &counting.deployment, user, "allow")?;
        let stops: Vec<_> = threads.map(|number| stop(user, number)).collect();
        cluster.produce(&counting.deployment.events, &stops)?;
        wait_for_code(cluster, &counting.deployment, user, "subject_suspended")?;
    }
    let refused = counting.abuse(&["pardon", "--rule", "stops"])?;
    assert!(String::from_utf8(refused.stderr)?.contains("2 subjects are suspended by rule stops; add --yes"));
    let pardoned = counting.lines(&["pardon", "--rule", "stops", "--yes", "--wait", "2m"])?;
    let outcomes: Vec<_> = pardoned.iter().map(|line| line["outcome"].as_str()).collect();
    assert_eq!(outcomes, [Some("pardoned"); 2]);
    for user in ["one", "two"] {
        wait_for_code(cluster, &counting.deployment, user, "allow")?;
    }
    let nobody = counting.abuse(&["pardon", "--rule", "stops", "--yes"])?;
    assert!(nobody.status.success() && nobody.stdout.is_empty(), "{nobody:?}");
    let resumed = counting.lines(&["resume", "stops", "--wait", "2m"])?;
    assert!(resumed.len() == 3 && resumed.iter().all(|line| line["outcome"] == "resumed"), "{resumed:?}");
    assert_eq!(worker.metric("tollgate_misplaced_records_total")?, 0.0);
    // Nobody reads any more, and nothing is claimed, though there is no suspension to wait for.
    drop(worker);
    for arguments in [&["pardon", "user:one", "--tenant", "acme", "--wait", "1s"][..], &["resume", "stops", "--wait", "1s"]] {
        let late = counting.abuse(arguments)?;
        let said = String::from_utf8(late.stderr)?;
        assert!(late.status.code() == Some(1) && said.contains("requested, and not obeyed yet: "), "{said}");
    }
    Ok(())
}
