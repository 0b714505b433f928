//! Tests `tollgate dlq`: letters by reason, and records that go back to their topic byte for byte.

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::stderr;
use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, header};

/// What no output may hold: it stands in keys, values and headers of records.
const SECRET: &str = "user-7f3a";

fn dlq(deployment: &Deployment, arguments: &[&str]) -> Result<Output> {
    let output = deployment.command("dlq").args(arguments).output()?;
    let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(!shown.contains(SECRET), "{shown}");
    Ok(output)
}

/// Returns the lines of a kind.
fn lines(output: &Output, kind: &str) -> Result<Vec<Value>> {
    ensure!(output.status.success(), "{}", stderr(output));
    let lines = String::from_utf8_lossy(&output.stdout).lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    Ok(lines.into_iter().filter(|line| line["kind"] == kind).collect())
}

fn call(id: &str) -> String {
    json!({"type": "tool_call", "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {"user": SECRET}}).to_string()
}

/// Returns a letter as a worker writes it, with the record's own headers before it.
fn letter(record: Outgoing, topic: &str, reason: &str) -> Outgoing {
    let message = format!("value: {reason}");
    [
        ("topic", topic),
        ("partition", "1"),
        ("offset", "17"),
        ("stage", "decode"),
        ("class.name", reason),
        ("exception.message", message.as_str()),
    ]
    .iter()
    .fold(record, |record, (name, value)| record.header(&format!("__connect.errors.{name}"), *value))
}

/// Letters are counted by reason and by where they came from, and single ones are listed, without what they hold.
pub(crate) fn letters_are_listed_by_reason(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 2)?;
    let empty = dlq(&deployment, &["list"])?;
    assert_eq!((lines(&empty, "group")?.len(), empty.stdout.len()), (0, 0));
    let _worker = deployment.start()?;
    let bad = [
        Outgoing::new("t1", format!("{{{SECRET}")).header("mine", SECRET),
        Outgoing::new("t2", format!("no json, {SECRET}")),
        Outgoing { value: None, ..Outgoing::new(SECRET, "") },
    ];
    let positions = cluster.produce(&deployment.events, &bad)?;
    cluster.read_until(&deployment.dlq, |records| records.len() == bad.len())?;
    // A record that is no letter is counted and passed over.
    cluster.produce(&deployment.dlq, &[Outgoing::new("k", "what somebody else put there")])?;

    let all = dlq(&deployment, &["list"])?;
    let counts: Vec<_> = lines(&all, "group")?.iter().map(|line| (line["group"].clone(), line["letters"].clone())).collect();
    assert_eq!(counts, [(json!("value_not_json"), json!(2)), (json!("value_null"), json!(1))]);
    assert!(stderr(&all).contains(&format!("dead letters in {}: 3, listed: 3, records that are no dead letters: 1", deployment.dlq)));
    let letters = lines(&all, "letter")?;
    let first = letters.iter().find(|letter| letter["value_bytes"] == json!(bad[0].value.as_ref().map(Vec::len))).context("the first")?;
    assert_eq!((&first["topic"], first["source_partition"].as_i64()), (&json!(deployment.events), Some(positions[0].partition.into())));
    assert_eq!((first["source_offset"].as_i64(), &first["key_bytes"]), (Some(positions[0].offset), &json!(2)));
    assert_eq!((&first["reason"], &first["stage"], &first["redriven"]), (&json!("value_not_json"), &json!("decode"), &json!(0)));
    assert!(first["timestamp_ms"].as_i64().is_some());

    let count = |arguments: &[&str]| -> Result<i64> {
        let groups = lines(&dlq(&deployment, &[&["list", "--limit", "0"], arguments].concat())?, "group")?;
        Ok(groups.iter().filter_map(|group| group["letters"].as_i64()).sum())
    };
    assert_eq!(count(&["--reason", "value_null"])?, 1);
    assert_eq!(count(&["--reason", "value_null", "--reason", "value_not_json"])?, 3);
    assert_eq!((count(&["--since", "1h"])?, count(&["--until", "1h"])?, count(&["--since", "0s"])?), (3, 0, 0));
    assert_eq!(count(&["--partition", "0"])? + count(&["--partition", "1"])?, 3);
    assert_eq!(lines(&dlq(&deployment, &["list", "--limit", "1"])?, "letter")?.len(), 1);
    let (partition, offset) = (first["partition"].as_i64().context("a place")?, first["offset"].as_i64().context("a place")?);
    let others = count(&["--from", &format!("{partition}@{}", offset + 1)])?;
    assert!((1..3).contains(&others), "{others}");
    let groups = lines(&dlq(&deployment, &["list", "--by", "partition"])?, "group")?;
    assert!(groups.iter().all(|group| group["group"].as_str().is_some_and(|name| name.starts_with(&format!("{}/", deployment.events)))));
    let output = dlq(&deployment, &["list", "--from", "9@0"])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--from 9@…: topic ") && stderr(&output).contains(" has 2 partitions"), "{}", stderr(&output));
    Ok(())
}

/// A record goes back as it came, on the partition of its key, and gets its verdict.
pub(crate) fn a_letter_goes_back_as_it_came(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 3)?;
    let original =
        Outgoing::new("nightly-deploy", call("e1")).header("mine", [0xff, 0]).header("__connect.errors.class.name", "of another");
    let keyless = Outgoing { key: None, ..Outgoing::new("", json!({"thread_id": "t", "type": "turn_end", "event_id": "e2"}).to_string()) };
    let omitted = letter(Outgoing { value: None, ..Outgoing::new("t", "") }, &deployment.events, "value_not_json");
    let elsewhere = letter(Outgoing::new("t", call("e3")), "somewhere.else", "value_not_json");
    let mine = Outgoing { headers: vec![("empty".to_owned(), None)], ..original.clone() };
    cluster.produce(
        &deployment.dlq,
        &[
            letter(
                Outgoing { headers: [original.headers.clone(), mine.headers].concat(), ..original.clone() },
                &deployment.events,
                "old_rule",
            ),
            letter(keyless.clone(), &deployment.events, "old_rule"),
            omitted.header("tollgate.value.omitted", "true"),
            elsewhere,
            letter(Outgoing::new("t", call("e4")).header("tollgate.redriven", "2"), &deployment.events, "old_rule"),
            letter(Outgoing::new("t", call("e5")), &deployment.events, "header_invalid"),
        ],
    )?;

    let plan = dlq(&deployment, &["redrive"])?;
    let counts = |output: &Output, reason: &str| -> Result<Value> {
        let mut line = lines(output, "reason")?.into_iter().find(|line| line["reason"] == reason).context("the reason")?;
        let counts = line.as_object_mut().context("an object")?;
        counts.retain(|name, count| name != "kind" && name != "reason" && *count != 0);
        Ok(line)
    };
    assert_eq!(counts(&plan, "old_rule")?, json!({"letters": 3, "sent": 2, "redriven_before": 1}));
    assert_eq!(counts(&plan, "value_not_json")?, json!({"letters": 2, "no_value": 1, "other_topic": 1}));
    assert_eq!(counts(&plan, "header_invalid")?, json!({"letters": 1, "unreadable_headers": 1}));
    for says in [
        "nothing was sent, --execute does it".to_owned(),
        "1 cannot be sent back: their values were too large".to_owned(),
        "1 were sent back before and refused again; --again".to_owned(),
        format!("they came from somewhere.else and not from {}; --to TOPIC", deployment.events),
    ] {
        assert!(stderr(&plan).contains(&says), "{says}: {}", stderr(&plan));
    }
    assert_eq!(cluster.read_all(&deployment.events)?, Vec::new());

    let worker = deployment.start()?;
    let done = dlq(&deployment, &["redrive", "--execute", "--reason", "old_rule", "--rate", "1000"])?;
    assert_eq!(lines(&done, "redriven")?.len(), 2, "{}", stderr(&done));
    let records = cluster.read_all(&deployment.events)?;
    let sent = records.iter().find(|record| record.key.is_some()).context("the record with a key")?;
    assert_eq!((&sent.key, &sent.value), (&original.key, &original.value));
    let mut headers = original.headers.clone();
    headers.extend([("empty".to_owned(), None), ("tollgate.redriven".to_owned(), Some(b"1".to_vec()))]);
    assert_eq!(sent.headers, headers);
    let probe = cluster.produce(&deployment.events, &[Outgoing::new("nightly-deploy", call("e6"))])?;
    assert_eq!(sent.partition, probe[0].partition, "where its key hashes to");
    let without_key = records.iter().find(|record| record.key.is_none()).context("the record without a key")?;
    assert_eq!((without_key.partition, &without_key.value), (1, &keyless.value), "where it was");
    let verdicts = deployment.verdicts(cluster, 2)?;
    ensure!(verdicts.iter().any(|verdict| header(verdict, "event_id") == "e1"));

    // Behind the places that were named there is nothing more.
    let from: Vec<String> =
        lines(&done, "next")?.iter().map(|line| format!("--from={}", line["from"].as_str().unwrap_or_default())).collect();
    let mut arguments = vec!["redrive"];
    arguments.extend(from.iter().map(String::as_str));
    assert!(stderr(&dlq(&deployment, &arguments)?).contains(": 0; nothing was sent"));
    // What came from elsewhere goes where it is said.
    let to = dlq(&deployment, &["redrive", "--execute", "--to", &deployment.events, "--reason", "value_not_json"])?;
    assert_eq!(lines(&to, "redriven")?.len(), 1, "{}", stderr(&to));
    let wrong = dlq(&deployment, &["redrive", "--execute", "--to", &deployment.decisions])?;
    assert!(wrong.status.code() == Some(1) && stderr(&wrong).contains("that is kafka.topics.decisions"), "{}", stderr(&wrong));
    ensure!(worker.stop()?.success());
    Ok(())
}

/// A record that is refused again is seen as such, and does not go round and round.
pub(crate) fn a_letter_that_fails_again_is_not_sent_again(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 1)?;
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, &[Outgoing::new("t", "{").header("mine", "kept")])?;
    let letters = |count: usize| cluster.read_until(&deployment.dlq, |records: &[Record]| records.len() == count);
    let first = letters(1)?;
    for times in 1..3 {
        let arguments: &[&str] = if times == 1 { &["redrive", "--execute"] } else { &["redrive", "--execute", "--again", "--limit", "1"] };
        let done = dlq(&deployment, arguments)?;
        assert_eq!(lines(&done, "redriven")?.len(), 1, "{}", stderr(&done));
        let all = letters(times + 1)?;
        let last = all.iter().find(|letter| letter.headers.get(1).map(|(name, _)| name.as_str()) == Some("tollgate.redriven"));
        let last = last.context("a letter with the count")?;
        assert_eq!((&last.key, &last.value), (&first[0].key, &first[0].value));
        assert_eq!(last.headers[0], ("mine".to_owned(), Some(b"kept".to_vec())));
    }
    // The first letter is still there, and the next two are known to have been sent back.
    let plan = dlq(&deployment, &["redrive"])?;
    let line = lines(&plan, "reason")?.remove(0);
    assert_eq!((&line["letters"], &line["sent"], &line["redriven_before"]), (&json!(3), &json!(1), &json!(2)));
    let mut redriven: Vec<_> =
        lines(&dlq(&deployment, &["list"])?, "letter")?.iter().filter_map(|letter| letter["redriven"].as_u64()).collect();
    redriven.sort_unstable();
    assert_eq!(redriven, [0, 1, 1], "--limit takes the first letter");
    ensure!(worker.stop()?.success());
    Ok(())
}
