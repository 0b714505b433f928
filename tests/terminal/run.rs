//! What `tollgate run` shows on a terminal.

use std::time::Duration;

use super::events::stuck;
use super::screen::Terminal;
use crate::brokers::dev::Dev;
use crate::brokers::process::Process;
use crate::support::{run, tollgate};

/// A worker in a group of its own, on the topics of `dev`.
#[test]
fn a_worker_says_its_rate_stops_and_lag_every_so_often() {
    let dev = Dev::start();
    let variables =
        [("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0"), ("TOLLGATE__KAFKA__GROUP_ID", "another"), ("TOLLGATE__LOG__FILTER", "error")];
    let mut terminal = Terminal::start(&["run", "-b", &dev.brokers], (120, 40), &variables);
    dev.publish(&stuck("nightly-deploy"));
    let is_line = |line: &str| line.contains(" UTC  ready, 32 partitions  ") && line.contains(" verdicts/s") && line.contains("  lag 0");
    let shown = terminal.wait_until("a line", |shown| shown.lines().any(is_line));
    // The verdicts came before the first line or before the second one.
    let shown = if shown.contains("stops 1") { shown } else { terminal.wait_for("stops 1") };
    assert!(shown.lines().filter(|line| line.contains("verdicts/s")).all(|line| line.as_bytes()[2] == b':'), "{shown}");
    terminal.type_in(b"\x03");
    assert!(terminal.wait().success());
}

/// In a pipe there are log lines only.
#[test]
fn a_pipe_gets_no_such_line() {
    let dev = Dev::start();
    let mut command = tollgate();
    command.args(["run", "-b", &dev.brokers]).env("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0").env("TOLLGATE__KAFKA__GROUP_ID", "another");
    let mut worker = Process::start(&mut command);
    worker.line(&["joining"]);
    // A terminal would have two of them by then.
    std::thread::sleep(Duration::from_secs(25));
    worker.interrupt();
    assert!(worker.wait().success() && !worker.said().contains("verdicts/s"), "{}", worker.said());
}

/// A worker of the group that `dev` works for would decide on every event a second time.
#[test]
fn a_worker_beside_dev_is_refused() {
    let dev = Dev::start();
    let ran = run(tollgate().args(["run", "-b", &dev.brokers]).env("TOLLGATE__ADMIN", "null"), b"");
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("`tollgate dev`, which decides for group tollgate itself"), "{ran:?}");
}
