//! A worker: it makes lines, decides, runs what is allowed, and tells what it found.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fastrand::Rng;
use serde::{Deserialize, Serialize};

use crate::minimise::minimise;

use super::files::FOLDERS;
use super::finding::{Finding, Harm};
use super::generate::Generator;
use super::jail::{Jail, Limits, Run, Runner, Shell, self_test};
use super::plan::Plan;
use super::rules::{RULE_SETS, Rules};

/// How long lines of one rule set are run before it is another one's turn.
const TURN: Duration = Duration::from_secs(1);

/// How many lines are remembered, so that none is run twice.
const REMEMBERED_MAX: usize = 4_000_000;

/// How many kinds of findings are told.
const KINDS_MAX: usize = 2_000;

/// How much was done.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Stats {
    /// Lines that were made, per rule set.
    pub(super) made: Vec<u64>,
    /// Lines that were allowed, per rule set.
    pub(super) allowed: Vec<u64>,
    /// Lines that were run in each shell.
    pub(super) run: u64,
    /// Findings like one that was told already.
    pub(super) repeated: u64,
}

/// What a worker tells the first process, one a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    Finding(Box<Finding>),
    /// What was done since the last time.
    Stats(Stats),
    /// A line that was allowed, under its rule set.
    Sample(String, String),
    /// What the self test did not see.
    Fault(String),
    /// Why it cannot go on.
    Error(String),
    /// It is done.
    Ended,
}

pub(super) fn tell(message: &Message) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, message)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Is a worker by a plan in a file.
///
/// # Errors
/// If the jail cannot be built or is of no use any more.
pub(super) fn work(plan: &Path) -> Result<()> {
    match work_by(plan) {
        Ok(()) => tell(&Message::Ended),
        Err(error) => tell(&Message::Error(format!("{error:#}"))),
    }
}

fn work_by(plan: &Path) -> Result<()> {
    let plan: Plan = serde_json::from_slice(&std::fs::read(plan).context("the plan")?).context("the plan")?;
    let limits = if plan.self_test || plan.replay { Limits::CHECKING } else { Limits::FUZZING };
    let mut runner = Runner::new(Jail::build(&plan)?, limits)?;
    if plan.self_test {
        return self_test(&mut runner)?.into_iter().try_for_each(|fault| tell(&Message::Fault(fault)));
    }
    let mut worker = Worker::new(&plan, runner)?;
    if plan.replay { worker.replay() } else { worker.fuzz() }
}

struct Worker<'p> {
    plan: &'p Plan,
    runner: Runner,
    /// The rule sets that are used, each with its place among all.
    rules: Vec<(usize, Rules)>,
    rng: Rng,
    stats: Stats,
    remembered: HashSet<u64>,
    kinds: HashSet<String>,
}

impl<'p> Worker<'p> {
    fn new(plan: &'p Plan, runner: Runner) -> Result<Self> {
        let is_used = |name: &str| plan.rules.is_empty() || plan.rules.iter().any(|rules| rules == name);
        let used = RULE_SETS.into_iter().enumerate().filter(|(_, set)| is_used(set.name));
        let rules = used.map(|(place, set)| Ok((place, Rules::new(set)?))).collect::<Result<_>>()?;
        let rng = Rng::with_seed(plan.seed);
        Ok(Self { plan, runner, rules, rng, stats: zero(), remembered: HashSet::new(), kinds: HashSet::new() })
    }

    /// Runs the lines of the corpus under all rule sets, in the first folder.
    fn replay(&mut self) -> Result<()> {
        for at in 0..self.rules.len() {
            self.prepare(at)?;
            for line in &self.plan.corpus {
                self.check(at, line, FOLDERS[0])?;
            }
            self.tell_stats()?;
        }
        Ok(())
    }

    fn fuzz(&mut self) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(self.plan.seconds);
        let mut generators: Vec<Generator> = Vec::new();
        for (_, rules) in &self.rules {
            generators.push(Generator::new(self.rng.u64(..), rules.set, &self.plan.corpus));
        }
        let turns: Vec<usize> =
            self.rules.iter().enumerate().flat_map(|(at, (_, rules))| std::iter::repeat_n(at, rules.set.weight)).collect();
        let mut run = 0;
        while Instant::now() < end || run < self.plan.lines_min {
            let at = self.rng.choice(&turns).copied().unwrap_or(0);
            let Some(generator) = generators.get_mut(at) else { break };
            self.prepare(at)?;
            let turn_end = Instant::now() + TURN;
            while Instant::now() < turn_end {
                let line = generator.line();
                let folder = self.folder(&line);
                if self.check(at, &line, folder)? {
                    generator.keep(&line);
                }
            }
            run += self.stats.run;
            self.tell_stats()?;
        }
        let samples = self.plan.samples.div_ceil(generators.len().max(1));
        for ((_, rules), generator) in self.rules.iter().zip(&mut generators) {
            let lines = if self.plan.samples == 0 { Vec::new() } else { generator.samples(samples) };
            lines.into_iter().try_for_each(|line| tell(&Message::Sample(rules.set.name.to_owned(), line)))?;
        }
        Ok(())
    }

    /// Chooses a folder: most often the usual one, else one that has files for a program of the line.
    fn folder(&mut self, line: &str) -> &'static str {
        if self.rng.u8(..3) != 0 {
            return FOLDERS[0];
        }
        let name = |folder: &'static str| folder.rsplit('/').next().unwrap_or_default().trim_end_matches(char::is_numeric);
        let fit: Vec<&'static str> = FOLDERS.into_iter().filter(|folder| line.contains(name(folder))).collect();
        let chosen = if self.rng.bool() { self.rng.choice(fit) } else { None };
        chosen.or_else(|| self.rng.choice(FOLDERS)).unwrap_or(FOLDERS[0])
    }

    fn prepare(&self, at: usize) -> Result<()> {
        self.rules.get(at).map_or(Ok(()), |(_, rules)| self.runner.use_programs(&rules.set))
    }

    fn tell_stats(&mut self) -> Result<()> {
        let stats = std::mem::replace(&mut self.stats, zero());
        tell(&Message::Stats(stats))
    }

    /// Decides on a line and runs it if it is allowed. Returns whether it was allowed and did no harm.
    fn check(&mut self, at: usize, line: &str, folder: &'static str) -> Result<bool> {
        let Some((place, rules)) = self.rules.get(at) else { return Ok(false) };
        let count = |counts: &mut Vec<u64>| counts.get_mut(*place).into_iter().for_each(|count| *count += 1);
        count(&mut self.stats.made);
        if line.contains('\0') || !(self.plan.bypass || rules.allows(line)) {
            return Ok(false);
        }
        count(&mut self.stats.allowed);
        let mut hasher = DefaultHasher::new();
        (place, line).hash(&mut hasher);
        if self.remembered.len() >= REMEMBERED_MAX {
            self.remembered.clear();
        }
        if !self.remembered.insert(hasher.finish()) {
            return Ok(false);
        }
        self.stats.run += 1;
        let run = Run { line, folder, set: &rules.set };
        let Some((shell, harm)) = self.runner.harm(run, &Shell::ALL)? else {
            // Its descendants would be slow as well.
            return Ok(!self.runner.was_slow());
        };
        // An endless loop is no harm that the rules promise to prevent.
        if harm == Harm::Endless {
            return Ok(false);
        }
        self.found(at, line, folder, shell, harm)?;
        Ok(false)
    }

    fn found(&mut self, at: usize, line: &str, folder: &'static str, shell: Shell, harm: Harm) -> Result<()> {
        let Some((_, rules)) = self.rules.get(at) else { return Ok(()) };
        let bypass = self.plan.bypass;
        let runner = &mut self.runner;
        let end = Instant::now() + runner.limits().minimising;
        let minimised = minimise(line, |shorter| -> Result<bool> {
            if Instant::now() > end || !(bypass || rules.allows(shorter)) {
                return Ok(false);
            }
            let again = runner.harm(Run { line: shorter, folder, set: &rules.set }, &[shell])?;
            Ok(again.is_some_and(|(_, again)| again.is_like(&harm)))
        })?;
        let finding = Finding {
            shell: shell.name().to_owned(),
            rules: rules.set.name.to_owned(),
            folder: folder.to_owned(),
            seed: self.plan.seed,
            line: line.to_owned(),
            harm,
            minimised,
        };
        if self.kinds.len() < KINDS_MAX && self.kinds.insert(finding.kind()) {
            tell(&Message::Finding(Box::new(finding)))
        } else {
            self.stats.repeated += 1;
            Ok(())
        }
    }
}

fn zero() -> Stats {
    Stats { made: vec![0; RULE_SETS.len()], allowed: vec![0; RULE_SETS.len()], ..Stats::default() }
}
