//! The stages of a worker: each with its members, its group and a watch on the partitions of its topic.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate_abuse::AbuseSettings;
use tollgate_config::load;
use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::pass_through::PASS_THROUGH;
use tollgate_core::decide::policy::Policy;
use tollgate_worker::Stop;
use tollgate_worker::control_feed::{ControlFeed, FeedParts};
use tollgate_worker::health::Health;
use tollgate_worker::kafka::{ABUSE, StageTopics};
use tollgate_worker::metrics::Metrics;
use tollgate_worker::process::{GrowthWatch, Needs, RenewedParts, Worker, WorkerParts, watch_growth};
use tollgate_worker::shadow::Trial;
use tollgate_worker::stages::abuse::abuse;
use tollgate_worker::stages::deciding::{SignalTopic, deciding};
use tollgate_worker::stages::pass_through;
use tollgate_worker::traces::Export;

use super::{RunArgs, status};
use crate::commands::shared::{Readiness, UsageError, process};

/// How often to check whether the worker is ready.
const READY_POLL: Duration = Duration::from_millis(100);

/// What runs, and what has to be waited for in the end.
#[derive(Default)]
pub(super) struct Running {
    workers: Vec<Worker>,
    /// The watches on the numbers of partitions.
    pub(super) growth: Vec<GrowthWatch>,
    deciding: Option<(Export, ControlFeed)>,
}

impl Running {
    /// Waits until everything has drained, committed and left.
    pub(super) fn join(self) {
        self.workers.into_iter().for_each(Worker::join);
        if let Some((export, feed)) = self.deciding {
            export.finish();
            feed.join();
        }
    }
}

/// What is decided under: the policy in force, the controls, and the policy on trial if there is one.
pub(super) struct Decision {
    controls: Arc<Controls>,
    policy: Arc<Policy>,
    trial: Option<Trial>,
    writes_signals: bool,
}

impl Decision {
    /// Returns what is decided under, without asking anybody.
    ///
    /// # Errors
    /// The policy on trial cannot be read, or differs where it must not.
    pub(super) fn new(args: &RunArgs, settings: &Settings, needs: &Needs, parts: (&Arc<KafkaSettings>, &Metrics)) -> anyhow::Result<Self> {
        let controls = process::controls(&settings.subject_keys);
        let policy = Policy::under(&settings.policy, Arc::clone(&controls));
        let policy = if needs.writes_signals { policy.with_signals(settings.abuse.rules.interest()) } else { policy };
        let policy = Arc::new(policy);
        let trial = trial(args, &controls, &policy, parts)?;
        Ok(Self { controls, policy, trial, writes_signals: needs.writes_signals })
    }

    /// Starts to decide, once the controls are known. `known` is how many partitions the events topic has. Returns whether it was started,
    /// which it is not if the sign to stop came first.
    pub(super) async fn start(
        self,
        args: &RunArgs,
        settings: &Settings,
        (parts, known): (&WorkerParts, u32),
        renewed: &RenewedParts,
        running: &mut Running,
    ) -> anyhow::Result<bool> {
        let WorkerParts { kafka, topics, metrics, health, stop, .. } = parts;
        let Self { controls, policy, trial, writes_signals } = self;
        process::log_remarks(settings);
        let servers = process::policy_servers(&settings.policy, metrics)?;
        let feed = FeedParts::of(parts, controls, settings.policy.reads_passports());
        let feed = renewed.add(|| ControlFeed::start(feed), |feed| vec![feed.part().clone()])?;
        if !feed.caught_up().await {
            return Ok(false);
        }
        tracing::info!(
            brokers = kafka.shown_brokers(),
            group = kafka.group_id,
            topic = kafka.topics.events,
            partitions = topics.partitions,
            policy_version = if args.pass_through { PASS_THROUGH } else { policy.version() },
            loop_preset = settings.policy.tool_loop_guardrails.preset.name(),
            "joining; docs/loops.md says what the presets of the loop controllers are"
        );
        let export = Export::start(&settings.traces, kafka, metrics, (health.threads(), stop))?;
        let signals = writes_signals.then(|| SignalTopic::of(kafka, [topics.signal_partitions, topics.partitions], topics.batch_bytes_max));
        let start = || {
            if args.pass_through {
                return Worker::start(parts, pass_through(kafka, metrics));
            }
            Worker::start(parts, deciding(kafka, &policy, &servers, metrics, (export.traces(), trial.as_ref(), signals)))
        };
        let (worker, growth) = watched(parts, &StageTopics::of(kafka), known, renewed, start)?;
        running.workers.push(worker);
        running.growth.push(growth);
        running.deciding = Some((export, feed));
        let work = if args.pass_through { "passing through" } else { "deciding on" };
        announce(health, stop, (work, topics.partitions), Health::ready_partitions);
        status::start(metrics, health, stop)?;
        Ok(true)
    }
}

/// Starts to count signals, in a group of its own.
pub(super) fn start_abuse(
    settings: &AbuseSettings,
    group_id: &str,
    parts: &WorkerParts,
    renewed: &RenewedParts,
    running: &mut Running,
) -> anyhow::Result<()> {
    let (rules, own) = (Arc::new(settings.rules.clone()), parts.for_abuse(settings.members)?);
    let topics = StageTopics::of_abuse(&parts.kafka, group_id);
    tracing::info!(
        brokers = parts.kafka.shown_brokers(),
        group = group_id,
        topic = topics.input,
        partitions = own.topics.partitions,
        rules = rules.rules.len(),
        "joining to count signals"
    );
    let start = || Worker::start(&own, abuse(&own.kafka, &rules, group_id, (&parts.metrics, &own.metrics), parts.health.threads()));
    let (worker, growth) = watched(&own, &topics, own.topics.partitions, renewed, start)?;
    running.workers.push(worker);
    running.growth.push(growth);
    announce(&own.health, &own.stop, ("counting signals on", own.topics.partitions), |health| health.stage_partitions(ABUSE));
    Ok(())
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
    topics: &StageTopics,
    known: u32,
    renewed: &RenewedParts,
    start: impl FnOnce() -> std::io::Result<Worker>,
) -> anyhow::Result<(Worker, GrowthWatch)> {
    let start = || {
        let growth = watch_growth(parts, topics, known)?;
        anyhow::Ok((start()?, growth))
    };
    // The watch comes last: with revoked secrets it waits for an answer for some seconds, in which the members had better start over.
    renewed.add(start, |(worker, growth)| worker.parts().iter().chain([growth.part()]).cloned().collect())
}

/// Says on how many partitions a stage is at work, once it is, and when that changes.
fn announce(
    health: &Arc<Health>,
    stop: &Stop,
    (work, partitions): (&'static str, u32),
    at_work: impl Fn(&Health) -> Option<usize> + Send + 'static,
) {
    let (health, stop) = (Arc::clone(health), stop.clone());
    tokio::spawn(async move {
        let mut readiness = Readiness::new(Instant::now());
        while !stop.is_given() {
            if let Some(count) = readiness.take(at_work(&health), Instant::now()) {
                tracing::info!("ready: {work} {count} of {partitions} partitions");
            }
            tokio::time::sleep(READY_POLL).await;
        }
    });
}
