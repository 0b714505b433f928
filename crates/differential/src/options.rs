//! The options of the programs.

use std::time::{Duration, Instant, SystemTime};

use crate::Fault;

/// The options that every program takes.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// What the cases are made from.
    pub seed: u64,
    /// How long it runs.
    pub time: Duration,
}

impl Options {
    /// Reads `--seconds N` (60 if it is missing) and `--seed N` (made from the clock).
    ///
    /// # Errors
    /// If there is another argument, or a value is no whole number.
    pub fn read(arguments: impl IntoIterator<Item = String>) -> Result<Self, Fault> {
        let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let mut options = Self { seed: u64::from(clock.subsec_nanos()) ^ clock.as_secs(), time: Duration::from_secs(60) };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let value = arguments.next().and_then(|value| value.parse().ok());
            match (argument.as_str(), value) {
                ("--seconds", Some(seconds)) => options.time = Duration::from_secs(seconds),
                ("--seed", Some(seed)) => options.seed = seed,
                _ => return Err(format!("`{argument}` is not understood; expected --seconds N or --seed N, with whole numbers").into()),
            }
        }
        Ok(options)
    }

    /// Returns the end of the run, from now on.
    #[must_use]
    pub fn end(&self) -> Instant {
        Instant::now() + self.time
    }
}
