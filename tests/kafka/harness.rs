//! Runs the tests on one broker, and says which are skipped and why where it cannot.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use anyhow::{Result, anyhow, bail};
use libtest_mimic::{Arguments, Completion, Trial};

use crate::broker::{self, Broker};
use crate::context::Context;

/// A test: its name and what it does.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) body: Body,
}

/// What a test does, and whether others may use the broker meanwhile.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// Minds its own topics and groups.
    Sharing(fn(&Context) -> Result<()>),
    /// Has the broker to itself, may stop and kill it, and may leave it down.
    Alone(fn(&Context, &mut Broker) -> Result<()>),
}

/// The [`Case`] of a function `fn(&Context) -> Result<()>`, named after it.
macro_rules! sharing {
    ($function:path) => {
        $crate::harness::Case { name: stringify!($function), body: $crate::harness::Body::Sharing($function) }
    };
}

/// The [`Case`] of a function `fn(&Context, &mut Broker) -> Result<()>`, named after it.
macro_rules! alone {
    ($function:path) => {
        $crate::harness::Case { name: stringify!($function), body: $crate::harness::Body::Alone($function) }
    };
}

pub(crate) use {alone, sharing};

/// Where the tests run.
enum Cluster {
    /// On somebody's running cluster, which is not ours to stop.
    Running { bootstrap: String },
    /// On a broker of our own, started by the first test that runs.
    Own(OnceLock<Result<RwLock<Broker>, String>>),
}

impl Cluster {
    fn from_environment() -> Self {
        match std::env::var("TOLLGATE_TEST_BROKERS") {
            Ok(bootstrap) if !bootstrap.is_empty() => Self::Running { bootstrap },
            _ => Self::Own(OnceLock::new()),
        }
    }

    fn run(&self, body: Body) -> Result<()> {
        let own = match self {
            Self::Running { bootstrap } => match body {
                Body::Sharing(body) => return body(&Context::new(bootstrap.clone())?),
                Body::Alone(_) => bail!("needs a broker that it may stop"),
            },
            Self::Own(own) => own.get_or_init(|| broker::start(&[]).map(RwLock::new).map_err(|error| format!("{error:?}"))),
        };
        let broker = own.as_ref().map_err(|error| anyhow!("{error}"))?;
        match body {
            Body::Sharing(body) => {
                let broker = broker.read().unwrap_or_else(PoisonError::into_inner);
                body(&Context::new(broker.bootstrap())?)
            }
            Body::Alone(body) => {
                let mut broker = broker.write().unwrap_or_else(PoisonError::into_inner);
                let context = Context::new(broker.bootstrap())?;
                let outcome = catch_unwind(AssertUnwindSafe(|| body(&context, &mut broker)));
                broker.start_again()?;
                outcome.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }
}

/// What a test needs and other machines do without: it is reported as ignored, with this as the reason, even with `CI=true`.
#[derive(Debug)]
pub(crate) struct NotHere(pub(crate) String);

impl std::fmt::Display for NotHere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotHere {}

/// Why tests are skipped.
enum Skip {
    /// The broker cannot run here.
    NoBroker { lacking: String },
    /// The cluster is not ours to stop.
    NotOurs,
}

impl Skip {
    fn on(cluster: &Cluster) -> Option<Self> {
        match cluster {
            Cluster::Running { .. } => Some(Self::NotOurs),
            Cluster::Own(_) => broker::lacking().map(|lacking| Self::NoBroker { lacking }),
        }
    }

    fn covers(&self, body: Body) -> bool {
        match self {
            Self::NoBroker { .. } => true,
            Self::NotOurs => matches!(body, Body::Alone(_)),
        }
    }

    /// Where nobody looks at what was skipped, the want of a broker is a failure.
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

/// Runs the tests that the command line selects, one after the other unless it says otherwise, and ends the broker.
///
/// Tests that cannot run are reported as ignored; with `CI=true` the want of a broker is a failure instead.
pub(crate) fn run(cases: &[Case]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let cluster = Arc::new(Cluster::from_environment());
    let skip = if arguments.list { None } else { Skip::on(&cluster) };
    let trials: Vec<Trial> = cases.iter().map(|case| trial(*case, &cluster, skip.as_ref())).collect();

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

fn trial(case: Case, cluster: &Arc<Cluster>, skip: Option<&Skip>) -> Trial {
    let cluster = Arc::clone(cluster);
    let run = move || match cluster.run(case.body) {
        Ok(()) => Ok(Completion::Completed),
        Err(error) if error.is::<NotHere>() => {
            eprintln!("\nWARNING: {} is NOT run: {error}", case.name);
            Ok(Completion::ignored_with(error))
        }
        Err(error) => Err(format!("{error:?}").into()),
    };
    Trial::ignorable_test(case.name, run).with_ignored_flag(skip.is_some_and(|skip| skip.covers(case.body)))
}
