//! Fuzzes each target for some seconds, guided by coverage. `./run` does it, and builds everything once more with instrumentation.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that says for how long each target runs, in seconds.
const SECONDS: &str = "TOLLGATE_FUZZ_SECONDS";
const SECONDS_DEFAULT: u32 = 5;

/// The fewest inputs that a run has to try besides the corpus; with fewer it has not fuzzed.
const RUNS_MIN: u64 = 50;

/// Reads the number in a line of libFuzzer's statistics.
fn stat(log: &str, name: &str) -> Option<u64> {
    log.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

fn run(target: &str) {
    let seconds = std::env::var(SECONDS).map_or(SECONDS_DEFAULT, |seconds| seconds.parse().expect("a number of seconds"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = folder.join("corpus").join(target);
    // New inputs stay out of the corpus until somebody has looked at them.
    let found = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz").join(target);
    let _ = std::fs::remove_dir_all(&found);
    std::fs::create_dir_all(&found).unwrap();
    let output = Command::new(folder.join("run"))
        .args([target, "-max_len=4096", "-print_final_stats=1", &format!("-max_total_time={seconds}")])
        .args([&found, &corpus])
        .output()
        .unwrap_or_else(|error| panic!("crates/fuzz/run: {error}"));
    let log = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = log.lines().collect();
    let end = lines[lines.len().saturating_sub(60)..].join("\n");
    assert!(output.status.success(), "{target} has failed:\n{end}");
    assert!(log.contains("inline 8-bit counters"), "{target} has no instruments:\n{end}");
    let runs = stat(&log, "number_of_executed_units").unwrap_or_else(|| panic!("{target} does not say how much it has tried:\n{end}"));
    let inputs = u64::try_from(std::fs::read_dir(&corpus).unwrap().count()).unwrap();
    assert!(runs >= inputs + RUNS_MIN, "{target} has tried only {runs} inputs, and {inputs} of them are the corpus:\n{end}");
}

#[test]
fn json() {
    run("json");
}

#[test]
fn decode() {
    run("decode");
}

#[test]
fn shell() {
    run("shell");
}

#[test]
fn checkpoint() {
    run("checkpoint");
}

#[test]
fn passport() {
    run("passport");
}
