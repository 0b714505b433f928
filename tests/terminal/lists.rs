//! What the listing commands show on a terminal, and that a pipe gets what it always got.

use std::path::Path;

use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;

use super::screen::{Terminal, assert_snapshot};
use crate::brokers::dev::Dev;
use crate::support::{run, run_unread, tollgate};
use tollgate_testkit::TIME_MAX;

/// Publishes the state that the core's golden of version 4 holds to partition 0.
fn publish_state(brokers: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/core/tests/fixtures/state-v1.jsonl");
    let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let value = record["value_hex"].as_str().map(bytes);
        let mut outgoing = BaseRecord::<str, [u8]>::to("tollgate.state").partition(0).key(record["key"].as_str().unwrap());
        outgoing.payload = value.as_deref();
        producer.send(outgoing).unwrap();
    }
    producer.flush(TIME_MAX).unwrap();
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Times ago depend on when the test runs.
fn without_ages(screen: &str) -> String {
    let mut out = Vec::new();
    for line in screen.lines() {
        let words: Vec<&str> = line.split("  ").map(|cell| if cell.trim_end().ends_with(" ago") { "AGO" } else { cell }).collect();
        let line = words.join("  ");
        // A table is as wide as its ages are long.
        let parts: Vec<&str> = line.split("AGO").enumerate().map(|(at, part)| if at == 0 { part } else { part.trim_start() }).collect();
        let line = parts.join("AGO  ");
        let line = line.find(" (").filter(|_| line.contains(" ago)")).map_or(line.clone(), |at| format!("{} (AGO)", &line[..at]));
        out.push(line.trim_end().to_owned());
    }
    out.join("\n")
}

#[test]
fn threads_are_a_table_on_a_terminal_and_jsonl_in_a_pipe() {
    let dev = Dev::start();
    publish_state(&dev.brokers);
    let list = |arguments: &[&str], columns| {
        let mut terminal = Terminal::start(&[&["state", "list", "-b", &dev.brokers], arguments].concat(), (columns, 40), &[]);
        assert!(terminal.wait().success());
        let shown = terminal.wait_for("threads that hold a stop");
        without_ages(&shown)
    };
    assert_snapshot("state-list", &list(&[], 100));
    assert_snapshot("state-list-wide", &list(&["-o", "wide"], 160));
    let piped = run(tollgate().args(["state", "list", "-b", &dev.brokers]), b"");
    let as_json = run(tollgate().args(["state", "list", "-b", &dev.brokers, "-o", "json"]), b"");
    assert_eq!((piped.exit, &piped.stdout), (Some(0), &as_json.stdout), "{}", piped.stderr);
    let first = piped.stdout.lines().next().unwrap();
    assert!(first.starts_with(r#"{"thread_id":""#) && first.ends_with('}') && first.contains(r#","holds_a_stop":"#), "{first}");
    let table = run(tollgate().args(["state", "list", "-b", &dev.brokers, "--output", "table"]), b"");
    assert!(table.stdout.starts_with("thread "), "{}", table.stdout);
}

#[test]
fn a_thread_is_shown_line_by_line() {
    let dev = Dev::start();
    publish_state(&dev.brokers);
    let listed = run(tollgate().args(["state", "list", "-b", &dev.brokers]), b"").json_lines();
    let with_calls = listed.iter().filter(|line| line["calls"].as_u64() > Some(1)).map(|line| line["thread_id"].as_str().unwrap());
    let thread = with_calls.min_by_key(|thread| thread.len()).expect("a thread with calls").to_owned();
    let mut terminal = Terminal::start(&["state", "show", &thread, "--partition", "0", "-b", &dev.brokers], (110, 60), &[]);
    assert!(terminal.wait().success());
    let shown = terminal.wait_for("the result's verdict");
    assert_snapshot("state-show", &without_ages(&shown));
    let piped = run(tollgate().args(["state", "show", &thread, "--partition", "0", "-b", &dev.brokers]), b"");
    let view: Value = serde_json::from_str(&piped.stdout).unwrap();
    assert_eq!(view["thread_id"], thread.as_str());
    assert!(piped.stdout.starts_with("{\n  \"thread_id\""), "{}", piped.stdout);
}

#[test]
fn controls_are_a_table_on_a_terminal_and_jsonl_in_a_pipe() {
    let dev = Dev::start();
    let control = |arguments: &str, input: &str| {
        let ran = run(tollgate().args(["control", "-b", &dev.brokers]).args(arguments.split(' ')), input.as_bytes());
        assert_eq!(ran.exit, Some(0), "{arguments}: {}", ran.stderr);
        ran
    };
    control("suspend --kind user --tenant acme --id - --reason chargeback --until 2999-01-01T00:00:00Z --by alice", "42");
    control("suspend --kind thread --id nightly-deploy --by alice", "");
    control("passport set coder - --by alice", r#"{"spec_version": "oap/1.0", "status": "active"}"#);
    let list = |arguments: &[&str], columns| {
        let mut terminal = Terminal::start(&[&["control", "list", "-b", &dev.brokers], arguments].concat(), (columns, 40), &[]);
        assert!(terminal.wait().success());
        let shown = terminal.wait_for("controls in force: 3");
        // The end of the suspension is as far away as the calendar says, and the others began just now.
        let known = |line: &str| line.split(" (in ").next().unwrap().split_inclusive("alice ").next().unwrap().trim_end().to_owned();
        shown.lines().map(known).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot("control-list", &list(&[], 120));
    let piped = control("list", "");
    assert_eq!(piped.json_lines().len(), 3);
    assert!(piped.stdout.starts_with(r#"{"key":"passport/coder","state":"in_force","partition":"#), "{}", piped.stdout);
    assert!(piped.stderr.ends_with("controls in force: 3\n"));
    let wide = control("list -o wide", "").stdout;
    assert!(wide.lines().next().unwrap().ends_with("partition  offset"), "{wide}");
}

/// Publishes dead letters of long ago: of each, its reason and whether it lacks its value.
fn publish_letters(brokers: &str, letters: &[(&str, bool)]) {
    let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    for (at, (reason, is_omitted)) in letters.iter().enumerate() {
        let at = i64::try_from(at).unwrap();
        let reasons = [
            ("topic", "agent.events".to_owned()),
            ("partition", "3".to_owned()),
            ("offset", (100 + at).to_string()),
            ("stage", "decode".to_owned()),
            ("class.name", (*reason).to_owned()),
            ("exception.message", format!("value: found what is {reason}; write an event")),
        ];
        let headers = reasons.iter().fold(OwnedHeaders::new(), |headers, (name, value)| {
            headers.insert(Header { key: &format!("__connect.errors.{name}"), value: Some(value) })
        });
        let omitted = Header { key: "tollgate.value.omitted", value: Some("true") };
        let headers = if *is_omitted { headers.insert(omitted) } else { headers };
        let time_ms = 1_600_000_000_000 + at * 60_000;
        let mut letter = BaseRecord::<str, str>::to("agent.events.dlq").partition(0).key("t").headers(headers).timestamp(time_ms);
        letter.payload = (!is_omitted).then_some("what somebody wrote");
        producer.send(letter).unwrap();
    }
    producer.flush(TIME_MAX).unwrap();
}

#[test]
fn dead_letters_are_two_tables_on_a_terminal() {
    let dev = Dev::start();
    publish_letters(&dev.brokers, &[("value_not_json", false), ("type_unknown", false), ("value_not_json", true)]);
    let mut terminal = Terminal::start(&["dlq", "list", "-b", &dev.brokers], (110, 40), &[]);
    assert!(terminal.wait().success());
    let shown = terminal.wait_for("dead letters in agent.events.dlq");
    let has = |shown: &str, parts: &[&str]| shown.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    for parts in [["reason", "letters", "no value"], ["letter", "came from", "value"], ["0@2", "agent.events/3", "too large"]] {
        assert!(has(&shown, &parts), "{parts:?}: {shown}");
    }
    assert!(!shown.contains("what somebody wrote"), "{shown}");
    let mut terminal = Terminal::start(&["dlq", "redrive", "-b", &dev.brokers], (110, 40), &[]);
    assert!(terminal.wait().success());
    let shown = terminal.wait_for("nothing was sent");
    assert!(has(&shown, &["reason", "to send", "sent before"]) && has(&shown, &["to send back to agent.events: 2;"]), "{shown}");
    // An operator must know where to go on, though nobody reads the lines.
    let (code, said) = run_unread(tollgate().args(["dlq", "redrive", "--execute", "-o", "json", "-b", &dev.brokers]));
    assert_eq!(code, Some(141), "{said}");
    assert!(said.contains("sent back to agent.events: 2; to go on behind them: --from 0@3"), "{said}");
}

#[test]
fn the_embedded_broker_says_that_it_is_not_administered() {
    let dev = Dev::start();
    let ran = run(tollgate().args(["topics", "apply", "-b", &dev.brokers]), b"");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("know no requests of administration. The embedded broker of tollgate dev"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn the_version_is_lines_or_one_object() {
    let text = run(tollgate().arg("version"), b"");
    assert!(text.exit == Some(0) && text.stdout.starts_with(&format!("tollgate     {}\n", env!("CARGO_PKG_VERSION"))), "{}", text.stdout);
    for arguments in [["version", "--json"].as_slice(), &["version", "-o", "json"]] {
        let version = run(tollgate().args(arguments), b"");
        let build: Value = serde_json::from_str(&version.stdout).unwrap();
        assert_eq!(build["version"], env!("CARGO_PKG_VERSION"));
        assert!(build["state"]["writes"].as_u64() >= build["state"]["reads_from"].as_u64(), "{build}");
    }
}
