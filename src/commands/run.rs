//! `tollgate run`: a worker against real Kafka.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;

use crate::admin::Admin;
use crate::config::load;
use crate::control_feed::{ControlFeed, FeedParts};
use crate::health::Health;
use crate::kafka::SecretFiles;
use crate::logging::{finish_logging, start_logging};
use crate::member::Membership;
use crate::metrics::Metrics;
use crate::settings::{KafkaSettings, Settings};
use crate::shadow::Trial;
use crate::stages::deciding::deciding;
use crate::stages::pass_through;
use crate::stop::Stop;
use crate::threads::THREAD_ENDED;
use crate::topics::TopicRole;
use crate::traces::Export;
use crate::worker::{
    GrowthWatch, Preflight, PreflightError, Renewal, RenewedParts, Worker, WorkerParts, check_configs, check_keying, check_topics,
    watch_growth,
};
use tollgate_core::controls::Controls;
use tollgate_core::pass_through::PASS_THROUGH;
use tollgate_core::policy::{Policy, PolicySettings};
use tollgate_core::shadow::Sample;

use super::ready::Readiness;
use super::{UsageError, process};

/// How long leaving the group may take after the drain timeout.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to check for the sign to stop.
const STOP_POLL: Duration = Duration::from_millis(100);
/// How often to check whether the worker is ready.
const READY_POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Decide nothing: answer every record with a constant verdict that allows (what `bench` measures the worker against)
    #[arg(long)]
    pass_through: bool,
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
}

pub(super) fn read_sample(text: &str) -> Result<Sample, String> {
    let percent = text.strip_suffix('%').and_then(|digits| digits.trim().parse().ok()).and_then(Sample::of_percent);
    percent.ok_or_else(|| "it is no share; write more than 0% and at most 100%, such as 5%".to_owned())
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
    let (runtime, stop) = (process::runtime()?, Stop::default());
    let outcome = runtime.block_on(work(settings, args, stop.clone()));
    // What ends with the runtime ends because of this.
    stop.give();
    outcome
}

async fn work(settings: Settings, args: &RunArgs, stop: Stop) -> anyhow::Result<ExitCode> {
    let passes_through = args.pass_through;
    let (metrics, health) = (Metrics::new()?, Arc::new(Health::default()));
    process::watch_signals(&health, &stop)?;
    if let Some(admin) = &settings.admin {
        let listener = Admin::bind(admin.listen).await?;
        tracing::info!(listen = %listener.local_addr()?, "admin endpoint");
        process::serve_admin(listener, &metrics, &health, &stop);
    }
    let kafka = Arc::new(settings.kafka);
    let controls = process::controls(&settings.subject_keys);
    let policy = Arc::new(Policy::under(&settings.policy, Arc::clone(&controls)));
    let trial = trial(args, &controls, &policy, (&kafka, &metrics))?;
    let Some((topics, known)) = checked(&kafka, &health, &settings.policy, args, &stop).await? else {
        return Ok(process::stopped(&health));
    };
    let renewed = watch_secrets(&kafka, &metrics, &health, &stop)?;
    settings.policy.unusable().for_each(|fault| tracing::error!("{fault}"));
    let servers = process::policy_servers(&settings.policy, &metrics)?;
    let feed = FeedParts { kafka: Arc::clone(&kafka), controls, metrics: metrics.clone(), health: Arc::clone(&health), stop: stop.clone() };
    let feed = renewed.add(|| ControlFeed::start(feed), |feed| vec![feed.part().clone()])?;
    if !feed.caught_up().await {
        return Ok(process::stopped(&health));
    }
    tracing::info!(
        brokers = kafka.shown_brokers(),
        group = kafka.group_id,
        topic = kafka.topics.events,
        partitions = topics.partitions,
        policy_version = if passes_through { PASS_THROUGH } else { policy.version() },
        "joining"
    );
    let export = Export::start(&settings.traces, &kafka, &metrics, (health.threads(), &stop))?;
    let (settings, membership) = (settings.worker, Membership::Group);
    let parts = WorkerParts { kafka, settings, topics, membership, metrics, health, stop };
    let start = || {
        if passes_through {
            return Worker::start(&parts, pass_through(&parts.kafka, &parts.metrics));
        }
        Worker::start(&parts, deciding(&parts.kafka, &policy, &servers, &parts.metrics, (export.traces(), trial.as_ref())))
    };
    let (worker, growth) = watched(&parts, known, &renewed, start)?;
    tokio::spawn(announce(Arc::clone(&parts.health), parts.stop.clone(), topics.partitions, passes_through));
    super::status::start(&parts.metrics, &parts.health, &parts.stop)?;
    let drain_timeout = Duration::from_millis(parts.settings.drain_timeout_ms.into());
    tokio::select! {
        joined = tokio::task::spawn_blocking(move || { worker.join(); export.finish(); feed.join() }) => joined?,
        () = stop_deadline(&parts.stop, drain_timeout) => {
            // The brokers are away and the group cannot be left. Nothing is lost: what is not committed is decided again.
            tracing::error!("not stopped in time; ending");
            finish_logging();
            std::process::exit(if parts.health.threads().has_ended() { THREAD_ENDED.into() } else { 1 });
        }
    }
    tracing::info!("stopped");
    // A thread that has ended is the worse of the two.
    let is_failure = growth.has_stopped_the_worker() && !parts.health.threads().has_ended();
    Ok(if is_failure { ExitCode::FAILURE } else { process::stopped(&parts.health) })
}

/// Returns the policy on trial, if there is one, under the same controls as the one in force.
fn trial(
    args: &RunArgs,
    controls: &Arc<Controls>,
    in_force: &Policy,
    parts: (&Arc<KafkaSettings>, &Metrics),
) -> anyhow::Result<Option<Trial>> {
    let Some(path) = &args.shadow else { return Ok(None) };
    let settings = load(Some(path), std::env::vars_os())?.policy;
    settings.unusable().for_each(|fault| tracing::error!("--shadow: {fault}"));
    let policy = Arc::new(Policy::under(&settings, Arc::clone(controls)));
    let trial = Trial::new(&settings, in_force, policy, args.sample, parts).map_err(|error| UsageError(error.to_string()))?;
    tracing::info!(shadow_policy_version = trial.version(), "a policy is on trial beside the one in force");
    Ok(Some(trial))
}

/// Starts the members of a worker, and the watch on the number of partitions of their topic, which has had `known`.
fn watched(
    parts: &WorkerParts,
    known: u32,
    renewed: &RenewedParts,
    start: impl FnOnce() -> std::io::Result<Worker>,
) -> anyhow::Result<(Worker, GrowthWatch)> {
    let start = || {
        let growth = watch_growth(parts, known)?;
        anyhow::Ok((start()?, growth))
    };
    // The watch comes last: with revoked secrets it waits for an answer for some seconds, in which the members had better start over.
    renewed.add(start, |(worker, growth)| worker.parts().iter().chain([growth.part()]).cloned().collect())
}

/// Watches the files of secrets, so that every part with clients starts over when they change. Returns the list to which parts are added.
fn watch_secrets(kafka: &Arc<KafkaSettings>, metrics: &Metrics, health: &Arc<Health>, stop: &Stop) -> std::io::Result<RenewedParts> {
    let (parts, files) = (RenewedParts::default(), SecretFiles::new(kafka));
    let (kafka, health) = (Arc::clone(kafka), Arc::clone(health));
    Renewal { kafka, metrics: metrics.clone(), health, stop: stop.clone(), parts: parts.clone() }.start(files)?;
    Ok(parts)
}

/// Waits until a worker that was asked to stop should have done so.
async fn stop_deadline(stop: &Stop, drain_timeout: Duration) {
    stopped(stop).await;
    tokio::time::sleep(drain_timeout + LEAVE_TIMEOUT).await;
}

/// Waits for the sign to stop.
async fn stopped(stop: &Stop) {
    while !stop.is_given() {
        tokio::time::sleep(STOP_POLL).await;
    }
}

/// Checks everything that can be checked before the worker joins. Returns the topics with the partitions to work on, and how many there are;
/// `None` if the sign to stop came first.
async fn checked(
    kafka: &Arc<KafkaSettings>,
    health: &Arc<Health>,
    policy: &PolicySettings,
    args: &RunArgs,
    stop: &Stop,
) -> anyhow::Result<Option<(Preflight, u32)>> {
    let also = args.shadow.is_some().then_some(TopicRole::Shadow);
    let Some(topics) = preflight(kafka, also, health, policy.limits.thread_bytes_max, stop).await? else { return Ok(None) };
    Ok(keyed(kafka, topics, args.drain_partitions, stop).await?.map(|keyed| (keyed, topics.partitions)))
}

/// Checks the topics before the worker joins. Returns `None` if the sign to stop came first.
async fn preflight(
    kafka: &Arc<KafkaSettings>,
    also: Option<TopicRole>,
    health: &Arc<Health>,
    thread_bytes_max: usize,
    stop: &Stop,
) -> anyhow::Result<Option<Preflight>> {
    let checked = tokio::task::spawn_blocking({
        let (kafka, health, stop) = (Arc::clone(kafka), Arc::clone(health), stop.clone());
        move || check_topics(&kafka, also, &health, &stop)
    });
    match checked.await? {
        Ok(topics) => tokio::select! {
            checked = check_configs(kafka, topics, thread_bytes_max) => Ok(Some(checked?)),
            () = stopped(stop) => Ok(None),
        },
        Err(error @ PreflightError::Stopped(_)) => {
            tracing::info!("{error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks that the state is keyed for the partitions that there are, or for those that are drained. Returns the topics with the partitions to
/// work on, or `None` if the sign to stop came first.
async fn keyed(kafka: &Arc<KafkaSettings>, topics: Preflight, drained: Option<u32>, stop: &Stop) -> anyhow::Result<Option<Preflight>> {
    let checked = tokio::task::spawn_blocking({
        let (kafka, stop) = (Arc::clone(kafka), stop.clone());
        move || check_keying(&kafka, topics.partitions, drained, &stop)
    });
    match checked.await? {
        Ok(()) => Ok(Some(Preflight { partitions: drained.unwrap_or(topics.partitions), ..topics })),
        Err(error @ PreflightError::Stopped(_)) => {
            tracing::info!("{error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Says on how many partitions the worker is at work, once it is, and when that changes.
async fn announce(health: Arc<Health>, stop: Stop, partitions: u32, passes_through: bool) {
    let mut readiness = Readiness::new(Instant::now());
    while !stop.is_given() {
        if let Some(count) = readiness.take(health.ready_partitions(), Instant::now()) {
            let work = if passes_through { "passing through" } else { "deciding on" };
            tracing::info!("ready: {work} {count} of {partitions} partitions");
        }
        tokio::time::sleep(READY_POLL).await;
    }
}
