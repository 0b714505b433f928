//! Checks that `eval` gives a worker's verdicts on what other programs print of a topic.
//!
//! With `TOLLGATE_UPDATE_FIXTURES=1` it writes `tests/formats` anew. That needs `kcat`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::traffic::conversations;
use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, text};

const PARTITIONS: i32 = 2;

/// A captured topic gets the verdicts of its worker: keys, headers, times, partitions and offsets count.
pub(crate) fn a_capture_gets_the_verdicts_of_the_worker(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, PARTITIONS)?;
    let worker = deployment.start()?;
    let records = records();
    cluster.produce(&deployment.events, &records)?;
    let mut consumed = cluster.read_until(&deployment.events, |consumed| consumed.len() == records.len())?;
    consumed.sort_by_key(|record| (record.partition, record.offset));
    // A worker commits what is answered.
    cluster.await_committed(&deployment.group, &deployment.events, records.len())?;
    assert!(worker.stop()?.success());
    let mut verdicts = cluster.read_all(&deployment.decisions)?;
    verdicts.sort_by_key(|verdict| (verdict.partition, verdict.offset));
    let verdicts: Vec<String> = verdicts.iter().map(text).collect();
    assert!(verdicts.len() > 40, "{}", verdicts.len());
    let envelopes: String = consumed.iter().map(|record| envelope(&deployment.events, record).to_string() + "\n").collect();
    assert_eq!(eval(&deployment, &envelopes)?, verdicts);
    if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
        write_fixtures(cluster, &deployment, &envelopes, &verdicts)?;
    }
    Ok(())
}

/// Returns conversations that say everything in their values, and records that need their keys, headers and places to be read.
pub(crate) fn records() -> Vec<Outgoing> {
    let fields = json!({"tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
    let bare = |id: &str| json!({"type": "tool_call", "tool_call_id": id, "tool_name": "ls", "tool_input": {}}).to_string();
    let failed = |id: &str| {
        json!({"type": "tool_result", "tool_call_id": id, "tool_name": "ls", "tool_input": {}, "result": "Error: x"}).to_string()
    };
    let binary = |key: &str, id: &str, kind: &str| {
        let record = Outgoing::new(key, fields.to_string()).header("ce_specversion", "1.0").header("ce_id", id);
        record.header("ce_type", format!("com.acme.agent.{kind}.v1")).header("ce_subject", key)
    };
    let structured = json!({"specversion": "1.0", "id": "structured", "source": "/a", "type": "tool_call", "subject": "s", "data": fields});
    let null_header = |mut record: Outgoing| {
        record.headers.push(("nothing".to_owned(), None));
        record
    };
    let mut records: Vec<_> =
        conversations(12, 11).into_iter().map(|record| Outgoing { timestamp: Some(1_767_225_600_000), ..record }).collect();
    records.extend([
        // A thread that only its key names, of two parts, and ids from the records' places.
        Outgoing::new("slack:C1,a", bare("c1")),
        Outgoing::new("slack:C1,a", failed("c1")),
        Outgoing::new("slack:C1,a", bare("c2")),
        Outgoing::new("slack:C1,a", failed("c2")),
        Outgoing::new("slack:C1,a", bare("c3")).header("traceparent", "00-0af7-b7ad-01").header("tracestate", "a=1,b=2"),
        binary("b", "binary", "tool_call").header("ce_time", "2026-01-01T00:00:00Z"),
        Outgoing { value: None, ..binary("b", "without a value", "turn_end") },
        Outgoing::new("s", structured.to_string()).header("content-type", "application/cloudevents+json; charset=utf-8"),
        Outgoing::new("s", structured.to_string().replace("\"structured\"", "\"unmarked\"")),
        Outgoing::new("r", [&[0, 0, 0, 0, 9][..], bare("registry").as_bytes()].concat()),
        // A partition's number that is a tab.
        Outgoing::new("r", bare("reply")).header("kafka_replyTopic", "nowhere").header("kafka_replyPartition", 9_i32.to_be_bytes()),
        null_header(Outgoing::new("r", bare("headers")).header("bytes", [0xff, 0x00])),
        // What is no event.
        Outgoing::new("bad", "{"),
        Outgoing::new("bad", "no JSON\tand a tab").header("event_id", "named by its header"),
        Outgoing::new("bad", b"{\"type\":\"\xff\"}".as_slice()),
        Outgoing { value: None, ..Outgoing::new("bad", "") },
        Outgoing { key: None, ..Outgoing::new("", bare("keyless")) }.partition(0),
        Outgoing { key: None, value: None, ..Outgoing::default() }.partition(1),
    ]);
    records
}

/// Returns a record as a capture writes it.
pub(crate) fn envelope(topic: &str, record: &Record) -> Value {
    let headers: Vec<_> = record.headers.iter().map(|(name, value)| json!([name, shown(value.as_deref())])).collect();
    json!({
        "topic": topic, "partition": record.partition, "offset": record.offset, "timestamp": record.timestamp,
        "key": shown(record.key.as_deref()), "headers": headers, "value": shown(record.value.as_deref()),
    })
}

/// Returns bytes as a string, or in base64 if they are not UTF-8.
fn shown(bytes: Option<&[u8]>) -> Value {
    match bytes.map(|bytes| std::str::from_utf8(bytes).map_err(|_| bytes)) {
        None => Value::Null,
        Some(Ok(text)) => json!(text),
        Some(Err(bytes)) => json!({"base64": STANDARD.encode(bytes)}),
    }
}

fn eval(deployment: &Deployment, lines: &str) -> Result<Vec<String>> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), lines)?;
    let output = deployment.command("eval").arg(file.path()).output()?;
    ensure!(matches!(output.status.code(), Some(0 | 3)), "eval: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

fn write_fixtures(cluster: &Cluster, deployment: &Deployment, envelopes: &str, verdicts: &[String]) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats");
    let each = |print: &dyn Fn(&str) -> Command| -> Result<Vec<u8>> {
        let mut all = Vec::new();
        for partition in 0..PARTITIONS {
            let output = print(&partition.to_string()).output().context("a tool that prints a topic")?;
            all.extend(output.stdout);
        }
        Ok(all)
    };
    let kcat = |partition: &str| {
        let mut command = Command::new("kcat");
        command.args(["-C", "-q", "-e", "-J", "-b", cluster.bootstrap(), "-t", &deployment.events, "-o", "beginning", "-p", partition]);
        command
    };
    std::fs::write(folder.join("kcat.txt"), each(&kcat)?)?;
    std::fs::write(folder.join("envelope.jsonl"), envelopes)?;
    let mut lines = String::new();
    verdicts.iter().try_for_each(|verdict| writeln!(lines, "{verdict}"))?;
    Ok(std::fs::write(folder.join("verdicts.jsonl"), lines)?)
}
