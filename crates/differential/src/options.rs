//! The options of the programs that compare URLs and paths.

use std::time::{Duration, Instant};

use clap::Parser;

/// The options that both programs take.
#[derive(Debug, Clone, Copy, Parser)]
pub struct Options {
    /// How long to run, in seconds
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// Go on behind that time until so many cases were compared
    #[arg(long, default_value_t = 0)]
    pub compared_min: u64,
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

    /// Returns whether a run goes on that has this end and has compared so many cases.
    #[must_use]
    pub fn goes_on(&self, end: Instant, compared: u64) -> bool {
        Instant::now() < end || compared < self.compared_min
    }
}
