//! The options of `tollgate eval` that count, and the files that they name.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use tollgate_recordings::CaptureWriter;
use tollgate_recordings::evaluate::Sinks;

use crate::commands::shared::{UsageError, check_output, create_output};

/// The path that stands for stdout.
const STDOUT: &str = "-";
/// The most partitions of a signals topic that is made here.
const PARTITIONS_MAX: i64 = 1_024;

#[derive(Debug, Args)]
pub(super) struct CountingArgs {
    /// Count by the rules of `abuse` and write the alerts to a file, as JSONL: {"key": "…", "value": {…}}; suspensions are in force from the
    /// next event on. `-` is stdout, in place of verdicts
    #[arg(long, value_name = "FILE")]
    pub(super) alerts: Option<PathBuf>,
    /// The same for the controls that follow, which --controls takes again
    #[arg(long, value_name = "FILE")]
    pub(super) controls_out: Option<PathBuf>,
    /// Write the signals as a capture of a signals topic, which --signals takes again
    #[arg(long, value_name = "FILE")]
    pub(super) signals_out: Option<PathBuf>,
    /// How many partitions the signals topic has
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=PARTITIONS_MAX))]
    pub(super) signals_partitions: u32,
    /// Count a capture of the signals topic in place of deciding on events; alerts and controls go to stdout, where no file is named for them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "controls", "signals_out", "signals_partitions"])]
    pub(super) signals: Option<PathBuf>,
}

impl CountingArgs {
    /// Returns whether anything is counted.
    pub(super) fn is_asked_for(&self) -> bool {
        self.signals.is_some() || self.outputs().next().is_some()
    }

    /// Returns whether stdout is for alerts or controls, so that no verdicts go there.
    pub(super) fn takes_stdout(&self) -> bool {
        self.outputs().any(|(_, path)| is_stdout(path))
    }

    fn outputs(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [("--alerts", &self.alerts), ("--controls-out", &self.controls_out), ("--signals-out", &self.signals_out)];
        all.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)))
    }

    /// Makes the files that are written. None of them is among those that are read, and no two are the same.
    pub(super) fn create(&self, reads: &[&Path]) -> anyhow::Result<Sinks> {
        let on_stdout: Vec<_> = self.outputs().filter(|(_, path)| is_stdout(path)).map(|(option, _)| option).collect();
        if let [one, other, ..] = on_stdout.as_slice() {
            bail!(UsageError(format!("{other}: found - for {one} too; stdout can hold one of them, so name a file for the other")));
        }
        let mut taken: Vec<&Path> = reads.to_vec();
        for (option, path) in self.outputs().filter(|(_, path)| !is_stdout(path)) {
            check_output(option, path, &taken)?;
            ensure!(!taken.contains(&path), "{option}: found {}, which another option names; name another file", path.display());
            taken.push(path);
        }
        // Where nothing is decided, alerts and controls are the result.
        let by_default = self.signals.as_ref().map(|_| Path::new(STDOUT));
        let lines = |option: &str, path: &Option<PathBuf>| path.as_deref().or(by_default).map(|path| writer(option, path)).transpose();
        let capture = |path: &Path| {
            if is_stdout(path) {
                return Ok(CaptureWriter::stdout());
            }
            CaptureWriter::create(path, true).with_context(|| format!("--signals-out {}: cannot be written", path.display()))
        };
        let (alerts, controls) = (lines("--alerts", &self.alerts)?, lines("--controls-out", &self.controls_out)?);
        Ok(Sinks::new(alerts, controls, self.signals_out.as_deref().map(capture).transpose()?))
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new(STDOUT)
}

fn writer(option: &str, path: &Path) -> anyhow::Result<Box<dyn Write>> {
    if is_stdout(path) {
        return Ok(Box::new(io::stdout()));
    }
    Ok(Box::new(BufWriter::new(create_output(option, path, &[])?)))
}
