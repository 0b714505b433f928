//! Tests trouble: records that cannot be read or are too large, topics that are missing, replies that are not allowed.

use anyhow::Result;
use serde_json::json;

use crate::traffic::{awaited, conversations};
use tollgate_testkit::{Cluster, Deployment, Outgoing, by_thread, header, parsed, text, wait_until};

/// A dead letter is the record byte for byte, and a client that awaits its verdict is answered.
pub(crate) fn unreadable_records_become_dead_letters(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 2)?;
    let worker = deployment.start()?;
    let bad = [
        Outgoing::new("t1", [0xff, 0xfe, b'{']).header("kafka_correlationId", [9, 8]).header("mine", "kept"),
        Outgoing { value: None, ..Outgoing::new("t2", "") },
        Outgoing { key: None, ..Outgoing::new("", "no json at all, and nobody to tell") },
        Outgoing::new(
            "t3",
            json!({"type": "tool_call", "thread_id": "t4", "tool_call_id": "c", "tool_name": "x", "user_id": "user-7f3a"}).to_string(),
        ),
    ];
    cluster.produce(&deployment.events, &bad)?;
    let letters = cluster.read_until(&deployment.dlq, |records| records.len() == bad.len())?;
    for (record, code) in bad.iter().zip(["value_not_utf8", "value_null", "value_not_json", "thread_id_mismatch"]) {
        let letter = letters.iter().find(|letter| header(letter, "__connect.errors.class.name") == code).expect(code);
        assert_eq!((&letter.key, &letter.value), (&record.key, &record.value));
        assert_eq!(letter.headers[..record.headers.len()], record.headers);
        assert_eq!(header(letter, "__connect.errors.topic"), deployment.events);
        assert_eq!(header(letter, "__connect.errors.stage"), "decode");
        assert!(header(letter, "__connect.errors.offset").parse::<i64>().is_ok());
        assert!(!header(letter, "__connect.errors.exception.message").contains("7f3a"));
    }
    let verdicts = deployment.verdicts(cluster, 3)?;
    assert!(verdicts.iter().all(|verdict| parsed(verdict)["code"] == "invalid_event" && parsed(verdict)["allows_execution"] == false));
    let first = verdicts.iter().find(|verdict| verdict.key.as_deref() == Some(b"t1")).expect("a verdict for t1");
    assert_eq!(first.headers.last(), Some(&("kafka_correlationId".to_owned(), Some(vec![9, 8]))));
    worker.await_metric("tollgate_dead_letters_total", |count| count == 4.0)?;
    Ok(())
}

/// The brokers refuse the time of a worker's clock: the worker's health and log say so, until the topic takes the verdicts.
pub(crate) fn a_refused_verdict_is_named(cluster: &Cluster) -> Result<()> {
    // A record is too old for this topic, unless the broker takes it within the millisecond in which it was made.
    let refusing = [("message.timestamp.before.max.ms", "0")];
    let deployment = Deployment::with_topic_settings(cluster, 1, &[], &refusing)?;
    let (worker, events) = (deployment.start()?, conversations(100, 43));
    cluster.produce(&deployment.events, &events)?;
    let refused = format!("the broker refused a verdict on topic {}", deployment.decisions);
    let clock = "does not take the time of this worker's clock (message.timestamp.after.max.ms";
    wait_until("the worker names the refusal", || {
        let (status, report) = worker.get("/readyz")?;
        Ok(status == 503 && report.contains(&refused) && report.contains(clock))
    })?;
    worker.await_line(&["member failed", &refused, clock])?;
    cluster.delete_topics(&[&deployment.decisions])?;
    cluster.create_topics(&[&deployment.decisions], 1, &[])?;
    wait_until("the worker names nothing any more", || {
        let (status, report) = worker.get("/readyz")?;
        Ok(status == 200 && !report.contains("problems"))
    })?;
    deployment.verdicts(cluster, awaited(&events))?;
    Ok(())
}

/// The brokers refuse the time of a checkpoint: the worker's health says so.
pub(crate) fn a_refused_checkpoint_is_named(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 1)?;
    deployment.state = cluster.topic("state", 1, &[("cleanup.policy", "compact"), ("message.timestamp.before.max.ms", "0")])?;
    deployment.configure("/kafka/topics/state", json!(deployment.state));
    let (worker, events) = (deployment.start()?, conversations(100, 44));
    cluster.produce(&deployment.events, &events)?;
    deployment.verdicts(cluster, awaited(&events))?;
    let refused = format!("the broker refused a checkpoint of partition 0 on topic {}", deployment.state);
    wait_until("the worker names the refusal", || {
        let (status, report) = worker.get("/readyz")?;
        Ok(status == 503 && report.contains(&refused) && report.contains("the time of this worker's clock"))
    })?;
    Ok(())
}

/// Events that are larger than a dead letter or a verdict may be are answered too.
pub(crate) fn oversized_records_lose_nothing(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::with_topic_settings(cluster, 1, &[("max.message.bytes", "5000000")], &[("max.message.bytes", "20000")])?;
    let worker = deployment.start()?;
    let many: Vec<_> = (0..1_000).map(|n| json!({"id": format!("call-{n:0100}"), "function": {"name": "f"}})).collect();
    let cut_off = json!({"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": many}}]});
    let events = [
        Outgoing::new("t", "x".repeat(3_000_000)),
        Outgoing::new("t", json!({"type": "tool_result", "event_id": "large", "tool_call_id": "c", "tool_name": "cat", "tool_input": {}, "result": "y".repeat(3_000_000)}).to_string()),
        Outgoing::new("t", json!({"type": "model_response", "event_id": "many", "response": cut_off}).to_string()),
        Outgoing::new("t", json!({"type": "tool_call", "event_id": "after", "tool_call_id": format!("call-{:0100}", 7), "tool_name": "f", "tool_input": {}}).to_string()),
    ];
    cluster.produce(&deployment.events, &events)?;
    let verdicts = deployment.verdicts(cluster, 4)?;
    let of = |id: &str| verdicts.iter().find(|verdict| header(verdict, "event_id") == id).map(parsed).expect(id);
    assert_eq!(of("large")["code"], "allow");
    // The topic takes no verdict of that size: a short one that blocks takes its place, and the calls stay suppressed.
    assert_eq!(
        (&of("many")["code"], &of("many")["action"], &of("many")["type"]),
        (&json!("invalid_event"), &json!("block"), &json!("model_response"))
    );
    assert_eq!(of("after")["code"], "suppressed_tool_call");
    let letters = cluster.read_until(&deployment.dlq, |records| records.len() == 1)?;
    assert_eq!((letters[0].key.as_deref(), &letters[0].value), (Some(b"t".as_slice()), &None));
    assert_eq!(header(&letters[0], "__connect.errors.class.name"), "value_not_json");
    assert_eq!(header(&letters[0], "tollgate.value.omitted"), "true");
    assert_eq!(header(&letters[0], "__connect.errors.offset"), "0");
    worker.await_metric("tollgate_dead_letters_without_value_total", |count| count == 1.0)?;
    assert_eq!(worker.metric("tollgate_member_restarts_total")?, 0.0);
    Ok(())
}

/// A missing topic ends the worker at once, with what to do about it.
pub(crate) fn a_missing_topic_is_named(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 3)?;
    deployment.configure("/kafka/topics/decisions", json!("no.such.topic"));
    let output = deployment.command("run").env("TOLLGATE__ADMIN", "null").output()?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.contains("no such topic: no.such.topic") && log.contains("tollgate topics apply --execute"), "{log}");
    assert!(!log.contains("a thread ended"), "its threads end because it does: {log}");

    deployment.configure("/kafka/topics/decisions", json!(cluster.topic("narrow", 2, &[])?));
    let output = deployment.command("run").env("TOLLGATE__ADMIN", "null").output()?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.contains("has 2 partitions") && log.contains("has 3"), "{log}");
    Ok(())
}

/// Replies go where the event asks, if that is allowed; a reply topic that is missing holds nobody up.
pub(crate) fn replies_go_where_they_are_allowed(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 2)?;
    let replies = cluster.topic("replies", 4, &[])?;
    let other = cluster.topic("other", 1, &[])?;
    deployment.configure("/kafka/reply_topics", json!(["replies-*", "decisions-*", "missing.*"]));
    let worker = deployment.start()?;
    let ask = |id: &str, topic: &str| {
        let call = json!({"type": "tool_call", "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {}});
        Outgoing::new("t", call.to_string()).header("kafka_replyTopic", topic).header("kafka_correlationId", id)
    };
    let unreadable = Outgoing { key: None, ..Outgoing::new("", "{") };
    let events = [
        ask("e1", &replies).header("kafka_replyPartition", 3_i32.to_be_bytes()),
        ask("e2", &other),
        ask("e3", "missing.replies"),
        ask("e4", &replies),
        // The prefix covers it, and it is a topic of ours.
        ask("e6", &deployment.decisions),
        ask("e7", "evil\u{1b}[2J"),
        unreadable.header("kafka_replyTopic", replies.as_str()).header("kafka_correlationId", "e5"),
    ];
    cluster.produce(&deployment.events, &events)?;
    let answers = cluster.read_until(&replies, |records| records.len() == 3)?;
    let of = |id: &str| answers.iter().find(|answer| header(answer, "kafka_correlationId") == id).expect(id);
    assert_eq!(of("e1").partition, 3);
    assert_eq!(parsed(of("e5"))["code"], "invalid_event");
    let verdicts = deployment.verdicts(cluster, 6)?;
    assert_eq!(verdicts.iter().filter(|verdict| header(verdict, "event_id") == "e6").count(), 1);
    let published = verdicts.iter().find(|verdict| header(verdict, "event_id") == "e1").expect("a verdict on e1");
    assert_eq!(published.value, of("e1").value);
    assert!(cluster.read_all(&other)?.is_empty());
    worker.await_metric("tollgate_replies_total{outcome=\"refused\"}", |count| count == 3.0)?;
    // The log names the event and the topic that it asked for, without what a terminal would obey.
    worker.await_line(&["kafka.reply_topics", "e2", &other])?;
    wait_until("the topic is shown without what a terminal would obey", || Ok(worker.log().contains("\\u{1b}[2J")))?;
    assert!(!worker.log().contains('\u{1b}'), "{}", worker.log());
    // The missing topic is given up after a few seconds, and its record is finished then.
    worker.await_line(&["a reply could not be published", "missing.replies"])?;
    cluster.await_committed(&deployment.group, &deployment.events, events.len())?;
    assert!(worker.stop()?.success());
    Ok(())
}

/// The admin endpoint tells the worker's condition before, during and after its work.
pub(crate) fn the_admin_endpoint_tells_the_condition(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 2)?;
    let worker = deployment.start()?;
    assert_eq!(worker.get("/livez")?.0, 200);
    let (_, metrics) = worker.get("/metrics")?;
    for name in ["tollgate_build_info{revision=", "process_resident_memory_bytes ", "process_cpu_seconds_total ", "process_open_fds "] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name} is not in\n{metrics}");
    }
    let report = r#"{"ready":true,"controls":"caught_up","members":[{"member":0,"phase":"assigned","partitions":[0,1],"restoring":[],"failed":[]}]}"#;
    // On a busy machine the brokers may be silent for a moment, which is a problem until they answer.
    wait_until("the report is that of a healthy worker", || {
        let (status, ready) = worker.get("/readyz")?;
        Ok((status, ready.trim()) == (200, report))
    })?;
    cluster.produce(
        &deployment.events,
        &[Outgoing::new("t", r#"{"type":"tool_call","tool_call_id":"c","tool_name":"ls","tool_input":{}}"#)],
    )?;
    deployment.verdicts(cluster, 1)?;
    for line in [
        "tollgate_events_consumed_total{type=\"tool_call\"} 1",
        "tollgate_verdicts_total{action=\"allow\",code=\"allow\",decided_by=\"none\"} 1",
        "tollgate_event_to_verdict_seconds_count 1",
        "tollgate_ready 1",
        "tollgate_assigned_partitions{member=\"0\"} 2",
    ] {
        // Members hand their counts over once a second.
        wait_until(line, || Ok(worker.get("/metrics")?.1.contains(line)))?;
    }
    wait_until("it is said that it is ready", || Ok(worker.log().contains("ready: deciding on 2 of 2 partitions")))?;
    assert_eq!(worker.log().matches("ready: deciding on 2 of 2 partitions").count(), 1, "{}", worker.log());
    wait_until("the state is counted", || {
        Ok(worker.metric("tollgate_live_threads")? == 1.0 && worker.metric("tollgate_state_bytes")? > 0.0)
    })?;
    Ok(())
}

/// With a producer queue of a few records, and few allowed in flight, the worker holds back and drops nothing.
pub(crate) fn a_full_queue_loses_nothing(cluster: &Cluster) -> Result<()> {
    let events = conversations(150, 31);
    for (queue, in_flight) in [(5, 20_000), (1_000, 3)] {
        let mut deployment = Deployment::new(cluster, 2)?;
        deployment.configure("/kafka/properties/queue.buffering.max.messages", json!(queue));
        deployment.configure("/worker/in_flight_max", json!(in_flight));
        cluster.produce(&deployment.events, &events)?;
        let worker = deployment.start()?;
        let verdicts = deployment.verdicts(cluster, awaited(&events))?;
        assert_eq!(by_thread(verdicts.iter().map(text)), by_thread(deployment.eval(&events)?));
        assert_eq!(worker.metric("tollgate_backpressure_total")? > 0.0, in_flight == 3);
        assert!(worker.stop()?.success());
    }
    Ok(())
}

/// Records whose verdict or dead letter is too large for its topic are answered in a smaller form, and none holds its partition up.
pub(crate) fn no_record_holds_its_partition_up(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::with_topic_settings(cluster, 1, &[("max.message.bytes", "8000000")], &[])?;
    let worker = deployment.start()?;
    let call = |id: &str| json!({"type": "tool_call", "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {}}).to_string();
    let large = "x".repeat(2_000_000);
    let events = [
        Outgoing::new("t", call("e1")).header("tracestate", "s".repeat(1_048_200)).header("correlation_id", "kept"),
        Outgoing::new(large.as_str(), "no json"),
        Outgoing { value: None, ..Outgoing::new("t", "").header("large", large.as_str()) },
        Outgoing::new("t", call("after")),
    ];
    cluster.produce(&deployment.events, &events)?;
    let verdicts = deployment.verdicts(cluster, 3)?;
    let of = |id: &str| verdicts.iter().find(|verdict| header(verdict, "event_id") == id).expect(id);
    assert_eq!((parsed(of("e1"))["code"].as_str(), header(of("e1"), "correlation_id").as_str()), (Some("allow"), "kept"));
    assert_eq!(parsed(of("after"))["code"], "allow");
    let letters = cluster.read_until(&deployment.dlq, |records| records.len() == 2)?;
    let codes: std::collections::BTreeSet<_> = letters.iter().map(|letter| header(letter, "__connect.errors.class.name")).collect();
    assert_eq!(codes, ["value_not_json".to_owned(), "value_null".to_owned()].into());
    assert!(
        letters.iter().all(|letter| letter.key.is_none() && letter.value.is_none() && header(letter, "tollgate.value.omitted") == "true")
    );
    cluster.await_committed(&deployment.group, &deployment.events, 4)?;
    assert!(worker.stop()?.success());
    Ok(())
}

/// Events that cost much hold up their own partition alone: an event on another partition of the same member is decided before most of them.
pub(crate) fn costly_events_let_other_partitions_go_first(cluster: &Cluster) -> Result<()> {
    const COSTLY: usize = 30;
    let deployment = Deployment::new(cluster, 2)?;
    let call = |partition: i32, id: &str| {
        let event = json!({"type": "tool_call", "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {}});
        Outgoing::new(format!("thread-{partition}"), event.to_string()).partition(partition)
    };
    // Each event takes longer than the turn of a partition.
    let worker = deployment.spawn_adapted(|command| _ = command.env("FAILPOINTS", "record=sleep(120)"))?;
    worker.wait_ready()?;
    let costly: Vec<_> = (0..COSTLY).map(|number| call(0, &format!("costly-{number}"))).collect();
    cluster.produce(&deployment.events, &costly)?;
    deployment.verdicts(cluster, 1)?;
    cluster.produce(&deployment.events, &[call(1, "other")])?;
    let verdicts =
        cluster.read_until(&deployment.decisions, |records| records.iter().any(|record| header(record, "event_id") == "other"))?;
    let before = verdicts.len() - 1;
    assert!(before < COSTLY, "the event waited for all {COSTLY} costly events");
    wait_until("yields are counted", || Ok(worker.metric("tollgate_partition_yields_total")? >= 1.0))?;
    let verdicts = deployment.verdicts(cluster, COSTLY + 1)?;
    let of_costly: Vec<_> = verdicts.iter().map(|verdict| header(verdict, "event_id")).filter(|id| id != "other").collect();
    assert_eq!(of_costly, (0..COSTLY).map(|number| format!("costly-{number}")).collect::<Vec<_>>(), "each once, in order");
    assert!(worker.stop()?.success());
    Ok(())
}
