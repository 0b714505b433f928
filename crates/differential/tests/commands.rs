//! The jail sees what it has to see, and what the rules allow does no harm in it.

use std::process::{Command, Output};

/// The variable that says how long lines are made, in seconds.
const SECONDS: &str = "TOLLGATE_DIFFERENTIAL_SECONDS";
const SECONDS_DEFAULT: u64 = 60;

/// The fewest lines that have to be run, however long that takes. With fewer nothing was tried.
const LINES_MIN: u64 = 300;

fn commands(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_commands")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_jail_sees_canaries_files_the_network_and_bombs_in_each_shell() {
    let output = commands(&["--self-test"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_line_that_does_harm_is_found_and_made_short() {
    let line = "echo one 'two three' && ls -la | cat; echo x | canary a b; ls";
    let output = commands(&["--replay", "--bypass", "--rules", "small", "--line", line]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("an allowed line ran /usr/bin/canary a b"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("  minimised: ") && line.len() < 30), "{text}");
}

#[test]
fn a_harmless_line_is_no_finding() {
    let line = "echo one 'two three' && ls -la | cat >/work/out/x; ls";
    let output = commands(&["--replay", "--bypass", "--rules", "small", "--line", line]);
    assert!(output.status.success(), "{}", text(&output));
}

/// dash has no `[[`, so it looks for a program of that name: one, whatever its arguments hold.
#[test]
fn a_line_break_in_an_argument_begins_no_second_program() {
    let output = commands(&["--replay", "--rules", "rich", "--line", "[[ '\ncanary' ]]"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn what_is_allowed_does_no_harm() {
    let seconds = std::env::var(SECONDS).map_or(SECONDS_DEFAULT, |seconds| seconds.parse().expect("a number of seconds"));
    let output = commands(&["--seconds", &seconds.to_string(), "--lines-min", &LINES_MIN.to_string()]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    let runs = text.lines().find_map(|line| line.strip_prefix("runs: bash ")?.split(',').next()?.parse::<u64>().ok());
    assert!(runs.is_some_and(|runs| runs >= LINES_MIN), "{text}");
    println!("{text}");
}
