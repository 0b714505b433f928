//! Runs the tests on one broker, and says which tests are skipped, and why.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use anyhow::{Result, anyhow, bail};
use libtest_mimic::{Arguments, Completion, Trial};

use crate::broker::{Broker, lacking, test_cache};
use crate::cluster::Cluster;

/// A test: its name and what it does. [`sharing!`](crate::sharing) and [`alone!`](crate::alone) make one of a function.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of the test.
    pub name: &'static str,
    /// The function of the test.
    pub body: Body,
}

/// The function of a test, and whether other tests may use the broker meanwhile.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Uses only its own topics and groups.
    Sharing(fn(&Cluster) -> Result<()>),
    /// Has the broker to itself, may stop and kill it, and may leave it down.
    Alone(fn(&Cluster, &mut Broker) -> Result<()>),
}

/// The [`Case`] of a function `fn(&Cluster) -> Result<()>`, named after it.
#[macro_export]
macro_rules! sharing {
    ($function:path) => {
        $crate::harness::Case { name: stringify!($function), body: $crate::harness::Body::Sharing($function) }
    };
}

/// The [`Case`] of a function `fn(&Cluster, &mut Broker) -> Result<()>`, named after it.
#[macro_export]
macro_rules! alone {
    ($function:path) => {
        $crate::harness::Case { name: stringify!($function), body: $crate::harness::Body::Alone($function) }
    };
}

/// The cluster and the binary that the tests run on.
struct Environment {
    source: Source,
    tollgate: PathBuf,
    target_tmpdir: PathBuf,
}

/// The source of the cluster that the tests run on.
enum Source {
    /// On somebody's running cluster, which is not ours to stop.
    Running { bootstrap: String },
    /// On a broker of our own, started by the first test that runs.
    Own(Box<OnceLock<Result<RwLock<Broker>, String>>>),
}

impl Source {
    fn from_environment() -> Self {
        match std::env::var("TOLLGATE_TEST_BROKERS") {
            Ok(bootstrap) if !bootstrap.is_empty() => Self::Running { bootstrap },
            _ => Self::Own(Box::default()),
        }
    }
}

impl Environment {
    fn run(&self, body: Body) -> Result<()> {
        let own = match &self.source {
            Source::Running { bootstrap } => match body {
                Body::Sharing(body) => return body(&Cluster::new(bootstrap.clone(), &self.tollgate)?),
                Body::Alone(_) => bail!("needs a broker that it may stop"),
            },
            Source::Own(own) => own.get_or_init(|| {
                let started = Broker::start_for_tests(&self.target_tmpdir);
                started.map(RwLock::new).map_err(|error| format!("{error:?}"))
            }),
        };
        let broker = own.as_ref().map_err(|error| anyhow!("{error}"))?;
        match body {
            Body::Sharing(body) => {
                let broker = broker.read().unwrap_or_else(PoisonError::into_inner);
                body(&Cluster::new(broker.bootstrap(), &self.tollgate)?)
            }
            Body::Alone(body) => {
                let mut broker = broker.write().unwrap_or_else(PoisonError::into_inner);
                let cluster = Cluster::new(broker.bootstrap(), &self.tollgate)?;
                let outcome = catch_unwind(AssertUnwindSafe(|| body(&cluster, &mut broker)));
                broker.start_again()?;
                outcome.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }
}

/// The error of a test that needs what is only on some machines: it is reported as ignored, with this reason, even with `CI=true`.
#[derive(Debug)]
pub struct NotHere(pub String);

impl std::fmt::Display for NotHere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotHere {}

/// The reason why tests are skipped.
enum Skip {
    /// The broker cannot run here.
    NoBroker { lacking: String },
    /// The cluster is not ours to stop.
    NotOurs,
}

impl Skip {
    fn on(environment: &Environment) -> Option<Self> {
        match environment.source {
            Source::Running { .. } => Some(Self::NotOurs),
            Source::Own(_) => lacking(&test_cache(&environment.target_tmpdir)).map(|lacking| Self::NoBroker { lacking }),
        }
    }

    fn covers(&self, body: Body) -> bool {
        match self {
            Self::NoBroker { .. } => true,
            Self::NotOurs => matches!(body, Body::Alone(_)),
        }
    }

    /// Returns whether the want of a broker is a failure: it is where nobody looks at what was skipped.
    fn is_failure(&self) -> bool {
        matches!(self, Self::NoBroker { .. }) && std::env::var("CI").is_ok_and(|ci| ci == "true")
    }
}

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoBroker { lacking } => {
                write!(f, "for want of {lacking}, which ./test installs (or set TOLLGATE_TEST_BROKERS to a running cluster)")
            }
            Self::NotOurs => f.write_str("because they stop the broker, and TOLLGATE_TEST_BROKERS names one that is not ours"),
        }
    }
}

/// Runs the tests that the command line selects, one after the other unless it says otherwise, and ends the broker. `tollgate` is the
/// binary under test, `target_tmpdir` is cargo's `CARGO_TARGET_TMPDIR`.
///
/// Tests that cannot run are reported as ignored; with `CI=true` the want of a broker is a failure instead.
#[must_use]
pub fn run(cases: &[Case], tollgate: &Path, target_tmpdir: &Path) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let environment = Arc::new(Environment {
        source: Source::from_environment(),
        tollgate: tollgate.to_owned(),
        target_tmpdir: target_tmpdir.to_owned(),
    });
    let skip = if arguments.list { None } else { Skip::on(&environment) };
    let trials: Vec<Trial> = cases.iter().map(|case| trial(*case, &environment, skip.as_ref())).collect();

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
    let run = move || match environment.run(case.body) {
        Ok(()) => Ok(Completion::Completed),
        Err(error) if error.is::<NotHere>() => {
            eprintln!("\nWARNING: {} is NOT run: {error}", case.name);
            Ok(Completion::ignored_with(error))
        }
        Err(error) => Err(format!("{error:?}").into()),
    };
    Trial::ignorable_test(case.name, run).with_ignored_flag(skip.is_some_and(|skip| skip.covers(case.body)))
}
