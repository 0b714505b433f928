//! The cluster and the binary that cases run on, and the reason why cases are skipped.

use std::path::{Path, PathBuf};
use std::sync::{OnceLock, PoisonError, RwLock};

use anyhow::{Result, anyhow};

use super::Body;
use crate::broker::{Broker, lacking, test_cache};
use crate::cluster::Cluster;

/// The name of the log of a broker.
const BROKER_LOG: &str = "broker.log";

/// What all cases of a program have in common.
pub(super) struct Environment {
    source: Source,
    tollgate: PathBuf,
    target_tmpdir: PathBuf,
    /// Cases that share the machine hold it for reading, a case that has the machine to itself for writing.
    machine: RwLock<()>,
}

/// The source of the cluster that the cases run on.
enum Source {
    /// On somebody's running cluster, which is not ours to stop.
    Running { bootstrap: String },
    /// On a broker of our own, started by the first case that needs it.
    Own(Box<OnceLock<Result<Broker, String>>>),
}

/// What a case that starts brokers of its own is given.
#[derive(Debug)]
pub struct Place {
    /// The binary under test.
    pub tollgate: PathBuf,
    /// Cargo's `CARGO_TARGET_TMPDIR`.
    pub target_tmpdir: PathBuf,
    /// The directory for the files of this case. It is kept if the case fails.
    pub directory: PathBuf,
}

impl Place {
    /// Connects to a cluster, as [`Cluster::new`] does. The files of its deployments go into the case's directory.
    ///
    /// # Errors
    /// Those of [`Cluster::new`].
    pub fn cluster(&self, bootstrap: String) -> Result<Cluster> {
        Cluster::with_directory(bootstrap, &self.tollgate, &self.directory)
    }
}

impl Environment {
    pub(super) fn new(tollgate: &Path, target_tmpdir: &Path) -> Self {
        let source = match std::env::var("TOLLGATE_TEST_BROKERS") {
            Ok(bootstrap) if !bootstrap.is_empty() => Source::Running { bootstrap },
            _ => Source::Own(Box::default()),
        };
        Self { source, tollgate: tollgate.to_owned(), target_tmpdir: target_tmpdir.to_owned(), machine: RwLock::default() }
    }

    /// Returns the directory in which each case has a directory of its own.
    pub(super) fn logs(&self) -> PathBuf {
        self.target_tmpdir.join("kafka")
    }

    /// Returns the log of the broker that cases share, if the broker is ours. That of any other broker is in the case's directory.
    pub(super) fn shared_log(&self) -> Option<PathBuf> {
        matches!(&self.source, Source::Own(own) if own.get().is_some()).then(|| self.logs().join(BROKER_LOG))
    }

    /// Runs a case once it may run. `begins` is called at that moment.
    pub(super) fn run(&self, body: &Body, directory: &Path, begins: impl FnOnce()) -> Result<()> {
        let place =
            || Place { tollgate: self.tollgate.clone(), target_tmpdir: self.target_tmpdir.clone(), directory: directory.to_owned() };
        match body {
            Body::Sharing(body) => {
                let _machine = self.machine.read().unwrap_or_else(PoisonError::into_inner);
                let bootstrap = match &self.source {
                    Source::Running { bootstrap } => bootstrap.clone(),
                    Source::Own(own) => self.shared(own)?.bootstrap(),
                };
                begins();
                body(&place().cluster(bootstrap)?)
            }
            Body::Stopping(body) => {
                let _machine = self.machine.read().unwrap_or_else(PoisonError::into_inner);
                begins();
                let mut broker = Broker::start_for_tests(&self.target_tmpdir, &directory.join(BROKER_LOG))?;
                body(&place().cluster(broker.bootstrap())?, &mut broker)
            }
            Body::Alone(body) => {
                let _machine = self.machine.write().unwrap_or_else(PoisonError::into_inner);
                begins();
                body(&place())
            }
        }
    }

    fn shared<'e>(&self, own: &'e OnceLock<Result<Broker, String>>) -> Result<&'e Broker> {
        let started = own.get_or_init(|| {
            let started = Broker::start_for_tests(&self.target_tmpdir, &self.logs().join(BROKER_LOG));
            started.map_err(|error| format!("{error:#}"))
        });
        started.as_ref().map_err(|error| anyhow!("{error}"))
    }
}

/// The reason why all cases are skipped: the broker cannot run here.
pub(super) struct Skip {
    lacking: String,
}

impl Skip {
    pub(super) fn on(environment: &Environment) -> Option<Self> {
        lacking(&test_cache(&environment.target_tmpdir)).map(|lacking| Self { lacking })
    }

    /// Returns whether a case is skipped. Those that share a broker run on a cluster that is there.
    pub(super) fn covers(&self, body: &Body, environment: &Environment) -> bool {
        !matches!((body, &environment.source), (Body::Sharing(_), Source::Running { .. }))
    }

    /// Returns whether the want of a broker is a failure: it is where nobody looks at what was skipped.
    pub(super) fn is_failure(&self) -> bool {
        std::env::var("CI").is_ok_and(|ci| ci == "true")
    }
}

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "for want of {}, which ./test installs (or set TOLLGATE_TEST_BROKERS to a running cluster)", self.lacking)
    }
}
