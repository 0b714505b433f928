//! What a run is asked for, by variables of the environment.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

use super::faults::Fault;

/// How long the load on three brokers lasts, in seconds, in the short form and in the table.
const SECONDS: (u64, u64) = (18, 75);

/// The options of a run.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// How many workers are killed on one broker.
    pub(super) kills: u64,
    /// How many kills go by between two crashes of the one broker.
    pub(super) kills_per_crash: u64,
    /// The faults of the table; `None` for the short form.
    pub(super) faults: Option<Vec<Fault>>,
    pub(super) seconds: u64,
    /// How many runs each fault has, with one seed after the other.
    pub(super) runs: u64,
    pub(super) seed: u64,
    /// Events a second; 0 takes the rate of the case.
    pub(super) rate: u64,
    /// Values for the configuration of workers and plain members, by JSON pointer.
    pub(super) config: Map<String, Value>,
    /// Where the table and the logs of its runs go.
    pub(super) directory: PathBuf,
}

impl Options {
    pub(super) fn from_environment() -> Result<Self> {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let faults = text("TOLLGATE_CHAOS_FAULTS").map(|names| Fault::list(&names)).transpose()?;
        let seconds = if faults.is_some() { SECONDS.1 } else { SECONDS.0 };
        let config = text("TOLLGATE_CHAOS_CONFIG").map(|json| serde_json::from_str(&json)).transpose();
        let options = Self {
            kills: number("TOLLGATE_CHAOS_KILLS", 45)?,
            kills_per_crash: number("TOLLGATE_CHAOS_KILLS_PER_CRASH", 150)?,
            faults,
            seconds: number("TOLLGATE_CHAOS_SECONDS", seconds)?,
            runs: number("TOLLGATE_CHAOS_RUNS", 1)?,
            seed: number("TOLLGATE_CHAOS_SEED", 1)?,
            rate: number("TOLLGATE_CHAOS_RATE", 0)?,
            config: config.context("TOLLGATE_CHAOS_CONFIG is no JSON object of JSON pointers and values")?.unwrap_or_default(),
            directory: text("TOLLGATE_CHAOS_DIR").map_or_else(|| crate::target_tmpdir().join("chaos"), PathBuf::from),
        };
        ensure!(options.runs > 0 && options.seconds > 0, "TOLLGATE_CHAOS_RUNS and TOLLGATE_CHAOS_SECONDS are at least 1");
        Ok(options)
    }
}

/// Returns a number that the environment gives.
pub(crate) fn number(name: &str, default: u64) -> Result<u64> {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().with_context(|| format!("{name} is no number: {text}")),
        _ => Ok(default),
    }
}
