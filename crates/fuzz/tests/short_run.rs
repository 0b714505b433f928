//! Fuzzes each target for a number of inputs, guided by coverage, or for as long as it is told. `./run` does it, and builds everything once
//! more with instrumentation.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that says for how long each target runs, in seconds. Without it the inputs are counted, however long they take.
const SECONDS: &str = "TOLLGATE_FUZZ_SECONDS";

/// The fewest inputs that a run has to try besides the corpus; with fewer it has not fuzzed.
const RUNS_MIN: u64 = 50;

/// How long one input may take, in seconds: an endless loop is found, and a busy machine is none.
const INPUT_SECONDS_MAX: u64 = 120;

/// Reads the number in a line of libFuzzer's statistics.
fn stat(log: &str, name: &str) -> Option<u64> {
    log.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

/// Tries so many inputs besides the corpus, which take some seconds.
fn run(target: &str, runs: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = folder.join("corpus").join(target);
    let inputs = u64::try_from(std::fs::read_dir(&corpus).unwrap().count()).unwrap();
    let end = match std::env::var(SECONDS) {
        Ok(seconds) => format!("-max_total_time={seconds}"),
        Err(_) => format!("-runs={}", inputs + runs),
    };
    // New inputs stay out of the corpus until somebody has looked at them.
    let found = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz").join(target);
    let _ = std::fs::remove_dir_all(&found);
    std::fs::create_dir_all(&found).unwrap();
    let output = Command::new(folder.join("run"))
        .args([target, "-max_len=4096", "-print_final_stats=1", &end, &format!("-timeout={INPUT_SECONDS_MAX}")])
        .args([&found, &corpus])
        .output()
        .unwrap_or_else(|error| panic!("crates/fuzz/run: {error}"));
    let log = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = log.lines().collect();
    let end = lines[lines.len().saturating_sub(60)..].join("\n");
    assert!(output.status.success(), "{target} has failed:\n{end}");
    assert!(log.contains("inline 8-bit counters"), "{target} has no instruments:\n{end}");
    let runs = stat(&log, "number_of_executed_units").unwrap_or_else(|| panic!("{target} does not say how much it has tried:\n{end}"));
    assert!(runs >= inputs + RUNS_MIN, "{target} has tried only {runs} inputs, and {inputs} of them are the corpus:\n{end}");
}

#[test]
fn json() {
    run("json", 100_000);
}

#[test]
fn decode() {
    run("decode", 100_000);
}

#[test]
fn shell() {
    run("shell", 5_000);
}

#[test]
fn checkpoint() {
    run("checkpoint", 70_000);
}

#[test]
fn passport() {
    run("passport", 20_000);
}
