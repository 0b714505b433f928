//! Paths: the place that an allowed one leads to has to be allowed, and not blocked.

mod generate;
pub mod jail;
mod place;

use serde_json::{Value, json};

use crate::Fault;
use crate::minimise::minimise;
use crate::options::Options;
use crate::question::Agent;
use crate::random::Random;

/// How many paths are tried with one passport.
const PATHS_A_PASSPORT: usize = 500;

/// How many failures end a run.
const FAILURES_MAX: usize = 20;

/// The lists of a passport; `None` where it has none.
#[derive(Debug, Clone)]
struct Lists {
    allowed: Option<Vec<&'static str>>,
    blocked: Option<Vec<&'static str>>,
}

/// What a run has found.
#[derive(Debug, Default)]
pub struct Run {
    /// How many paths were made.
    pub made: u64,
    /// How many of them the rules allow.
    pub allowed: u64,
    /// How many of these lead to a place, so that they were compared.
    pub reached: u64,
    /// What failed: the path, made small, its lists, and where it leads.
    pub failures: Vec<String>,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for failure in &self.failures {
            writeln!(f, "{failure}")?;
        }
        let Self { made, allowed, reached, failures } = self;
        write!(f, "{made} paths, {allowed} allowed, {reached} of them lead somewhere and were compared, {} failures", failures.len())
    }
}

/// Makes paths until the time is over. The process has to be in a jail.
///
/// # Errors
/// If a working directory is missing.
pub fn run(options: &Options) -> Result<Run, Fault> {
    let mut random = Random::new(options.seed);
    let (end, mut run) = (options.end(), Run::default());
    while options.goes_on(end, run.reached) && run.failures.len() < FAILURES_MAX {
        let lists = generate::lists(&mut random);
        let (directory, reads) = (generate::directory(&mut random), random.chance(50));
        std::env::set_current_dir(directory)?;
        let case = Case { agent: Agent::new(&lists.limits())?, lists, directory, reads };
        for _ in 0..PATHS_A_PASSPORT {
            let path = generate::path(&mut random, &case.lists);
            run.made += 1;
            if !case.allows(&path) {
                continue;
            }
            run.allowed += 1;
            run.reached += u64::from(place::reached(&path).is_some());
            if case.fault(&path).is_some() {
                let small = minimise(&path, |path| Ok::<_, Fault>(case.allows(path) && case.fault(path).is_some()))?;
                let (lists, fault) = (&case.lists, case.fault(&small).unwrap_or_default());
                run.failures.push(format!("FAILURE {small:?} in {directory}, reads: {reads}, {lists:?}: {fault} (from {path:?})"));
                break;
            }
        }
    }
    Ok(run)
}

/// A passport, a working directory and a kind of tool.
#[derive(Debug)]
struct Case {
    agent: Agent,
    lists: Lists,
    directory: &'static str,
    reads: bool,
}

impl Lists {
    fn limits(&self) -> Value {
        let section = json!({"allowed_paths": self.allowed, "blocked_paths": self.blocked});
        json!({"data.file.read": section, "data.file.write": section})
    }
}

impl Case {
    fn allows(&self, path: &str) -> bool {
        self.agent.may(if self.reads { "read_file" } else { "write_file" }, "path", path)
    }

    /// Returns what is wrong with the place that an allowed path leads to.
    fn fault(&self, path: &str) -> Option<String> {
        let place = place::reached(path)?;
        let is_relative = !path.starts_with(['/', '~']);
        let entries = |list: &Option<Vec<&'static str>>| list.clone().unwrap_or_default();
        let is_allowed = |entry: &&str| place::is_allowed(&place, entry, self.directory);
        if self.lists.allowed.is_some() && !entries(&self.lists.allowed).iter().any(is_allowed) {
            return Some(format!("it leads to {place:?}, which is not allowed"));
        }
        // A relative path cannot be judged in a working directory that is blocked itself.
        let judged = |entry: &&&str| !is_relative || !place::is_blocked(self.directory, entry);
        if let Some(entry) = entries(&self.lists.blocked).iter().filter(judged).find(|entry| place::is_blocked(&place, entry)) {
            return Some(format!("it leads to {place:?}, which `{entry}` blocks"));
        }
        let is_secret = self.reads && place::is_secret(&place);
        (is_secret || !place.starts_with('/')).then(|| format!("it leads to {place:?}, which is never read"))
    }
}
