//! The fleet: the workers of a group, which are killed, frozen, added and removed. A member of the plain group may stand beside a worker, and
//! then suffers the same at the same moments.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tollgate_testkit::{Deployment, Random, Worker};

use super::clock::Chronicle;
use super::plain::Plain;
use super::report::{FaultCounts, Findings};

pub(super) const TICK: Duration = Duration::from_millis(20);
/// How long a worker may take to stop: the drain timeout, and what a busy machine adds to it.
const STOP_TIME_MAX: Duration = Duration::from_secs(240);
/// How long the groups may take to decide and read the rest in the end.
const END_TIME_MAX: Duration = Duration::from_secs(400);
/// How many workers there are at least and at most where they are added and removed.
const WORKERS_MIN: usize = 3;
const WORKERS_MAX: usize = 5;
/// The end of a worker's log tells why it ended.
const LOG_TAIL_LINES: usize = 25;

const ENDED: &str = "workers that ended by themselves";
const STOPPED_BADLY: &str = "workers that did not stop as asked";
const NOT_READY: &str = "workers that did not get ready";
const PANICKED: &str = "workers that panicked";
const GAVE_UP: &str = "workers that gave up verdicts at rest";
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

/// What a worker of the fleet is started as.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Member {
    /// Its static membership; empty if it has none.
    pub(crate) name: &'static str,
    /// The stage that it runs alone; empty for all stages.
    pub(crate) stage: &'static str,
    /// Whether a member of the plain group stands beside it.
    pub(crate) is_paired: bool,
}

/// The workers of one group, and the faults done to them so far.
pub(crate) struct WorkerGroup<'g> {
    deployment: &'g Deployment,
    chronicle: &'g Chronicle,
    /// The worker that was started first comes first.
    running: Vec<Pod>,
    leaving: Vec<Leaving>,
    /// When workers are to be started, and which.
    due: Vec<(Instant, Member)>,
    /// The notes of all members of the plain group so far.
    pub(super) notes: Vec<PathBuf>,
    pub(super) fault_counts: FaultCounts,
    pub(super) findings: Findings,
}

/// A worker, and the member of the plain group beside it.
struct Pod {
    member: Member,
    worker: Worker,
    plain: Option<Plain>,
    frozen_until: Option<Instant>,
}

/// A worker that was asked to stop.
struct Leaving {
    pod: Pod,
    asked: Instant,
    /// Whether it is started again once it has ended.
    is_back_soon: bool,
    /// How much it had logged when it was asked to stop, if nothing was left to do then.
    logged_at_rest: Option<usize>,
}

impl<'g> WorkerGroup<'g> {
    /// Starts these workers and waits until they are ready.
    pub(crate) fn start(deployment: &'g Deployment, chronicle: &'g Chronicle, members: &[Member]) -> Result<Self> {
        let mut findings = Findings::default();
        findings.look_for(&[ENDED, STOPPED_BADLY, NOT_READY, PANICKED, GAVE_UP, UNDECIDED]);
        let (running, leaving, due, notes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut fleet = Self { deployment, chronicle, running, leaving, due, notes, fault_counts: FaultCounts::default(), findings };
        members.iter().try_for_each(|member| fleet.spawn(*member))?;
        fleet.wait_ready();
        Ok(fleet)
    }

    /// Waits until all are ready. A worker that does not get ready is a finding.
    pub(crate) fn wait_ready(&mut self) {
        for pod in &self.running {
            if let Err(error) = pod.worker.wait_ready() {
                self.findings.add(NOT_READY, || format!("{pod}: {:?}\n{}", pod.worker.get("/readyz"), tail(&error.to_string())));
            }
        }
    }

    fn spawn(&mut self, member: Member) -> Result<()> {
        let mut plain = None;
        if member.is_paired {
            let command = self.deployment.command("run");
            let config = command.get_args().nth(1).context("a command names its configuration")?;
            let notes = self.chronicle.directory.join(format!("plain-{}.notes", self.notes.len()));
            plain = Some(Plain::spawn(config.as_ref(), &plain_group(self.deployment), member.name, &notes)?);
            self.notes.push(notes);
        }
        let stage: &[&str] = if member.stage.is_empty() { &[] } else { &["--stage", member.stage] };
        let pod = Pod { member, worker: self.deployment.spawn_with(member.name, stage)?, plain, frozen_until: None };
        self.fault_counts.workers += 1;
        self.chronicle.note(format_args!("start {pod}"))?;
        self.running.push(pod);
        Ok(())
    }

    /// Does what is due for so long.
    pub(super) fn rest(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.tick()?;
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    /// Starts the workers that are due, and deals with those that have ended.
    pub(super) fn tick(&mut self) -> Result<()> {
        let now = Instant::now();
        let (due, later) = self.due.iter().partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.due = later;
        due.into_iter().try_for_each(|(_, member)| self.spawn(member))?;
        for at in 0..self.running.len() {
            if self.running[at].frozen_until.is_some_and(|until| until <= now) {
                self.thaw(at)?;
            }
        }
        self.reap()
    }

    fn reap(&mut self) -> Result<()> {
        for at in (0..self.running.len()).rev() {
            let pod = &mut self.running[at];
            if let Some(plain) = &mut pod.plain {
                ensure!(!plain.has_ended()?, "a plain member has ended; logs are in {}", self.chronicle.directory.display());
            }
            if let Some(status) = pod.worker.ended()? {
                let pod = self.running.remove(at);
                self.findings.add(ENDED, || format!("{pod}: {status}; the end of its log:\n{}", tail(&pod.worker.log())));
                self.due.push((Instant::now(), pod.member));
                self.count_log(&pod)?;
            }
        }
        for at in (0..self.leaving.len()).rev() {
            let Leaving { pod, asked, .. } = &mut self.leaving[at];
            let ended = pod.worker.ended()?;
            if ended.is_none() && asked.elapsed() < STOP_TIME_MAX {
                continue;
            }
            let Leaving { mut pod, is_back_soon, logged_at_rest, .. } = self.leaving.remove(at);
            if !ended.is_some_and(|status| status.success()) {
                self.findings.add(STOPPED_BADLY, || format!("{pod}: {ended:?}; the end of its log:\n{}", tail(&pod.worker.log())));
                end(&mut pod.worker)?;
            }
            pod.plain.as_mut().map_or(Ok(()), Plain::wait)?;
            // The state may be left to the next worker: the group is rebalanced when the one before it leaves.
            let gave_up = |line: &str| line.contains("not drained in time") && !line.contains("unacknowledged=0 ");
            let log = pod.worker.log();
            if let Some(said) = logged_at_rest.and_then(|known| log.get(known..)).filter(|said| said.lines().any(gave_up)) {
                self.findings.add(GAVE_UP, || format!("{pod}:\n{}", tail(said)));
            }
            if is_back_soon {
                self.due.push((Instant::now(), pod.member));
            }
            self.count_log(&pod)?;
        }
        Ok(())
    }

    /// Counts the log lines of a worker that has ended.
    fn count_log(&mut self, pod: &Pod) -> Result<()> {
        let log = pod.worker.log();
        self.chronicle.note(format_args!("{pod} has ended"))?;
        for (what, text) in LOGGED {
            *self.fault_counts.logged.entry(what).or_default() += log.lines().filter(|line| line.contains(text)).count() as u64;
        }
        if let Some((before, _)) = log.split_once("panicked at") {
            self.findings.add(PANICKED, || format!("{pod}, see {}:\n{}", pod.worker.log_path().display(), tail(before)));
        }
        Ok(())
    }

    /// Does one fault or change, whichever the dice say and the fleet allows. A worker is frozen for this long and up to three seconds.
    pub(super) fn act(&mut self, random: &mut Random, frozen: Duration) -> Result<()> {
        let count = self.running.len() + self.due.len();
        let is_one_frozen = self.running.iter().any(|pod| pod.frozen_until.is_some());
        match random.below(100) {
            0..10 if !is_one_frozen && !self.running.is_empty() => {
                let at = random.below(self.running.len());
                self.freeze(at, frozen + Duration::from_millis(random.below(3_000) as u64))
            }
            10..18 if count < WORKERS_MAX => {
                self.fault_counts.adds += 1;
                self.spawn(Member::default())
            }
            18..26 if count > WORKERS_MIN => self.remove(),
            _ => {
                let pause = Duration::from_millis(random.below(1_200).saturating_sub(500) as u64);
                // Most of the frozen workers should be thawed and not killed.
                let is_any = random.below(8) == 0;
                let candidates: Vec<_> = (0..self.running.len()).filter(|at| is_any || self.running[*at].frozen_until.is_none()).collect();
                if candidates.is_empty() { Ok(()) } else { self.kill(candidates[random.below(candidates.len())], pause) }
            }
        }
    }

    /// Returns how many workers are running, frozen ones among them.
    pub(crate) fn count(&self) -> usize {
        self.running.len()
    }

    /// Kills a worker, as a crash would, and has another one started in its place after a pause.
    pub(crate) fn kill(&mut self, at: usize, pause: Duration) -> Result<()> {
        let mut pod = self.running.remove(at);
        self.chronicle.note(format_args!("kill {pod}"))?;
        pod.plain = None;
        end(&mut pod.worker)?;
        self.fault_counts.kills += 1;
        self.fault_counts.kills_while_starting += u64::from(!pod.worker.log().contains(" assigned "));
        self.due.push((Instant::now() + pause, pod.member));
        self.count_log(&pod)
    }

    /// Freezes a worker for so long.
    pub(super) fn freeze(&mut self, at: usize, time: Duration) -> Result<()> {
        let pod = &mut self.running[at];
        self.chronicle.note(format_args!("freeze {pod}"))?;
        pod.signal("STOP")?;
        pod.frozen_until = Some(Instant::now() + time);
        self.fault_counts.freezes += 1;
        Ok(())
    }

    fn thaw(&mut self, at: usize) -> Result<()> {
        let mut pod = self.running.remove(at);
        self.chronicle.note(format_args!("thaw {pod}"))?;
        pod.frozen_until = None;
        self.fault_counts.thaws += 1;
        pod.signal("CONT")?;
        self.running.push(pod);
        Ok(())
    }

    /// Asks a worker without a name to stop, if there is one that is awake and listens to signals already.
    fn remove(&mut self) -> Result<()> {
        let listens = |pod: &Pod| pod.member.name.is_empty() && pod.frozen_until.is_none() && pod.worker.get("/livez").is_ok();
        self.running.iter().position(listens).map_or(Ok(()), |at| self.leave(at, false, false))
    }

    /// Asks a worker to stop.
    pub(super) fn leave(&mut self, at: usize, is_back_soon: bool, is_at_rest: bool) -> Result<()> {
        let pod = self.running.remove(at);
        self.chronicle.note(format_args!("stop {pod}"))?;
        let logged_at_rest = is_at_rest.then(|| pod.worker.log().len());
        pod.signal("TERM")?;
        self.fault_counts.stops += 1;
        self.leaving.push(Leaving { pod, asked: Instant::now(), is_back_soon, logged_at_rest });
        Ok(())
    }

    /// Completes what is in progress: thaws the frozen workers, starts those that are due, waits for those that leave.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let now = Instant::now();
        self.running.iter_mut().filter(|pod| pod.frozen_until.is_some()).for_each(|pod| pod.frozen_until = Some(now));
        self.due.iter_mut().for_each(|(at, _)| *at = now);
        self.tick()?;
        while !self.leaving.is_empty() || !self.due.is_empty() {
            self.rest(TICK)?;
        }
        Ok(())
    }

    /// Waits until nothing is left to decide or to read. If that takes too long, it is a finding like others.
    pub(super) fn wait_until_decided(&mut self, left: impl Fn() -> Result<u64>) -> Result<()> {
        let deadline = Instant::now() + END_TIME_MAX;
        while left().map_or(true, |left| left > 0) {
            if Instant::now() > deadline {
                let logs: Vec<_> = self.running.iter().map(|pod| format!("{pod}:\n{}", tail(&pod.worker.log()))).collect();
                self.findings.add(UNDECIDED, || format!("{:?} records are left; the ends of all logs:\n{}", left(), logs.join("\n")));
                break;
            }
            self.rest(TICK)?;
        }
        Ok(())
    }

    /// Asks the workers of a stage to stop, all if it is empty, and waits until they have. Nothing is left for them to do.
    pub(crate) fn stop(&mut self, stage: &str) -> Result<()> {
        self.settle()?;
        self.wait_ready();
        for at in (0..self.running.len()).rev() {
            if stage.is_empty() || self.running[at].member.stage == stage {
                self.leave(at, false, true)?;
            }
        }
        self.settle()
    }

    /// Fails if something was found.
    pub(crate) fn has_done_well(&self) -> Result<()> {
        ensure!(self.findings.count() == 0, "{}", self.findings);
        Ok(())
    }
}

impl Pod {
    fn signal(&self, name: &str) -> Result<()> {
        self.plain.as_ref().map_or(Ok(()), |plain| plain.signal(name))?;
        self.worker.signal(name)
    }
}

impl Display for Pod {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} {}{}", self.worker.id(), self.member.name, self.member.stage)
    }
}

/// Returns the name of the plain group beside a deployment's group.
pub(super) fn plain_group(deployment: &Deployment) -> String {
    format!("{}-plain", deployment.group)
}

fn end(worker: &mut Worker) -> Result<()> {
    if worker.ended()?.is_none() {
        worker.signal("KILL")?;
    }
    worker.wait().map(drop)
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}
