//! Runs the cases of a test program on one broker: some side by side, some alone. It says how long each case took, which cases are skipped
//! and why, and of a failed case what repeats it and where its logs are.
//!
//! | module | what it does |
//! |---|---|
//! | `environment` | the cluster and the binary that cases run on; which cases cannot run here |
//! | `outcome` | runs one case, and says how long it took and how it failed |

mod environment;
mod outcome;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::{Arguments, Trial};

use crate::broker::Broker;
use crate::cluster::Cluster;

pub use environment::Place;
use environment::{Environment, Skip};

/// How many cases that share the broker run side by side. Most of them wait most of the time: for sessions, rebalances and processes.
const SIDE_BY_SIDE: usize = 4;

/// A test: its name and what it does. [`sharing!`](crate::sharing), [`stopping!`](crate::stopping) and [`Case::alone`] make a case.
#[derive(Clone)]
pub struct Case {
    name: String,
    body: Body,
}

/// The function of a case, and whether other cases may run meanwhile.
#[derive(Clone)]
enum Body {
    Sharing(fn(&Cluster) -> Result<()>),
    Stopping(fn(&Cluster, &mut Broker) -> Result<()>),
    Alone(Arc<Alone>),
}

/// A function that has the machine to itself, and starts the brokers that it needs.
type Alone = dyn Fn(&Place) -> Result<()> + Send + Sync;

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Case {
    /// Returns the case of a function that uses only its own topics and groups of the broker that all cases share.
    #[must_use]
    pub fn sharing(name: &str, body: fn(&Cluster) -> Result<()>) -> Self {
        Self { name: name.to_owned(), body: Body::Sharing(body) }
    }

    /// Returns the case of a function that has a broker to itself: it may stop and kill the broker, and may leave the broker down.
    #[must_use]
    pub fn stopping(name: &str, body: fn(&Cluster, &mut Broker) -> Result<()>) -> Self {
        Self { name: name.to_owned(), body: Body::Stopping(body) }
    }

    /// Returns the case of a function that starts the brokers that it needs, and has the machine to itself: no case runs beside it. `why`
    /// says to the reader what it needs the machine for.
    #[must_use]
    pub fn alone(name: String, why: &'static str, body: impl Fn(&Place) -> Result<()> + Send + Sync + 'static) -> Self {
        debug_assert!(!why.is_empty(), "{name}: a reason");
        Self { name, body: Body::Alone(Arc::new(body)) }
    }
}

/// The [`Case`] of a function `fn(&Cluster) -> Result<()>`, named after it, which runs beside others.
#[macro_export]
macro_rules! sharing {
    ($function:path) => {
        $crate::harness::Case::sharing(stringify!($function), $function)
    };
}

/// The [`Case`] of a function `fn(&Cluster, &mut Broker) -> Result<()>`, named after it, which stops or kills its broker.
#[macro_export]
macro_rules! stopping {
    ($function:path) => {
        $crate::harness::Case::stopping(stringify!($function), $function)
    };
}

/// Runs the cases that the command line selects, [`SIDE_BY_SIDE`] unless it says otherwise, and ends the broker. `tollgate` is the binary
/// under test, `target_tmpdir` is cargo's `CARGO_TARGET_TMPDIR`.
///
/// Cases that cannot run are reported as ignored; with `CI=true` the want of a broker is a failure instead.
#[must_use]
pub fn run(cases: Vec<Case>, tollgate: &Path, target_tmpdir: &Path) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SIDE_BY_SIDE);
    outcome::note_panics();
    let environment = Arc::new(Environment::new(tollgate, target_tmpdir));
    let skip = if arguments.list { None } else { Skip::on(&environment) };
    let trials: Vec<Trial> = cases.into_iter().map(|case| trial(case, &environment, skip.as_ref())).collect();

    let skipped: Vec<&str> =
        trials.iter().filter(|trial| arguments.is_ignored(trial) && !arguments.is_filtered_out(trial)).map(Trial::name).collect();
    if let Some(skip) = skip
        && !skipped.is_empty()
    {
        eprintln!("\nWARNING: these tests are SKIPPED {skip}:\n  {}", skipped.join("\n  "));
        if skip.is_failure() {
            eprintln!("CI=true, so that is a failure.");
            return ExitCode::from(101);
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(case: Case, environment: &Arc<Environment>, skip: Option<&Skip>) -> Trial {
    let environment = Arc::clone(environment);
    let is_skipped = skip.is_some_and(|skip| skip.covers(&case.body, &environment));
    let name = case.name.clone();
    Trial::ignorable_test(name, move || outcome::of(&case, &environment)).with_ignored_flag(is_skipped)
}

/// The error of a case that needs what is only on some machines: it is reported as ignored, with this reason, even with `CI=true`.
#[derive(Debug)]
pub struct NotHere(pub String);

impl std::fmt::Display for NotHere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotHere {}
