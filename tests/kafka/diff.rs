//! Tests `tollgate diff` on a topic of a real broker.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::capture::delete_before;
use tollgate_testkit::{Cluster, Outgoing, wait_until};

/// How many records the topic has, and how large each is: more in sum than a reader fetches ahead.
const RECORDS: usize = 400;
const RECORD_BYTES: usize = 100_000;
/// The smallest pipe that Linux makes.
const PIPE_BYTES: usize = 4_096;

/// What retention takes while a topic is compared is told, and the result is not taken for one over the whole topic.
pub(crate) fn a_topic_that_shrinks_is_not_whole(cluster: &Cluster) -> Result<()> {
    let topic = cluster.topic("compared", 1, &[])?;
    let event = |at: usize| {
        let input = json!({"at": at, "text": "x".repeat(RECORD_BYTES)});
        json!({"type": "tool_call", "thread_id": "t", "event_id": format!("e{at}"), "tool_call_id": format!("c{at}"), "tool_name": "ls", "tool_input": input})
    };
    cluster.produce(&topic, &(0..RECORDS).map(|at| Outgoing::new("t", event(at).to_string())).collect::<Vec<_>>())?;
    let folder = tempfile::tempdir()?;
    let [policy, flips] = ["b.yaml", "flips"].map(|name| folder.path().join(name));
    std::fs::write(&policy, "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [ls]}}}\n")?;
    let diff = || {
        let mut command = Command::new(cluster.tollgate());
        command.args(["diff", "--brokers", cluster.bootstrap(), &format!("topic:{topic}"), "-o", "json", "--policy"]).arg(&policy);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let whole = diff().output()?;
    ensure!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let nowhere = diff().args(["--against", "recorded", "--decisions", "topic:no-such-topic"]).output()?;
    let said = String::from_utf8_lossy(&nowhere.stderr);
    assert!(nowhere.status.code() == Some(1) && said.contains("no such topic: no-such-topic (--decisions)"), "{said}");
    // A full pipe holds the comparison up. It opens it after it has found where the topic ends.
    ensure!(Command::new("mkfifo").arg(&flips).status()?.success());
    let mut filled = File::options().read(true).write(true).open(&flips)?;
    rustix::pipe::fcntl_setpipe_size(&filled, PIPE_BYTES)?;
    filled.write_all(&[b'\n'; PIPE_BYTES])?;
    let running = diff().arg("--flips").arg(&flips).spawn()?;
    wait_until("the comparison begins to write", || has_open(running.id(), &flips))?;
    delete_before(cluster, &topic, i64::try_from(RECORDS - 1)?)?;
    let reader = File::open(&flips)?;
    drop(filled);
    let written = std::io::read_to_string(reader)?;
    let written = written.trim_start_matches('\n');
    let output = running.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // It has not waited for what is gone until it took the brokers for silent.
    assert_eq!(output.status.code(), Some(3), "{said}");
    let summary: Value = serde_json::from_slice(&output.stdout)?;
    let records = summary["records"].as_u64().context("a count")?;
    assert_eq!(written.lines().count() as u64, records);
    assert!(records < RECORDS as u64, "{said}");
    assert!(said.contains(&format!("{} offsets were deleted by the topic's retention", RECORDS as u64 - records)), "{said}");
    Ok(())
}

/// Returns whether a process has a file open.
fn has_open(process: u32, file: &Path) -> Result<bool> {
    let mut open = std::fs::read_dir(format!("/proc/{process}/fd"))?;
    Ok(open.any(|link| link.is_ok_and(|link| link.path().read_link().is_ok_and(|path| path == file))))
}
