//! `tollgate-bench` against a real broker, which this binary starts as the worker's tests do, with their rules of what is skipped.
//!
//! The worker is built here: cargo builds it for the tests of its own package alone, and one that lies there from before may be older than
//! its sources. Where nothing has changed that takes cargo a moment.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tollgate_testkit::harness::{self, Case};
use tollgate_testkit::{Context, sharing};

const TOLLGATE_BENCH: &str = env!("CARGO_BIN_EXE_tollgate-bench");

const CASES: &[Case] = &[sharing!(a_benchmark_measures_and_cleans_up)];

fn main() -> ExitCode {
    harness::run(CASES, &Path::new(TOLLGATE_BENCH).with_file_name("tollgate"), Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// A short measurement of each kind on this cluster: the figures are there, and no verdict is missing.
fn a_benchmark_measures_and_cleans_up(context: &Context) -> Result<()> {
    let worker = tollgate_bench::build_worker(Path::new(TOLLGATE_BENCH))?;
    assert_eq!(worker, context.tollgate());
    let directory = tempfile::tempdir()?;
    let run = |arguments: &[&str]| -> Result<Value> {
        let mut command = Command::new(TOLLGATE_BENCH);
        command.arg("--tollgate").arg(&worker);
        command.args(["--json", "--brokers", context.bootstrap(), "--partitions", "2", "--threads", "200"]);
        let output = command.args(arguments).current_dir(directory.path()).output()?;
        ensure!(output.status.success(), "tollgate-bench {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let found = run(&["--rate", "300", "--duration", "2"])?;
    let latency = &found["latency"];
    assert_eq!((&latency["misses"], &latency["duplicates"], &latency["refused"]), (&json!(0), &json!(0), &json!(0)), "{latency}");
    assert!(latency["awaited"].as_u64().unwrap() > 500, "{latency}");
    assert!(latency["latency_ms"]["p50"].as_f64().unwrap() > 0.0, "{latency}");
    assert!((270.0..330.0).contains(&latency["achieved_per_second"].as_f64().unwrap()), "{latency}");

    let found = run(&["--drain", "20000", "--rounds", "1"])?;
    let verdicts: Vec<_> =
        found["drained"].as_array().unwrap().iter().map(|drained| drained["rounds"][0]["verdicts"].as_u64().unwrap()).collect();
    // The pass-through answers turn boundaries too.
    assert!(verdicts.len() == 2 && verdicts[0] < 20_000 && verdicts[1] == 20_000, "{found}");

    let failed = Command::new(TOLLGATE_BENCH).arg("--tollgate").arg(&worker).args(["--brokers", "127.0.0.1:1"]).output()?;
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(failed.status.code() == Some(1) && said.contains("127.0.0.1:1 do not answer"), "{said}");
    Ok(())
}
