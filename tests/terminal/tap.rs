//! `tollgate tap` on a terminal and in a pipe.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::events::{call, stuck};
use super::screen::{Terminal, assert_snapshot};
use crate::brokers::dev::Dev;
use crate::support::{run, tollgate};

fn actions(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|verdict| format!("{} {}", verdict["thread_id"].as_str().unwrap(), verdict["action"].as_str().unwrap())).collect()
}

#[test]
fn a_pipe_gets_the_verdicts_that_were_asked_for() {
    let dev = Dev::start();
    dev.publish(&stuck("stuck"));
    dev.publish(&[call("fine", "f1", "ls"), call("other", "o1", "ls")]);
    let tap = |arguments: &[&str]| {
        let ran = run(tollgate().args(["tap", "--brokers", &dev.brokers]).args(arguments), b"");
        assert_eq!(ran.exit, Some(0), "{arguments:?}: {}", ran.stderr);
        ran
    };
    let all = tap(&["--from-beginning", "--count", "7"]).json_lines();
    assert_eq!(all.len(), 7);
    assert!(all.iter().all(|verdict| verdict["verdict_id"].is_string()));
    let of_thread = tap(&["--from-beginning", "--thread", "stuck", "-n", "5"]).json_lines();
    assert_eq!(actions(&of_thread), ["stuck allow", "stuck allow", "stuck allow", "stuck warn", "stuck block"]);
    let stops = tap(&["--from-beginning", "--only", "block,halt", "-n", "1"]).json_lines();
    assert_eq!(actions(&stops), ["stuck block"]);
    let both = tap(&["--from-beginning", "--thread", "fine", "--thread", "other", "--only", "allow", "-n", "2"]).json_lines();
    let mut both = actions(&both);
    both.sort();
    assert_eq!(both, ["fine allow", "other allow"]);
    // With an end it stops by itself, and every line has its time.
    let mut of_coder = call("named", "n1", "terminal");
    of_coder["agent_id"] = "coder".into();
    of_coder["tenant_id"] = "acme".into();
    dev.publish(&[of_coder]);
    for filter in [&["--agent", "coder"][..], &["--tenant", "acme", "--tool", "terminal"], &["--code", "allow", "--agent", "coder"]] {
        let found = tap(&[&["--from-beginning", "--end"], filter].concat()).json_lines();
        assert_eq!(actions(&found), ["named allow"], "{filter:?}");
        assert!(found[0]["published"].as_str().is_some_and(|time| time.ends_with('Z')), "{found:?}");
    }
    let wide = tap(&["--from-beginning", "--end", "--agent", "coder", "-o", "wide"]).stdout;
    let rows: Vec<Vec<&str>> = wide.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.len() == 2 && rows[0].ends_with(&["agent", "tenant", "event", "id", "call", "id"]), "{wide}");
    assert!(rows[1].contains(&"coder") && rows[1].contains(&"acme") && rows[1].last() == Some(&"n1"), "{wide}");
    let nobody = tap(&["--from-beginning", "--end", "--agent", "nobody"]);
    assert!(nobody.stdout.is_empty() && nobody.stderr.contains("no verdict fits"), "{nobody:?}");
    let whole = tap(&["--since", "1h", "--end"]).json_lines();
    assert_eq!(whole.len(), 8);
    assert!(whole.iter().map(|verdict| verdict["published"].as_str()).is_sorted());
    assert_eq!(tap(&["--from-beginning", "--until", "1h"]).json_lines().len(), 0);
}

#[test]
fn it_begins_at_the_end_and_ends_with_its_reader() {
    let dev = Dev::start();
    dev.publish(&[call("before", "b1", "ls")]);
    let seen = run(tollgate().args(["tap", "-b", &dev.brokers, "--from-beginning", "-n", "1"]), b"");
    assert_eq!(actions(&seen.json_lines()), ["before allow"]);
    let mut child = tollgate().args(["tap", "-b", &dev.brokers]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let publishing = std::thread::spawn(move || {
        // Until the command has found the end, what is published is before it.
        for number in 0.. {
            std::thread::sleep(std::time::Duration::from_millis(200));
            dev.publish(&[call("after", &format!("a{number}"), "ls")]);
            if child.try_wait().unwrap().is_some() {
                return (child.wait_with_output().unwrap(), number);
            }
            assert!(number < 600, "it does not end");
        }
        panic!("numbers end")
    });
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["thread_id"], "after");
    drop(lines);
    let (output, _) = publishing.join().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()), (Some(141), String::new()));
}

#[test]
fn a_terminal_gets_lines() {
    let dev = Dev::start();
    dev.publish(&stuck("nightly-deploy"));
    let mut terminal = Terminal::start(&["tap", "-b", &dev.brokers, "--from-beginning", "-n", "5"], (100, 30), &[]);
    assert!(terminal.wait().success());
    let shown = terminal.wait_for("same_call_fails_denied");
    assert_snapshot("tap", &shown);
    let mut terminal = Terminal::start(&["tap", "-b", &dev.brokers, "--from-beginning", "-n", "1", "-o", "json"], (100, 30), &[]);
    assert!(terminal.wait().success());
    assert!(terminal.wait_for("verdict_id").starts_with(r#"{"verdict_id":""#));
}

#[test]
fn wrong_words_are_named_with_those_that_are_known() {
    let cases = [
        (&["tap", "--only", "deny"][..], "possible values: allow, warn, block, halt, suppress"),
        (&["tap", "--since", "yesterday"], "write a duration such as 90s, 10m, 2h or 1d"),
        (&["tap", "--since", "10m", "--from-beginning"], "cannot be used with"),
        (&["tap", "--end"], "add one of them"),
        (&["tap", "--since", "10m", "--until", "20m"], "write a later time"),
    ];
    for (arguments, says) in cases {
        let ran = run(tollgate().args(arguments), b"");
        assert!(ran.exit == Some(2) && ran.stderr.contains(says), "{arguments:?}: {}", ran.stderr);
    }
}
