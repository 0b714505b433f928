//! Tests `tollgate capture` on a real broker.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Result, ensure};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::Value;

use crate::formats::{envelope, records};
use crate::traffic::conversations;
use tollgate_testkit::{Cluster, Deployment, Outgoing, TIME_MAX, wait_until};

/// What results of the traffic say.
const SECRET: &str = "no such file";

fn capture(cluster: &Cluster, topic: &str, arguments: &[&str]) -> Result<Output> {
    Ok(command(cluster, topic, arguments).output()?)
}

fn command(cluster: &Cluster, topic: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(cluster.tollgate());
    command.args(["capture", "--topic", topic, "--brokers", cluster.bootstrap()]).args(arguments);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the lines of a capture as JSON, by place.
fn lines(text: &[u8]) -> Vec<Value> {
    let mut lines: Vec<Value> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(parse).collect();
    lines.sort_by_key(|line| (line["partition"].as_i64(), line["offset"].as_i64()));
    lines
}

fn parse(line: &[u8]) -> Value {
    serde_json::from_slice(line).expect("JSON")
}

/// Returns the offsets of one partition.
fn offsets(text: &[u8], partition: i64) -> Vec<i64> {
    lines(text).iter().filter(|line| line["partition"] == partition).filter_map(|line| line["offset"].as_i64()).collect()
}

/// Keys, values and headers of every kind come back as they were, plain and compressed; what was aborted was never there.
pub(crate) fn a_capture_holds_every_byte(cluster: &Cluster) -> Result<()> {
    let topic = cluster.topic("captured", 2, &[])?;
    cluster.produce(&topic, &records())?;
    aborted(cluster, &topic)?;
    cluster.produce(&topic, &[Outgoing::new("after", "the aborted ones").partition(0)])?;
    let mut expected: Vec<Value> = cluster.read_all(&topic)?.iter().map(|record| envelope(&topic, record)).collect();
    expected.sort_by_key(|line| (line["partition"].as_i64(), line["offset"].as_i64()));
    let plain = capture(cluster, &topic, &[])?;
    ensure!(plain.status.success(), "{}", said(&plain));
    let sorted = |text: &[u8]| {
        let times: Vec<_> =
            text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| parse(line)["timestamp"].as_i64()).collect();
        assert!(times.is_sorted(), "the order of times: {times:?}");
        lines(text)
    };
    assert_eq!(sorted(&plain.stdout), expected);
    assert!(said(&plain).contains(&format!("captured {} records", expected.len())), "{}", said(&plain));
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("c.jsonl.zst");
    let packed = capture(cluster, &topic, &[path(&file)])?;
    ensure!(packed.status.success() && packed.stdout.is_empty(), "{}", said(&packed));
    assert_eq!(sorted(&zstd::decode_all(std::fs::File::open(&file)?)?), expected);
    Ok(())
}

fn path(file: &Path) -> &str {
    file.to_str().expect("UTF-8")
}

/// Writes records in a transaction that is aborted.
fn aborted(cluster: &Cluster, topic: &str) -> Result<()> {
    let producer: BaseProducer = cluster.client().set("transactional.id", cluster.unique("aborts")).create()?;
    producer.init_transactions(TIME_MAX)?;
    producer.begin_transaction()?;
    for _ in 0..5 {
        producer.send(BaseRecord::to(topic).partition(0).key("gone").payload("gone")).map_err(|(error, _)| error)?;
    }
    producer.flush(TIME_MAX)?;
    producer.abort_transaction(TIME_MAX)?;
    cluster.await_transactions(topic)
}

/// A capture begins and ends where it is told to, and goes on behind what it holds.
pub(crate) fn a_capture_goes_on_behind_what_it_holds(cluster: &Cluster) -> Result<()> {
    let topic = cluster.topic("resumed", 2, &[])?;
    let write = |count: usize| {
        let both = |at| {
            [0, 1].map(|partition| Outgoing {
                timestamp: Some(1_767_225_600_000 + at as i64),
                ..Outgoing::new("k", format!("{at}")).partition(partition)
            })
        };
        cluster.produce(&topic, &(0..count).flat_map(both).collect::<Vec<_>>()).map(drop)
    };
    write(20)?;
    let folder = tempfile::tempdir()?;
    for name in ["c.jsonl", "c.jsonl.zst"] {
        let file = folder.path().join(name);
        let first = capture(cluster, &topic, &[path(&file), "--to", "0@7", "--to", "1@5"])?;
        ensure!(first.status.success(), "{}", said(&first));
        let again = capture(cluster, &topic, &[path(&file)])?;
        assert!(!again.status.success() && said(&again).contains("--resume goes on"), "{}", said(&again));
        // The last piece is damaged, as a power cut leaves it.
        let whole = std::fs::read(&file)?;
        let more = capture(cluster, &topic, &[path(&file), "--resume", "--to", "0@12", "--to", "1@12"])?;
        ensure!(more.status.success(), "{}", said(&more));
        let grown = std::fs::metadata(&file)?.len();
        std::fs::OpenOptions::new().write(true).open(&file)?.set_len((whole.len() as u64 + grown) / 2 - 7)?;
        let rest = capture(cluster, &topic, &[path(&file), "--resume"])?;
        ensure!(rest.status.success(), "{}", said(&rest));
        assert!(said(&rest).contains("were cut off in the middle"), "{}", said(&rest));
        let bytes = std::fs::read(&file)?;
        let text = if name.ends_with("zst") { zstd::decode_all(&bytes[..])? } else { bytes };
        for partition in [0, 1] {
            assert_eq!(offsets(&text, partition), (0..20).collect::<Vec<_>>(), "{name}");
        }
    }
    let part = capture(cluster, &topic, &["--partitions", "1", "--from", "1@3", "--to", "2026-01-01T00:00:00.009Z"])?;
    assert_eq!((offsets(&part.stdout, 1), offsets(&part.stdout, 0)), ((3..9).collect(), vec![]), "{}", said(&part));
    for (arguments, says) in [
        (&["--from", "0@21"][..], "partition 0 of"),
        (&["--from", "2@1"], "0 to 1"),
        (&["--partitions", "0-7"], "0 to 1"),
        (&["--partitions", "0", "--from", "1@3"], "which --partitions leaves out"),
        (&["--from", "1h", "--to", "2h"], "does not come behind --from"),
        (&["--to", "2100-01-01T00:00:00Z"], "a time that has not come"),
        (&["--from", "beginning", "--from", "end"], "2 bounds"),
        (&["--from", "1@9", "--to", "1@4"], "found offset 4 as the end of partition 1, and 9 as its beginning; name an end behind --from"),
        (&["--resume"], "found no file"),
        (&["--force", "/"], "/: found a folder; name a file in it"),
        (&["/nowhere/c.jsonl"], "/nowhere/c.jsonl: there is no folder /nowhere; make it first"),
        (&["--force", "/dev/full"], "/dev/full: cannot be written; free some space, and go on with --resume: No space left"),
    ] {
        let output = capture(cluster, &topic, arguments)?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(says), "{arguments:?}: {}", said(&output));
    }
    let missing = capture(cluster, "no-such-topic", &[])?;
    assert!(said(&missing).contains("no such topic: no-such-topic (--topic)"), "{}", said(&missing));
    let near = capture(cluster, &topic.replacen("resumed", "resumde", 1), &[])?;
    assert!(said(&near).contains(&format!("did you mean {topic}?")), "{}", said(&near));
    Ok(())
}

/// What retention has taken between two captures is told, and the rest is taken.
pub(crate) fn what_retention_has_taken_is_told(cluster: &Cluster) -> Result<()> {
    let topic = cluster.topic("shrunk", 1, &[])?;
    cluster.produce(&topic, &(0..20).map(|at| Outgoing::new("k", format!("{at}"))).collect::<Vec<_>>())?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("c.jsonl");
    ensure!(capture(cluster, &topic, &[path(&file), "--to", "0@5"])?.status.success());
    delete_before(cluster, &topic, 12)?;
    let rest = capture(cluster, &topic, &[path(&file), "--resume"])?;
    assert_eq!(rest.status.code(), Some(3), "{}", said(&rest));
    assert!(said(&rest).contains("7 offsets were deleted by the topic's retention"), "{}", said(&rest));
    assert_eq!(offsets(&std::fs::read(&file)?, 0), (0..5).chain(12..20).collect::<Vec<_>>());
    // All of it, and then a topic of the same name with fewer records.
    ensure!(capture(cluster, &topic, &[path(&file), "--force", "--from", "0@12", "--to", "0@13"])?.status.success());
    delete_before(cluster, &topic, 20)?;
    let rest = capture(cluster, &topic, &[path(&file), "--resume"])?;
    assert_eq!(rest.status.code(), Some(3), "{}", said(&rest));
    assert!(said(&rest).contains("7 offsets were deleted by the topic's retention"), "{}", said(&rest));
    let other = cluster.topic("anew", 1, &[])?;
    let renamed = std::fs::read_to_string(&file)?.replace(&topic, &other);
    std::fs::write(&file, renamed)?;
    let anew = capture(cluster, &other, &[path(&file), "--resume"])?;
    assert!(anew.status.code() == Some(1) && said(&anew).contains("it was made anew"), "{}", said(&anew));
    Ok(())
}

/// A capture without contents, replayed into a fresh topic through a worker, gets the verdicts of `eval` on the file; and these say what
/// was decided on the original records.
pub(crate) fn a_redacted_capture_is_decided_alike(cluster: &Cluster) -> Result<()> {
    let (original, fresh) = (Deployment::new(cluster, 3)?, Deployment::new(cluster, 5)?);
    cluster.produce(&original.events, &conversations(200, 7))?;
    let folder = tempfile::tempdir()?;
    let (clear, redacted) = (folder.path().join("clear.jsonl"), folder.path().join("redacted.jsonl.zst"));
    let run = |deployment: &Deployment, arguments: &[&str]| -> Result<String> {
        let (command, arguments) = arguments.split_first().expect("a command");
        let output = deployment.command(command).args(arguments).output()?;
        ensure!(matches!(output.status.code(), Some(0 | 3)), "{command}: {}", said(&output));
        Ok(String::from_utf8(output.stdout)?)
    };
    run(&original, &["capture", path(&clear)])?;
    run(&original, &["capture", "--redact", path(&redacted)])?;
    let decided = |file: &Path| -> Result<Vec<(Value, Value, Value)>> {
        let verdicts = run(&original, &["eval", path(file)])?;
        let mut decided: Vec<_> = verdicts.lines().map(|line| parse(line.as_bytes())).collect();
        decided.sort_by_key(|verdict| verdict["verdict_id"].to_string());
        Ok(decided.iter().map(|verdict| (verdict["verdict_id"].clone(), verdict["action"].clone(), verdict["code"].clone())).collect())
    };
    assert_eq!(decided(&clear)?, decided(&redacted)?);
    let digest = run(&original, &["eval", "--digest", path(&redacted)])?;
    let worker = fresh.start()?;
    let report =
        run(&fresh, &["replay", path(&redacted), "--to", &fresh.events, "--partition-by", "key", "--rate", "max", "--await", "--json"])?;
    assert!(worker.stop()?.success());
    assert_eq!(parse(report.as_bytes())["verdicts"]["digest"].as_str(), Some(digest.trim()));
    // What was published is what the same policy decides, and topics are read as files are.
    let policy = folder.path().join("strict.yaml");
    let diff = |policy: &Path, source: &str, more: &[&str]| -> Result<Value> {
        let arguments = [&["diff", "--policy", path(policy), source], more].concat();
        Ok(parse(run(&fresh, &arguments)?.as_bytes()))
    };
    std::fs::write(&policy, "{}")?;
    let events = format!("topic:{}", fresh.events);
    let same = diff(&policy, &events, &["--against", "recorded"])?;
    assert_eq!((&same["flips"], &same["unmatched"]), (&0.into(), &0.into()), "{same:#}");
    std::fs::write(&policy, "tool_loop_guardrails: {same_tool_failure_halt_after: 2, same_tool_failure_warn_after: 1}")?;
    let (from_topic, from_file) = (diff(&policy, &events, &[])?, diff(&policy, path(&redacted), &[])?);
    assert!(from_topic["flips"].as_u64() > Some(50), "{from_topic:#}");
    for part in ["flips", "verdicts", "cut_off_calls", "tools", "threads"] {
        assert_eq!(from_topic[part], from_file[part], "{part}");
    }
    // A file goes on as it began.
    for (file, more) in [(&clear, &["--redact", "--redact-key-file", path(&policy)][..]), (&redacted, &[])] {
        let output = original.command("capture").args([&["--resume", path(file)], more].concat()).output()?;
        assert!(output.status.code() == Some(1) && said(&output).contains("--resume goes on as the file began"), "{}", said(&output));
    }
    // Words of the results are nowhere.
    let text = zstd::decode_all(std::fs::File::open(&redacted)?)?;
    let whole = std::fs::read(&clear)?;
    let holds = |text: &[u8], word: &str| text.windows(word.len()).any(|window| window == word.as_bytes());
    assert!(holds(&whole, SECRET) && !holds(&text, SECRET));
    Ok(())
}

/// What is followed goes on until it is stopped, and that is its end: with whole records, which can be gone on with.
pub(crate) fn what_is_followed_ends_with_a_signal(cluster: &Cluster) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, signal) in [("a.jsonl", "-INT"), ("b.jsonl.zst", "-TERM")] {
        let (topic, file) = (cluster.topic("followed", 2, &[])?, folder.path().join(name));
        cluster.produce(&topic, &(0..50).map(|at| Outgoing::new("k", format!("{at}"))).collect::<Vec<_>>())?;
        let mut command = command(cluster, &topic, &[path(&file), "--follow"]);
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let read = || {
            let bytes = std::fs::read(&file).unwrap_or_default();
            lines(&if name.ends_with("zst") { zstd::decode_all(&bytes[..]).unwrap_or_default() } else { bytes }).len()
        };
        wait_until("50 lines are there", || Ok(read() >= 50))?;
        // What comes later is taken too, though one of the partitions stays silent.
        cluster.produce(&topic, &[Outgoing::new("k", "later")])?;
        wait_until("51 lines are there", || Ok(read() >= 51))?;
        ensure!(Command::new("kill").args([signal, &running.id().to_string()]).status()?.success());
        let ended = running.wait_with_output()?;
        assert!(ended.status.success() && said(&ended).contains("captured 51 records"), "{name}: {:?} {}", ended.status, said(&ended));
        cluster.produce(&topic, &[Outgoing::new("k", "last")])?;
        let again = capture(cluster, &topic, &[path(&file), "--resume"])?;
        assert!(again.status.success() && said(&again).contains("captured 1 records"), "{name}: {}", said(&again));
        assert_eq!(read(), 52, "{name}");
    }
    Ok(())
}

/// Stand-ins are gone on with under their own key only, and nothing before the beginning of a file is taken by going on.
pub(crate) fn stand_ins_keep_their_key(cluster: &Cluster) -> Result<()> {
    let topic = cluster.topic("keyed", 1, &[])?;
    let event = |at: usize| Outgoing::new("k", format!(r#"{{"type":"turn_start","thread_id":"k","user_id":"user {at}"}}"#));
    cluster.produce(&topic, &(0..20).map(event).collect::<Vec<_>>())?;
    let folder = tempfile::tempdir()?;
    let [file, key, other] = ["c.jsonl.zst", "key", "other"].map(|name| folder.path().join(name));
    std::fs::write(&key, "a key of thirty-two random bytes")?;
    std::fs::write(&other, "another one of as many of these ")?;
    let redacted =
        |key: &Path, more: &[&str]| capture(cluster, &topic, &[&[path(&file), "--redact", "--redact-key-file", path(key)], more].concat());
    ensure!(redacted(&key, &["--from", "0@3", "--to", "0@9"])?.status.success());
    let refused = redacted(&other, &["--resume"])?;
    assert!(refused.status.code() == Some(1) && said(&refused).contains("found another key"), "{}", said(&refused));
    let more = redacted(&key, &["--resume", "--from", "beginning"])?;
    assert!(more.status.success() && said(&more).contains("from offset 3 on, and --from is offset 0"), "{}", said(&more));
    let text = zstd::decode_all(std::fs::File::open(&file)?)?;
    assert_eq!(offsets(&text, 0), (3..20).collect::<Vec<_>>());
    assert!(!String::from_utf8_lossy(&text).contains("user 4"));
    delete_before(cluster, &topic, 20)?;
    let gone = redacted(&other, &["--resume"])?;
    assert!(said(&gone).contains("its key cannot be compared"), "{}", said(&gone));
    // Nothing at all is a compressed file too.
    let empty = folder.path().join("empty.jsonl.zst");
    ensure!(capture(cluster, &topic, &[path(&empty)])?.status.success());
    assert!(zstd::decode_all(std::fs::File::open(&empty)?)?.is_empty());
    Ok(())
}

/// Deletes the records of partition 0 before an offset, as retention does.
pub(crate) fn delete_before(cluster: &Cluster, topic: &str, offset: i64) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> = cluster.client().create()?;
    let mut until = TopicPartitionList::new();
    until.add_partition_offset(topic, 0, Offset::Offset(offset))?;
    tokio::runtime::Runtime::new()?.block_on(admin.delete_records(&until, &AdminOptions::new()))?;
    Ok(())
}
