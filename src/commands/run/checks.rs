//! What a worker is to do, and what is checked before it joins.

use std::sync::Arc;

use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_core::decide::policy::PolicySettings;
use tollgate_worker::Stop;
use tollgate_worker::health::Health;
use tollgate_worker::kafka::StageTopics;
use tollgate_worker::process::{Needs, Preflight, PreflightError, check_configs, check_keying, check_subject_keying, check_topics};

use super::{OneStage, RunArgs};
use crate::commands::shared::{UsageError, process};

/// What the checks have found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checked {
    /// The topics, with the partitions to decide on.
    pub(super) topics: Preflight,
    /// How many partitions the events topic has.
    pub(super) known: u32,
}

/// Returns what a worker is to do.
///
/// # Errors
/// [`UsageError`] if it is to count signals and there are no rules.
pub(super) fn needs(args: &RunArgs, settings: &Settings) -> Result<Needs, UsageError> {
    let whole = Needs { tries_policy: args.shadow.is_some(), ..Needs::of_run(settings) };
    match args.stage {
        None if args.pass_through => Ok(Needs::deciding()),
        None => Ok(whole),
        Some(OneStage::Decide) => Ok(Needs { abuse_group: None, ..whole }),
        Some(OneStage::Abuse) if settings.abuse.rules.rules.is_empty() => {
            let why = "--stage abuse: there are no rules to count by; write some (abuse.rules), or put the pack in force (abuse.pack)";
            Err(UsageError(why.to_owned()))
        }
        Some(OneStage::Abuse) => Ok(Needs { abuse_group: Some(settings.abuse_group()), ..Needs::default() }),
    }
}

/// Checks everything that can be checked before the worker joins. Returns `None` if the sign to stop came first.
pub(super) async fn checked(
    kafka: &Arc<KafkaSettings>,
    health: &Arc<Health>,
    policy: &PolicySettings,
    (args, needs): (&RunArgs, &Needs),
    stop: &Stop,
) -> anyhow::Result<Option<Checked>> {
    let Some(topics) = preflight(kafka, needs, health, policy.limits.thread_bytes_max, stop).await? else { return Ok(None) };
    let keyed = keyed(kafka, topics, (needs, args.drain_partitions), stop).await?;
    Ok(keyed.map(|keyed| Checked { topics: keyed, known: topics.partitions }))
}

/// Checks the topics before the worker joins. Returns `None` if the sign to stop came first.
async fn preflight(
    kafka: &Arc<KafkaSettings>,
    needs: &Needs,
    health: &Arc<Health>,
    thread_bytes_max: usize,
    stop: &Stop,
) -> anyhow::Result<Option<Preflight>> {
    let checked = tokio::task::spawn_blocking({
        let (kafka, needs, health, stop) = (Arc::clone(kafka), needs.clone(), Arc::clone(health), stop.clone());
        move || check_topics(&kafka, &needs, &health, &stop)
    });
    match checked.await? {
        Ok(topics) => tokio::select! {
            checked = check_configs(kafka, needs, topics, thread_bytes_max) => Ok(Some(checked?)),
            () = process::stopping(stop) => Ok(None),
        },
        Err(error @ PreflightError::Stopped(_)) => {
            tracing::info!("{error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks that the state of each stage is keyed for the partitions that there are, or for those that are drained. Returns the topics with the
/// partitions to work on, or `None` if the sign to stop came first.
async fn keyed(
    kafka: &Arc<KafkaSettings>,
    topics: Preflight,
    (needs, drained): (&Needs, Option<u32>),
    stop: &Stop,
) -> anyhow::Result<Option<Preflight>> {
    let checked = tokio::task::spawn_blocking({
        let (kafka, needs, stop) = (Arc::clone(kafka), needs.clone(), stop.clone());
        move || {
            if needs.decides {
                check_keying(&kafka, topics.partitions, drained, &stop)?;
            }
            let Some(group_id) = &needs.abuse_group else { return Ok(()) };
            check_subject_keying(&kafka, &StageTopics::of_abuse(&kafka, group_id), topics.signal_partitions, &stop)
        }
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
