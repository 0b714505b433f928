//! `tollgate run`: a worker against real Kafka.
//!
//! It decides, and it counts signals beside that, each with members and a group of its own. `--stage` has it do one of the two.
//!
//! | module | what |
//! |---|---|
//! | `checks` | what is checked before the worker joins |
//! | `stages` | the stages that are started, and what is said of them |
//! | `status` | the line about rate, stops and lag |

mod checks;
mod stages;
mod status;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};

use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_core::decide::shadow::Sample;
use tollgate_worker::Stop;
use tollgate_worker::control_feed::worker_name;
use tollgate_worker::health::Health;
use tollgate_worker::kafka::SecretFiles;
use tollgate_worker::logging::start_logging;
use tollgate_worker::member::Membership;
use tollgate_worker::metrics::Metrics;
use tollgate_worker::process::{GrowthWatch, Renewal, RenewedParts, WorkerParts};

use crate::commands::shared::interrupt::watch_signals;
use crate::commands::shared::{process, read_sample};
use checks::{Checked, checked, needs};
use stages::{Decision, Running, start_abuse};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Decide nothing: answer every record with a constant verdict that allows (what `bench` measures the worker against)
    #[arg(long)]
    pass_through: bool,
    /// Do one of the two things that a worker does: `decide`, or count signals for the rules of the section `abuse`
    #[arg(long, value_name = "STAGE", conflicts_with = "pass_through")]
    stage: Option<OneStage>,
    /// Decide on the first N partitions only, with state that is keyed for N: what came before the events topic was given more partitions
    /// is decided so, before `tollgate state rekey`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    drain_partitions: Option<u32>,
    /// Try another configuration: a sample of the threads is decided by it too. What it would have changed is counted, and published as
    /// hashes to the topic `kafka.topics.shadow`. No verdict depends on it
    #[arg(long, value_name = "FILE", conflicts_with = "pass_through")]
    shadow: Option<PathBuf>,
    /// With --shadow: how much of the threads, chosen by the hashes of their ids
    #[arg(long, value_name = "PERCENT", requires = "shadow", default_value = "5%", value_parser = read_sample)]
    sample: Sample,
    /// Answer HTTP requests too, as `tollgate serve` does (`serve` in the configuration)
    #[arg(long)]
    serve: bool,
}

/// The stage that a worker runs alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OneStage {
    /// It decides, and writes signals.
    Decide,
    /// It counts signals, raises alerts and suspends. It decides nothing.
    Abuse,
}

pub(super) fn execute(args: &RunArgs, settings: Settings) -> anyhow::Result<ExitCode> {
    start_logging(&settings.log)?;
    if args.pass_through {
        tracing::warn!(
            group = settings.kafka.group_id,
            topic = settings.kafka.topics.events,
            "PASS-THROUGH: NOTHING IS DECIDED. Every record of this topic is answered with a verdict that allows, and this group will not \
             read it again. For measurements only, with a group and topics of their own"
        );
    }
    // Requests that wait for verdicts are answered before the members leave.
    let alone = Stop::default();
    let (first, stop) = if args.serve { Stop::in_two_steps() } else { (alone.clone(), alone) };
    let runtime = process::runtime()?;
    let outcome = runtime.block_on(work(settings, args, (first, stop.clone())));
    // What ends with the runtime ends because of this.
    stop.end();
    outcome
}

async fn work(settings: Settings, args: &RunArgs, (first, stop): (Stop, Stop)) -> anyhow::Result<ExitCode> {
    let (metrics, health) = (Metrics::new()?, Arc::new(Health::default()));
    watch_signals(&health, &first)?;
    process::start_admin(settings.admin.as_ref(), &metrics, &health, &stop).await?;
    let served = if args.serve { Some(process::start_server(&settings, (&metrics, &health), (&first, &stop)).await?) } else { None };
    let worked = work_as_members(&settings, args, (metrics, Arc::clone(&health)), &stop).await;
    // Before those who wait are answered, which may take a while.
    if let (Err(error), Some(_)) = (&worked, &served) {
        tracing::error!("the worker ends: {error:#}");
    }
    // Whatever ended the members, nobody who waits for a verdict is cut off.
    stop.give();
    let served = if let Some(served) = served { served.await? } else { Ok(()) };
    if health.threads().is_undrained() {
        tracing::error!("stopped with verdicts that the brokers have not acknowledged: their records will be decided again");
    } else if worked.is_ok() {
        tracing::info!("stopped");
    }
    worked.and_then(|code| served.map(|()| code))
}

/// Decides and counts until the sign to stop, and returns the exit code.
async fn work_as_members(
    settings: &Settings,
    args: &RunArgs,
    (metrics, health): (Metrics, Arc<Health>),
    stop: &Stop,
) -> anyhow::Result<ExitCode> {
    let (kafka, needs) = (Arc::new(settings.kafka.clone()), needs(args, settings)?);
    let decision = needs.decides.then(|| Decision::new(args, settings, &needs, (&kafka, &metrics))).transpose()?;
    let Some(Checked { topics, known }) = checked(&kafka, &health, &settings.policy, (args, &needs), stop).await? else {
        return Ok(process::stopped(&health));
    };
    let renewed = watch_secrets(&kafka, &metrics, &health, stop)?;
    let (worker_settings, membership) = (settings.worker.clone(), Membership::Group);
    let worker = worker_name(worker_settings.instance_id.as_deref());
    let parts = WorkerParts { worker, kafka, settings: worker_settings, topics, membership, metrics, health, stop: stop.clone() };
    let mut running = Running::default();
    if let Some(decision) = decision {
        let started = decision.start(args, settings, (&parts, known), &renewed, &mut running).await?;
        if !started {
            return Ok(process::stopped(&parts.health));
        }
    }
    if let Some(group_id) = &needs.abuse_group {
        start_abuse(&settings.abuse, group_id, &parts, &renewed, &mut running)?;
    }
    let drain_timeout = Duration::from_millis(parts.settings.drain_timeout_ms.into());
    let growth = std::mem::take(&mut running.growth);
    tokio::select! {
        joined = tokio::task::spawn_blocking(move || running.join()) => joined?,
        () = process::stop_deadline(&parts.stop, drain_timeout) => process::end_late(&parts.health),
    }
    // A thread that has ended is the worse of the two.
    let is_failure = growth.iter().any(GrowthWatch::has_stopped_the_worker) && !parts.health.threads().has_ended();
    Ok(if is_failure { ExitCode::FAILURE } else { process::stopped(&parts.health) })
}

/// Watches the files of secrets, so that every part with clients starts over when they change. Returns the list to which parts are added.
fn watch_secrets(kafka: &Arc<KafkaSettings>, metrics: &Metrics, health: &Arc<Health>, stop: &Stop) -> std::io::Result<RenewedParts> {
    let (parts, files) = (RenewedParts::default(), SecretFiles::new(kafka));
    let (kafka, health) = (Arc::clone(kafka), Arc::clone(health));
    Renewal { kafka, metrics: metrics.clone(), health, stop: stop.clone(), parts: parts.clone() }.start(files)?;
    Ok(parts)
}
