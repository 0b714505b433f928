//! Recorded traffic that is sent again, on a real broker.

use std::path::Path;
use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use tollgate_testkit::{Cluster, Deployment, Outgoing};

const PARTITIONS: i32 = 3;

/// Records of 2026 get the verdicts of `eval` on the file, byte for byte, and copies of them are threads of their own. Times that the
/// target does not take are named with the fix.
pub(crate) fn a_replay_gets_the_verdicts_of_eval(cluster: &Cluster) -> Result<()> {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/envelope.jsonl");
    let capture = capture.to_str().context("a path in UTF-8")?;
    let deployment = Deployment::new(cluster, PARTITIONS)?;
    let replay = |deployment: &Deployment, more: &[&str]| -> Result<Output> {
        let fixed = [capture, "--to", &deployment.events, "--rate", "max", "--json", "--await"];
        Ok(deployment.command("replay").args(fixed).args(more).output()?)
    };
    let worker = deployment.start()?;
    let output = replay(&deployment, &[])?;
    let (report, said) = read(&output)?;
    ensure!(output.status.code() == Some(0), "{said}");
    let eval = deployment.command("eval").args(["--digest", capture]).output()?;
    assert_eq!(report["verdicts"]["digest"].as_str(), Some(String::from_utf8(eval.stdout)?.trim()), "{said}");
    let recorded = report["verdicts"]["answered"].as_u64().context("a count")?;
    assert_eq!((report["acknowledged"].as_u64(), recorded > 40), (Some(133), true), "{said}");
    assert!(worker.stop()?.success());

    let copies = Deployment::new(cluster, PARTITIONS)?;
    let worker = copies.start()?;
    let output = replay(&copies, &["--multiply", "3", "--partition-by", "key"])?;
    let (report, said) = read(&output)?;
    ensure!(output.status.code() == Some(0), "{said}");
    assert_eq!((report["sent"].as_u64(), report["verdicts"]["answered"].as_u64()), (Some(3 * 133), Some(3 * recorded)), "{said}");
    assert!(worker.stop()?.success());

    let strict = cluster.topic("strict", 1, &[("message.timestamp.before.max.ms", "1000")])?;
    let run = |more: &[&str]| deployment.command("replay").args([capture, "--to", &strict, "--rate", "max"]).args(more).output();
    let refused = run(&[])?;
    let said = String::from_utf8(refused.stderr)?;
    assert!(refused.status.code() == Some(1) && said.contains("--shift-time"), "{said}");
    let missing = deployment.command("replay").args([capture, "--to", "no-such-topic", "--rate", "max"]).output()?;
    let said = String::from_utf8(missing.stderr)?;
    assert!(missing.status.code() == Some(1) && said.contains("tollgate topics apply"), "{said}");
    let small = cluster.topic("small", 1, &[("max.message.bytes", "2000")])?;
    let large = cluster.topic("large", 1, &[])?;
    cluster.produce(&large, &[Outgoing::new("a", "{}"), Outgoing::new("b", "x".repeat(20_000)), Outgoing::new("c", "{}")])?;
    let left = deployment.command("replay").args([&format!("topic:{large}"), "--to", &small, "--rate", "max", "--json"]).output()?;
    let (report, said) = read(&left)?;
    assert_eq!((left.status.code(), report["acknowledged"].as_u64(), report["refused"].as_u64()), (Some(3), Some(2), Some(1)), "{said}");
    Ok(())
}

/// Returns the report, and what was said.
fn read(output: &Output) -> Result<(Value, String)> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| said.clone())?;
    let said = format!("{report} {said}");
    Ok((report, said))
}
