//! Runs the fuzzers of URLs and paths for some seconds. `cargo run --release -p tollgate-differential --bin urls -- --seconds N` runs longer.

use std::process::Command;

/// The variable that says for how long each fuzzer runs, in seconds.
const SECONDS: &str = "TOLLGATE_FUZZ_SECONDS";

/// The fewest cases that have to be compared, however long that takes. With fewer nothing was tried.
const COMPARED_MIN: u64 = 200;

/// Runs a fuzzer, and returns how many cases were compared.
fn run(program: &str, behind_number: &str) -> u64 {
    let seconds = std::env::var(SECONDS).unwrap_or_else(|_| "5".to_owned());
    let output = Command::new(program).args(["--seconds", &seconds, "--compared-min", &COMPARED_MIN.to_string()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let before = said.split(behind_number).next().unwrap();
    let number: String = before.chars().rev().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    number.chars().rev().collect::<String>().parse().unwrap_or_else(|_| panic!("it does not say how much it compared: {said}"))
}

#[test]
fn urls_that_are_allowed_lead_where_all_parsers_say() {
    assert!(run(env!("CARGO_BIN_EXE_urls"), "allowed and compared") >= COMPARED_MIN);
}

#[test]
#[cfg(target_os = "linux")]
fn paths_that_are_allowed_lead_where_the_kernel_does() {
    assert!(run(env!("CARGO_BIN_EXE_paths"), "of them lead somewhere") >= COMPARED_MIN);
}
