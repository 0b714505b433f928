//! `tollgate top` on a terminal and in a pipe.

use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::events::stuck;
use super::screen::Terminal;
use crate::brokers::dev::Dev;
use crate::support::{run, tollgate};
use tollgate_testkit::{serve_http, wait_until};

#[test]
fn the_screen_is_redrawn_in_place_and_given_back() {
    let dev = Dev::start();
    for ends in [&b"q"[..], b"\x03"] {
        let mut terminal = Terminal::start(&["top", "-b", &dev.brokers, "--interval", "1"], (100, 40), &[]);
        terminal.wait_for("q ends it");
        assert!(terminal.look(|screen| screen.alternate_screen() && screen.hide_cursor()));
        dev.publish(&stuck("nightly-deploy"));
        // The thread may be shown before its last event is counted.
        let counted = ["nightly-deploy", "1", "1", "same_call_fails_denied"];
        let shown = terminal.wait_until("all of the thread", |shown| row(shown, "nightly-deploy").is_some_and(|row| row == counted));
        let row = |begins: &str| row(&shown, begins);
        assert_eq!(row("worst threads").unwrap(), ["worst", "threads", "stops", "warnings", "last", "code"]);
        assert_eq!((row("block").unwrap()[2], row("allow").unwrap()[2]), ("1", "3"), "{shown}");
        // What was drawn before is drawn over.
        assert_eq!(shown.matches("tollgate top: agent.decisions at 127.0.0.1:").count(), 1);
        terminal.type_in(ends);
        assert!(terminal.wait().success(), "{ends:?}");
        assert!(terminal.look(|screen| !screen.alternate_screen() && !screen.hide_cursor()), "{ends:?}");
        assert_eq!(terminal.text().trim(), "", "nothing stays behind");
    }
}

/// Returns the words of the line that begins so.
fn row<'s>(shown: &'s str, begins: &str) -> Option<Vec<&'s str>> {
    shown.lines().find(|line| line.starts_with(begins)).map(|line| line.split_whitespace().collect())
}

#[test]
fn the_screen_is_given_back_on_an_error() {
    let mut terminal = Terminal::start(&["top", "-b", "127.0.0.1:1"], (100, 40), &[]);
    let shown = terminal.wait_for("the brokers at 127.0.0.1:1 (kafka.brokers) do not answer");
    assert_eq!(terminal.wait().code(), Some(1), "{shown}");
    assert!(terminal.look(|screen| !screen.alternate_screen() && !screen.hide_cursor()));
}

/// Checks what a look counted of [`stuck`].
fn assert_counted(view: &Value) {
    let count =
        |action: &str| view["actions"].as_array().unwrap().iter().find(|rate| rate["action"] == action).unwrap()["count"].as_f64().unwrap();
    assert_eq!(["allow", "warn", "block"].map(count), [3.0, 1.0, 1.0], "{view}");
}

#[test]
fn a_pipe_gets_one_look_at_the_topic_as_json() {
    /// Far longer than verdicts take that were asked for when it begins.
    const INTERVAL: &str = "15";
    let dev = Dev::start();
    let mut command = tollgate();
    command.args(["top", "--once", "--interval", INTERVAL, "-b", &dev.brokers]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It counts on a thread, once it knows where the topic ends.
    let tasks = format!("/proc/{}/task", child.id());
    let counts = || std::fs::read_dir(&tasks).unwrap().flatten().any(|task| names_verdicts(&task.path()));
    wait_until("it counts", || Ok(counts())).unwrap();
    dev.publish(&stuck("nightly-deploy"));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let topic: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_counted(&topic);
    assert_eq!(topic["threads"], json!([{"thread_id": "nightly-deploy", "stops": 1, "warnings": 1, "code": "same_call_fails_denied"}]));
}

/// Returns whether a thread of a process is the one that counts verdicts. It may have ended meanwhile.
fn names_verdicts(task: &Path) -> bool {
    std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == "verdicts")
}

#[test]
fn a_pipe_gets_one_look_at_a_worker_as_json() {
    let dev = Dev::start();
    let metrics = || dev.admin.get("/metrics").body;
    let before = metrics();
    dev.publish(&stuck("nightly-deploy"));
    let counts = ["tollgate_verdicts_total", "tollgate_event_to_verdict_seconds_count"];
    wait_until("all verdicts are counted", || Ok(counts.iter().all(|name| dev.metric(name) == 5.0))).unwrap();
    let after = metrics();
    // The worker's own answers: what it said before, and then what it said after. Between the last two nothing has come.
    let answers = Mutex::new([before, after.clone(), after.clone(), after].into_iter());
    let worker = serve_http(move |_, _| ("200 OK", "text/plain", answers.lock().unwrap().next().unwrap().into_bytes())).to_string();
    let of_worker = run(tollgate().args(["top", "--once", "--interval", "1", "--worker", &worker]), b"");
    assert_eq!(of_worker.exit, Some(0), "{}", of_worker.stderr);
    let workers = &of_worker.json_lines()[0];
    assert_counted(workers);
    assert_eq!((&workers["workers"][0]["ready"], &workers["workers"][0]["partitions"]), (&json!(true), &json!(32.0)), "{workers}");
    assert!(workers["waits"]["p50_s"].as_f64().unwrap() > 0.0, "{workers}");
    // What is counted in all is the worker's own count.
    let quiet = run(tollgate().args(["top", "--once", "--interval", "1", "--worker", &worker]), b"");
    let quiet = &quiet.json_lines()[0];
    assert_counted(quiet);
    assert!(quiet["actions"].as_array().unwrap().iter().all(|rate| rate["per_second"] == 0.0), "{quiet}");
}

#[test]
fn a_worker_that_does_not_answer_is_named() {
    let ran = run(tollgate().args(["top", "--worker", "127.0.0.1:1", "--interval", "1", "--once", "-o", "table"]), b"");
    assert_eq!(ran.exit, Some(1));
    assert!(ran.stdout.contains("127.0.0.1:1") && ran.stdout.contains("it does not answer"), "{}", ran.stdout);
}
