//! `tollgate bench`: open-loop load, and latency from the moment each event was meant to be sent.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::bench::{Invocation, Plan, Search, Session, Subject, Times};
use crate::settings::Settings;

use super::process;

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Brokers to use; without them and without a configuration file a broker is started (Java and Maven are needed)
    #[arg(long, value_name = "HOST:PORT,…", conflicts_with = "own_broker")]
    brokers: Option<String>,
    /// Start a broker, whatever the configuration says
    #[arg(long)]
    own_broker: bool,
    /// Events per second to measure latency at; left out: half of the peak, which is searched first
    #[arg(long, value_name = "EVENTS")]
    rate: Option<f64>,
    /// Seconds that a latency measurement takes, behind its warm-up
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    duration: u32,
    /// Seconds of every measurement that do not count
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    warm_up: u32,
    /// Milliseconds after which a verdict no longer counts
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    deadline_ms: u32,
    /// Where the traffic begins: the same seed gives the same events
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads of the traffic
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    threads: u32,
    /// Partitions of the topics
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    partitions: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(args: &BenchArgs, settings: Settings, invocation: Invocation) -> anyhow::Result<ExitCode> {
    let mut settings = settings;
    if settings.log.filter == "info" {
        settings.log.filter = "error,librdkafka=off".to_owned();
    }
    process::start_logging(&settings.log)?;
    let names_cluster = invocation.config.is_some() || std::env::var_os("TOLLGATE__KAFKA__BROKERS").is_some();
    if let Some(brokers) = &args.brokers {
        settings.kafka.brokers.clone_from(brokers);
    }
    let starts_broker = args.own_broker || (args.brokers.is_none() && !names_cluster);
    let invocation = Invocation { brokers: settings.kafka.brokers.clone(), ..invocation };
    let session = Session::open(args.plan(), settings.kafka, invocation, starts_broker)?;
    let phase = session.with_worker(&Subject::Gate, |bed| {
        let rate = match args.rate {
            Some(rate) => rate,
            None => session.find_peak(bed)?.per_second / 2.0,
        };
        Ok(bed.run(rate, session.plan.times)?.phase)
    })?;
    println!("{}", serde_json::to_string_pretty(&phase)?);
    Ok(ExitCode::SUCCESS)
}

impl BenchArgs {
    fn plan(&self) -> Plan {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let deadline = Duration::from_millis(self.deadline_ms.into());
        Plan {
            seed: self.seed,
            threads: self.threads as usize,
            partitions: self.partitions,
            times: Times { warm_up: seconds(self.warm_up), measured: seconds(self.duration), deadline },
            probe_times: Times { warm_up: seconds(self.warm_up), measured: seconds(3), deadline },
            search: Search { start: 4_000.0, precision: 1.1, attempts: 1, probes_max: 12 },
        }
    }
}
