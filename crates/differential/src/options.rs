//! The options of the programs that compare URLs and paths.

use std::time::{Duration, Instant};

use clap::Parser;

/// The options that both programs take.
#[derive(Debug, Clone, Copy, Parser)]
pub struct Options {
    /// How long to run, in seconds
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// What the cases are made from; another one for each run unless it is given
    #[arg(long, default_value_t = fastrand::u64(..), hide_default_value = true)]
    pub seed: u64,
}

impl Options {
    /// Returns the end of the run, from now on.
    #[must_use]
    pub fn end(&self) -> Instant {
        Instant::now() + Duration::from_secs(self.seconds)
    }
}
