//! The fleet: pairs of a worker and a member of the plain group, which suffer the same at the same moments.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tollgate_testkit::{Deployment, Worker};

use super::clock::Chronicle;
use super::plain::Plain;

/// How many workers there are, and members of the plain group.
pub(crate) const PAIRS: usize = 2;
const KILL_TIME_MAX: Duration = Duration::from_secs(120);
/// How long a stop may take: the drain timeout, and what a busy machine adds to it.
const STOP_TIME_MAX: Duration = Duration::from_secs(240);
/// The end of a log that a finding shows.
const TAIL_LINES: usize = 25;

struct Pair {
    /// The static membership of both; empty if they have none.
    instance: String,
    worker: Option<Worker>,
    plain: Option<Plain>,
}

/// All pairs, and what was found out about their processes.
pub(crate) struct Fleet<'f> {
    deployment: &'f Deployment,
    chronicle: &'f Chronicle,
    directory: PathBuf,
    pairs: Vec<Pair>,
    /// The notes of all members of the plain group so far.
    pub(crate) notes: Vec<PathBuf>,
    /// The logs of all workers so far.
    pub(crate) logs: Vec<PathBuf>,
    /// What no worker should have done.
    pub(crate) findings: Vec<String>,
}

impl<'f> Fleet<'f> {
    /// Starts all pairs and waits until the workers are ready.
    pub(crate) fn start(deployment: &'f Deployment, chronicle: &'f Chronicle, directory: PathBuf, is_static: bool) -> Result<Self> {
        let instance = |number: usize| if is_static { format!("pod-{number}") } else { String::new() };
        let pairs = (0..PAIRS).map(|number| Pair { instance: instance(number), worker: None, plain: None }).collect();
        let (notes, logs, findings) = (Vec::new(), Vec::new(), Vec::new());
        let mut fleet = Self { deployment, chronicle, directory, pairs, notes, logs, findings };
        for number in 0..PAIRS {
            fleet.start_pair(number)?;
        }
        for number in 0..PAIRS {
            fleet.wait_ready(number)?;
        }
        Ok(fleet)
    }

    pub(crate) fn start_pair(&mut self, number: usize) -> Result<()> {
        let pair = &mut self.pairs[number];
        let command = self.deployment.command("run");
        let config = command.get_args().nth(1).context("a command names its configuration")?;
        let notes = self.directory.join(format!("plain-{}.notes", self.notes.len()));
        pair.plain = Some(Plain::spawn(config.as_ref(), &format!("{}-plain", self.deployment.group), &pair.instance, &notes)?);
        let worker = self.deployment.spawn(&pair.instance)?;
        self.chronicle.note(format_args!("start worker {number}, process {}", worker.id()))?;
        self.logs.push(worker.log_path().to_owned());
        self.notes.push(notes);
        pair.worker = Some(worker);
        Ok(())
    }

    pub(crate) fn wait_ready(&self, number: usize) -> Result<()> {
        self.worker(number)?.wait_ready()
    }

    fn worker(&self, number: usize) -> Result<&Worker> {
        self.pairs[number].worker.as_ref().with_context(|| format!("worker {number} is down"))
    }

    /// Kills a pair, as a crash would.
    pub(crate) fn kill(&mut self, number: usize) -> Result<()> {
        self.check(number)?;
        self.chronicle.note(format_args!("kill worker {number}"))?;
        let pair = &mut self.pairs[number];
        pair.plain = None;
        if let Some(mut worker) = pair.worker.take() {
            if worker.ended()?.is_none() {
                worker.signal("KILL")?;
            }
            worker.wait(KILL_TIME_MAX)?;
        }
        Ok(())
    }

    /// Freezes a pair, or lets it go on.
    pub(crate) fn freeze(&mut self, number: usize, is_frozen: bool) -> Result<()> {
        self.check(number)?;
        self.chronicle.note(format_args!("{} worker {number}", if is_frozen { "freeze" } else { "thaw" }))?;
        let (pair, signal) = (&self.pairs[number], if is_frozen { "STOP" } else { "CONT" });
        pair.plain.as_ref().context("a plain member")?.signal(signal)?;
        self.worker(number)?.signal(signal)
    }

    /// Asks a pair to stop, and waits until it has.
    pub(crate) fn stop(&mut self, number: usize) -> Result<()> {
        self.check(number)?;
        self.chronicle.note(format_args!("stop worker {number}"))?;
        let pair = &mut self.pairs[number];
        let (Some(mut worker), Some(mut plain)) = (pair.worker.take(), pair.plain.take()) else { return Ok(()) };
        // Both at the same moment: neither group should have a head start.
        worker.signal("TERM")?;
        plain.signal("TERM")?;
        let asked = Instant::now();
        match worker.wait(STOP_TIME_MAX) {
            Ok(status) if status.success() => {}
            Ok(status) => self.findings.push(format!("worker {number} stopped with {status}:\n{}", tail(&worker.log()))),
            Err(error) => self.findings.push(format!("worker {number}: {error}")),
        }
        self.chronicle.note(format_args!("worker {number} has stopped after {:.1} s", asked.elapsed().as_secs_f64()))?;
        plain.wait()
    }

    /// Stops a pair while all brokers are in sync and nothing is left to decide. A worker that gives verdicts up then is a finding, and so
    /// is one whose time is over, which ends with a failure. What it says of itself just before is kept beside its log.
    pub(crate) fn stop_in_peace(&mut self, number: usize) -> Result<()> {
        let log = self.worker(number)?.log_path().to_owned();
        for (page, extension) in [("/metrics", "metrics"), ("/readyz", "readyz")] {
            if let Ok((_, text)) = self.worker(number)?.get(page) {
                std::fs::write(log.with_extension(extension), text)?;
            }
        }
        let known = std::fs::read_to_string(&log)?.len();
        self.stop(number)?;
        let log = std::fs::read_to_string(log)?;
        let said = log.get(known..).unwrap_or_default();
        // The state may be left to the next worker: the group is rebalanced when the one before it leaves.
        let gave_up = |line: &str| line.contains("not drained in time") && !line.contains("unacknowledged=0 ");
        if said.lines().any(gave_up) {
            self.findings.push(format!("worker {number} gave verdicts up though nothing was left to do:\n{}", tail(said)));
        }
        Ok(())
    }

    /// Notes a process that has ended though nobody asked it to, and starts another one in its place.
    pub(crate) fn check(&mut self, number: usize) -> Result<()> {
        let pair = &mut self.pairs[number];
        if let Some(plain) = &mut pair.plain {
            ensure!(!plain.has_ended()?, "a plain member has ended: see its log beside {:?}", self.notes.last());
        }
        let Some(worker) = &mut pair.worker else { return Ok(()) };
        if let Some(status) = worker.ended()? {
            self.findings.push(format!("worker {number} ended by itself with {status}:\n{}", tail(&worker.log())));
            let worker = self.deployment.spawn(&pair.instance)?;
            self.logs.push(worker.log_path().to_owned());
            pair.worker = Some(worker);
        }
        Ok(())
    }

    /// Starts the pairs that are down.
    pub(crate) fn complete(&mut self) -> Result<()> {
        for number in 0..PAIRS {
            if self.pairs[number].worker.is_none() {
                self.start_pair(number)?;
            }
            self.check(number)?;
        }
        Ok(())
    }

    /// Waits until every worker is ready. One that does not get ready in the end is a finding.
    pub(crate) fn wait_recovered(&mut self) -> Result<()> {
        for number in 0..PAIRS {
            self.check(number)?;
            if let Err(error) = self.wait_ready(number) {
                let ready = self.worker(number)?.get("/readyz");
                self.findings.push(format!("worker {number} does not recover: {ready:?}\n{}", tail(&format!("{error}"))));
            }
        }
        Ok(())
    }
}

/// Returns the last lines of a log.
pub(crate) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
