//! Tests `tollgate-bench` against a real broker, which this binary starts as the worker's tests do, with their rules of what is skipped.
//!
//! Cargo builds the worker for the tests of its own package alone. So `cargo test --workspace` has built it before this runs. Where there
//! is none, or one that is older than its sources, it is built here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tollgate_testkit::harness::{self, Case};
use tollgate_testkit::{Cluster, sharing};

const TOLLGATE_BENCH: &str = env!("CARGO_BIN_EXE_tollgate-bench");

const CASES: &[Case] = &[sharing!(a_benchmark_measures_and_cleans_up)];

fn main() -> ExitCode {
    harness::run(CASES, &Path::new(TOLLGATE_BENCH).with_file_name("tollgate"), Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// Returns whether a binary is newer than what cargo made it of: the sources that it lists in the file beside it, and the manifest with its
/// lock.
fn is_up_to_date(binary: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let Some(built) = modified(binary) else { return false };
    let listed = std::fs::read_to_string(binary.with_extension("d")).unwrap_or_default();
    let (_, sources) = listed.split_once(": ").unwrap_or_default();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let manifests = [root.join("Cargo.toml"), root.join("Cargo.lock")];
    let mut parts = sources.split_whitespace().map(PathBuf::from).chain(manifests);
    !sources.is_empty() && parts.all(|part| modified(&part).is_some_and(|part| part <= built))
}

/// How often a rate is measured that is off.
const ROUNDS_MAX: usize = 3;

/// Makes a short measurement of each kind on this cluster: the figures are there, and no verdict is missing.
fn a_benchmark_measures_and_cleans_up(cluster: &Cluster) -> Result<()> {
    let worker = cluster.tollgate();
    if !is_up_to_date(worker) {
        assert_eq!(tollgate_bench::build_worker(Path::new(TOLLGATE_BENCH))?, worker);
    }
    let directory = tempfile::tempdir()?;
    let run = |arguments: &[&str]| -> Result<Value> {
        let mut command = Command::new(TOLLGATE_BENCH);
        command.arg("--tollgate").arg(worker);
        command.args(["--json", "--brokers", cluster.bootstrap(), "--partitions", "2", "--threads", "200"]);
        let output = command.args(arguments).current_dir(directory.path()).output()?;
        ensure!(output.status.success(), "tollgate-bench {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    // A machine that stands still for a moment moves verdicts over the ends of the window: then it is measured again.
    let achieved = |found: &Value| found["latency"]["achieved_per_second"].as_f64().is_some_and(|rate| (270.0..330.0).contains(&rate));
    let mut found = run(&["--rate", "300", "--duration", "2"])?;
    for _ in 1..ROUNDS_MAX {
        if !achieved(&found) {
            found = run(&["--rate", "300", "--duration", "2"])?;
        }
    }
    let latency = &found["latency"];
    assert_eq!((&latency["misses"], &latency["duplicates"], &latency["refused"]), (&json!(0), &json!(0), &json!(0)), "{latency}");
    assert!(latency["awaited"].as_u64().unwrap() > 500, "{latency}");
    assert!(latency["latency_ms"]["p50"].as_f64().unwrap() > 0.0, "{latency}");
    assert!(achieved(&found), "{latency}");

    let found = run(&["--drain", "20000", "--rounds", "1"])?;
    let verdicts: Vec<_> =
        found["drained"].as_array().unwrap().iter().map(|drained| drained["rounds"][0]["verdicts"].as_u64().unwrap()).collect();
    // The pass-through answers turn boundaries too.
    assert!(verdicts.len() == 2 && verdicts[0] < 20_000 && verdicts[1] == 20_000, "{found}");

    let failed = Command::new(TOLLGATE_BENCH).arg("--tollgate").arg(worker).args(["--brokers", "127.0.0.1:1"]).output()?;
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(failed.status.code() == Some(1) && said.contains("127.0.0.1:1 do not answer"), "{said}");
    Ok(())
}
