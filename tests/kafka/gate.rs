//! The system under test: topics, and `tollgate run` processes of one group on them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tollgate::settings::Settings;
use tollgate_core::policy::Policy;

use crate::context::{Context, Outgoing, Record};

const TOLLGATE: &str = env!("CARGO_BIN_EXE_tollgate");
const READY_TIME_MAX: Duration = Duration::from_secs(40);
const STOP_TIME_MAX: Duration = Duration::from_secs(40);

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
pub(crate) struct Gate {
    pub(crate) events: String,
    pub(crate) decisions: String,
    pub(crate) dlq: String,
    pub(crate) state: String,
    pub(crate) controls: String,
    pub(crate) group: String,
    config: Value,
    directory: tempfile::TempDir,
}

/// A worker process.
pub(crate) struct Worker {
    child: Child,
    admin_port: u16,
    log: PathBuf,
}

impl Gate {
    /// Topics of so many partitions, and a configuration that names them.
    pub(crate) fn new(context: &Context, partitions: i32) -> Result<Self> {
        Self::with_topic_settings(context, partitions, &[], &[], &[])
    }

    /// The same with settings of the events, decisions and dead letter topics.
    pub(crate) fn with_topic_settings(
        context: &Context,
        partitions: i32,
        events: &[(&str, &str)],
        decisions: &[(&str, &str)],
        dlq: &[(&str, &str)],
    ) -> Result<Self> {
        let (events, decisions) = (context.topic("events", partitions, events)?, context.topic("decisions", partitions, decisions)?);
        let dlq = context.topic("dlq", 2, dlq)?;
        let state = context.topic("state", partitions, &STATE_SETTINGS)?;
        let controls = context.topic("controls", 1, &[("cleanup.policy", "compact")])?;
        let group = context.unique("tollgate");
        let config = json!({
            "kafka": {
                "brokers": context.bootstrap(),
                "group_id": group,
                "topics": {"events": events, "decisions": decisions, "dlq": dlq, "state": state, "controls": controls},
                // Quick enough for tests that kill workers.
                "properties": {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "reconnect.backoff.max.ms": 500},
            },
            "worker": {"members": 1},
        });
        Ok(Self { events, decisions, dlq, state, controls, group, config, directory: tempfile::tempdir()? })
    }

    /// Sets a value of the configuration, by its JSON pointer.
    pub(crate) fn configure(&mut self, pointer: &str, value: Value) {
        let mut place = &mut self.config;
        for key in pointer.trim_start_matches('/').split('/') {
            place = place.as_object_mut().expect("a section").entry(key).or_insert_with(|| json!({}));
        }
        *place = value;
    }

    /// The policy of this deployment's configuration.
    pub(crate) fn policy(&self) -> Result<Policy> {
        Ok(Policy::new(&Settings::read(&self.config, &tollgate_core::settings::defaults()?)?.policy))
    }

    /// Starts a worker and waits until it is ready.
    pub(crate) fn start(&self) -> Result<Worker> {
        let worker = self.spawn("")?;
        worker.wait_ready()?;
        Ok(worker)
    }

    /// Starts a worker with further arguments and waits until it is ready.
    pub(crate) fn start_with(&self, arguments: &[&str]) -> Result<Worker> {
        let worker = self.spawn_with("", arguments)?;
        worker.wait_ready()?;
        Ok(worker)
    }

    /// Starts a worker; `instance_id` is its static membership, if not empty.
    pub(crate) fn spawn(&self, instance_id: &str) -> Result<Worker> {
        self.spawn_with(instance_id, &[])
    }

    fn spawn_with(&self, instance_id: &str, arguments: &[&str]) -> Result<Worker> {
        let admin_port = free_port()?;
        let log = self.directory.path().join(format!("worker-{admin_port}.log"));
        let mut command = self.command("run");
        command.args(arguments);
        command.env("TOLLGATE__ADMIN__LISTEN", format!("127.0.0.1:{admin_port}"));
        if !instance_id.is_empty() {
            command.env("TOLLGATE__WORKER__INSTANCE_ID", instance_id);
        }
        let child = command.stderr(File::create(&log)?).stdout(Stdio::null()).spawn()?;
        Ok(Worker { child, admin_port, log })
    }

    /// A `tollgate` command with this deployment's configuration. A worker that was started a moment ago may be reading the file just now.
    pub(crate) fn command(&self, subcommand: &str) -> Command {
        let (path, new) = (self.directory.path().join("tollgate.yaml"), self.directory.path().join("new.yaml"));
        let written = fs::write(&new, self.config.to_string()).and_then(|()| fs::rename(&new, &path));
        written.expect("the temporary directory is there");
        let mut command = Command::new(TOLLGATE);
        command.arg("--config").arg(path).arg(subcommand);
        command
    }

    /// What `tollgate eval` says of the same events: verdict lines in order.
    pub(crate) fn eval(&self, events: &[Outgoing]) -> Result<Vec<String>> {
        let path = self.directory.path().join("events.jsonl");
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
    pub(crate) fn verdicts(&self, context: &Context, count: usize, time_max: Duration) -> Result<Vec<Record>> {
        context.read_until(&self.decisions, time_max, |records| records.len() >= count && distinct_events(records) >= count)
    }
}

fn distinct_events(records: &[Record]) -> usize {
    let mut ids: Vec<_> = records.iter().map(|record| (record.key.clone(), header(record, "event_id"))).collect();
    ids.sort();
    ids.dedup();
    ids.len()
}

impl Worker {
    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `/readyz` says so.
    pub(crate) fn wait_ready(&self) -> Result<()> {
        let deadline = Instant::now() + READY_TIME_MAX;
        while !self.get("/readyz").is_ok_and(|(status, _)| status == 200) {
            ensure!(Instant::now() < deadline, "not ready in time:\n{}", self.log());
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// A page of the admin endpoint: status and body.
    pub(crate) fn get(&self, path: &str) -> Result<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.admin_port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
        let status = head.split_whitespace().nth(1).context("an answer has a status")?.parse()?;
        Ok((status, body.to_owned()))
    }

    /// The value of a metric, summed over its labels.
    pub(crate) fn metric(&self, name: &str) -> Result<f64> {
        let (_, text) = self.get("/metrics")?;
        let is_of = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        Ok(text.lines().filter(is_of).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// The partitions that the worker holds.
    pub(crate) fn partitions(&self) -> Result<Vec<i64>> {
        let (_, body) = self.get("/readyz")?;
        let report: Value = serde_json::from_str(&body)?;
        let members = report["members"].as_array().cloned().unwrap_or_default();
        Ok(members
            .iter()
            .flat_map(|member| member["partitions"].as_array().cloned().unwrap_or_default())
            .filter_map(|n| n.as_i64())
            .collect())
    }

    /// Asks it to stop and waits until it has.
    pub(crate) fn stop(mut self) -> Result<ExitStatus> {
        self.signal("TERM")?;
        self.wait(STOP_TIME_MAX)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status()?;
        ensure!(sent.success(), "kill -{name} failed");
        Ok(())
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self, time_max: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + time_max;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!("the worker did not end in time:\n{}", self.log());
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// How it has ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Removes its log, which nobody wants to see any more.
    pub(crate) fn remove_log(&self) -> Result<()> {
        Ok(fs::remove_file(&self.log)?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has ended, or the test has failed.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// A header of a record as text.
pub(crate) fn header(record: &Record, name: &str) -> String {
    let value = record.headers.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.clone());
    String::from_utf8_lossy(&value.unwrap_or_default()).into_owned()
}

/// A record's value as text.
pub(crate) fn text(record: &Record) -> String {
    String::from_utf8(record.value.clone().unwrap_or_default()).expect("a verdict is UTF-8")
}

/// A record's value as JSON.
pub(crate) fn parsed(record: &Record) -> Value {
    serde_json::from_str(&text(record)).expect("a verdict is JSON")
}

/// Verdicts by thread, each thread's in order; consecutive copies of the same verdict count once.
pub(crate) fn by_thread(verdicts: impl IntoIterator<Item = String>) -> BTreeMap<String, Vec<String>> {
    let mut threads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for verdict in verdicts {
        let value: Value = serde_json::from_str(&verdict).expect("a verdict is JSON");
        let thread = threads.entry(value["thread_id"].as_str().expect("a thread").to_owned()).or_default();
        if thread.last() != Some(&verdict) {
            thread.push(verdict);
        }
    }
    threads
}

/// A port that nobody listens on, another one every time. It is from below the range that systems take the local ports of outgoing
/// connections from: one from that range could be taken by a client before the worker listens on it.
fn free_port() -> Result<u16> {
    const PORTS: u32 = 5_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let port = || 10_000 + (std::process::id() + NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
    let mut ports = (0..PORTS).filter_map(|_| u16::try_from(port()).ok());
    ports.find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok()).context("no free port")
}
