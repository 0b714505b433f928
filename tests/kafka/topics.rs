//! Tests `tollgate topics apply`: what it plans, that a second run finds nothing to do, and what it never does.

use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rdkafka::admin::{AdminClient, AdminOptions, ConfigSource, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use serde_json::{Value, json};

use crate::stderr;
use tollgate_testkit::{Broker, Cluster, Deployment, Outgoing, grant};

fn apply(deployment: &Deployment, arguments: &[&str]) -> Result<Output> {
    Ok(deployment.command("topics").arg("apply").args(arguments).output()?)
}

/// Checks the exit code, and returns what was printed of every topic.
fn lines(output: &Output, exit: i32) -> Result<Vec<Value>> {
    ensure!(output.status.code() == Some(exit), "exit {:?} and not {exit}: {}", output.status.code(), stderr(output));
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Returns the statuses by key.
fn statuses(lines: &[Value]) -> Vec<(&str, &str)> {
    lines.iter().map(|line| (line["key"].as_str().expect("a key"), line["status"].as_str().expect("a status"))).collect()
}

/// Returns a deployment whose topics are not there.
fn without_topics(cluster: &Cluster) -> Result<Deployment> {
    let mut deployment = Deployment::new(cluster, 1)?;
    for key in ["events", "decisions", "dlq", "state", "controls"] {
        deployment.configure(&format!("/kafka/topics/{key}"), json!(cluster.unique(&format!("apply-{key}"))));
    }
    deployment.configure("/kafka/reply_topics", json!([cluster.unique("apply-replies"), "team-a.*"]));
    Ok(deployment)
}

/// Returns the settings that a topic has of its own.
fn own_settings(cluster: &Cluster, topic: &str) -> Result<Vec<(String, String)>> {
    let admin: AdminClient<DefaultClientContext> = cluster.client().create()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let described = runtime.block_on(admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &AdminOptions::new()))?;
    let entries = described.into_iter().next().expect("one answer").map_err(|code| anyhow::anyhow!("{code}"))?.entries;
    let own = entries.into_iter().filter(|entry| entry.source == ConfigSource::DynamicTopic);
    Ok(own.map(|entry| (entry.name, entry.value.unwrap_or_default())).collect())
}

/// Nothing is there: a dry run changes nothing, an execution creates all of it, a second one has nothing to do, and a worker runs on it.
pub(crate) fn topics_are_created_once(cluster: &Cluster) -> Result<()> {
    let deployment = without_topics(cluster)?;
    let wishes = ["--partitions", "3", "--replication-factor", "1", "--retention", "events=2d", "--retention", "dlq=forever"];
    let with = |more: &[&str]| apply(&deployment, &[&wishes, more].concat());
    let all = |status| ["events", "decisions", "dlq", "controls", "state", "reply_topics"].map(|key| (key, status)).to_vec();

    let missing = deployment.command("run").env("TOLLGATE__ADMIN", "null").output()?;
    ensure!(stderr(&missing).contains("create what is missing: tollgate topics apply --execute"), "{}", stderr(&missing));
    for (arguments, exit) in [(vec![], 0), (vec!["--check"], 3)] {
        let output = with(&arguments)?;
        let lines = lines(&output, exit)?;
        assert_eq!(statuses(&lines), all("missing"));
        assert_eq!(
            lines[0]["changes"],
            json!([{"change": "create", "partitions": 3, "replication_factor": 1, "settings": {"retention.ms": "172800000"}}])
        );
        assert!(
            stderr(&output).contains("topics: 6, to create or change: 6; nothing was changed, --execute does it"),
            "{}",
            stderr(&output)
        );
    }
    let output = with(&["--execute"])?;
    let created = lines(&output, 0)?;
    assert_eq!(statuses(&created), all("created"));
    assert_eq!((&created[4]["partitions"], &created[3]["partitions"]), (&json!(3), &json!(1)));
    assert!(stderr(&output).contains("created or changed: 6; all of them fit"), "{}", stderr(&output));
    for arguments in [["--execute"], ["--check"]] {
        let output = with(&arguments)?;
        let lines = lines(&output, 0)?;
        assert_eq!(statuses(&lines), all("fits"));
        assert!(lines.iter().all(|line| line["changes"] == json!([])) && stderr(&output).contains("nothing to do"), "{}", stderr(&output));
    }
    let worker = deployment.start()?;
    ensure!(worker.stop()?.success());
    Ok(())
}

/// What differs is changed, and what was set for a topic besides stays.
pub(crate) fn what_differs_is_changed_and_nothing_else(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 3)?;
    let narrow = cluster.topic("narrow", 2, &[])?;
    let deleting = cluster.topic("deleting", 3, &[("segment.ms", "123456"), ("max.message.bytes", "20000")])?;
    deployment.configure("/kafka/topics/decisions", json!(narrow));
    deployment.configure("/kafka/topics/state", json!(deleting));
    // What a worker says names the command that mends it.
    let log = stderr(&deployment.command("run").env("TOLLGATE__ADMIN", "null").output()?);
    ensure!(log.contains("needs at least 3 partitions: tollgate topics apply --execute"), "{log}");

    let lines_of = lines(&apply(&deployment, &["--check"])?, 3)?;
    let differing = [("events", "fits"), ("decisions", "differs"), ("dlq", "fits"), ("controls", "fits"), ("state", "differs")];
    assert_eq!(statuses(&lines_of), differing);
    assert_eq!(lines_of[1]["changes"], json!([{"change": "add_partitions", "found": 2, "wanted": 3}]));
    let wanted = json!([
        {"change": "set", "setting": "cleanup.policy", "found": "delete", "wanted": "compact"},
        {"change": "set", "setting": "max.message.bytes", "found": "20000", "wanted": "69632"},
        {"change": "set", "setting": "segment.bytes", "found": "1073741824", "wanted": "67108864"},
    ]);
    assert_eq!(lines_of[4]["changes"], wanted);
    let done = lines(&apply(&deployment, &["--execute"])?, 0)?;
    let changed = [("events", "fits"), ("decisions", "changed"), ("dlq", "fits"), ("controls", "fits"), ("state", "changed")];
    assert_eq!(statuses(&done), changed);
    assert_eq!((&done[1]["partitions"], &done[4]["changes"]), (&json!(3), &wanted));
    let mut own = own_settings(cluster, &deleting)?;
    own.sort();
    let expected = [("cleanup.policy", "compact"), ("max.message.bytes", "69632"), ("segment.bytes", "67108864"), ("segment.ms", "123456")];
    assert_eq!(own, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    lines(&apply(&deployment, &["--check"])?, 0)?;
    let worker = deployment.start()?;
    ensure!(worker.stop()?.success());
    Ok(())
}

/// Partitions that state depends on are not added, and while something is refused nothing else is done either.
pub(crate) fn state_never_loses_its_partition(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 2)?;
    for (partitions, says) in [("4", "tollgate state rekey"), ("1", "Kafka takes no partition away")] {
        let output = apply(&deployment, &["--partitions", partitions, "--execute"])?;
        assert_eq!(statuses(&lines(&output, 1)?)[0], ("events", "refused"));
        assert!(stderr(&output).contains(says) && stderr(&output).contains("nothing was changed"), "{}", stderr(&output));
    }
    let output = apply(&deployment, &["--replication-factor", "3", "--execute"])?;
    lines(&output, 1)?;
    assert!(stderr(&output).contains("kafka-reassign-partitions.sh"), "{}", stderr(&output));

    // The events topic was given more partitions behind our back.
    let grown = cluster.topic("grown", 4, &[])?;
    cluster.produce(&deployment.state, &[Outgoing::new("thread/a", "x").partition(1)])?;
    deployment.configure("/kafka/topics/events", json!(grown));
    // State and decisions follow. Workers take no state before it is moved.
    let done = lines(&apply(&deployment, &["--execute"])?, 0)?;
    assert_eq!((&done[4]["partitions"], &done[1]["partitions"]), (&json!(4), &json!(4)));
    Ok(())
}

/// Two runs at once, as by two jobs, leave one set of topics and no failure.
pub(crate) fn two_runs_at_once_agree(cluster: &Cluster) -> Result<()> {
    let deployment = without_topics(cluster)?;
    let command = || {
        let mut command = deployment.command("topics");
        command.args(["apply", "--execute", "--partitions", "2"]);
        command
    };
    let mut commands = [command(), command()];
    std::thread::scope(|threads| {
        let running: Vec<_> = commands.iter_mut().map(|command| threads.spawn(move || command.output())).collect();
        for output in running {
            lines(&output.join().expect("no panic")?, 0)?;
        }
        anyhow::Ok(())
    })?;
    assert!(statuses(&lines(&apply(&deployment, &["--check"])?, 0)?).iter().all(|(_, status)| *status == "fits"));
    Ok(())
}

/// Brokers that are away are waited for, and no longer than that.
pub(crate) fn brokers_are_waited_for(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 1)?;
    let started = Instant::now();
    let output = apply(&deployment, &["--execute", "--replication-factor", "2", "--wait", "1h"])?;
    lines(&output, 1)?;
    assert!(started.elapsed() < Duration::from_secs(3_600), "an old topic's replicas are no reason to wait: {:?}", started.elapsed());
    deployment.configure("/kafka/topics/dlq", json!(cluster.unique("apply-dlq")));
    deployment.configure("/kafka/brokers", json!("127.0.0.1:1"));
    let started = Instant::now();
    let output = apply(&deployment, &["--execute", "--wait", "10s"])?;
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(stderr(&output).contains("Connection refused") && stderr(&output).contains("trying for 10 s"), "{}", stderr(&output));
    assert!(started.elapsed() >= Duration::from_secs(10), "{:?}", started.elapsed());
    deployment.configure("/kafka/brokers", json!(cluster.bootstrap()));
    // A broker that never comes is named too.
    let started = Instant::now();
    let output = apply(&without_topics(cluster)?, &["--execute", "--replication-factor", "3", "--wait", "10s"])?;
    lines(&output, 1)?;
    assert!(stderr(&output).contains("replication factor 3 takes 3 brokers, and the cluster has 1"), "{}", stderr(&output));
    assert!(started.elapsed() >= Duration::from_secs(10), "{:?}", started.elapsed());
    Ok(())
}

/// Each right that is wanting is named with the line that grants it, and with these lines it works.
pub(crate) fn each_right_is_named_with_its_grant(shared: &Cluster) -> Result<()> {
    let broker = Broker::start_secured(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        &shared.directory().join("secured-broker.log"),
        &[("operator", "s3cret")],
    )?;
    let cluster = shared.at(broker.bootstrap())?;
    let mut deployment = Deployment::new(&cluster, 3)?;
    deployment.configure("/kafka/brokers", json!(broker.secured_bootstrap()?));
    for (property, value) in
        [("security.protocol", "sasl_plaintext"), ("sasl.mechanism", "PLAIN"), ("sasl.username", "operator"), ("sasl.password", "s3cret")]
    {
        deployment.configure(&format!("/kafka/properties/{property}"), json!(value));
    }
    let granted = |output: &Output| -> Result<usize> {
        let text = stderr(output);
        ensure!(!text.contains("s3cret"), "{text}");
        let lines: Vec<_> = text.lines().filter_map(|line| line.split_once("grant it: ")).map(|(_, line)| line.to_owned()).collect();
        lines.iter().try_for_each(|line| grant(cluster.bootstrap(), line))?;
        Ok(lines.len())
    };
    let refused = apply(&deployment, &["--check"])?;
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    let says = format!("User:operator lacks the right to Describe and DescribeConfigs on topic {};", deployment.events);
    assert!(stderr(&refused).contains(&says), "{}", stderr(&refused));
    assert_eq!(granted(&refused)?, 5, "{}", stderr(&refused));
    lines(&apply(&deployment, &["--check"])?, 0)?;

    // Whoever may look may not create, add partitions or configure.
    let dlq = cluster.unique("apply-dlq");
    deployment.configure("/kafka/topics/dlq", json!(dlq));
    assert_eq!(granted(&apply(&deployment, &["--check"])?)?, 1);
    let steps = [
        ("dlq", dlq, "Create"),
        ("decisions", cluster.topic("narrow", 2, &[])?, "Alter"),
        ("controls", cluster.topic("deleting", 1, &[])?, "AlterConfigs"),
    ];
    for (key, topic, operation) in steps {
        deployment.configure(&format!("/kafka/topics/{key}"), json!(topic));
        if operation != "Create" {
            assert_eq!(granted(&apply(&deployment, &["--check"])?)?, 1);
            let checked = apply(&deployment, &["--check"])?;
            // The brokers do not check changes of settings beforehand.
            assert_eq!(checked.status.code(), Some(if operation == "Alter" { 1 } else { 3 }), "{}", stderr(&checked));
        }
        let refused = apply(&deployment, &["--execute"])?;
        assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
        let says = format!("User:operator lacks the right to {operation} on topic {topic};");
        assert!(stderr(&refused).contains(&says), "{}", stderr(&refused));
        assert_eq!(granted(&refused)?, 1, "{}", stderr(&refused));
        lines(&apply(&deployment, &["--execute"])?, 0)?;
    }
    Ok(())
}
