//! Tests `tollgate dev` and `tollgate tap` on real brokers.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::stderr;
use tollgate_testkit::{Cluster, Deployment, Outgoing, text, wait_until};

fn tollgate(cluster: &Cluster, arguments: &[&str]) -> Command {
    let mut command = Command::new(cluster.tollgate());
    command.args(arguments).args(["--brokers", cluster.bootstrap()]).env("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0");
    command
}

/// Returns the verdicts that were printed. Copies count once: when members share partitions out while the sample is played, a verdict may be
/// published again by the next owner.
fn lines(output: &Output) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let stdout = String::from_utf8_lossy(&output.stdout);
    stdout.lines().filter(|line| seen.insert(*line)).map(|line| serde_json::from_str(line).expect("JSONL")).collect()
}

/// Returns how often each text occurs.
fn times(texts: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    texts.fold(BTreeMap::new(), |mut times, text| {
        *times.entry(text).or_default() += 1;
        times
    })
}

/// Returns how often each verdict was published.
fn published_times(cluster: &Cluster, decisions: &str) -> Result<BTreeMap<String, usize>> {
    Ok(times(cluster.read_all(decisions)?.iter().map(text)))
}

/// It creates topics under its own prefix, finds them again, and decides as it does on the embedded broker.
pub(crate) fn dev_works_on_topics_of_its_own(cluster: &Cluster) -> Result<()> {
    let prefix = format!("{}.", cluster.unique("dev"));
    let sample = ["dev", "--sample", "--once", "--prefix", &prefix];
    let first = tollgate(cluster, &sample).output()?;
    ensure!(first.status.success(), "{}", stderr(&first));
    assert!(stderr(&first).contains(&format!("created topics: {prefix}agent.events, ")), "{}", stderr(&first));
    let verdicts = lines(&first);
    assert_eq!(verdicts.len(), 25, "{}", stderr(&first));
    let embedded = Command::new(cluster.tollgate()).args(["dev", "--sample", "--once", "--port", "0"]).output()?;
    assert_eq!(
        lines(&embedded).iter().map(|verdict| verdict["code"].clone()).collect::<Vec<_>>(),
        verdicts.iter().map(|verdict| verdict["code"].clone()).collect::<Vec<_>>()
    );
    let decisions = format!("{prefix}agent.decisions");
    let published: BTreeSet<_> = cluster.read_all(&decisions)?.iter().map(text).collect();
    assert_eq!(published.len(), 25);
    let before = published_times(cluster, &decisions)?;
    let second = tollgate(cluster, &sample).output()?;
    ensure!(second.status.success(), "{}", stderr(&second));
    assert!(!stderr(&second).contains("created topics"), "{}", stderr(&second));
    // A verdict of the first time may be published once more, by a worker that did not get its offset committed. It counts as of now then.
    let shown = times(String::from_utf8_lossy(&second.stdout).lines().map(str::to_owned));
    let after = published_times(cluster, &decisions)?;
    for (verdict, times) in &shown {
        let now = after.get(verdict).copied().unwrap_or_default();
        assert!(*times <= now - before.get(verdict).copied().unwrap_or_default(), "only what is published from now on is shown: {verdict}");
    }
    // The record without an id is named by its place, so that its verdict is another one each time.
    let is_old = |verdict: &&String| before.contains_key(*verdict) && verdict.contains(&format!(r#""event_id":"{prefix}agent.events/"#));
    assert_eq!(shown.keys().filter(|verdict| !is_old(verdict)).count(), 25, "{}", stderr(&second));
    Ok(())
}

/// Brokers know times, and a reader can begin at one.
pub(crate) fn tap_begins_where_it_is_asked_to(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 3)?;
    let call = |thread: &str, id: &str| {
        let event = serde_json::json!({"type": "tool_call", "event_id": id, "tool_call_id": id, "tool_name": "ls", "tool_input": {}});
        Outgoing::new(thread, event.to_string())
    };
    let worker = deployment.start()?;
    cluster.produce(&deployment.events, &[call("a", "old-1"), call("b", "old-2")])?;
    let old = deployment.verdicts(cluster, 2)?;
    // The new verdicts are of another millisecond than the old ones.
    let since_ms = old.iter().filter_map(|verdict| verdict.timestamp).max().context("a time")? + 1;
    wait_until("a millisecond has passed", || Ok(std::time::UNIX_EPOCH.elapsed()?.as_millis() > u128::try_from(since_ms)?))?;
    let since = tollgate_json::time::rfc_3339(since_ms).context("a year of four digits")?;
    cluster.produce(&deployment.events, &[call("a", "new-1"), call("c", "new-2")])?;
    deployment.verdicts(cluster, 4)?;
    let tap = |arguments: &[&str]| -> Result<Vec<String>> {
        let output = deployment.command("tap").args(arguments).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        let mut ids: Vec<String> =
            lines(&output).iter().map(|verdict| verdict["event_id"].as_str().unwrap_or_default().to_owned()).collect();
        ids.sort();
        Ok(ids)
    };
    assert_eq!(tap(&["--since", &since, "-n", "2"])?, ["new-1", "new-2"]);
    assert_eq!(tap(&["--from-beginning", "-n", "4"])?, ["new-1", "new-2", "old-1", "old-2"]);
    assert_eq!(tap(&["--since", "1h", "-n", "4"])?.len(), 4);
    assert_eq!(tap(&["--from-beginning", "-n", "1", "--thread", "b"])?, ["old-2"]);
    assert_eq!(old.len(), 2);
    assert!(worker.stop()?.success());
    Ok(())
}
