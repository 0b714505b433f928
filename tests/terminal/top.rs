//! `tollgate top` on a terminal and in a pipe.

use serde_json::json;

use super::broker::{Dev, stuck};
use super::screen::Terminal;
use crate::support::{run, tollgate};

#[test]
fn the_screen_is_redrawn_in_place_and_given_back() {
    let dev = Dev::start(&["--port", "0"]);
    for ends in [&b"q"[..], b"\x03"] {
        let mut terminal = Terminal::start(&["top", "-b", &dev.brokers, "--interval", "1"], (100, 40), &[]);
        terminal.wait_for("q ends it");
        assert!(terminal.look(|screen| screen.alternate_screen() && screen.hide_cursor()));
        dev.publish(&stuck("nightly-deploy"));
        // The thread may be shown before its last event is counted.
        let counted = ["nightly-deploy", "1", "1", "repeated_exact_failure_block"];
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

#[test]
fn a_pipe_gets_one_look_as_json() {
    let dev = Dev::start(&["--port", "0"]);
    let worker = dev.admin.trim_start_matches("http://").to_owned();
    let mut publish = Some(stuck("nightly-deploy"));
    let (of_topic, of_worker) = std::thread::scope(|scope| {
        let look = |arguments: Vec<String>| {
            scope.spawn(move || run(tollgate().arg("top").args(["--interval", "8", "--once"]).args(&arguments), b""))
        };
        let looks = (look(vec!["-b".to_owned(), dev.brokers.clone()]), look(vec!["--worker".to_owned(), worker.clone()]));
        std::thread::sleep(std::time::Duration::from_secs(4));
        dev.publish(&publish.take().unwrap());
        (looks.0.join().unwrap(), looks.1.join().unwrap())
    });
    assert_eq!((of_topic.exit, of_worker.exit), (Some(0), Some(0)), "{} {}", of_topic.stderr, of_worker.stderr);
    let (topic, workers) = (&of_topic.json_lines()[0], &of_worker.json_lines()[0]);
    let count = |view: &serde_json::Value, action: &str| {
        view["actions"].as_array().unwrap().iter().find(|rate| rate["action"] == action).unwrap()["count"].as_f64()
    };
    for view in [topic, workers] {
        assert_eq!((count(view, "allow"), count(view, "warn"), count(view, "block")), (Some(3.0), Some(1.0), Some(1.0)), "{view}");
    }
    assert_eq!(
        topic["threads"],
        json!([{"thread_id": "nightly-deploy", "stops": 1, "warnings": 1, "code": "repeated_exact_failure_block"}])
    );
    assert_eq!((&workers["workers"][0]["ready"], &workers["workers"][0]["partitions"]), (&json!(true), &json!(32.0)), "{workers}");
    assert!(workers["waits"]["p50_s"].as_f64().unwrap() > 0.0, "{workers}");
}

#[test]
fn a_worker_that_does_not_answer_is_named() {
    let ran = run(tollgate().args(["top", "--worker", "127.0.0.1:1", "--interval", "1", "--once", "-o", "table"]), b"");
    assert_eq!(ran.exit, Some(1));
    assert!(ran.stdout.contains("127.0.0.1:1") && ran.stdout.contains("it does not answer"), "{}", ran.stdout);
}
