//! Measurements that stand outside of the report, each a sub-command of `tollgate-bench`.
//!
//! | module | what |
//! |---|---|
//! | `moves` | threads restored per second, and how long verdicts wait while a worker joins or leaves |
//! | `recorded` | reading and deciding recorded traffic in one process |
//! | `remote` | asking a policy server, over a bare exchange of the same bytes |
//! | `serve` | the gate over HTTP, over a bare Kafka client and over an echo |
//! | `shadow` | a policy on trial, over deciding without |

mod moves;
pub(super) mod recorded;
mod remote;
mod serve;
mod shadow;

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;
use nix::sys::resource::{UsageWho, getrusage};
use tollgate_testkit::MixSettings;

use super::{Progress, Ratio, Session, binary};

/// The sizes of traffic whose events have about 600 bytes on average.
const SMALL_EVENTS: MixSettings =
    MixSettings { result_bytes_max: 600, arguments_bytes_max: 200, response_bytes_max: 1_000, ..MixSettings::USUAL };

/// A measurement that stands outside of the report.
#[derive(Debug, Subcommand)]
pub(super) enum Measurement {
    /// Threads restored per second, and how long verdicts wait while a worker joins or leaves
    Moves,
    /// How soon a suspension is in force on every partition of two workers
    Controls,
    /// Reading and deciding recorded traffic in one process, beside `zstd -dc FILE | jq -c .value`
    Recorded {
        /// How many events the traffic has
        #[arg(default_value_t = 1_000_000)]
        events: usize,
    },
    /// Asking a policy server, over a bare exchange of the same bytes
    Remote {
        /// Be the policy server
        #[arg(long, hide = true)]
        serve: bool,
    },
    /// The gate over HTTP: waits over those of a bare Kafka client, CPU over that of an echo, and memory
    Serve {
        /// How often the phases that are compared take turns
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: u32,
        /// Be the echo, on this port
        #[arg(long, hide = true)]
        echo: Option<u16>,
    },
    /// A policy on trial, over deciding without: no broker is needed
    Shadow,
}

impl Measurement {
    /// Measures, and prints what was found. `open` opens a session for the measurements that need brokers.
    pub(super) fn run(&self, tollgate: Option<&Path>, open: impl FnOnce() -> Result<Session>) -> Result<()> {
        match self {
            Self::Moves => open()?.moves(),
            Self::Controls => open()?.controls().map(|(table, _)| print!("{table}")),
            Self::Recorded { events } => recorded::measure(&binary::resolve(tollgate, &Progress::default())?, *events),
            Self::Remote { serve: true } => remote::serve(),
            Self::Remote { serve: false } => remote::measure(),
            Self::Serve { echo: Some(port), .. } => serve::echo(*port),
            Self::Serve { rounds, echo: None } => open()?.serve(*rounds),
            Self::Shadow => shadow::measure(),
        }
    }
}

/// Seconds by one clock and by another.
type Seconds = (f64, f64);

/// Returns the medians of both clocks.
fn medians(rounds: &[Seconds]) -> Seconds {
    let median = |of: fn(&Seconds) -> f64| Ratio::of(rounds.iter().map(of)).map_or(f64::NAN, |spread| spread.median);
    (median(|round| round.0), median(|round| round.1))
}

/// Returns the user and system time that was used so far, in seconds.
fn cpu_seconds(who: UsageWho) -> Result<f64> {
    let usage = getrusage(who)?;
    Ok([usage.user_time(), usage.system_time()].iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum())
}
