//! Starts, watches and stops the system under test: a process with a group of its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::Usage;
use tollgate_config::settings::TopicSettings;
use tollgate_testkit::{DENIED_TOOL, ProcessGuard, admin_page, free_ports, metric_of};

const READY_TIME_MAX: Duration = Duration::from_secs(60);
const STOP_TIME_MAX: Duration = Duration::from_secs(45);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A system that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The gate: `tollgate run`.
    Gate,
    /// The pass-through: `tollgate run --pass-through`.
    PassThrough,
    /// The gate with other settings.
    Variant(Variant),
    /// The gate over HTTP, beside a worker: `tollgate serve`, which listens on this port of loopback.
    Server(u16),
    /// A baseline: any command.
    Baseline {
        /// Its name.
        name: String,
        /// The command that the shell runs.
        command: String,
    },
}

impl Subject {
    /// Returns its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Gate => "tollgate",
            Self::PassThrough => "pass-through",
            Self::Variant(variant) => variant.name,
            Self::Server(_) => "serve",
            Self::Baseline { name, .. } => name,
        }
    }

    /// Returns how many subjects are suspended before it starts.
    pub fn suspended(&self) -> u32 {
        if let Self::Variant(variant) = self { variant.suspended } else { 0 }
    }
}

/// The gate with other settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// What follows `run`.
    pub arguments: &'static [&'static str],
    /// Settings, by the variables of the environment that hold them.
    pub environment: Vec<(&'static str, String)>,
    /// How many subjects are suspended before it starts.
    pub suspended: u32,
}

/// How `tollgate` was started, so that workers are started alike.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The binary.
    pub binary: PathBuf,
    /// The configuration file, if there is one.
    pub config: Option<PathBuf>,
    /// `-X` properties.
    pub properties: Vec<String>,
    /// The brokers.
    pub brokers: String,
}

/// A process under test. Dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    guard: ProcessGuard,
    subject: Subject,
    admin_port: u16,
    group: u32,
}

impl Worker {
    /// Starts a process that reads these topics as this group.
    pub fn start(invocation: &Invocation, subject: &Subject, topics: &TopicSettings, group_id: &str) -> Result<Self> {
        let mut guard = ProcessGuard::start()?;
        let [admin_port] = free_ports()?;
        let mut command = match subject {
            Subject::Gate | Subject::PassThrough | Subject::Variant(_) | Subject::Server(_) => ours(invocation, subject),
            Subject::Baseline { command, .. } => {
                let mut shell = Command::new("sh");
                shell.args(["-c", command]);
                shell
            }
        };
        for (name, value) in [
            ("TOLLGATE_BROKERS", invocation.brokers.as_str()),
            ("TOLLGATE_EVENTS_TOPIC", &topics.events),
            ("TOLLGATE_DECISIONS_TOPIC", &topics.decisions),
            ("TOLLGATE_GROUP", group_id),
        ] {
            command.env(name, value);
        }
        if matches!(subject, Subject::Baseline { .. }) {
            // Baselines are told what the gate denies without a configuration file. With one, its author knows what they need.
            if invocation.config.is_none() {
                command.env("TOLLGATE_DENIED_TOOLS", DENIED_TOOL);
            }
            command.env("TOLLGATE_STATE_DIR", guard.home().join("state"));
        } else {
            command.env("TOLLGATE__KAFKA__BROKERS", &invocation.brokers).env("TOLLGATE__KAFKA__GROUP_ID", group_id);
            command.env("TOLLGATE__ADMIN__LISTEN", format!("127.0.0.1:{admin_port}"));
            for (name, topic) in [
                ("EVENTS", &topics.events),
                ("DECISIONS", &topics.decisions),
                ("DLQ", &topics.dlq),
                ("CONTROLS", &topics.controls),
                ("ALERTS", &topics.alerts),
                ("SIGNALS", &topics.signals),
                ("ABUSE", &topics.abuse),
                ("REPLIES", &topics.replies),
                ("STATE", &topics.state),
            ] {
                command.env(format!("TOLLGATE__KAFKA__TOPICS__{name}"), topic);
            }
        }
        guard.run(&command).with_context(|| format!("{} cannot be started", subject.name()))?;
        let group = guard.id().context("a process has an id")?;
        Ok(Self { guard, subject: subject.clone(), admin_port, group })
    }

    /// Waits until `/readyz` says that it is ready; a baseline only has to run.
    pub fn wait_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_TIME_MAX;
        while !self.is_ready() {
            self.check()?;
            ensure!(Instant::now() < deadline, "{} does not get ready:\n{}", self.subject.name(), self.guard.log_tail());
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Returns whether `/readyz` says that it is ready; a baseline always is.
    pub fn is_ready(&self) -> bool {
        if matches!(self.subject, Subject::Baseline { .. }) {
            return true;
        }
        admin_page(self.admin_port, "/readyz").is_ok_and(|(status, _)| status == 200)
    }

    /// Returns the sum of all series of one of its metrics; zero where there is none yet.
    pub fn metric(&self, name: &str) -> Result<f64> {
        Ok(metric_of(&admin_page(self.admin_port, "/metrics")?.1, name))
    }

    /// Checks that it is still running.
    pub fn check(&mut self) -> Result<()> {
        if !self.guard.is_running()? {
            bail!("{} ended; its log:\n{}", self.subject.name(), self.guard.log_tail());
        }
        Ok(())
    }

    /// Sends a signal (`STOP`, `CONT`).
    pub fn signal(&mut self, name: &str) -> Result<()> {
        self.guard.signal(name)
    }

    /// Reads what it has used by now.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of_group(self.group)
    }

    /// Returns the end of its log.
    pub fn log_tail(&self) -> String {
        self.guard.log_tail()
    }

    /// Asks it to stop and waits until it has; a baseline that does not is killed.
    pub fn stop(mut self) -> Result<()> {
        if self.guard.is_running()? {
            self.guard.signal("TERM")?;
            if let Err(error) = self.guard.wait(STOP_TIME_MAX)
                && !matches!(self.subject, Subject::Baseline { .. })
            {
                return Err(error.context(self.guard.log_tail()));
            }
        }
        Ok(())
    }
}

/// Returns the command of a process of `tollgate`. Without a configuration file the policy is the default one with a list of denied
/// tools, so that the mix's denials come out.
fn ours(invocation: &Invocation, subject: &Subject) -> Command {
    let mut command = Command::new(&invocation.binary);
    match &invocation.config {
        Some(path) => _ = command.arg("--config").arg(path),
        None => {
            let provider = format!(r#"{{"use": "allowlist", "config": {{"denied_tools": ["{DENIED_TOOL}"]}}}}"#);
            command.env("TOLLGATE__GUARDRAILS__ENABLED", "true").env("TOLLGATE__GUARDRAILS__PROVIDER", provider);
        }
    }
    command.args(invocation.properties.iter().flat_map(|property| [OsString::from("-X"), OsString::from(property)]));
    command.arg(if matches!(subject, Subject::Server(_)) { "serve" } else { "run" });
    match subject {
        Subject::Server(port) => _ = command.arg(format!("--listen=127.0.0.1:{port}")),
        Subject::PassThrough => _ = command.arg("--pass-through"),
        Subject::Variant(Variant { arguments, environment, .. }) => {
            command.args(*arguments).envs(environment.iter().map(|(name, value)| (*name, value)));
        }
        Subject::Gate | Subject::Baseline { .. } => {}
    }
    command
}
