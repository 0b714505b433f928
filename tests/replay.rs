//! Tests `tollgate replay` on the embedded broker, with a worker that decides on what is sent.

use std::path::PathBuf;
use std::process::Command;

use crate::brokers::dev::Dev;
use crate::brokers::process::Process;
use crate::support::{Ran, assert_says, run, temporary, tollgate};
use serde_json::{Value, json};
use tollgate_testkit::wait_until;

const EVENTS: &str = "agent.events";

fn command(dev: &Dev, arguments: &[&str]) -> Command {
    let mut command = tollgate();
    command.args(["-b", &dev.brokers, "replay"]).args(arguments);
    command
}

fn replay(dev: &Dev, arguments: &[&str], input: &str) -> Ran {
    run(&mut command(dev, arguments), input.as_bytes())
}

fn fixture() -> String {
    format!("{}/tests/formats/envelope.jsonl", env!("CARGO_MANIFEST_DIR"))
}

fn digest(path: &str) -> String {
    run(tollgate().args(["eval", "--digest", path]), b"").stdout.trim().to_owned()
}

fn line(offset: usize, topic: &str, timestamp: Option<i64>) -> String {
    let value = json!({"type": "tool_call", "thread_id": format!("t{}", offset % 3), "tool_call_id": format!("c{offset}"), "tool_name": "ls", "tool_input": {"n": offset}});
    let record = json!({"topic": topic, "partition": 0, "offset": offset, "timestamp": timestamp, "key": format!("t{}", offset % 3),
        "headers": [], "value": value.to_string()});
    format!("{record}\n")
}

/// Returns records that are a tenth of a second apart.
fn lines(count: usize) -> String {
    (0..count).map(|offset| line(offset, "was", Some(1_700_000_000_000 + 100 * offset as i64))).collect()
}

fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// What a worker decides on a replay is what `eval` decides on the file, byte for byte; and a target with records is not written to by
/// mistake.
#[test]
fn a_replay_gets_the_verdicts_of_eval() {
    let dev = Dev::configured("{}");
    let ran = replay(&dev, &[&fixture(), "--to", EVENTS, "--rate", "max", "--await", "--json"], "");
    let found = report(&ran);
    assert_eq!(found["verdicts"]["digest"], digest(&fixture()), "{ran:?}");
    assert_eq!((ran.exit, &found["acknowledged"], &found["verdicts"]["unanswered"]), (Some(0), &json!(133), &json!(0)), "{ran:?}");
    assert!(found["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0) && found["sent_per_second"] != json!(0.0), "{ran:?}");
    let again = replay(&dev, &[&fixture(), "--to", EVENTS, "--rate", "max"], "");
    assert_eq!(again.exit, Some(1), "{again:?}");
    assert_says(&again.stderr, &["holds 133 records already", "--yes"]);
    let again = replay(&dev, &[&fixture(), "--to", EVENTS, "--rate", "max", "--yes", "--await"], "");
    assert_eq!(again.exit, Some(0), "{again:?}");
    assert_says(&again.stdout, &["133 acknowledged", " 0 unanswered", "digest      sha256-sum:", "as fast as possible"]);
}

/// Copies are threads of their own: each gets the verdicts of the recorded ones.
#[test]
fn copies_get_the_same_verdicts_on_threads_of_their_own() {
    let dev = Dev::configured("{}");
    let file = temporary(&lines(30));
    let path = file.path().to_str().unwrap();
    let one = digest(path);
    let ran =
        replay(&dev, &[path, "--to", EVENTS, "--speed", "20x", "--multiply", "3", "--loop=2", "--shift-time", "--await", "--json"], "");
    let found = report(&ran);
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert_eq!((&found["records"], &found["sent"], &found["acknowledged"]), (&json!(60), &json!(180), &json!(180)));
    let count: u64 = one.rsplit(':').next().unwrap().parse().unwrap();
    assert_eq!(found["verdicts"]["answered"], json!(6 * count), "{ran:?}");
    let kinds = |verdicts: &str| {
        let mut kinds = std::collections::BTreeMap::new();
        for line in verdicts.lines() {
            let verdict: Value = serde_json::from_str(line).unwrap();
            *kinds.entry((verdict["action"].to_string(), verdict["code"].to_string())).or_insert(0_u64) += 6;
        }
        kinds
    };
    let expected = kinds(&run(tollgate().args(["eval", path]), b"").stdout);
    let by = found["verdicts"]["by"].as_array().unwrap();
    let found_kinds = by.iter().map(|kind| ((kind["action"].to_string(), kind["code"].to_string()), kind["count"].as_u64().unwrap()));
    assert_eq!(found_kinds.collect::<std::collections::BTreeMap<_, _>>(), expected);
    // 2.9 s of recorded time, twice, at twenty times the speed, and no sooner.
    let took = found["seconds"].as_f64().unwrap();
    assert!(took >= 0.28, "{took}");
}

/// A topic is replayed as a file is: its records keep the ids that they had in the file.
#[test]
fn a_topic_is_replayed_into_another() {
    let dev = Dev::configured("{}");
    // To these settings the topic of dead letters is any topic. The worker only writes to it.
    let topic = "agent.events.dlq";
    let replay =
        |arguments: &[&str], input: &str| run(command(&dev, arguments).env("TOLLGATE__KAFKA__TOPICS__DLQ", "another"), input.as_bytes());
    let ran = replay(&["-", "--to", topic, "--rate", "max", "--json"], &lines(30));
    assert_eq!((ran.exit, &report(&ran)["acknowledged"]), (Some(0), &json!(30)), "{ran:?}");
    let ran = replay(&[&format!("topic:{topic}"), "--to", EVENTS, "--rate", "500/s", "--await", "--json"], "");
    let found = report(&ran);
    let file = temporary(&lines(30));
    assert_eq!(found["verdicts"]["digest"], digest(file.path().to_str().unwrap()), "{ran:?}");
    let late = &found["late_ms"];
    assert!(late["p50"].as_f64().unwrap() <= late["max"].as_f64().unwrap(), "{late}");
}

/// Ctrl-C keeps what was acknowledged, and the same command goes on behind it.
#[test]
fn an_interrupted_replay_goes_on() {
    // Many more than are sent before the first progress is kept, however late that is seen.
    const RECORDS: i64 = 1_000;
    let dev = Dev::configured("{}");
    let (file, folder) = (temporary(&lines(RECORDS as usize)), tempfile::tempdir().unwrap());
    let progress = folder.path().join("progress");
    let (file, path) = (file.path().to_str().unwrap(), progress.to_str().unwrap());
    let at_rate = |rate| [file, "--to", EVENTS, "--rate", rate, "--progress", path, "--json"];
    let kept = |path: &PathBuf| -> Option<i64> {
        let read: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        read["acknowledged"]["0"].as_i64()
    };
    let mut running = Process::start(&mut command(&dev, &at_rate("10/s")));
    wait_until("some are sent", || Ok(kept(&progress).is_some())).unwrap();
    let second = replay(&dev, &at_rate("max"), "");
    assert_eq!(second.exit, Some(1), "two replays would each keep a progress of their own: {second:?}");
    assert_says(&second.stderr, &["cannot be written: it is being written already"]);
    running.interrupt();
    assert_eq!(running.wait().code(), Some(130), "{}", running.said());
    assert_says(&running.said(), &["to go on, run the same command again"]);
    let first = kept(&progress).unwrap();
    assert!((1..RECORDS).contains(&first), "{first}");
    let other = replay(&dev, &[&at_rate("10/s")[..], &["--multiply", "2"]].concat(), "");
    assert_says(&other.stderr, &["another --multiply"]);
    let ran = replay(&dev, &at_rate("max"), "");
    assert_eq!((ran.exit, &report(&ran)["records"]), (Some(0), &json!(RECORDS - first)), "{ran:?}");
    assert_eq!(kept(&progress), Some(RECORDS));
}

/// What is good is sent, the rest is named, and the exit code says that there was some.
#[test]
fn a_capture_that_was_cut_off_is_sent_up_to_there() {
    let dev = Dev::configured("{}");
    let whole = lines(20);
    let file = temporary(whole.get(..whole.len() - 40).unwrap());
    let ran = replay(&dev, &[file.path().to_str().unwrap(), "--to", EVENTS, "--rate", "max", "--json"], "");
    assert_eq!((ran.exit, &report(&ran)["acknowledged"], &report(&ran)["faults"]), (Some(3), &json!(19), &json!(1)), "{ran:?}");
    assert_says(&ran.stderr, &["\"line\":20"]);
    let packed = zstd::encode_all(lines(2_000).as_bytes(), 3).unwrap();
    let cut = tempfile::Builder::new().suffix(".jsonl.zst").tempfile().unwrap();
    std::fs::write(cut.path(), &packed[..packed.len() - 9]).unwrap();
    let ran = replay(&dev, &[cut.path().to_str().unwrap(), "--to", EVENTS, "--rate", "max", "--yes", "--json"], "");
    assert_eq!((ran.exit, &report(&ran)["faults"]), (Some(3), &json!(1)), "{ran:?}");
    assert_says(&ran.stderr, &["unreadable_from_here", "what stands before it is good"]);
    let narrow = lines(3).replace("\"partition\":0", "\"partition\":4000");
    let file = temporary(&narrow);
    let ran = replay(&dev, &[file.path().to_str().unwrap(), "--to", EVENTS, "--rate", "max", "--yes", "--partition-by", "recorded"], "");
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    assert_says(&ran.stderr, &["of 4001 partitions", "agent.events has "]);
}

/// Wrong usage and wrong files are refused before any broker is asked.
#[test]
fn what_cannot_be_replayed_is_named() {
    let (mixed, timeless) = (temporary(&(lines(2) + &line(2, "other", Some(1)))), temporary(&line(0, "was", None)));
    let (strange, good) = (temporary("{\"level\":\"info\"}\n{\"level\":\"warn\"}\n"), temporary(&lines(2)));
    let path = |file: &tempfile::NamedTempFile| file.path().to_str().unwrap().to_owned();
    let cases: Vec<(Vec<String>, i32, &str)> = vec![
        (vec![path(&mixed)], 1, "line 3: found a record of topic other in a capture that begins with was; choose one with --topic"),
        (vec![path(&timeless)], 1, "--rate 500/s"),
        (vec![path(&strange)], 1, "another program's file"),
        (vec![path(&good), "--speed".into(), "0x".into()], 2, "such as 10x"),
        (vec![path(&good), "--rate".into(), "-5/s".into()], 2, "such as 500/s"),
        (vec![path(&good), "--multiply".into(), "0".into()], 2, "--multiply"),
        (vec!["topic:agent.events".into()], 2, "found the source itself"),
        (vec![path(&good), "--to".into(), "agent.decisions".into()], 2, "kafka.topics.decisions"),
        (vec!["-".into(), "--loop".into()], 2, "stdin can be read only once"),
        (vec!["/no/such/file".into()], 1, "/no/such/file: cannot be read"),
        (vec![path(&good), "--progress".into(), "/no/such/place".into()], 1, "--progress /no/such/place: cannot be written"),
    ];
    for (mut arguments, exit, part) in cases {
        if !arguments.iter().any(|argument| argument == "--to") {
            arguments.extend(["--to".to_owned(), EVENTS.to_owned()]);
        }
        let ran = run(tollgate().args(["-b", "127.0.0.1:1", "replay"]).args(&arguments), b"");
        assert_eq!(ran.exit, Some(exit), "{arguments:?} {ran:?}");
        assert!(ran.stderr.contains(part), "{arguments:?} {ran:?}");
    }
}

/// A dry run needs no broker, and says what would be sent.
#[test]
fn a_dry_run_sends_nothing() {
    let file = temporary(&lines(31));
    let dry = |more: &[&str]| {
        let mut command = tollgate();
        run(command.args(["-b", "127.0.0.1:1", "replay", file.path().to_str().unwrap(), "--to", EVENTS, "--dry-run"]).args(more), b"")
    };
    let ran = dry(&["--multiply", "2", "--speed", "3x"]);
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let expected = ["would send  62 records to agent.events: 31 of the source", "threads     3", "62/s, for 1.0 s", "faults      0"];
    assert_says(&ran.stdout, &expected);
    let none = dry(&["--rate", "max", "--topic", "another"]);
    assert_eq!(none.exit, Some(1));
    assert_says(&none.stderr, &["--topic another: found no record of it in SOURCE"]);
    // One partition after the other: half of the records have earlier times than one before them.
    let second: String = (0..31)
        .map(|at| line(at, "was", Some(1_700_000_000_000 + 100 * at as i64)).replace("\"partition\":0", "\"partition\":1"))
        .collect();
    std::fs::write(file.path(), lines(31) + &second).unwrap();
    let backwards = dry(&["--speed", "10x"]);
    assert_says(&backwards.stderr, &["30 of its 62 records have earlier times", "this is not the recorded pace"]);
    assert_eq!(dry(&["--rate", "max"]).stderr, "");
}
