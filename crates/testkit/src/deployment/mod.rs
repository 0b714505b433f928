//! A deployment under test: topics, and `tollgate` processes of one group on them.

mod verdicts;
mod worker;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tollgate_core::decide::policy::{Policy, PolicySettings};

use super::cluster::{Cluster, Outgoing, Record};
use super::ports::free_ports;

use verdicts::distinct_events;
pub use verdicts::{by_thread, header, parsed, text};
pub use worker::{Worker, admin_page, metric_of};

/// Compaction as eager as Kafka lets it be, so that tests restore from what it leaves. Tombstones stay for longer than any restore takes,
/// a worker that is frozen in the middle of one included.
const STATE_SETTINGS: [(&str, &str); 6] = [
    ("cleanup.policy", "compact"),
    ("segment.ms", "3000"),
    ("segment.bytes", "1048576"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("max.compaction.lag.ms", "3000"),
    ("delete.retention.ms", "15000"),
];

/// One deployment: its topics, its group and its configuration.
#[derive(Debug)]
pub struct Deployment {
    /// The topic of events.
    pub events: String,
    /// The topic of verdicts.
    pub decisions: String,
    /// The topic of dead letters.
    pub dlq: String,
    /// The topic of checkpoints.
    pub state: String,
    /// The topic of controls.
    pub controls: String,
    /// The topics of signals, of what is known of subjects, and of alerts; `None` while rules against abuse are off.
    pub abuse: Option<AbuseTopics>,
    /// The consumer group.
    pub group: String,
    /// The binary that is tested; another one may stand in for it, which knows no rules.
    own: PathBuf,
    tollgate: PathBuf,
    config: Value,
    /// Below the cluster's directory.
    directory: PathBuf,
}

/// The topics of a deployment with rules against abuse.
#[derive(Debug, Clone)]
pub struct AbuseTopics {
    /// The topic of signals.
    pub signals: String,
    /// The topic of the abuse stage's checkpoints.
    pub state: String,
    /// The topic of alerts.
    pub alerts: String,
}

impl Deployment {
    /// Creates topics of so many partitions, and a configuration that names them.
    ///
    /// # Errors
    /// The topics cannot be created.
    pub fn new(cluster: &Cluster, partitions: i32) -> Result<Self> {
        Self::with_topic_settings(cluster, partitions, &[], &[])
    }

    /// Creates the topics with settings for events and decisions, and returns the deployment.
    ///
    /// # Errors
    /// The topics cannot be created.
    pub fn with_topic_settings(cluster: &Cluster, partitions: i32, events: &[(&str, &str)], decisions: &[(&str, &str)]) -> Result<Self> {
        let (events, decisions) = (cluster.topic("events", partitions, events)?, cluster.topic("decisions", partitions, decisions)?);
        let dlq = cluster.topic("dlq", 2, &[])?;
        let state = cluster.topic("state", partitions, &STATE_SETTINGS)?;
        let controls = cluster.topic("controls", 1, &[("cleanup.policy", "compact")])?;
        let group = cluster.unique("tollgate");
        let config = json!({
            "kafka": {
                "brokers": cluster.bootstrap(),
                "group_id": group,
                "topics": {"events": events, "decisions": decisions, "dlq": dlq, "state": state, "controls": controls},
                // Nobody is missed who is only slow: what they had decided would be decided again.
                "properties": {"session.timeout.ms": 60_000, "heartbeat.interval.ms": 500, "reconnect.backoff.max.ms": 500},
            },
            "worker": {"members": 1},
        });
        let (own, tollgate) = (cluster.tollgate().to_owned(), cluster.tollgate().to_owned());
        let directory = cluster.directory().join(&group);
        fs::create_dir(&directory)?;
        Ok(Self { events, decisions, dlq, state, controls, abuse: None, group, own, tollgate, config, directory })
    }

    /// Turns rules against abuse on, with signals on so many partitions. Without this they are off, and their topics are not there.
    ///
    /// # Errors
    /// The topics cannot be created.
    pub fn watch_for_abuse(&mut self, cluster: &Cluster, partitions: i32) -> Result<AbuseTopics> {
        let signals = cluster.topic("signals", partitions, &[])?;
        let state = cluster.topic("abuse", partitions, &STATE_SETTINGS)?;
        let alerts = cluster.topic("alerts", 2, &[])?;
        for (key, name) in [("signals", &signals), ("abuse", &state), ("alerts", &alerts)] {
            self.configure(&format!("/kafka/topics/{key}"), json!(name));
        }
        let topics = AbuseTopics { signals, state, alerts };
        self.abuse = Some(topics.clone());
        Ok(topics)
    }

    /// Has members missed soon that are gone without a word, for tests that kill them.
    pub fn miss_members_soon(&mut self) {
        self.configure("/kafka/properties/session.timeout.ms", json!(6_000));
    }

    /// Sets a value of the configuration, by its JSON pointer.
    ///
    /// # Panics
    /// The pointer leads through something that is no section.
    pub fn configure(&mut self, pointer: &str, value: Value) {
        let mut place = &mut self.config;
        for key in pointer.trim_start_matches('/').split('/') {
            place = place.as_object_mut().expect("a section").entry(key).or_insert_with(|| json!({}));
        }
        *place = value;
    }

    /// Returns the policy of this deployment's configuration.
    ///
    /// # Errors
    /// The configuration is not valid.
    pub fn policy(&self) -> Result<Policy> {
        Ok(Policy::new(&PolicySettings::from_value(&self.config)?))
    }

    /// Starts a worker and waits until it is ready.
    ///
    /// # Errors
    /// It does not start, or does not get ready in time: with its log.
    pub fn start(&self) -> Result<Worker> {
        self.start_with(&[])
    }

    /// Starts a worker with further arguments and waits until it is ready.
    ///
    /// # Errors
    /// It does not start, or does not get ready in time: with its log.
    pub fn start_with(&self, arguments: &[&str]) -> Result<Worker> {
        let worker = self.spawn_with("", arguments)?;
        worker.wait_ready()?;
        Ok(worker)
    }

    /// Starts a worker; `instance_id` is its static membership, if not empty.
    ///
    /// # Errors
    /// It does not start.
    pub fn spawn(&self, instance_id: &str) -> Result<Worker> {
        self.spawn_with(instance_id, &[])
    }

    /// Starts a worker with further arguments; `instance_id` is its static membership, if not empty.
    ///
    /// # Errors
    /// It does not start.
    pub fn spawn_with(&self, instance_id: &str, arguments: &[&str]) -> Result<Worker> {
        self.spawn_adapted(|command| {
            command.args(arguments);
            if !instance_id.is_empty() {
                command.env("TOLLGATE__WORKER__INSTANCE_ID", instance_id);
            }
        })
    }

    /// Starts a worker whose command was changed before.
    ///
    /// # Errors
    /// It does not start.
    pub fn spawn_adapted(&self, adapt: impl FnOnce(&mut Command)) -> Result<Worker> {
        self.spawn_command("run", adapt)
    }

    /// Starts a server: `tollgate serve`.
    ///
    /// # Errors
    /// It does not start.
    pub fn spawn_server(&self) -> Result<Worker> {
        self.spawn_command("serve", |_| ())
    }

    fn spawn_command(&self, subcommand: &str, adapt: impl FnOnce(&mut Command)) -> Result<Worker> {
        let [admin_port] = free_ports()?;
        let log = self.directory.join(format!("{subcommand}-{admin_port}.log"));
        let mut command = self.command(subcommand);
        command.env("TOLLGATE__ADMIN__LISTEN", format!("127.0.0.1:{admin_port}"));
        command.stderr(File::create(&log)?).stdout(Stdio::null());
        adapt(&mut command);
        let child = command.spawn()?;
        Ok(Worker::new(child, admin_port, log))
    }

    /// Returns a `tollgate` command with this deployment's configuration.
    ///
    /// # Panics
    /// The configuration cannot be written.
    #[must_use]
    pub fn command(&self, subcommand: &str) -> Command {
        // A worker that was started a moment ago may be reading the file just now.
        let (path, new) = (self.directory.join("tollgate.yaml"), self.directory.join("new.yaml"));
        let written = fs::write(&new, self.config.to_string()).and_then(|()| fs::rename(&new, &path));
        written.expect("the temporary directory is there");
        let mut command = Command::new(&self.tollgate);
        command.arg("--config").arg(path).arg(subcommand);
        if self.abuse.is_none() && self.tollgate == self.own {
            command.env("TOLLGATE__ABUSE__PACK", "off");
        }
        command
    }

    /// Returns the verdicts of `tollgate eval` on the same events: lines in order.
    ///
    /// # Errors
    /// It fails.
    pub fn eval(&self, events: &[Outgoing]) -> Result<Vec<String>> {
        let path = self.directory.join("events.jsonl");
        let mut file = File::create(&path)?;
        for event in events {
            file.write_all(event.value.as_deref().unwrap_or_default())?;
            file.write_all(b"\n")?;
        }
        let output = self.command("eval").arg(&path).output()?;
        ensure!(matches!(output.status.code(), Some(0 | 3)), "eval: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    }

    /// Reads decisions until there are verdicts on so many different events.
    ///
    /// # Errors
    /// They do not come in time.
    pub fn verdicts(&self, cluster: &Cluster, count: usize) -> Result<Vec<Record>> {
        cluster.read_until(&self.decisions, |records| records.len() >= count && distinct_events(records) >= count)
    }
}
