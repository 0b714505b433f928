//! Tests `tollgate-bench` against the broker: it measures, cleans up, and says where brokers are not.

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use clap::Parser as _;
use serde_json::{Value, json};
use tollgate_bench::{Cli, execute};
use tollgate_testkit::Cluster;

/// The variable that makes this program `tollgate-bench`.
const IS_BENCHMARK: &str = "TOLLGATE_TEST_IS_BENCHMARK";

/// Runs `tollgate-bench` if this process was started for that. Cargo builds the program of another package only with that package.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    std::env::var_os(IS_BENCHMARK)?;
    Some(execute(Cli::parse()))
}

fn benchmark(cluster: &Cluster) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(IS_BENCHMARK, "1").arg("--tollgate").arg(cluster.tollgate());
    Ok(command)
}

/// Makes a short measurement of each kind on this cluster: the figures are there, and no verdict is missing.
pub(crate) fn a_benchmark_measures_and_cleans_up(cluster: &Cluster) -> Result<()> {
    let run = |arguments: &[&str]| -> Result<Value> {
        let mut command = benchmark(cluster)?;
        command.args(["--json", "--brokers", cluster.bootstrap(), "--partitions", "2", "--threads", "200"]);
        let output = command.args(arguments).current_dir(cluster.directory()).output()?;
        ensure!(output.status.success(), "tollgate-bench {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let found = run(&["--rate", "300", "--duration", "2"])?;
    let latency = &found["latency"];
    assert_eq!((&latency["misses"], &latency["duplicates"], &latency["refused"]), (&json!(0), &json!(0), &json!(0)), "{latency}");
    assert!(latency["awaited"].as_u64().unwrap() > 500, "{latency}");
    for figure in [&latency["latency_ms"]["p50"], &latency["achieved_per_second"]] {
        assert!(figure.as_f64().unwrap() > 0.0, "{latency}");
    }

    let found = run(&["--drain", "20000", "--rounds", "1"])?;
    let verdicts: Vec<_> =
        found["drained"].as_array().unwrap().iter().map(|drained| drained["rounds"][0]["verdicts"].as_u64().unwrap()).collect();
    // The pass-through answers turn boundaries too.
    assert!(verdicts.len() == 2 && verdicts[0] < 20_000 && verdicts[1] == 20_000, "{found}");

    let failed = benchmark(cluster)?.args(["--brokers", "127.0.0.1:1"]).output()?;
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(failed.status.code() == Some(1) && said.contains("127.0.0.1:1 do not answer"), "{said}");
    Ok(())
}
