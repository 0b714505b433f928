//! Runs the fleet, the workers of one group, and kills, freezes, adds and removes them.

use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};

use crate::traffic::Random;
use tollgate_testkit::{Deployment, Worker};

use super::report::{Deeds, Findings};

/// How long a worker may take to stop when it is asked to.
const STOP_TIME_MAX: Duration = Duration::from_secs(240);
/// How long the group may take to decide the rest in the end.
const END_TIME_MAX: Duration = Duration::from_secs(400);
const KILL_TIME_MAX: Duration = Duration::from_secs(120);
/// Workers of the group.
const WORKERS_MIN: usize = 3;
const WORKERS_MAX: usize = 5;
/// The names of the static members. The others have no name.
const PODS: [&str; 2] = ["pod-a", "pod-b"];
/// The end of a worker's log tells why it ended.
const LOG_TAIL_LINES: usize = 25;

const ENDED: &str = "workers that ended by themselves";
const STOPPED_BADLY: &str = "workers that did not stop as asked";
const PANICKED: &str = "workers that panicked";
const UNDECIDED: &str = "ends that were not reached in time";

/// Lines of workers' logs that are counted.
const LOGGED: [(&str, &str); 6] = [
    ("restored", " restored "),
    ("assignments", " assigned "),
    ("revocations", " revoked "),
    ("member restarts", " member failed"),
    ("lost marks", " have lost the end of a transaction "),
    ("checkpoints written again", " have lost the commit of a checkpoint"),
];

/// The workers of one group, and the faults done to them so far.
pub(super) struct Fleet<'g> {
    deployment: &'g Deployment,
    random: Random,
    running: Vec<Pod>,
    leaving: Vec<(Pod, Instant)>,
    /// When workers are to be started, and by what name.
    due: Vec<(Instant, &'static str)>,
    pub(super) deeds: Deeds,
    pub(super) findings: Findings,
    /// The file for everything that was done, if one was asked for.
    chronicle: Option<File>,
}

struct Pod {
    worker: Worker,
    /// Its static membership; empty if it has none.
    name: &'static str,
    frozen_until: Option<Instant>,
}

impl<'g> Fleet<'g> {
    /// Starts four workers, two of them static members.
    pub(super) fn start(deployment: &'g Deployment, seed: u64) -> Result<Self> {
        let (deeds, mut findings) = (Deeds::default(), Findings::default());
        findings.look_for(&[ENDED, STOPPED_BADLY, PANICKED, UNDECIDED]);
        let (running, leaving, due) = (Vec::new(), Vec::new(), Vec::new());
        let chronicle = std::env::var_os("TOLLGATE_CHAOS_LOG").map(File::create).transpose()?;
        let mut fleet = Self { deployment, random: Random(seed), running, leaving, due, deeds, findings, chronicle };
        for name in [PODS[0], PODS[1], "", ""] {
            fleet.spawn(name)?;
        }
        fleet.wait_ready()?;
        Ok(fleet)
    }

    /// Waits until all are ready.
    pub(super) fn wait_ready(&self) -> Result<()> {
        self.running.iter().try_for_each(|pod| pod.worker.wait_ready())
    }

    fn spawn(&mut self, name: &'static str) -> Result<()> {
        self.deeds.workers += 1;
        let pod = Pod { worker: self.deployment.spawn(name)?, name, frozen_until: None };
        self.note(format_args!("start {pod}"))?;
        self.running.push(pod);
        Ok(())
    }

    /// Writes down what is done.
    pub(super) fn note(&mut self, what: impl Display) -> Result<()> {
        if let Some(chronicle) = &mut self.chronicle {
            writeln!(chronicle, "== {} {what}", now_ms()?)?;
        }
        Ok(())
    }

    /// Starts the workers that are due, and deals with those that have ended.
    pub(super) fn tick(&mut self) -> Result<()> {
        let now = Instant::now();
        let (due, later) = self.due.iter().partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.due = later;
        for (_, name) in due {
            self.spawn(name)?;
        }
        for at in 0..self.running.len() {
            if self.running[at].frozen_until.is_some_and(|until| until <= now) {
                self.thaw(at)?;
            }
        }
        self.reap()
    }

    fn reap(&mut self) -> Result<()> {
        for at in (0..self.running.len()).rev() {
            if let Some(status) = self.running[at].worker.ended()? {
                let pod = self.running.swap_remove(at);
                self.findings.add(ENDED, || format!("{status}; the end of its log:\n{}", tail(&pod.worker.log())));
                self.due.push((Instant::now(), pod.name));
                self.count_log(pod)?;
            }
        }
        for at in (0..self.leaving.len()).rev() {
            let (pod, asked) = &mut self.leaving[at];
            let ended = pod.worker.ended()?;
            if ended.is_none() && asked.elapsed() < STOP_TIME_MAX {
                continue;
            }
            let (mut pod, _) = self.leaving.swap_remove(at);
            if !ended.is_some_and(|status| status.success()) {
                self.findings.add(STOPPED_BADLY, || format!("{ended:?}; the end of its log:\n{}", tail(&pod.worker.log())));
                end(&mut pod.worker)?;
            }
            self.count_log(pod)?;
        }
        Ok(())
    }

    /// Counts the log lines of a worker that has ended.
    fn count_log(&mut self, pod: Pod) -> Result<()> {
        let log = pod.worker.log();
        self.note(format_args!("{pod} has ended; its log:\n{log}"))?;
        for (what, text) in LOGGED {
            *self.deeds.logged.entry(what).or_default() += log.lines().filter(|line| line.contains(text)).count() as u64;
        }
        if log.contains("panicked at") {
            self.findings.add(PANICKED, || tail(log.split_inclusive("panicked at").next().unwrap_or_default()));
        }
        pod.worker.remove_log()
    }

    /// Does one fault or change, whichever the dice say and the fleet allows.
    pub(super) fn act(&mut self) -> Result<()> {
        match self.random.below(100) {
            0..10 if self.frozen() == 0 => self.freeze(),
            10..18 if self.count() < WORKERS_MAX => {
                self.deeds.adds += 1;
                self.spawn("")
            }
            18..26 if self.count() > WORKERS_MIN => self.remove(),
            _ => self.kill(),
        }
    }

    /// Returns how many workers there are or will be at once.
    fn count(&self) -> usize {
        self.running.len() + self.due.len()
    }

    fn frozen(&self) -> usize {
        self.running.iter().filter(|pod| pod.frozen_until.is_some()).count()
    }

    /// Kills any worker, a frozen one too, and has another one started in its place at once or soon.
    fn kill(&mut self) -> Result<()> {
        let (choice, pause) = (self.random.below(1 << 20), self.random.below(1_200).saturating_sub(500));
        // Most of the frozen workers should be thawed and not killed.
        let is_any = choice % 8 == 0;
        let candidates: Vec<usize> = (0..self.running.len()).filter(|at| is_any || self.running[*at].frozen_until.is_none()).collect();
        if candidates.is_empty() {
            return Ok(());
        }
        let mut pod = self.running.swap_remove(candidates[choice / 8 % candidates.len()]);
        self.note(format_args!("kill {pod}"))?;
        end(&mut pod.worker)?;
        self.deeds.kills += 1;
        self.deeds.kills_while_starting += u64::from(!pod.worker.log().contains(" assigned "));
        self.due.push((Instant::now() + Duration::from_millis(pause as u64), pod.name));
        self.count_log(pod)
    }

    /// Freezes a worker until the group has given its partitions to others.
    fn freeze(&mut self) -> Result<()> {
        let (choice, extra) = (self.random.below(1 << 20), self.random.below(3_000));
        if self.running.is_empty() {
            return Ok(());
        }
        let at = choice % self.running.len();
        let pod = &mut self.running[at];
        pod.worker.signal("STOP")?;
        pod.frozen_until = Some(Instant::now() + super::SESSION_TIMEOUT + Duration::from_millis(extra as u64 + 300));
        self.deeds.freezes += 1;
        let pod = pod.to_string();
        self.note(format_args!("freeze {pod}"))
    }

    fn thaw(&mut self, at: usize) -> Result<()> {
        self.running[at].frozen_until = None;
        self.deeds.thaws += 1;
        let pod = self.running[at].to_string();
        self.note(format_args!("thaw {pod}"))?;
        self.running[at].worker.signal("CONT")
    }

    /// Asks a worker without a name to stop, if there is one that is awake and listens to signals already.
    fn remove(&mut self) -> Result<()> {
        let listens = |pod: &Pod| pod.name.is_empty() && pod.frozen_until.is_none() && pod.worker.get("/livez").is_ok();
        let Some(at) = self.running.iter().position(listens) else { return Ok(()) };
        let pod = self.running.swap_remove(at);
        self.note(format_args!("stop {pod}"))?;
        pod.worker.signal("TERM")?;
        self.deeds.removes += 1;
        self.leaving.push((pod, Instant::now()));
        Ok(())
    }

    /// Completes what is in progress: thaws the frozen workers, starts those that are due, waits for those that leave.
    pub(super) fn settle(&mut self) -> Result<()> {
        for at in 0..self.running.len() {
            if self.running[at].frozen_until.is_some() {
                self.thaw(at)?;
            }
        }
        self.due.iter_mut().for_each(|(at, _)| *at = Instant::now());
        self.tick()?;
        while !self.leaving.is_empty() {
            std::thread::sleep(super::TICK);
            self.tick()?;
        }
        Ok(())
    }

    /// Waits until nothing is left to decide. If that takes too long, it is a finding like others.
    pub(super) fn wait_until_decided(&mut self, left: impl Fn() -> Result<u64>) -> Result<()> {
        let deadline = Instant::now() + END_TIME_MAX;
        while left().map_or(true, |left| left > 0) {
            if Instant::now() > deadline {
                let logs: Vec<_> = self.running.iter().map(|pod| format!("{pod}:\n{}", tail(&pod.worker.log()))).collect();
                self.findings.add(UNDECIDED, || format!("{:?} records are left; the ends of all logs:\n{}", left(), logs.join("\n")));
                break;
            }
            self.tick()?;
            std::thread::sleep(super::TICK);
        }
        Ok(())
    }

    /// Asks all workers to stop and waits until they have.
    pub(super) fn stop(&mut self) -> Result<()> {
        self.settle()?;
        self.wait_ready()?;
        let now = Instant::now();
        for pod in std::mem::take(&mut self.running) {
            pod.worker.signal("TERM")?;
            self.leaving.push((pod, now));
        }
        while !self.leaving.is_empty() {
            std::thread::sleep(super::TICK);
            self.reap()?;
        }
        ensure!(self.running.is_empty());
        Ok(())
    }
}

impl Display for Pod {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} {}", self.worker.id(), self.name)
    }
}

/// Returns the milliseconds since 1970.
pub(super) fn now_ms() -> Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

fn end(worker: &mut Worker) -> Result<()> {
    if worker.ended()?.is_none() {
        worker.signal("KILL")?;
    }
    worker.wait(KILL_TIME_MAX).map(drop)
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}
