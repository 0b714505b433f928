//! Tests `tollgate eval` as users run it: the real binary, its exit codes, its two streams and its memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::{Ran, assert_has, check_each, run, run_unread, temporary, tollgate};
use anyhow::Context as _;
use serde_json::{Value, json};
use tollgate_fixtures::cases::jsonl;
use tollgate_testkit::{TIME_MAX, eventually};

fn call(event_id: &str) -> String {
    json!({"type": "tool_call", "thread_id": "t", "event_id": event_id, "tool_call_id": event_id, "tool_name": "bash", "tool_input": {}})
        .to_string()
}

/// Runs `eval` on stdin.
fn eval(input: &[u8]) -> Ran {
    run(tollgate().arg("eval"), input)
}

fn event_ids(verdicts: &[Value]) -> Vec<&str> {
    verdicts.iter().map(|verdict| verdict["event_id"].as_str().unwrap()).collect()
}

/// A case is a line in `eval_lines.jsonl`: the input, the exit code, the events of the verdicts in order, and what stderr reports line by
/// line. Inputs that are no text of a line are made here.
#[test]
fn lines() {
    let (a, b, long) = (call("a"), call("b"), "x".repeat(9 << 20));
    let too_long = json!([{"line": 2, "code": "value_too_large", "field": "value"}]);
    let not_utf8 = json!({"name": "bytes that are not UTF-8", "exit": 3, "events": [],
        "reports": [{"line": 1, "code": "value_not_utf8", "field": "value"}]});
    let made = [
        (not_utf8, b"\"\xff\"\n".to_vec()),
        (
            json!({"name": "a line too long", "exit": 3, "events": ["a", "b"], "reports": too_long}),
            format!("{a}\n{long}\n{b}\n").into_bytes(),
        ),
        (
            json!({"name": "a line too long at the end", "exit": 3, "events": ["a"], "reports": too_long}),
            format!("{a}\n{long}").into_bytes(),
        ),
    ];
    let read = jsonl("tests/eval_lines.jsonl").into_iter().map(|case| {
        let input = case["input"].as_str().unwrap().as_bytes().to_vec();
        (case, input)
    });
    check_each(read.chain(made), |(case, _)| case["name"].to_string(), |(case, input)| check_lines(case, input));
}

fn check_lines(case: &Value, input: &[u8]) {
    let ran = eval(input);
    assert_eq!(ran.exit.map(i64::from), case["exit"].as_i64(), "{ran:?}");
    assert_eq!(json!(event_ids(&ran.json_lines())), case["events"]);
    let reports: Vec<Value> = ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let expected = case["reports"].as_array().unwrap();
    assert_eq!(reports.len(), expected.len(), "{reports:?}");
    for (report, expected) in reports.iter().zip(expected) {
        assert_has("the report", report, expected);
        assert!(report["found"].is_string() && report["fix"].is_string(), "{report}");
    }
}

/// A window that begins within a turn gives other verdicts than the workers gave, and this is said once, with the threads.
#[test]
fn threads_that_begin_within_a_turn_are_named() {
    let line = |kind: &str, thread: &str| {
        format!(r#"{{"type":"{kind}","thread_id":"{thread}","tool_call_id":"c","tool_name":"ls","tool_input":{{}},"result":"x"}}"#) + "\n"
    };
    let said = |events: &[(&str, &str)]| {
        let ran = eval(events.iter().map(|(kind, thread)| line(kind, thread)).collect::<String>().as_bytes());
        assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
        ran.stderr
    };
    assert_eq!(said(&[("turn_start", "a"), ("tool_call", "a"), ("tool_result", "a"), ("turn_end", "a")]), "");
    assert_eq!(said(&[("tool_call", "a"), ("tool_result", "a")]), "", "a host that marks no turns");
    let one = said(&[("tool_call", "cut"), ("turn_start", "a"), ("tool_call", "a")]);
    assert!(one.starts_with("tollgate: 1 thread begins within a turn (cut): ") && one.lines().count() == 1, "{one}");
    let many = said(&["a", "b", "c", "d", "a"].map(|thread| ("tool_result", thread)));
    assert!(many.starts_with("tollgate: 4 threads begin within a turn (a, b, c, …): ") && many.lines().count() == 1, "{many}");
    let digest = run(tollgate().args(["eval", "--digest"]), (line("turn_start", "a") + &line("tool_call", "b")).as_bytes());
    assert!(digest.stderr.starts_with("tollgate: 1 thread begins within a turn: "), "{}", digest.stderr);
}

#[test]
fn a_file_and_stdin_give_the_same_bytes() {
    let log: String = (0..100).map(|n| call(&format!("e{n}")) + "\n").collect();
    let file = temporary(&log);
    let from_file = run(tollgate().arg("eval").arg(file.path()), b"");
    let from_stdin = eval(log.as_bytes());
    let from_dash = run(tollgate().args(["eval", "-"]), log.as_bytes());
    assert_eq!(from_file.json_lines().len(), 100);
    assert_eq!(from_file, from_stdin);
    assert_eq!(from_file, from_dash);
}

/// Controls are applied in order before the first event; a line that is no control is reported and changes nothing.
#[test]
fn controls_count() {
    use tollgate_core::decide::controls::{Subject, SubjectHasher};
    use tollgate_core::decide::ruling::SubjectKind;
    let event = |id: &str, user: &str| {
        json!({"type": "tool_call", "thread_id": "t", "event_id": id, "tool_call_id": id, "tool_name": "bash", "tool_input": {}, "user_id": user})
            .to_string()
            + "\n"
    };
    let suspended = |key: Option<&str>, user: &str| {
        let hash = SubjectHasher::new(key).hash(&Subject { kind: SubjectKind::User, tenant: "", id: user }).to_string();
        let value = json!({"type": "subject", "kind": "user", "hash": hash, "state": "suspended", "reason": "chargeback"});
        (format!("subject/user/{hash}"), value)
    };
    let line = |(key, value): &(String, Value)| json!({"key": key, "value": value}).to_string() + "\n";
    let (alice, bob) = (suspended(None, "alice"), suspended(None, "bob"));
    let resumed = json!({"key": alice.0, "value": null, "note": "as `tollgate control list` and captures of topics have it"}).to_string();
    let as_text = json!({"key": bob.0, "value": bob.1.to_string()}).to_string();
    let events = event("a", "alice") + &event("b", "bob") + &event("c", "carol");
    let run_with = |controls: String, key: Option<&str>| {
        let file = temporary(&controls);
        let mut command = tollgate();
        command.args(["eval", "--controls"]).arg(file.path());
        if let Some(key) = key {
            command.env("TOLLGATE__PRIVACY__SUBJECT_KEY", key);
        }
        run(&mut command, events.as_bytes())
    };
    let codes = |ran: &Ran| ran.json_lines().iter().map(|verdict| verdict["code"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let ran = run_with(line(&alice) + &line(&bob), None);
    assert_eq!(
        (ran.exit, codes(&ran), ran.stderr.as_str()),
        (Some(0), vec!["subject_suspended".into(), "subject_suspended".into(), "allow".into()], "")
    );
    assert_eq!(ran.json_lines()[0]["decided_by"], "control");
    let ran = run_with(format!("{}{resumed}\n\n{as_text}", line(&alice)), None);
    assert_eq!((ran.exit, codes(&ran)), (Some(0), vec!["allow".into(), "subject_suspended".into(), "allow".into()]));
    let ran = run_with(format!("{}nonsense\n{}", line(&alice), json!({"key": alice.0, "value": {"type": "subject"}})), None);
    assert_eq!((ran.exit, codes(&ran)), (Some(3), vec!["subject_suspended".into(), "allow".into(), "allow".into()]));
    let reports: Vec<Value> = ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(reports.len(), 2);
    assert_has("a line", &reports[0], &json!({"line": 2, "code": "value_not_json", "field": "value"}));
    assert_has("a record", &reports[1], &json!({"line": 3, "code": "kind_missing", "field": "kind"}));
    assert!(reports.iter().all(|report| report["file"].is_string() && report["fix"].is_string()));
    // A hash under another key is another subject.
    let keyed = line(&suspended(Some("k"), "carol"));
    assert_eq!(codes(&run_with(line(&alice) + &keyed, Some("k"))), ["allow", "allow", "subject_suspended"]);
    let missing = run(tollgate().args(["eval", "--controls", "/no/such/file"]), b"");
    assert!(missing.exit == Some(1) && missing.stderr.contains("/no/such/file: cannot be read"), "{missing:?}");
}

#[test]
fn the_configuration_counts() {
    let config = temporary(
        "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [bash]}}}\nkafka: {topics: {events: acme.events}}\n",
    );
    let call = r#"{"type":"tool_call","thread_id":"t","tool_call_id":"c","tool_name":"bash"}"#;
    let ran = run(tollgate().args(["eval", "--config"]).arg(config.path()), call.as_bytes());
    assert_has("denied", &ran.json_lines()[0], &json!({"action": "block", "code": "oap.tool_not_allowed", "event_id": "acme.events/0/0"}));
    let ran = run(tollgate().arg("eval").env("TOLLGATE_CONFIG", config.path()), call.as_bytes());
    assert_eq!(ran.json_lines()[0]["action"], "block");
    let ran = run(tollgate().arg("eval").env("TOLLGATE__LIMITS__EVENT_BYTES_MAX", "20"), call.as_bytes());
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(3), ""));
    assert!(ran.stderr.contains("limits.event_bytes_max"), "{}", ran.stderr);
}

#[test]
fn failures_and_wrong_usage() {
    let ran = run(tollgate().args(["eval", "no/such/file.jsonl"]), b"");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with("tollgate: no/such/file.jsonl: cannot be read"), "{}", ran.stderr);
    let ran = run(tollgate().args(["eval", env!("CARGO_MANIFEST_DIR")]), b"");
    assert_eq!(ran.exit, Some(1), "a directory: {ran:?}");
    for usage in [vec!["eval", "--no-such-option"], vec!["eval", "a", "b"], vec!["evla"], vec![]] {
        let ran = run(tollgate().args(&usage), b"");
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{usage:?}: {ran:?}");
        assert!(ran.stderr.contains("Usage: tollgate"), "{usage:?}: {}", ran.stderr);
    }
    let ran = run(tollgate().args(["eval", "--config", "no/such.yaml"]), b"");
    assert_eq!(ran.exit, Some(1));
    assert!(ran.stderr.contains("no/such.yaml"), "{}", ran.stderr);
}

fn start() -> Child {
    tollgate().arg("eval").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Writes the same line until the reader goes away.
fn feed_without_end(child: &mut Child, line: String) -> std::thread::JoinHandle<()> {
    let mut stdin = child.stdin.take().unwrap();
    std::thread::spawn(move || while stdin.write_all(line.as_bytes()).is_ok() {})
}

fn wait(child: &mut Child) -> i32 {
    eventually(|| child.try_wait()?.context("it did not end")).unwrap().code().unwrap_or(-1)
}

/// `tollgate eval | head -1` ends as SIGPIPE ends a process, and writes nothing on stderr.
#[test]
fn a_reader_that_has_seen_enough_ends_the_run() {
    for (line, exit) in [(call("e") + "\n", 141), ("nonsense\n".to_owned(), 3)] {
        let mut child = start();
        let feeding = feed_without_end(&mut child, line.clone());
        if line.starts_with('{') {
            let mut first = String::new();
            let mut stdout = BufReader::new(child.stdout.take().unwrap());
            stdout.read_line(&mut first).unwrap();
            assert!(first.contains(r#""event_id":"e""#));
            drop(stdout);
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert_eq!(said, "");
        } else {
            // Nobody reads the reports either.
            drop(child.stderr.take());
        }
        assert_eq!(wait(&mut child), exit, "{line}");
        feeding.join().unwrap();
    }
}

/// A result that is known before it is printed has its exit code whether or not somebody reads it. An unknown result is no success.
#[test]
fn a_finding_stands_though_nobody_reads_it() {
    let [good, bad, passport] = [call("e"), call("e") + "\nnonsense\n", r#"{"status": "Active"}"#.to_owned()].map(|text| temporary(&text));
    let [good, bad, passport] = [&good, &bad, &passport].map(|file| file.path().to_str().unwrap());
    for (arguments, exit, says) in [
        (["eval", good].as_slice(), 141, ""),
        (&["eval", bad], 3, "value_not_json"),
        (&["eval", "--digest", bad], 3, "value_not_json"),
        (&["eval", "--digest", good], 0, ""),
        (&["passport", "check", passport], 1, "is a passport with 13 faults"),
        (&["passport", "check", "examples/passports/restrictive.json"], 0, "without faults"),
        (&["config", "check"], 0, "the configuration is valid"),
        (&["schema", "event"], 141, ""),
    ] {
        let (code, said) = run_unread(tollgate().args(arguments));
        assert!(code == Some(exit) && said.contains(says), "{arguments:?}: {code:?} {said}");
    }
}

/// A program that writes one event and waits for its verdict gets it, though the stream goes on.
#[test]
fn verdicts_do_not_wait_for_the_end_of_the_stream() {
    let mut child = start();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (verdicts, received) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || stdout.lines().try_for_each(|line| verdicts.send(line.unwrap()).ok()));
    for event_id in ["one", "two", "three"] {
        writeln!(stdin, "{}", call(event_id)).unwrap();
        let verdict = received.recv_timeout(TIME_MAX).expect("a verdict before the next event");
        assert!(verdict.contains(event_id), "{verdict}");
    }
    drop(stdin);
    assert_eq!(wait(&mut child), 0);
    reading.join().unwrap();
}

/// Returns the bytes of resident memory that a process has needed so far.
fn peak_bytes(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the kernel tells");
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

/// Returns the nth line of a long stream: runs of 50 events a thread, a large result now and then, and lines that cannot be read.
fn nth_line(n: usize, large: &str) -> String {
    let thread = n / 50;
    match n % 50 {
        0 => format!(r#"{{"type":"turn_start","thread_id":"t{thread}"}}"#),
        1 if thread.is_multiple_of(20) => format!("nonsense {n}"),
        2 if thread.is_multiple_of(20) => format!(
            r#"{{"type":"tool_result","thread_id":"t{thread}","tool_call_id":"c{n}","tool_name":"read_file","tool_input":{{"n":{n}}},"result":"{large}"}}"#
        ),
        49 => format!(r#"{{"type":"turn_end","thread_id":"t{thread}"}}"#),
        _ => format!(
            r#"{{"type":"tool_call","thread_id":"t{thread}","tool_call_id":"c{n}","tool_name":"read_file","tool_input":{{"n":{n}}}}}"#
        ),
    }
}

/// Memory does not grow with the stream: 200 MB, twenty thousand runs and more.
#[test]
fn memory_does_not_grow_with_the_stream() {
    const STREAM_BYTES: usize = 200_000_000;
    const MEMORY_BYTES_MAX: u64 = 64 << 20;
    let mut child = start();
    let stdin = child.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || {
        let large = "lorem ipsum ".repeat(5_000);
        let mut stdin = std::io::BufWriter::with_capacity(1 << 20, stdin);
        let mut written = 0;
        for n in 0.. {
            let line = nth_line(n, &large);
            written += line.len() + 1;
            writeln!(stdin, "{line}").unwrap();
            if written >= STREAM_BYTES {
                break;
            }
        }
        (stdin.into_inner().unwrap(), written)
    });
    let mut stderr = child.stderr.take().unwrap();
    let reports = std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()).unwrap());
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let verdicts = std::thread::spawn(move || {
        let mut lines = 0_u64;
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).unwrap() > 0 {
            lines += 1;
            line.clear();
        }
        lines
    });
    let (stdin, written) = feeding.join().unwrap();
    // All is written and the process still waits for more: now its peak can be read.
    let peak = peak_bytes(&child);
    drop(stdin);
    assert_eq!(wait(&mut child), 3);
    let (verdicts, report_bytes) = (verdicts.join().unwrap(), reports.join().unwrap());
    assert!(written >= STREAM_BYTES && verdicts > 500_000 && report_bytes > 100_000, "{written} {verdicts} {report_bytes}");
    assert!(peak < MEMORY_BYTES_MAX, "{} MiB at its peak", peak >> 20);
}

#[test]
fn help_says_how() {
    for arguments in [vec!["--help"], vec!["eval", "--help"], vec!["help", "eval"]] {
        let ran = run(tollgate().args(&arguments), b"");
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(ran.stdout.contains("Usage: tollgate"), "{arguments:?}");
    }
    let ran = run(tollgate().arg("--version"), b"");
    assert_eq!(ran.stdout, format!("tollgate {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_policy_server_is_asked_and_verdicts_stay_in_order() {
    let server = tollgate_testkit::PolicyServer::start(|input| {
        let delay = if input["tool_call_id"] == "a" { Duration::from_millis(50) } else { Duration::ZERO };
        (delay, if input["tool_name"] == "rm" { json!({"allow": false, "reasons": [{"code": "acme.no_rm"}]}) } else { json!(true) })
    });
    let call = |id: &str, tool: &str| {
        json!({"type": "tool_call", "thread_id": id, "event_id": id, "tool_call_id": id, "tool_name": tool, "tool_input": {}}).to_string()
    };
    let config = json!({"guardrails": {"enabled": true, "providers": [
        {"use": "http", "tools": ["rm", "ls"], "config": {"url": server.url(), "dialect": "opa", "timeout_ms": 600_000}},
        {"use": "allowlist", "config": {"denied_tools": ["dd"]}},
    ]}});
    let file = temporary(&config.to_string());
    let input = [call("a", "ls"), call("b", "rm"), call("c", "dd"), call("d", "cat")].join("\n");
    let ran = run(tollgate().arg("-c").arg(file.path()).arg("eval"), input.as_bytes());
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    let codes: Vec<_> = ran.json_lines().iter().map(|verdict| verdict["code"].as_str().unwrap().to_owned()).collect();
    assert_eq!(codes, ["allow", "acme.no_rm", "oap.tool_not_allowed", "allow"]);
    let asked: Vec<_> = server.asked().iter().map(|input| input["tool_call_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(asked, ["a", "b"]);
}

/// The command ends with the signal, though the input never ends, and says that its result is of a part.
#[test]
fn an_interrupted_run_prints_what_it_has() {
    let mut child = tollgate().arg("eval").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", call("a")).unwrap();
    let mut verdict = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut verdict).unwrap();
    assert!(verdict.contains("\"a\""), "{verdict}");
    assert!(std::process::Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "tollgate: interrupted; the result is of what was read until then\n");
    drop(input);
}
