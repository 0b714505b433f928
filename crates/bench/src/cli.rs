//! The command line of `tollgate-bench`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use tollgate_operations::Connection;

use super::Subject;
use super::alone::Measurement;

const ABOUT: &str =
    "Open-loop load on a worker: latency from the moment each event was meant to be sent, the highest rate, and what it costs";
const LONG_ABOUT: &str = "Open-loop load on a worker: latency from the moment each event was meant to be sent, the highest rate, and what it \
costs.\n\nWorkers are processes of the `tollgate` binary. In a checkout `cargo run --release -p tollgate-bench` builds it as well; whoever runs \
this program directly builds both with `cargo build --release --workspace`, or names a worker with --tollgate.";

/// An opponent that the gate may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Opponent {
    /// The same worker with deciding left out.
    PassThrough,
}

/// The command line of `tollgate-bench`.
#[derive(Debug, Parser)]
#[command(name = "tollgate-bench", version, about = ABOUT, long_about = LONG_ABOUT, max_term_width = 110)]
pub struct Cli {
    /// Measure this and nothing else
    #[command(subcommand)]
    pub(super) measurement: Option<Measurement>,
    // Workers are started with the same options.
    #[command(flatten)]
    pub(super) connection: Connection,
    /// The worker's binary; without it the one that cargo builds where cargo runs this program, or else the one beside this program, or in
    /// PATH
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) tollgate: Option<PathBuf>,
    /// Start a broker, whatever the configuration says (Java and Maven are needed). One is also started if neither --brokers nor a
    /// configuration file names any
    #[arg(long, global = true, conflicts_with = "brokers")]
    pub(super) own_broker: bool,
    /// Events per second to measure latency at; left out: half of the peak, which is searched first
    #[arg(long, value_name = "EVENTS", value_parser = positive)]
    pub(super) rate: Option<f64>,
    /// Search the highest rate that is sustained: 99 % of it achieved, lag that does not grow, no verdict missing
    #[arg(long)]
    pub(super) find_peak: bool,
    /// Offer this many times the peak, and see what is kept and how the worker comes back
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    pub(super) overload: Option<f64>,
    /// Compare with the same worker without deciding, in turns: CPU per event, peak, latency
    #[arg(long)]
    pub(super) versus: Option<Opponent>,
    /// Measure abuse over the fleet: what counting costs deciding, the fold alone (in a checkout), and how soon alerts and suspensions
    /// follow. TOLLGATE_ABUSE_SUBJECTS says how many subjects the fold has (a million)
    #[arg(long, conflicts_with_all = ["versus", "find_peak", "overload", "baselines", "report"])]
    pub(super) abuse: bool,
    /// How often things are measured that are compared
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) rounds: u32,
    /// Measure events per CPU second over a topic preloaded with so many (200000 where it is needed and not given)
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(1_000..))]
    pub(super) drain: Option<u32>,
    /// Have a command drain the same topic and compare its verdicts: it gets TOLLGATE_BROKERS, TOLLGATE_EVENTS_TOPIC,
    /// TOLLGATE_DECISIONS_TOPIC and TOLLGATE_GROUP. May be given several times
    #[arg(long = "baseline", value_name = "NAME=COMMAND", value_parser = baseline)]
    pub(super) baselines: Vec<Subject>,
    /// Measure all of it, the baselines and the core's benchmarks of a checkout among it, and write report.json, report.md and plot.svg
    /// into this directory
    #[arg(long, value_name = "DIR")]
    pub(super) report: Option<PathBuf>,
    /// The folder of a checkout that holds the baselines of a report; the root of the checkout is three folders above it
    #[arg(long = "baselines", value_name = "DIR", default_value = "crates/bench/baselines")]
    pub(super) baselines_folder: PathBuf,
    /// Minutes that a report may take once everything is built; where time is short there are fewer rounds
    #[arg(long, value_name = "MINUTES", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) time_limit: u32,
    /// Seconds that a latency measurement takes, behind its warm-up
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) duration: u32,
    /// Where the traffic begins: the same seed gives the same events
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Threads of the traffic
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(super) threads: u32,
    /// Partitions of the topics
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) partitions: u32,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Reads `NAME=COMMAND`.
fn baseline(text: &str) -> Result<Subject, String> {
    match text.split_once('=') {
        Some((name, command)) if !name.is_empty() && !command.is_empty() => {
            Ok(Subject::Baseline { name: name.to_owned(), command: command.to_owned() })
        }
        _ => Err("write NAME=COMMAND, such as python=./worker.py".to_owned()),
    }
}

/// Reads a positive number.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("write a positive number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_options_are_consistent_and_the_help_says_how_the_worker_is_built() {
        Cli::command().debug_assert();
        let help = Cli::command().render_long_help().to_string();
        assert!(help.contains("cargo run --release -p tollgate-bench") && help.contains("--tollgate <PATH>"), "{help}");
    }

    #[test]
    fn options_are_read() {
        let cli =
            Cli::parse_from(["tollgate-bench", "--rate", "500", "-X", "a=b", "--baseline", "python=./worker.py", "--config", "x.yaml"]);
        assert_eq!((cli.rate, cli.connection.properties.as_slice()), (Some(500.0), ["a=b".to_owned()].as_slice()));
        assert_eq!(cli.baselines, [Subject::Baseline { name: "python".to_owned(), command: "./worker.py".to_owned() }]);
        assert_eq!(cli.baselines_folder, PathBuf::from("crates/bench/baselines"));
        for wrong in [["--rate", "0"], ["--rate", "inf"], ["--baseline", "python"], ["--overload", "-1"]] {
            assert!(Cli::try_parse_from(["tollgate-bench"].iter().chain(&wrong)).is_err(), "{wrong:?}");
        }
    }
}
