//! Tests counting abuse without Kafka: `tollgate eval --alerts` and its like, `tollgate diff` of two sets of rules, and arguments of
//! `tollgate abuse` that are refused.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{Ran, assert_has, run, temporary, tollgate};
use serde_json::{Value, json};
use tollgate_fixtures::cases::jsonl;

/// Returns a configuration with one rule: so many safety stops of a user within an hour suspend them for a quarter of an hour.
fn config(gte: u32) -> String {
    format!(
        "abuse:
  pack: 'off'
  rules:
    - id: stops
      level: high
      mode: enforce
      detection: {{signal: safety_stop}}
      correlation: {{type: event_count, group-by: [user], timespan: 1h, condition: {{gte: {gte}}}}}
      escalation: {{steps: [15m], decay: 24h}}
"
    )
}

fn time(minute: u32) -> String {
    format!("2026-03-01T{:02}:{:02}:00Z", 10 + minute / 60, minute % 60)
}

/// Returns a response that the provider cut off, in a thread of its own.
fn stop(user: &str, minute: u32) -> String {
    let thread = format!("{user}-{minute}");
    let call = json!({"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": "{\"path\": \"a"}});
    let choice =
        json!({"index": 0, "finish_reason": "content_filter", "message": {"role": "assistant", "content": "x", "tool_calls": [call]}});
    json!({"type": "model_response", "thread_id": thread, "event_id": "m", "turn_id": "t", "user_id": user, "tenant_id": "acme",
        "timestamp": time(minute), "provider": "openai", "response": {"id": "r", "object": "chat.completion", "choices": [choice]}})
    .to_string()
}

fn call(user: &str, minute: u32) -> String {
    let id = format!("call-{user}-{minute}");
    json!({"type": "tool_call", "thread_id": format!("calls-{user}"), "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {},
        "user_id": user, "tenant_id": "acme", "timestamp": time(minute)})
    .to_string()
}

/// Alice is stopped three times within an hour and calls tools then; bob is stopped twice.
fn traffic() -> String {
    let mut lines = vec![call("alice", 0), stop("alice", 1), stop("bob", 2), stop("alice", 3), stop("bob", 4), stop("alice", 5)];
    lines.extend([call("alice", 5), call("bob", 6), call("alice", 19), call("alice", 20), call("bob", 30)]);
    lines.join("\n") + "\n"
}

fn eval(config: &str, arguments: &[&str], input: &str) -> Ran {
    let config = temporary(config);
    run(tollgate().arg("eval").arg("-c").arg(config.path()).args(arguments), input.as_bytes())
}

#[test]
fn whom_a_rule_suspends_is_suspended_from_the_next_event_on() {
    let folder = tempfile::tempdir().unwrap();
    let [alerts, controls] = ["alerts", "controls"].map(|name| folder.path().join(name));
    let ran = eval(&config(3), &["--alerts", alerts.to_str().unwrap(), "--controls-out", controls.to_str().unwrap()], &traffic());
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""));
    let verdicts = ran.json_lines();
    let code = |event: &str| {
        let found = verdicts.iter().find(|verdict| verdict["event_id"] == event).unwrap();
        found["code"].as_str().unwrap().to_owned()
    };
    let codes = ["call-alice-0", "call-alice-5", "call-bob-6", "call-alice-19", "call-alice-20", "call-bob-30"].map(code);
    assert_eq!(codes, ["allow", "subject_suspended", "allow", "subject_suspended", "allow", "allow"]);
    let blocked = verdicts.iter().find(|verdict| verdict["event_id"] == "call-alice-5").unwrap();
    assert_eq!(blocked["message"], "The user is suspended: abuse rule stops");

    let [alert] = jsonl(&alerts).try_into().unwrap();
    let value = &alert["value"];
    assert_has(
        "found",
        value,
        &json!({"rule": "stops", "status": "firing", "action": "suspended", "count": 3, "threshold": 3, "until": "2026-03-01T10:20:00.000Z"}),
    );
    assert_eq!((&value["subject"], value["evidence"].as_array().unwrap().len()), (&alert["key"], 3));
    let written = jsonl(&controls);
    assert_eq!(written[0]["key"], format!("subject/{}/abuse", alert["key"].as_str().unwrap()));
    assert_has(
        "found",
        &written[0]["value"],
        &json!({"state": "suspended", "until": "2026-03-01T10:20:00.000Z", "alert_id": value["alert_id"]}),
    );
    assert_eq!(written.last().unwrap()["value"], Value::Null, "it is over by the time of the events");

    // What was written holds for another run.
    let first = folder.path().join("first");
    fs::write(&first, format!("{}\n", written[0])).unwrap();
    let ran = eval(&config(3), &["--controls", first.to_str().unwrap()], &call("alice", 7));
    assert_eq!(ran.json_lines()[0]["code"], "subject_suspended");
}

#[test]
fn a_capture_of_the_signals_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for partitions in ["1", "5"] {
        let outputs = ["--alerts", &path("alerts"), "--controls-out", &path("controls"), "--signals-out", &path("signals")];
        let ran = eval(&config(3), &[&outputs[..], &["--signals-partitions", partitions]].concat(), &traffic());
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""));
        let again = ["--signals", &path("signals"), "--alerts", &path("alerts-again"), "--controls-out", &path("controls-again")];
        let again = eval(&config(3), &again, "");
        assert_eq!((again.exit, again.stdout.as_str(), again.stderr.as_str()), (Some(0), "", ""));
        for name in ["alerts", "controls"] {
            let [one, other] = [path(name), path(&format!("{name}-again"))].map(|path| fs::read_to_string(path).unwrap());
            assert_eq!((one.is_empty(), &one), (false, &other), "{name} {partitions}");
        }
        let named: BTreeSet<_> = jsonl(path("signals")).iter().map(|line| line["partition"].as_i64().unwrap()).collect();
        assert_eq!(named.len().to_string(), partitions);
    }
    // Without files both go to stdout, controls before the alerts that report them.
    let printed = eval(&config(3), &["--signals", &path("signals")], "").json_lines();
    let keys: Vec<_> = printed.iter().map(|line| line["key"].as_str().unwrap()).collect();
    assert!(keys[0].starts_with("subject/user/") && keys[1].starts_with("user/"), "{keys:?}");
    // Rules that are tried on the same signals find another set.
    assert_eq!(eval(&config(2), &["--signals", &path("signals"), "--controls-out", &path("controls")], "").json_lines().len(), 2);
}

#[test]
fn alerts_can_take_the_place_of_verdicts() {
    let ran = eval(&config(3), &["--alerts", "-"], &traffic());
    let keys: Vec<_> = ran.json_lines().iter().map(|line| line["value"]["rule"].as_str().unwrap().to_owned()).collect();
    assert_eq!((ran.exit, keys), (Some(0), vec!["stops".to_owned()]));
}

#[test]
fn what_cannot_be_counted_is_refused_with_a_reason() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let off = "abuse: {signals: false}";
    let none = "abuse: {pack: 'off'}";
    let three = config(3);
    for (config, arguments, says) in [
        (three.as_str(), &["--digest", "--alerts", path][..], "--digest: found with an option that counts"),
        (&three, &["--alerts", "-", "--controls-out", "-"], "--controls-out: found - for --alerts too"),
        (&three, &["--alerts", path, "--controls-out", path], "--controls-out: found"),
        (off, &["--alerts", path], "abuse.signals: found false"),
        (none, &["--alerts", path], "abuse.rules: found no rule"),
        (&three, &["--signals", path, "--controls", path], "cannot be used with"),
    ] {
        let ran = eval(config, arguments, "");
        assert!(ran.exit.is_some_and(|exit| exit == 1 || exit == 2) && ran.stderr.contains(says), "{arguments:?}: {ran:?}");
    }
    // The input is not written over.
    let input = temporary(&traffic());
    let path = input.path().to_str().unwrap();
    for option in ["--alerts", "--controls-out", "--signals-out"] {
        let full = eval(&three, &[option, "/dev/full"], &traffic());
        assert_eq!(full.exit, Some(1), "{option}");
        assert!(full.stderr.contains(option) && full.stderr.contains("holds a part: No space left"), "{}", full.stderr);
    }
    let ran = eval(&three, &[path, "--alerts", path], "");
    assert!(ran.stderr.contains("which this command reads") && fs::read_to_string(path).unwrap() == traffic(), "{ran:?}");
}

#[test]
fn records_that_are_no_signals_are_reported() {
    let envelope = |offset: u32, value: &str| {
        json!({"topic": "tollgate.signals", "partition": 0, "offset": offset, "timestamp": 0, "key": null, "headers": [], "value": value})
            .to_string()
    };
    let file = temporary(&[envelope(0, "{}"), envelope(1, r#"{"version":9}"#), envelope(1, "{}"), "nonsense".to_owned()].join("\n"));
    let ran = eval(&config(3), &["--signals", file.path().to_str().unwrap()], "");
    let codes: Vec<Value> = ran.stderr.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["code"].clone()).collect();
    assert_eq!((ran.exit, codes[..3].to_vec()), (Some(3), vec![json!("foreign"), json!("newer"), json!("offset_repeated")]));
    assert_eq!(codes.len(), 4);
}

/// Compares two sets of rules on the traffic.
fn diff(one: &str, other: &str, arguments: &[&str]) -> Ran {
    let (one, other, source) = (temporary(one), temporary(other), temporary(&traffic()));
    let mut command = tollgate();
    command.arg("diff").arg(source.path()).arg("--policy").arg(one.path()).arg("--policy").arg(other.path()).args(arguments);
    run(&mut command, b"")
}

#[test]
fn diff_tells_whom_other_rules_catch_and_which_calls_that_blocks() {
    let page = tempfile::NamedTempFile::new().unwrap();
    let ran = diff(&config(3), &config(2), &["-o", "json", "--html", page.path().to_str().unwrap()]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""));
    let abuse = ran.json_lines().remove(0)["abuse"].clone();
    // Under B bob is suspended from minute 4 to 19, and alice from minute 3 to 18; under A alice from minute 5 to 20.
    assert_has("found", &abuse, &json!({"calls": 6, "blocked": [2, 2], "suspended": 1, "freed": 1}));
    assert_has("found", &abuse["rules"][0], &json!({"rule": "stops", "caught": [1, 2], "suspended": [1, 2], "gained": 1, "lost": 0}));
    let html = fs::read_to_string(page.path()).unwrap();
    assert!(html.contains("<table id=\"abuse\">") && html.contains("<span id=\"suspended\">1</span>"), "{html}");
    let table = diff(&config(3), &config(2), &["-o", "table"]).stdout;
    assert!(table.contains("1 calls (17 %) are blocked by one under B and not under A, 1 the other way"), "{table}");
    assert!(table.contains("Subjects that rules against abuse catch"), "{table}");
}

#[test]
fn diff_counts_whom_no_alert_names_and_says_what_was_left_out() {
    // A minute has twenty alerts of a rule; the others of the hundred are in one.
    let mut lines: Vec<_> = (0..100).flat_map(|user| (0..3).map(move |minute| stop(&format!("u{user}"), minute))).collect();
    lines.extend([stop("late", 60), stop("late", 1)]);
    let none = config(9);
    for (rules, action, caught, suspended) in [(config(3), "enforce", 100, 20), (config(3).replace("enforce", "shadow"), "shadow", 100, 0)]
    {
        let (one, other, source) = (temporary(&none), temporary(&rules), temporary(&lines.join("\n")));
        let mut command = tollgate();
        command.arg("diff").arg(source.path()).arg("--policy").arg(one.path()).arg("--policy").arg(other.path()).args(["-o", "json"]);
        let ran = run(&mut command, b"");
        let abuse = ran.json_lines().remove(0)["abuse"].clone();
        let found = json!({"caught": [0, caught], "suspended": [0, suspended], "gained": caught, "paused": [false, action == "enforce"]});
        assert_has(action, &abuse["rules"][0], &found);
        let names = |list: &str| abuse["rules"][0]["examples"][list].as_array().unwrap().len();
        assert_eq!((names("gained"), names("lost"), names("suspended")), (5, 0, suspended.min(5)));
        assert!(abuse["uncounted"][1][0].as_str().unwrap().contains(" signals came too late"), "{abuse}");
    }
    let ran = eval(&config(3), &["--alerts", "/dev/null"], &lines.join("\n"));
    assert!(ran.exit == Some(0) && ran.stderr.contains(" signals came too late"), "{ran:?}");
}

#[test]
fn a_limit_of_suspensions_fails_a_build() {
    let limited = |one, other, limit| {
        let ran = diff(&config(one), &config(other), &["--fail-on", limit]);
        (ran.exit, ran.stderr)
    };
    assert_eq!(limited(3, 2, "suspended>16%"), (Some(1), "tollgate: --fail-on 'suspended>16%': found 1 of 6 calls\n".to_owned()));
    assert_eq!(limited(3, 2, "suspended>17%").0, Some(0));
    assert_eq!(limited(9, 3, "suspended>1").0, Some(1));
    assert_eq!(limited(3, 9, "suspended>0").0, Some(0), "fewer are suspended");
}

#[test]
fn rules_that_are_the_same_are_compared_only_if_that_is_asked_for() {
    let same = diff(&config(3), &config(3), &["-o", "json"]);
    assert!(same.exit == Some(2) && same.stderr.contains("the same rules of abuse"), "{same:?}");
    let asked = diff(&config(3), &config(3), &["-o", "json", "--abuse"]);
    assert_has("found", &asked.json_lines()[0]["abuse"], &json!({"blocked": [2, 2], "suspended": 0, "freed": 0}));
    let policy = "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [ls]}}}";
    let other = diff("{}", policy, &["-o", "json"]);
    assert_eq!(other.json_lines()[0].get("abuse"), None);
    let keyed = diff(&config(3), &format!("{}privacy: {{subject_key: a}}\n", config(2)), &[]);
    assert!(keyed.exit == Some(2) && keyed.stderr.contains("privacy.subject_key"), "{keyed:?}");
}

#[test]
fn whom_a_pardon_cannot_mean_is_refused_and_not_repeated() {
    let short = format!("user/{}", "ab".repeat(8));
    for (arguments, says) in [
        (&["pardon"][..], "required"),
        (&["pardon", "--yes", "user:MARKER"], "--rule"),
        (&["pardon", "user:MARKER", "--rule", "stops"], "--rule: found together with SUBJECT"),
        (&["pardon", "--rule", "stops", "--tenant", "MARKER"], "--tenant: found with --rule"),
        (&["pardon", &short], "a hash has 64 hex digits, and tables show the first of them: -o wide prints them all"),
        (&["show", &short], "a hash has 64 hex digits"),
    ] {
        let ran = run(tollgate().arg("abuse").args(arguments), b"");
        assert!(ran.exit == Some(2) && ran.stderr.contains(says) && !ran.stderr.contains("MARKER"), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn unit_tests_of_rules_print_json_by_either_option() {
    let test = |arguments: &[&str]| run(tollgate().args(["abuse", "test", "docs/abuse-examples/own_test.yaml"]).args(arguments), b"");
    let (json, output) = (test(&["--json"]), test(&["-o", "json"]));
    assert_eq!((json.exit, &json), (Some(0), &output));
    assert!(!json.json_lines().is_empty() && test(&["-o", "table"]).stdout == test(&[]).stdout);
}

/// The overrides of a configuration are in the list, in the explanation and in what `config check` prints.
#[test]
fn the_rules_in_force_are_listed_and_explained() {
    let file = temporary("abuse: {overrides: {safety-stop-user: {threshold: 8}, same-denied-call: {enabled: false}}}");
    let path = file.path().to_str().unwrap();
    let ran = |arguments: &[&str]| run(tollgate().args(["-c", path]).args(arguments), b"");
    let listed = ran(&["abuse", "rules"]);
    let rules = listed.json_lines();
    assert_eq!((listed.exit, rules.len()), (Some(0), 8), "{listed:?}");
    assert_has(
        "overridden",
        &rules[0],
        &json!({"id": "safety-stop-user", "from": "pack", "overridden": {"threshold": {"pack": 5, "now": 8}}, "mode": "alert"}),
    );
    assert_eq!(rules[0]["correlation"]["condition"]["gte"], 8);
    assert!(listed.stderr.contains("rules in force: 8; the pack is alert; off by abuse.overrides: same-denied-call"), "{listed:?}");
    let table = ran(&["abuse", "rules", "-o", "table"]).stdout;
    assert!(table.lines().nth(1).unwrap().starts_with("safety-stop-user       safety_stop  user    8 "), "{table}");
    assert!(table.contains("pack, changed") && table.contains("8 × median"), "{table}");
    let explained = ran(&["abuse", "rules", "--explain", "safety-stop-user", "-o", "table"]).stdout;
    for says in [
        "why: A turn counts once",
        "from: the pack\ncounts: safety_stop, for each user\nfires at: 8 signals (changed by abuse.overrides; the pack has 5)\nwithin: 1h\n",
        "does: raises alerts, as abuse.pack is alert\nsteps: warn, 15m, 2h",
    ] {
        assert!(explained.contains(says), "{explained}");
    }
    assert_eq!(ran(&["abuse", "rules", "--explain", "safety-stop-user"]).json_lines()[0], rules[0]);
    let enforced = temporary("abuse: {pack: enforce}");
    let enforced = enforced.path().to_str().unwrap();
    for (id, says) in [
        ("loop-stop-agent", "does: raises alerts, because it has no step that suspends\n"),
        ("safety-stop-user", "does: raises alerts and suspends, as abuse.pack is enforce\n"),
        ("safety-stop-share", "fires at: a share of 0.05 of response\nneeds: 200 of response at least\n"),
        ("runaway-calls-tenant", "fires at: 8 times the median of its own timespans of the last 7d\nat least: 2000\n"),
    ] {
        let said = run(tollgate().args(["-c", enforced, "abuse", "rules", "--explain", id, "-o", "table"]), b"");
        assert!(said.stdout.contains(says), "{said:?}");
    }
    for (id, says) in [("same-denied-call", "abuse.overrides switches it off"), ("loop-stop-agnt", "write loop-stop-agent")] {
        let refused = ran(&["abuse", "rules", "--explain", id]);
        assert!(refused.exit == Some(2) && refused.stderr.contains(says), "{refused:?}");
    }
    let effective: Value = serde_json::from_str(&ran(&["config", "check"]).stdout).unwrap();
    assert_eq!(effective["abuse"]["overrides"], json!({"safety-stop-user": {"threshold": 8}, "same-denied-call": {"enabled": false}}));
}
