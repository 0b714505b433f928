//! Recorded traffic that is sent again, on a real broker.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::{Offset, TopicPartitionList};
use serde_json::Value;

use tollgate_testkit::{Broker, Cluster, Deployment, Outgoing, wait_until};

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

/// What retention takes from a source while a replay is interrupted is told, and the rest is sent.
pub(crate) fn what_retention_takes_meanwhile_is_told(cluster: &Cluster) -> Result<()> {
    const RECORDS: i64 = 1_000;
    let deployment = Deployment::new(cluster, 1)?;
    let (source, target) =
        (cluster.topic("shrinking", 1, &[])?, cluster.topic("target", 1, &[("message.timestamp.type", "LogAppendTime")])?);
    let records: Vec<_> = (0..RECORDS).map(|at| Outgoing::new("k", format!("{{\"at\":{at}}}"))).collect();
    cluster.produce(&source, &records)?;
    let folder = tempfile::tempdir()?;
    let progress = folder.path().join("progress");
    let replay = |rate: &str| {
        let mut command = deployment.command("replay");
        command.args([&format!("topic:{source}"), "--to", &target, "--rate", rate, "--json", "--progress"]).arg(&progress);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let running = replay("10/s")?;
    wait_until("something is sent", || Ok(std::fs::read_to_string(&progress).is_ok_and(|kept| kept.contains(r#""0":"#))))?;
    ensure!(std::process::Command::new("kill").args(["-INT", &running.id().to_string()]).status()?.success());
    let (report, said) = read(&running.wait_with_output()?)?;
    let sent = report["acknowledged"].as_i64().context("a count")?;
    assert!((1..RECORDS).contains(&sent), "{said}");
    let admin: AdminClient<DefaultClientContext> = cluster.client().create()?;
    let mut until = TopicPartitionList::new();
    until.add_partition_offset(&source, 0, Offset::Offset(RECORDS - 10))?;
    tokio::runtime::Runtime::new()?.block_on(admin.delete_records(&until, &AdminOptions::new()))?;
    let output = replay("max")?.wait_with_output()?;
    let (report, said) = read(&output)?;
    assert_eq!((output.status.code(), report["acknowledged"].as_i64(), report["faults"].as_i64()), (Some(3), Some(10), Some(1)), "{said}");
    assert!(said.contains("deleted_by_retention") && said.contains(&format!("{} records that are gone", RECORDS - 10 - sent)), "{said}");
    assert_eq!(cluster.read_all(&target)?.len() as i64, sent + 10);
    Ok(())
}

/// A broker that is away in the middle of a replay delays it: every record arrives, once and in order.
pub(crate) fn a_broker_that_is_away_delays_a_replay(cluster: &Cluster, broker: &mut Broker) -> Result<()> {
    const RECORDS: usize = 1_500;
    // The broker is killed after the first records and long before the last.
    const BEFORE: usize = 100;
    let deployment = Deployment::new(cluster, 1)?;
    let target = cluster.topic("target", 1, &[])?;
    let value = |at: usize| format!(r#"{{"type":"turn_start","event_id":"{at}"}}"#);
    // A broker that restarts forgets producers whose last record is older than a day, and takes a record twice whose acknowledgement was lost.
    let now_ms = std::time::UNIX_EPOCH.elapsed()?.as_millis() as u64;
    let line = |at: usize| {
        let record = serde_json::json!({"topic": "t", "partition": 0, "offset": at, "timestamp": now_ms, "key": "k", "headers": [], "value": value(at)});
        format!("{record}\n")
    };
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), (0..RECORDS).map(line).collect::<String>())?;
    let mut command = deployment.command("replay");
    command.arg(file.path()).args(["--to", &target, "--rate", "150/s", "--json"]);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let there = cluster.read_until(&target, |records| records.len() >= BEFORE)?.len();
    ensure!(there < RECORDS, "nothing is left to send");
    broker.kill()?;
    std::thread::sleep(Duration::from_secs(1));
    broker.start_again()?;
    let output = running.wait_with_output()?;
    let (report, said) = read(&output)?;
    assert_eq!((output.status.code(), report["acknowledged"].as_u64()), (Some(0), Some(RECORDS as u64)), "{said}");
    let found: Vec<_> = cluster.read_all(&target)?.into_iter().filter_map(|record| record.value).collect();
    assert_eq!(found, (0..RECORDS).map(|at| value(at).into_bytes()).collect::<Vec<_>>());
    Ok(())
}

/// Returns the report, and what was said.
fn read(output: &Output) -> Result<(Value, String)> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| said.clone())?;
    let said = format!("{report} {said}");
    Ok((report, said))
}
