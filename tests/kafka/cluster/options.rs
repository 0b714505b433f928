//! What a run of the table is asked for, by variables of the environment.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

use super::faults::Fault;

/// How long the load of a run lasts, in seconds, in the short form and in the table.
const SECONDS: (u64, u64) = (18, 75);
const RATE: u64 = 600;

/// The options of a run.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The faults of the table; none for the short form.
    pub(crate) faults: Option<Vec<Fault>>,
    pub(crate) seconds: u64,
    /// How many runs each fault has, with one seed after the other.
    pub(crate) runs: u64,
    pub(crate) seed: u64,
    /// Events a second.
    pub(crate) rate: u64,
    /// Values for the configuration of workers and plain members, by JSON pointer.
    pub(crate) config: Map<String, Value>,
    /// Where logs and results go.
    pub(crate) directory: PathBuf,
}

impl Options {
    pub(crate) fn from_environment() -> Result<Self> {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let number = |name: &str, default: u64| match text(name) {
            Some(text) => text.parse().with_context(|| format!("{name} is no number: {text}")),
            None => Ok(default),
        };
        let faults = text("TOLLGATE_CLUSTER_FAULTS").map(|names| Fault::list(&names)).transpose()?;
        let seconds = if faults.is_some() { SECONDS.1 } else { SECONDS.0 };
        let config = text("TOLLGATE_CLUSTER_CONFIG").map(|json| serde_json::from_str(&json)).transpose();
        let options = Self {
            faults,
            seconds: number("TOLLGATE_CLUSTER_SECONDS", seconds)?,
            runs: number("TOLLGATE_CLUSTER_RUNS", 1)?,
            seed: number("TOLLGATE_CLUSTER_SEED", 1)?,
            rate: number("TOLLGATE_CLUSTER_RATE", RATE)?,
            config: config.context("TOLLGATE_CLUSTER_CONFIG is no JSON object of JSON pointers and values")?.unwrap_or_default(),
            directory: text("TOLLGATE_CLUSTER_DIR").map_or_else(|| crate::target_tmpdir().join("cluster"), PathBuf::from),
        };
        ensure!(options.rate > 0 && options.runs > 0 && options.seconds > 0, "rate, runs and seconds are at least 1");
        Ok(options)
    }
}
