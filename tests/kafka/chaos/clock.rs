//! The time of day as everything here notes it, and what was done when.

use std::fmt::Display;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use time::OffsetDateTime;

/// Returns the microseconds since 1970.
pub(super) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right");
    u64::try_from(since.as_micros()).expect("a year of four digits")
}

/// Writes a time as the workers' logs have it.
pub(super) fn stamp(us: u64) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(us) * 1_000).expect("a year of four digits");
    let (date, (hour, minute, second, micro)) = (at.date(), at.time().as_hms_micro());
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z")
}

/// The record of what was done to brokers and workers, in memory and in a file.
pub(crate) struct Chronicle {
    /// The directory of the file, which other files of the run go into.
    pub(super) directory: PathBuf,
    file: Mutex<File>,
    lines: Mutex<Vec<(u64, String)>>,
}

impl Chronicle {
    /// Begins a chronicle, `done.log` in this directory.
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let file = Mutex::new(File::create(directory.join("done.log"))?);
        Ok(Self { directory: directory.to_owned(), file, lines: Mutex::default() })
    }

    /// Writes down what is done now.
    pub(super) fn note(&self, what: impl Display) -> Result<()> {
        let now = now_us();
        writeln!(self.file.lock().unwrap_or_else(PoisonError::into_inner), "{} {what}", stamp(now))?;
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push((now, what.to_string()));
        Ok(())
    }

    /// Returns what was done between two times, in order.
    pub(super) fn between(&self, from_us: u64, to_us: u64) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|(at, _)| (from_us..=to_us).contains(at)).map(|(at, what)| format!("{} {what}", stamp(*at))).collect()
    }
}
